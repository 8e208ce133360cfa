"""The acceptance run on a simulated testbed: what is measured once per run, what is compared, where searches begin."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.base import CpuUse, Problem
from ctbench.dut.cable import CABLE
from ctbench.dut.kind import Ability
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.measure.trial import Step
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import Record
from ctbench.run import acceptance, choice
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

from .simulated import FORWARDING, made_up_packets, made_up_trial

FORWARD = Topology(datapath="linux-router", ruleset="forward")
SNAT = Topology(datapath="linux-router", ruleset="iptables-snat")
SNAT_KEY = SNAT.key
CEILING = 2_500_000.0
TRIAL = {"trial_duration": "500ms", "max_iterations": 12, "relative_width": "5%"}


def campaign(**keys: Any) -> Campaign:
    base = {
        "name": "mine",
        "description": "",
        "search": "bisection",
        "loss_ratio": "0.02%",
        "bisection": TRIAL,
        "ceiling": TRIAL,
        "loads": {"packets": {"min": "10k", "max": "3M"}, "connections": {"min": "1k", "max": "3M"}},
    }
    return Campaign.model_validate(base | keys)


def floors(share: str = ">= 60%", **keys: Any) -> Floors:
    relative = {"to": FORWARDING, "rate": share}
    promise = {"udp-64-10k": {"pps": ">= 100k", "ratio": relative}, "short-lived": {"cps": ">= 10k"}}
    plain = {"udp-64-10k": {"pps": ">= 100k"}, "short-lived": {"cps": ">= 10k"}}
    cable = {CABLE.key: {"short-lived": {"cps": ">= 1k"}}}
    head = {"name": "mine", "description": "", "source": "tests"} | cable
    return Floors.model_validate(head | {FORWARDING: plain, SNAT_KEY: promise} | keys)


@dataclass
class SimulatedTestbed:
    """Every topology has a sharp capacity, and so has the generator; it remembers what was applied and offered."""

    capacities: dict[str, float]
    applied: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    #: Raised when this topology is applied.
    errors: dict[str, Exception] = field(default_factory=dict)
    #: Load from which the generator is the limit.
    generator_limit: float = CEILING
    #: Raised instead of a trial, by its number in the run; and what is broken from then on until it is discarded.
    faults: dict[int, Exception] = field(default_factory=dict)
    broken: str = ""
    #: Topologies that stood when everything was discarded.
    discarded: list[str] = field(default_factory=list)

    @property
    def dut(self) -> "SimulatedTestbed":
        return self

    generator = dut
    offers = frozenset((Rate,))

    def placement(self, topology: Topology) -> Placement:
        return Placement((0,), (1,), (0,))

    def apply(self, topology: Topology, profile: Profile | None = None) -> None:
        self.applied.append(topology.key)
        if self.applied[-1] in self.errors:
            raise self.errors[self.applied[-1]]

    def run_trial(self, profile: Profile, offered: Load, duration_s: float) -> Trial:
        assert isinstance(offered, Rate)
        load = offered.per_s
        self.loads.append(load)
        if len(self.loads) in self.faults:
            raise self.faults[len(self.loads)]
        capacity = self.capacities.get(self.applied[-1], CEILING)
        loss = 0.0 if load <= capacity else 1 - capacity / load
        limited = "it was too slow" if load > self.generator_limit else ""
        made = made_up_packets if profile.kind == "packets" else made_up_trial
        return made(load, duration_s, loss=loss, generator_limited=limited)

    def cpu_use(self) -> CpuUse | None:
        return CpuUse(0.9, 1_000.0, "PMD cycles")

    def health(self) -> list[Problem]:
        return []

    def trouble(self) -> str:
        return self.broken

    def replace_broken(self, topology: Topology) -> str:
        broken, self.broken = self.broken, ""
        return broken

    def discard(self) -> list[str]:
        self.discarded.append(self.applied[-1])
        return ["The host does not answer."] if self.broken else []

    def flush_state(self) -> None: ...

    def begin_trial(self) -> None: ...

    def snapshot(self) -> dict[str, Any]:
        return {"version": "6.1"}

    def facts(self) -> dict[str, Any]:
        return {"testbed": {}, "dut": {}, "generator": {}, "machine": {}}

    def close(self) -> None: ...


class Started:
    """A run on a simulated testbed, with what it said."""

    def __init__(self, output: Path, testbed: SimulatedTestbed, **settings: Any) -> None:
        self.said: list[str] = []
        self.testbed = testbed
        local = load("testbeds", "local", TestbedConfig)
        chosen = {"testbed": local, "campaign": campaign(), "floors": floors()} | settings
        self.run = AcceptanceRun(RunSettings(**chosen), output, self.said.append)

    def measure(self, topology: Topology, profile: str = "udp-64-10k") -> Record:
        return self.run.measure(TestName("Suite", "Test"), topology, profile)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedTestbed:
    testbed = SimulatedTestbed({FORWARDING: 400_000.0, SNAT_KEY: 280_000.0})
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    return testbed


def test_a_relative_floor_is_held_against_what_a_test_of_this_run_has_measured(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    forward, snat = started.measure(FORWARD), started.measure(SNAT)
    assert forward.result and snat.result
    assert simulated.applied == ["cable/none/1cpu-1rxq", FORWARDING, SNAT_KEY]
    assert snat.evidence.baseline is not None
    assert (snat.evidence.baseline.key, snat.evidence.baseline.rate, snat.evidence.baseline.doubt) == (
        FORWARDING,
        forward.result.value,
        "",
    )
    assert (snat.verdict, forward.evidence.baseline) == ("met", None)
    assert f"% of {FORWARDING}" in snat.verdict_reason
    assert f"% of {FORWARDING}" in started.said[-1]
    assert forward.result and snat.result
    assert snat.figures["ratio"].value == pytest.approx(snat.result.value / forward.result.value)
    assert "ratio" not in forward.figures


def test_what_no_test_has_measured_is_measured_for_the_comparison_once(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    first, second = started.measure(SNAT), started.measure(SNAT)
    assert simulated.applied == ["cable/none/1cpu-1rxq", FORWARDING, SNAT_KEY, SNAT_KEY]
    assert first.evidence.baseline is not None
    assert first.evidence.baseline.rate == pytest.approx(400_000, rel=0.05)
    assert second.evidence.baseline == first.evidence.baseline
    assert f"  {FORWARDING} with udp-64-10k, to compare with:" in started.said
    assert len(started.run.records) == 2


def test_a_share_that_is_not_reached_is_missed(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    record = Started(tmp_path, simulated, floors=floors(">= 90%")).measure(SNAT)
    assert record.verdict == "missed"
    assert "at least 90 % promised" in record.verdict_reason


def test_the_share_itself_is_tried_whatever_the_width(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    # So little above the share that the search would end below it.
    simulated.capacities[SNAT_KEY] = 394_000 * 0.612
    started = Started(tmp_path, simulated, campaign=campaign(bisection=TRIAL | {"relative_width": "30%"}))
    baseline = (record := started.measure(SNAT)).evidence.baseline
    assert baseline is not None and baseline.rate is not None
    assert pytest.approx(baseline.rate * 0.6 * 1.01) in simulated.loads
    assert record.verdict == "met"


@pytest.mark.parametrize(
    ("error", "tries"), [(MissingResource("There are no bonds here."), 1), (TestbedError("The link broke."), 4)]
)
def test_a_comparison_that_cannot_be_measured_is_tried_so_often_and_the_test_is_not_measured(
    simulated: SimulatedTestbed, tmp_path: Path, error: Exception, tries: int
) -> None:
    simulated.errors[FORWARDING] = error
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    assert record.verdict == "not measured"
    assert str(error).rstrip(".") in record.verdict_reason
    assert record.result is not None
    for _ in range(2):  # what is missing stays so; what broke is tried twice in either of two tests
        started.measure(SNAT)
    assert simulated.applied.count(FORWARDING) == tries


def test_a_comparison_that_loses_everything_is_no_comparison(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.capacities[FORWARDING] = 1.0
    record = Started(tmp_path, simulated).measure(SNAT)
    assert record.verdict == "not measured"
    assert "no load held" in record.verdict_reason


def test_a_comparison_that_the_generator_limited_proves_no_share(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.capacities[FORWARDING] = CEILING
    simulated.generator_limit = 320_000.0
    started = Started(tmp_path, simulated)
    started.measure(FORWARD)
    record = started.measure(SNAT)
    assert record.verdict == "not measured"
    assert "perhaps more" in record.verdict_reason
    # A test found no more than the generator could do, so it was tried for the comparison: twice, and not for ever.
    assert simulated.applied.count(FORWARDING) == 2
    for _ in range(2):
        started.measure(SNAT)
    assert simulated.applied.count(FORWARDING) == 3


def test_a_pause_of_the_machine_spoils_one_comparison_and_not_the_run(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.generator_limit = 320_000.0
    started = Started(tmp_path, simulated)
    assert started.measure(SNAT).verdict == "not measured"
    simulated.generator_limit = CEILING
    assert started.measure(SNAT).verdict == "met"


def test_a_gate_searches_what_it_compares_with_and_tries_the_share(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    gating = campaign(search="gate", bisection=None, gate={"trial_duration": "500ms", "headroom": "1%"})
    started = Started(tmp_path, simulated, campaign=gating)
    record = started.measure(SNAT)
    assert record.evidence.baseline is not None and record.evidence.baseline.rate is not None
    assert record.evidence.baseline.rate == pytest.approx(400_000, rel=0.05)
    asked = record.evidence.baseline.rate * 0.6 * 1.01
    assert [made.trial.load for made in record.evidence.trials] == pytest.approx([asked, asked])
    assert record.verdict == "met"
    assert Started(tmp_path, simulated, campaign=gating, floors=floors(">= 90%")).measure(SNAT).verdict == "missed"


def test_the_ceiling_is_measured_once_for_each_profile(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    records = [started.measure(FORWARD), started.measure(FORWARD), started.measure(FORWARD, "short-lived")]
    assert simulated.applied.count("cable/none/1cpu-1rxq") == 2
    assert all(record.evidence.ceiling == pytest.approx(CEILING, rel=0.05) for record in records)


def test_a_ceiling_below_the_floor_is_measured_once_more_and_not_for_ever(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.generator_limit = 50_000.0
    started = Started(tmp_path, simulated)
    assert started.measure(FORWARD).verdict == "not measured"
    assert started.measure(FORWARD).evidence.ceiling == pytest.approx(50_000, rel=0.05)
    simulated.generator_limit = CEILING
    assert started.measure(FORWARD).evidence.ceiling == pytest.approx(50_000, rel=0.05)
    assert simulated.applied.count("cable/none/1cpu-1rxq") == 2


def test_a_pause_of_the_machine_spoils_one_ceiling_and_not_the_run(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.generator_limit = 50_000.0
    started = Started(tmp_path, simulated)
    started.measure(FORWARD)
    simulated.generator_limit = CEILING
    record = started.measure(FORWARD)
    assert (record.evidence.ceiling, record.verdict) == (pytest.approx(CEILING, rel=0.05), "met")


def test_a_search_begins_where_a_like_topology_ended(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    forward = started.measure(FORWARD)
    assert forward.evidence.trials[0].trial.load == pytest.approx(101_000)  # nothing is known yet: the floor
    assert forward.result is not None
    assert started.measure(SNAT).evidence.trials[0].trial.load == forward.result.value  # the same datapath and profile
    snat = started.measure(SNAT)
    assert snat.result is not None
    assert snat.evidence.trials[0].trial.load == pytest.approx(snat.result.value, rel=0.05)  # the same ruleset, too
    # Connections are another kind of work.
    assert started.measure(FORWARD, "short-lived").evidence.trials[0].trial.load == pytest.approx(10_100)


def test_a_search_of_tracked_connections_begins_where_another_tracking_ruleset_ended(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    dnat = Topology(datapath="linux-router", ruleset="iptables-dnat")
    simulated.capacities |= {SNAT_KEY: 50_000.0, dnat.key: 45_000.0}
    promised = floors(**{dnat.key: {"short-lived": {"cps": ">= 10k"}}})
    started = Started(tmp_path, simulated, floors=promised)
    started.measure(FORWARD, "short-lived")
    snat = started.measure(SNAT, "short-lived")
    assert snat.evidence.trials[0].trial.load == pytest.approx(10_100)  # what forwarding did says nothing of tracking
    assert snat.result
    assert started.measure(dnat, "short-lived").evidence.trials[0].trial.load == snat.result.value


def test_a_record_of_packets_says_what_they_cost_and_how_long_they_took(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    record = Started(tmp_path, simulated).measure(FORWARD)
    values = {name: figure.value for name, figure in record.figures.items()}
    assert (values["busy_cpus"], values["cpu_time_per_packet"]) == (0.9, pytest.approx(1e-6))
    assert values["latency_p99"] > 0
    assert (record.metric, record.procedure) == ("pps", "highest-rate")
    assert (record.result, record.figures["pps"].unit) == (record.figures["pps"], "packets/s")


def test_a_missing_floor_is_a_mistake_in_a_file_and_leaves_no_record(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    with pytest.raises(ConfigError, match=r"linux-router/notrack/1cpu-1rxq\.udp-64-10k: is missing"):
        started.measure(Topology(datapath="linux-router", ruleset="notrack"))
    assert started.run.records == []


def test_where_nothing_joins_the_generators_ports_its_ceiling_is_not_known_and_the_record_says_why(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    simulated.errors["cable/none/1cpu-1rxq"] = MissingResource("There is no cable.")
    record = Started(tmp_path, simulated).measure(FORWARD)
    assert (record.verdict, record.evidence.ceiling) == ("met", None)
    assert "The generator's ceiling is not known: There is no cable." in record.notes


def test_no_load_is_offered_that_the_generator_is_known_not_to_reach(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    trex = load("testbeds", "local-trex", TestbedConfig)
    slow = trex.model_copy(update={"generator": trex.generator.model_copy(update={"max_pps": 300_000})})
    run = AcceptanceRun(RunSettings(testbed=slow, campaign=campaign(), floors=floors()), tmp_path, lambda _: None)
    record = run.measure(TestName("Suite", "Test"), FORWARD, "udp-64-10k")
    assert max(simulated.loads) <= 300_000
    assert record.campaign.extra["most"] == {"connections": 80_000, "packets": 300_000}


def left(line: str) -> float:
    """Seconds that a line of a trial says are left."""
    found = re.search(r"~(\d+) s$", line.splitlines()[0])
    return float(found[1]) if found else 0.0


def lines_of_trials(said: list[str]) -> list[str]:
    return [line for line in said if re.match(r" +\d+   ", line)]


def test_the_time_left_counts_what_is_measured_after_the_ceiling_and_ends_at_nothing(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)

    lines = lines_of_trials(started.said)
    own, trial_s = len(record.evidence.trials), record.evidence.trials[0].trial.wall_s
    ceiling = lines[: -own - 1]
    # Three searches of five trials and more follow each other: the last trial of the first knows of the other two.
    assert min(left(line) for line in ceiling) > 2 * 5 * trial_s
    assert left(lines[0]) > left(lines[-own]) > 0
    assert left(lines[-1]) == 0


def test_the_time_left_counts_the_repetitions_to_come(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated, campaign=campaign(repetitions=4))
    started.measure(FORWARD)
    lines = [left(line) for line in lines_of_trials(started.said)]
    first_of_each = [number for number, line in enumerate(lines_of_trials(started.said)) if line.startswith("      1 ")]
    begins = [lines[number] for number in first_of_each[1:]]
    assert len(begins) == 4
    assert begins == sorted(begins, reverse=True)
    assert begins[0] > 3 * begins[-1]
    assert lines[-1] == 0


def test_the_summary_counts_the_trials_of_ceilings_and_comparisons(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    started = Started(tmp_path, simulated)
    record = started.measure(SNAT)
    made = len(simulated.loads)
    others = made - len(record.evidence.trials)
    assert others > 1
    assert f"{made} trials ({others} for ceilings and comparisons): " in started.run.summary()


@dataclass(frozen=True)
class Throughput:
    """A procedure that looks for bits per second, and tries nothing."""

    name: str = "throughput"
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset()
    found_out: Collection[str] = ("bps",)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        return METRICS["bps"]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        return Expected(1, 1.0)

    def run(self, bench: Bench) -> Outcome:
        step = Step(1, "gate", bench.runner(50_000, 0.5), 0.0)
        bench.on_trial(step)
        figures = figures_of(step.observation, METRICS["bps"])
        return Outcome(METRICS["bps"], figures, "dut", "as it was tried", held=True, steps=(step,))


def test_what_is_no_rate_needs_no_ceiling_and_no_baseline_and_is_no_hint_for_a_search(
    simulated: SimulatedTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"pps": ">= 100k", "bps": ">= 1k", "ratio": {"to": FORWARDING, "rate": ">= 60%"}}
    started = Started(tmp_path, simulated, floors=floors(**{SNAT_KEY: {"udp-64-10k": entry}}))
    monkeypatch.setitem(choice.ANSWERS, "throughput", lambda *_: Throughput())
    record = started.run.measure(TestName("Suite", "Test"), SNAT, "udp-64-10k", "throughput")
    assert simulated.applied == [SNAT_KEY]
    assert (record.verdict, record.metric, record.procedure) == ("met", "bps", "throughput")
    assert [each.metric for each in record.thresholds] == ["bps"]
    assert "ratio" not in record.figures
    after = started.measure(SNAT)  # begins where the baseline, a rate, was found
    assert after.evidence.baseline
    assert after.evidence.trials[0].trial.load == after.evidence.baseline.rate


class OtherTestbed(SimulatedTestbed):
    """One that answers how many connections there are."""

    def connections(self) -> int:
        return 7


def test_a_campaign_may_have_the_table_sampled_where_the_dut_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = OtherTestbed({FORWARDING: 400_000.0})
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    started = Started(tmp_path, testbed, campaign=campaign(probes=["table_entries"]))
    record = started.measure(FORWARD)
    assert {series.name for series in record.evidence.series} == {"table_entries"}
    assert {value for series in record.evidence.series for value in series.values} == {7}
    assert started.run.measure(TestName("Suite", "Cable"), CABLE, "short-lived").evidence.series == []
