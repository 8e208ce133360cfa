"""What the control plane does under a load, or while connections are held: dumps, revalidation, entries that are
removed from a large table; the figures, what each promise is decided by, and what says nothing."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import Done, Revalidation, TableEntry, ThreadLook
from ctbench.dut.base import DutCounts
from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.ovs.control_plane import require_cpus
from ctbench.dut.table import read_entries
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.campaign import ControlPlaneSettings
from ctbench.measure.procedure import Bench, Outcome, Scripted
from ctbench.measure.procedures import control_plane, held_dump, removal
from ctbench.measure.procedures.held_dump import DUMPS, HELD_DUMP, LONG_DUMPS
from ctbench.measure.procedures.removal import ENTRY_REMOVAL, TABLE_REMOVAL, ZONE_REMOVAL
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.results import store
from ctbench.results.evidence import Evidence
from ctbench.results.floor import Floor
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code
from ctbench.sla.verdict import RowVerdict, judge
from ctbench.traffic.generator import Times, Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import PacketProfile, Profile

from . import simulated
from .table_double import HELD, HoldingDouble, TableDouble, table_bench

FLOWS = PacketProfile(name="udp-64-10k", kind="packets", flows=10_000)


@dataclass
class FakePlane(simulated.HealthyDut):
    """Its control plane takes as long as it is told to; a trial lasts until that has worked so often. Only the trial
    in which it works loses something, or has a generator that is late."""

    takes: Callable[[int], float] = lambda _number: 0.1
    size: float = 10_000.0
    works: int = 12
    loss: float = 0.0
    p99_us: float = 200.0
    limited: str = ""
    late_ms: float = 0.0
    #: Of the load alone: what it loses, and why its generator is the limit.
    alone_loss: float = 0.0
    alone_limited: str = ""
    #: What the control plane answers in the place of working, and when; and what ends the trial.
    refused: str = ""
    refuses: Callable[[int], bool] = lambda _number: True
    error: type[Exception] = TestbedError
    dies: str = ""
    done: int = 0
    #: How often its entries are counted before the load makes the first; and were counted.
    empty_for: int = 0
    counted: int = 0
    #: Flows that its datapath says it may have, how many it was told, and how often a round was forced.
    limit: int = 200_000
    allowed: int = 0
    forced: int = 0
    #: Whether its main thread can be seen, whether it never waits for an event, and how often it was looked at.
    seen: bool = True
    stuck: bool = False
    looks: int = 0
    durations: list[float] = field(default_factory=list)
    #: Ports that were added, and those of them that were looked at.
    ports: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)

    @property
    def control_plane(self) -> "FakePlane":
        return self

    def work(self) -> None:
        self.done += 1
        if self.refused and self.refuses(self.done):
            raise self.error(self.refused)

    def connections(self) -> int:
        self.counted += 1
        return 0 if self.counted <= self.empty_for else round(self.size)

    def add_port(self, name: str) -> Done:
        self.work()
        self.ports.append(name)
        return Done(0.2, 0)

    def delete_port(self, name: str) -> Done:
        self.work()
        self.delete_ports([name])
        return Done(0.1, 0)

    def check_port(self, name: str) -> None:
        self.checked.append(name)
        assert name in self.ports

    def delete_ports(self, names: Sequence[str]) -> None:
        self.ports = [name for name in self.ports if name not in names]

    def dump_connections(self) -> Done:
        self.work()
        return Done(self.takes(self.done), self.size)

    def revalidation(self) -> Revalidation:
        done = self.dump_connections()
        return Revalidation(done.seconds, round(done.size), self.limit)

    def allow_flows(self, number: int) -> None:
        self.allowed = number

    def revalidate_all(self) -> None:
        self.forced += 1

    def main_thread(self) -> ThreadLook | None:
        self.looks += 1
        return ThreadLook(self.looks / 1000, self.looks % 10 != 1 and not self.stuck) if self.seen else None

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.durations.append(duration_s)
        make = simulated.made_up_packets if profile.kind == "packets" else simulated.made_up_trial
        if duration_s == simulated.campaign().control_plane.alone_duration:
            return make(load.per_s, duration_s, loss=self.alone_loss, generator_limited=self.alone_limited)
        while (self.done < self.works or self.looks < 2) and self.looks < 10 * self.works:
            time.sleep(0.001)
        if self.dies:
            raise TestbedError(self.dies)
        made = make(load.per_s, duration_s, loss=self.loss, generator_limited=self.limited)
        times = Times(p50=50, p90=100, p99=self.p99_us, max=self.p99_us * 2)
        return made.model_copy(update={"connect_time_us": times, "late_max_ms": self.late_ms})


def measured(
    dut: FakePlane, procedure: Scripted, profile: Profile = simulated.SHORT, **limits: str
) -> tuple[Outcome, RowVerdict]:
    """What a procedure finds of a DUT, without waiting between two works, and what becomes of these promises."""
    thresholds = simulated.promises(**limits)
    script: Any = procedure.script
    times, action, least_s = script.args
    at_once = lambda at: replace(action(at), every_s=0.001)  # noqa: E731
    hurried = replace(procedure, script=partial(script.func, times, at_once, least_s))
    floor = Floor(
        key="ovs-dpdk/conntrack/1cpu-1rxq",
        profile=profile,
        source="tests",
        metric=procedure.metric(profile),
        thresholds=thresholds,
    )
    outcome = hurried.run(Bench(dut, dut, floor, simulated.campaign()))
    return outcome, judge(outcome, floor)


#: Each of its flows comes again within 4 s.
MANY = PacketProfile(name="udp-64-100k-both", kind="packets", flows=100_000, directions="both", client_ips=256)


def test_the_load_is_offered_alone_first_and_the_figure_is_the_median_of_the_times() -> None:
    dut = FakePlane(takes=lambda number: 0.1 + number / 1000, works=21)
    found, verdict = measured(dut, control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert dut.durations == [2.0, 4.0]
    assert [each.phase for each in found.trials] == ["alone", "beside"]
    (record,) = found.evidence.control
    assert (record.action, record.size, record.sizes) == ("dump", 10_000, "entries")
    assert record.number == dut.done >= 21
    assert record.low <= record.median <= record.high <= record.p99 <= record.most == 0.1 + dut.done / 1000
    assert (found.result.value, found.result.low, found.result.high) == (record.median, record.low, record.high)
    assert found.figures["loss_meanwhile"].value == 0
    assert found.figures["connect_time_meanwhile"].value == pytest.approx(200e-6)
    assert (verdict.word, verdict.code) == ("met", Code.INTERVAL)
    # Sample by sample, as the probe saw it.
    (seen,) = found.trials[1].samples
    assert seen.name == "dump_time" and seen.unit == "s"
    assert record.most in seen.values
    assert not found.trials[0].samples


@pytest.mark.parametrize(
    ("dut", "promised", "word", "code"),
    [
        (FakePlane(), {"dump_time": "<= 50ms"}, "missed", Code.INTERVAL),
        (
            FakePlane(takes=lambda number: (0.04, 0.06)[number % 2]),
            {"dump_time": "<= 50ms"},
            "not measured",
            Code.TOO_CLOSE,
        ),
        (FakePlane(loss=0.005), {"loss_meanwhile": "<= 1%"}, "met", Code.INTERVAL),
        (FakePlane(loss=0.05), {"loss_meanwhile": "<= 1%"}, "missed", Code.FIGURE),
        (FakePlane(loss=0.05, limited="it was 300 ms late"), {"loss_meanwhile": "<= 1%"}, "not measured", Code.INVALID),
        (FakePlane(p99_us=5_000, late_ms=0.5), {"connect_time_meanwhile": "<= 2ms"}, "missed", Code.FIGURE),
        (FakePlane(p99_us=5_000, late_ms=18.0), {"connect_time_meanwhile": "<= 2ms"}, "not measured", Code.GENERATOR),
        (FakePlane(), {"main_thread_longest": "<= 1us"}, "met", Code.INTERVAL),  # single looks between waits
        (FakePlane(stuck=True), {"main_thread_longest": "<= 1us"}, "missed", Code.FIGURE),
        (FakePlane(seen=False), {"main_thread_longest": "<= 1us"}, "not measured", Code.NOTHING),
        (FakePlane(size=5_000), {}, "not measured", Code.NOTHING),
        (FakePlane(works=12, refused="`ovs-appctl` failed"), {}, "not measured", Code.NOTHING),
        (
            FakePlane(works=60, refused="`ovs-appctl` failed", refuses=lambda number: number % 10 > 0),
            {"dump_time": "<= 2s"},
            "not measured",
            Code.FAULT,
        ),
        (
            FakePlane(works=60, refused="`ovs-appctl` failed", refuses=lambda number: number % 10 > 0),
            {"dump_time": "<= 50ms"},
            "missed",
            Code.INTERVAL,
        ),
        # The first ones, before any was printed; and answers that are not a number.
        *(
            (
                FakePlane(works=62, refused="`ovs-appctl` failed", refuses=lambda number: number <= 56, error=error),
                {"dump_time": "<= 2s"},
                "not measured",
                Code.FAULT,
            )
            for error in (TestbedError, ValueError)
        ),
    ],
)
def test_a_promise_is_decided_by_its_evidence(dut: FakePlane, promised: dict[str, str], word: str, code: Code) -> None:
    found, verdict = measured(dut, control_plane.TABLE_DUMP, **({"dump_time": "<= 2s"} | promised))
    assert (verdict.word, verdict.code) == (word, code)
    assert [each.metric for each in verdict.thresholds if not each.met] == (
        [] if word == "met" else list(promised) or ["dump_time"]
    )
    assert bool(found.figures) == bool(promised)


def test_a_table_that_the_load_has_not_filled_yet_fails_no_dump() -> None:
    dut = FakePlane(empty_for=4)
    found, verdict = measured(dut, control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert (found.evidence.control[0].number, verdict.word) == (dut.done, "met")
    assert dut.counted == dut.done + 4


def test_what_does_little_says_nothing() -> None:
    found, verdict = measured(FakePlane(size=6), control_plane.REVALIDATION, FLOWS, revalidation_time="<= 1s")
    assert (verdict.word, found.limited_by, found.figures) == ("not measured", "dut", {})
    assert "with 8.0 k flows or more (6.0 at most)" in verdict.reason


def test_what_the_generator_lost_is_no_figure_and_a_dut_that_dies_is_a_fault() -> None:
    found, _ = measured(FakePlane(loss=0.1, limited="it was 300 ms late"), control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert set(found.figures) == {"dump_time", "main_thread_longest"}
    found, _ = measured(FakePlane(limited="it was 300 ms late"), control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert found.figures["loss_meanwhile"].value == 0
    # A trial that loses much is not ended early.
    found, _ = measured(FakePlane(loss=0.9), control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert found.trials[1].trial.ended_after_s is None
    assert (found.trials[1].state, found.figures["loss_meanwhile"].value) == ("bad", pytest.approx(0.9))
    dead = FakePlane(dies="ovs-vswitchd (process 7) was killed by SIGKILL.")
    found, verdict = measured(dead, control_plane.TABLE_DUMP)
    assert (found.limited_by, len(found.trials)) == ("fault", 1)
    assert "killed by SIGKILL, in trial 2" in verdict.reason


@pytest.mark.parametrize(
    ("dut", "trials", "limited_by"),
    [(FakePlane(alone_loss=0.1), 1, "dut"), (FakePlane(alone_limited="its CPU was taken"), 3, "generator")],
)
def test_a_load_that_is_not_held_alone_says_nothing(dut: FakePlane, trials: int, limited_by: str) -> None:
    found, verdict = measured(dut, control_plane.TABLE_DUMP, dump_time="<= 2s")
    assert (verdict.word, found.limited_by, len(found.trials), dut.done) == ("not measured", limited_by, trials, 0)


def test_a_load_keeps_its_flows_alive_and_statistics_last_three_periods() -> None:
    settings = ControlPlaneSettings.model_validate({"packets": "50k"})
    assert (settings.rate(simulated.SHORT), settings.rate(FLOWS)) == (10_000, 50_000)
    found, verdict = measured(FakePlane(), control_plane.STATISTICS, statistics_time="<= 500ms")
    assert found.trials[1].trial.duration_s == 16
    assert (verdict.word, verdict.code) == ("not measured", Code.NOTHING)


def test_the_page_says_how_long_it_took(tmp_path: Path) -> None:
    found, _ = measured(FakePlane(), control_plane.TABLE_DUMP, dump_time="<= 2s")
    promised = simulated.promises(dump_time="<= 2s")
    floor = replace(simulated.made_up_floor(), metric=METRICS["dump_time"], thresholds=promised)
    evidence = Evidence(trials=[each.as_record() for each in found.trials], control=found.evidence.control)
    store.write(simulated.made_up_record(found, floor, None, test="Dump", evidence=evidence), tmp_path)
    runs = read_runs([tmp_path])
    (row,) = compose(runs, tmp_path).rows
    (said,) = row.details["What was done meanwhile"]
    assert said.startswith("dump of the connection table, 10.0 k entries: ") and "median 100.0 ms" in said
    assert "lost meanwhile 0.000 %" in str(row.details["Also measured"])


def test_revalidation_says_a_lowered_flow_limit_and_a_sweep_forces_its_round() -> None:
    dut = FakePlane(limit=150_000)
    found, verdict = measured(dut, control_plane.REVALIDATION, FLOWS, revalidation_time="<= 1s")
    (record,) = found.evidence.control
    assert (record.metric, record.sizes, record.median) == ("revalidation_time", "flows", 0.1)
    assert record.remark == "the flow limit was lowered from 200000 to 150000"
    assert (verdict.word, dut.allowed, dut.forced) == ("met", 200_000, 0)
    dut = FakePlane()
    found, verdict = measured(dut, control_plane.SWEEP, FLOWS, sweep_time="<= 50ms")
    assert (found.evidence.control[0].metric, dut.forced) == ("sweep_time", dut.done)
    assert found.evidence.control[0].remark == "the flow limit stayed at 200000"
    assert verdict.word == "missed"


def test_a_round_that_may_have_begun_with_fewer_flows_does_not_count() -> None:
    answers = [Revalidation(0.001, 9_000, 200_000), Revalidation(0.002, 300, 200_000)]
    answers += [Revalidation(0.003, 10_000, 200_000), Revalidation(0.020, 10_000, 200_000)]
    plane = FakePlane()
    asked = iter(answers)
    plane.revalidation = lambda: next(asked)  # type: ignore[method-assign]
    action = control_plane.revalidation(plane)
    for _ in answers:
        action.sample()
    assert [(each.seconds, each.size) for each in action.done["revalidation_time"]] == [
        (0.001, 9_000),
        (0.002, 300),
        (0.003, 300),
        (0.020, 10_000),
    ]


@pytest.mark.parametrize(
    ("promised", "missed"),
    [("<= 250ms", []), ("<= 150ms", ["port_add_time"]), ("<= 50ms", ["port_add_time", "port_delete_time"])],
)
def test_ports_that_take_long_to_be_added_or_deleted_are_missed_and_none_is_left(
    promised: str, missed: list[str]
) -> None:
    dut = FakePlane(works=30)
    found, verdict = measured(dut, control_plane.PORT_CHURN, port_add_time=promised, port_delete_time=promised)
    medians = {each.metric: each.median for each in found.evidence.control}
    assert medians == {"port_add_time": 0.2, "port_delete_time": 0.1}
    assert [each.metric for each in verdict.thresholds if not each.met] == missed
    assert (dut.ports, dut.checked) == ([], ["pod0"])


def test_ports_of_which_one_was_not_added_are_not_met() -> None:
    dut = FakePlane(works=30, refused="`ovs-vsctl add-port` failed", refuses=lambda number: number == 3)
    found, verdict = measured(dut, control_plane.PORT_CHURN, port_add_time="<= 250ms", port_delete_time="<= 50ms")
    assert {name: (each.kept, each.code) for name, each in found.verdicts.items()} == {
        "port_add_time": (None, Code.FAULT),
        "port_delete_time": (False, Code.INTERVAL),
    }
    assert f"1 of {dut.done - 2} tries failed: `ovs-vsctl add-port` failed" in found.reason
    assert verdict.word == "missed"


def test_of_each_period_the_collection_is_the_most_time_that_the_main_thread_took_in_one_go() -> None:
    first = [(0.0, 0.0), (1.0, 0.0), (1.02, 0.01), (1.04, 0.02), (2.0, 0.02), (2.02, 0.021)]
    second = [(6.0, 0.021), (6.02, 0.051), (9.0, 0.051)]
    begun = [(11.0, 0.051), (11.02, 0.951)]
    assert control_plane.bursts([*first, *second, *begun]) == pytest.approx([0.02, 0.03])
    assert control_plane.bursts([]) == control_plane.bursts(first) == []


def test_of_the_looks_for_collections_those_that_failed_are_counted() -> None:
    plane = FakePlane()
    action = control_plane.statistics_of(plane, 100)
    for look in range(20):
        plane.seen = look % 5 > 0
        with suppress(TestbedError):
            action.sample()
    action.end(action)
    assert action.failed.startswith("4 of 20 ")


def test_more_revalidators_or_handlers_than_cpus_for_them_are_more_than_this_machine_has() -> None:
    two = Placement((0,), (1,), (0,))
    require_cpus(Topology(), two)
    require_cpus(Topology(revalidators=1), two)
    require_cpus(Topology(revalidators=4), replace(two, oversubscribed=True))
    require_cpus(Topology(handlers=1), two)
    with pytest.raises(MissingResource, match="2 revalidators need 2 CPUs besides those of the PMD threads: here"):
        require_cpus(Topology(revalidators=2), two)
    with pytest.raises(MissingResource, match="2 handlers need 2 CPUs"):
        require_cpus(Topology(handlers=2), two)


@dataclass
class Dumping(TableDouble):
    """A DUT whose table takes so long to be printed; `mute` connections do not answer once it was."""

    takes: float = 0.1
    #: Of its entries, those that are printed.
    prints: float = 1.0
    declines: str = ""
    #: Which of the dumps it declines, numbered from 1 on.
    declined: range = range(1, 10**9)
    dumps: int = 0
    dies: bool = False
    deaf: int = 0
    #: Whether its main thread can be seen, and waits for an event at every other look.
    seen: bool = True
    answers: bool = True
    looks: int = 0

    @property
    def control_plane(self) -> "Dumping":
        return self

    def main_thread(self) -> ThreadLook | None:
        self.looks += 1
        return ThreadLook(self.looks / 1000, self.answers and self.looks % 2 == 0) if self.seen else None

    def dump_connections(self) -> Done:
        time.sleep(0.001)
        self.dumps += 1
        self.mute = self.deaf
        if self.declines and self.dumps in self.declined:
            raise TestbedError(self.declines)
        return Done(self.takes, self.entries * self.prints)

    def trouble(self) -> str:
        return "ovs-vswitchd died." if self.dies and self.dumps else ""

    def hold(self, profile: object, load: object) -> HoldingDouble:
        return Patient(self, load)  # type: ignore[arg-type]


class Patient(HoldingDouble):
    """Connections that answer after a while."""

    def ask(self) -> object:  # type: ignore[override]
        time.sleep(0.001)
        return super().ask()


def dumped(dut: Dumping, **limits: float) -> Outcome:
    return HELD_DUMP.run(table_bench(dut, limits={"held_connections": 500} | limits))


def judged_dump(dut: Dumping, **limits: float) -> RowVerdict:
    """What becomes of the promises of a row as `Dump Of 3 Million`."""
    every = {"dump_time": 60.0, "held_connections": 500} | limits
    return judge(dumped(dut, **every), replace(simulated.floor_of(HELD, **every), metric=METRICS["dump_time"]))


def test_dumps_are_nine_and_those_that_take_long_are_three() -> None:
    short, long = (dumped(Dumping(takes=seconds)).evidence.control[0] for seconds in (0.1, 10.0))
    assert LONG_DUMPS <= long.number < DUMPS <= short.number


def test_what_does_not_answer_meanwhile_is_lost_and_a_dead_dut_is_not_waited_for() -> None:
    found = dumped(Dumping(deaf=50), loss_meanwhile=0.01)
    assert 0 < found.figures["loss_meanwhile"].value <= 0.1
    assert found.verdicts["loss_meanwhile"].kept is False
    assert 0 < found.figures["blocked_meanwhile"].value < 1
    dut = Dumping(dies=True, declines="gone")
    assert "0 dumps" in dumped(dut).reason
    dut.error = TestbedError("ovs-vswitchd was killed.")
    assert dumped(dut).limited_by == "fault"


@pytest.mark.parametrize(
    ("dut", "word", "code"),
    [
        (Dumping(), "met", Code.INTERVAL),
        (Dumping(answers=False), "missed", Code.FIGURE),
        (Dumping(seen=False), "not measured", Code.NOTHING),  # as of a DUT on another machine
    ],
)
def test_a_main_thread_that_answers_nothing_while_the_table_is_printed_is_missed(
    dut: Dumping, word: str, code: Code
) -> None:
    verdict = judged_dump(dut, main_thread_longest=1e-6)
    assert (verdict.word, verdict.code) == (word, code), verdict.reason
    assert [each.metric for each in verdict.thresholds if not each.met] == ["main_thread_longest"] * (word != "met")
    assert word == "met" or "longest main-thread stall" in verdict.reason


@pytest.mark.parametrize("declined", [range(1, 3), range(2, 3)])
@pytest.mark.parametrize(
    ("takes", "word", "code"), [(0.1, "not measured", Code.FAULT), (61.0, "missed", Code.INTERVAL)]
)
def test_a_dump_that_fails_among_others_is_not_met(takes: float, word: str, code: Code, declined: range) -> None:
    verdict = judged_dump(Dumping(takes=takes, declines="printed no connection", declined=declined))
    assert (verdict.word, verdict.code) == (word, code), verdict.reason
    assert [each.metric for each in verdict.thresholds if not each.met] == ["dump_time"]


def test_a_main_thread_that_cannot_be_seen_is_not_measured_where_the_dump_is_missed_too() -> None:
    verdict = judged_dump(Dumping(seen=False, takes=61.0), main_thread_longest=1e-6)
    assert (verdict.word, verdict.code) == ("missed", Code.INTERVAL), verdict.reason
    told = {each.metric: (each.met, each.undecided) for each in verdict.thresholds if not each.met}
    assert told == {"dump_time": (False, False), "main_thread_longest": (False, True)}
    assert "main-thread stall" not in verdict.reason


@pytest.mark.parametrize(
    ("dut", "reason"),
    [
        (Dumping(limit=400), "were not held: 100 of 500 were refused"),
        (Dumping(miscount=1), "were not held: opened: the DUT counted 501 entries"),
        (Dumping(mute=3), "3 connections did not answer before any dump"),
        (Dumping(prints=0.5), "0 dumps of all entries say nothing"),
        (Dumping(declines="printed no connection"), "0 dumps of all entries say nothing"),
    ],
)
def test_what_says_nothing_says_why(dut: Dumping, reason: str) -> None:
    found = dumped(dut)
    assert (found.figures, found.kept_conditions) == ({}, False)
    assert reason in found.reason


#: Connections that fill the table, and its zones.
FILLED, ZONES = 900, 64


@dataclass
class Removing(TableDouble):
    """A DUT whose entries can be removed, with its generator: a trial lasts until some were, and only during a removal
    something is lost."""

    limit: int = 1_000_000
    takes: float = 0.02
    loss: float = 0.0
    #: The rounds in which it is lost, and in which connections wait for 400 ms, numbered from 1 on.
    loses_in: range = range(1, 100)
    waits_in: range = range(0)
    #: What a removal leaves although it has to go, takes although it has to stay, and how often it was told.
    spares: int = 0
    more: int = 0
    #: The removals that it refuses, numbered from 1 on: that before the load is the first.
    declined: range = range(0)
    told: list[str] = field(default_factory=list)
    beside: int = 0
    #: The last trial, and openings before `begin_trial` was called last.
    trial: Trial | None = None
    began: int = 0

    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        every = [TableEntry("tcp", "16.128.0.1", "48.0.0.1", 1024 + n, 8080, n % ZONES) for n in range(self.entries)]
        return [entry for entry in every if zone in (None, entry.zone)]

    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        size = self.entries
        self.told.append("entry" if entry else "all" if zone is None else "zone")
        if len(self.told) in self.declined:
            raise TestbedError("refused")
        inside = 1 if entry else size if zone is None else len(self.list_entries(zone))
        self.entries -= max(0, inside - self.spares) + self.more
        return Done(self.takes, size)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        if duration_s == simulated.campaign().control_plane.alone_duration:
            return simulated.made_up_trial(load.per_s, duration_s)
        self.beside += 1
        wanted = 5 if self.told and "all" not in self.told else self.beside
        end = time.monotonic() + 1
        while len(self.told) < wanted and time.monotonic() < end:
            time.sleep(0.001)
        loss = self.loss if self.beside in self.loses_in else 0.0
        p99_us = 400_000.0 if self.beside in self.waits_in else 200.0
        self.trial = simulated.made_up_trial(load.per_s, duration_s, loss=loss, p99_us=p99_us)
        return self.trial

    def begin_trial(self) -> None:
        self.began = len(self.opened)

    def counts(self) -> DutCounts | None:
        """What it sent: of the load what the generator took, and three frames of each connection that was opened."""
        took = self.trial.total_rx_packets if self.trial else {}
        return DutCounts({}, {side: count + 3 * sum(self.opened[self.began :]) for side, count in took.items()})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_dump, "MOST_S", 2.0)
    for name in ("_OFFERED_S", "_COUNTED_S"):
        monkeypatch.setattr(removal, name, 0.005)
    monkeypatch.setattr(removal, "_EVERY_S", 0.001)
    monkeypatch.setattr(removal, "_KNOWN", 100)
    monkeypatch.setattr(removal, "LARGE_TABLE", FILLED)


def removed(procedure: Scripted, dut: Removing, **limits: str) -> tuple[Outcome, RowVerdict]:
    """What a procedure finds, and what becomes of these promises."""
    name = procedure.found_out[0]
    thresholds = simulated.promises(**({name: "<= 1s"} | limits))
    limits_of = {name: each.limit for name, each in thresholds.items()}
    bench = table_bench(dut, profile=simulated.SHORT, limits=limits_of, topology=Topology())
    found = procedure.run(bench)
    floor = Floor(
        key="ovs-dpdk/conntrack/1cpu-1rxq",
        profile=simulated.SHORT,
        source="tests",
        metric=METRICS[name],
        thresholds=thresholds,
    )
    return found, judge(found, floor)


PROCEDURES = {"entry": ENTRY_REMOVAL, "zone": ZONE_REMOVAL, "all": TABLE_REMOVAL}


@pytest.mark.parametrize("what", PROCEDURES)
def test_what_is_removed_of_a_full_table_beside_the_load_is_timed(what: str) -> None:
    dut = Removing()
    found, verdict = removed(PROCEDURES[what], dut, loss_meanwhile="<= 1%")
    assert verdict.word == "met", verdict.reason
    (record,) = found.evidence.control
    assert set(dut.told) == {what} and record.median == 0.02
    assert record.size >= 0.8 * FILLED
    # All of them go three times, each from a table that was filled again.
    assert [each.phase for each in found.trials] == ["alone", *["beside"] * (3 if what == "all" else 1)]
    assert dut.opened[:2] == [100, FILLED - 100]


@pytest.mark.parametrize(
    ("what", "fault", "said"),
    [
        ("entry", {"spares": 1}, "the removal of one entry left 900 entries where 899 have to be"),
        ("entry", {"more": 3}, "the removal of one entry left 896 entries where 899 have to be"),
        ("zone", {"more": 1}, "entries of zone"),
        ("zone", {"spares": 5}, "entries of zone"),
        ("all", {"spares": 600}, "the removal of all 900 entries left 600"),
    ],
)
def test_a_command_that_removes_something_else_is_missed(what: str, fault: dict[str, int], said: str) -> None:
    found, verdict = removed(PROCEDURES[what], Removing(**fault))  # type: ignore[arg-type]
    assert (verdict.word, found.figures) == ("missed", {})
    assert said in verdict.reason


LOSS = {"loss_meanwhile": "<= 1%"}


@pytest.mark.parametrize(
    ("procedure", "fault", "promised", "missed", "code", "value"),
    [
        *((each, {"takes": 2.0}, LOSS, each.found_out[0], Code.INTERVAL, 2.0) for each in PROCEDURES.values()),
        *((each, {"loss": 0.05}, LOSS, "loss_meanwhile", Code.FIGURE, 0.05) for each in PROCEDURES.values()),
        # One of three removals disturbs the load.
        (TABLE_REMOVAL, {"loss": 0.05, "loses_in": range(2, 3)}, LOSS, "loss_meanwhile", Code.FIGURE, 0.05),
        # 5 % of a load for 6 s are 300 ms.
        (TABLE_REMOVAL, {"loss": 0.05}, {"blocked_meanwhile": "<= 100ms"}, "blocked_meanwhile", Code.FIGURE, 0.3),
    ],
)
def test_a_removal_that_takes_too_long_or_disturbs_the_load_is_missed(
    procedure: Scripted, fault: dict[str, Any], promised: dict[str, str], missed: str, code: Code, value: float
) -> None:
    found, verdict = removed(procedure, Removing(**fault), **promised)
    assert (verdict.word, verdict.code) == ("missed", code)
    assert [each.metric for each in verdict.thresholds if not each.met] == [missed]
    assert found.figures[missed].value == pytest.approx(value)


def test_what_one_of_three_removals_loses_is_seen_and_a_limit_above_it_is_met() -> None:
    found, verdict = removed(TABLE_REMOVAL, Removing(loss=0.05, loses_in=range(2, 3)), blocked_meanwhile="<= 400ms")
    assert [each.state for each in found.trials] == ["good", "good", "bad", "good"]
    assert verdict.word == "met"


@pytest.mark.parametrize("loss", [0.0, 0.005, 0.05])
def test_a_load_that_waits_in_another_round_than_it_loses_in_is_missed(loss: float) -> None:
    dut = Removing(loss=loss, loses_in=range(1, 2), waits_in=range(2, 3))
    found, verdict = removed(TABLE_REMOVAL, dut, loss_meanwhile="<= 1%", connect_time_meanwhile="<= 5ms")
    assert found.figures["loss_meanwhile"].value == pytest.approx(loss)
    assert found.figures["connect_time_meanwhile"].value == pytest.approx(0.4)
    missed = ["loss_meanwhile"] * (loss > 0.01) + ["connect_time_meanwhile"]
    assert [each.metric for each in verdict.thresholds if not each.met] == missed
    assert verdict.word == "missed"


def test_removals_of_which_the_first_fail_are_not_met() -> None:
    found, _ = removed(ENTRY_REMOVAL, Removing(declined=range(2, 3)), **LOSS)
    assert {name: (each.kept, each.code) for name, each in found.verdicts.items()} == {
        "entry_removal_time": (None, Code.FAULT),
        "loss_meanwhile": (True, Code.FIGURE),
    }


def test_entries_that_are_used_up_fail_no_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_KNOWN", 4)
    found, verdict = removed(ENTRY_REMOVAL, Removing())
    assert (found.evidence.control[0].number, verdict.word) == (3, "met")


def test_a_table_that_was_not_filled_says_nothing() -> None:
    found, verdict = removed(ENTRY_REMOVAL, Removing(limit=500))
    assert (verdict.word, found.limited_by) == ("not measured", "fault")
    assert "900 connections were opened to fill the table: the DUT counted 500 entries" in verdict.reason


def test_entries_are_read_from_what_the_tools_print() -> None:
    ovs = (
        "tcp,orig=(src=16.128.0.5,dst=48.0.0.7,sport=1024,dport=8080),reply=(src=48.0.0.7,dst=16.128.0.5,sport=8080,"
        "dport=1024),zone=5,timeout=59,protoinfo=(state=ESTABLISHED)\n"
        "icmp,orig=(src=1.1.1.1,dst=2.2.2.2,id=1,type=8,code=0)\n"
    )
    linux = (
        "udp      17 29 src=16.0.0.1 dst=48.0.0.1 sport=1025 dport=53 src=48.0.0.1 dst=16.0.0.1 sport=53 dport=1025 "
        "[ASSURED] mark=0 use=1\n"
    )
    assert read_entries(ovs) == [TableEntry("tcp", "16.128.0.5", "48.0.0.7", 1024, 8080, 5, 59)]
    assert read_entries(linux) == [TableEntry("udp", "16.0.0.1", "48.0.0.1", 1025, 53)]


def test_conntrack_of_linux_is_told_what_to_remove() -> None:
    entry = TableEntry("tcp", "16.128.0.5", "48.0.0.7", 1024, 8080, 5)
    linux: Any = Mock(connections=lambda: 7)
    for which in ({}, {"zone": 3}, {"entry": entry}):
        LinuxRouterDut.remove_entries(linux, **which)
    assert [" ".join(call.args[0]) for call in linux._host.run.call_args_list] == [
        "conntrack -F",
        "conntrack -D -w 3",
        "conntrack -D -p tcp -s 16.128.0.5 -d 48.0.0.7 --sport=1024 --dport=8080",
    ]
