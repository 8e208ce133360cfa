"""Entries of the connection table that expire: whether they stay as long as was asked for, how fast a table drains,
whether it settles where rate, lifetime and timeout say, and what a load loses meanwhile."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.abilities import ThreadLook
from ctbench.dut.base import Problem
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import TableTrials
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Samples
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_expiry
from ctbench.measure.procedures.table_expiry import TABLE_DRAIN, TABLE_REAPING, TABLE_STEADY
from ctbench.measure.procedures.timeout_policy import TIMEOUT_POLICY
from ctbench.measure.trial import TrialRunner
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Load, Saturation
from ctbench.traffic.profiles import ConnectionProfile, Profile

from .simulated import made_up_trial
from .table_double import HoldingDouble, TableDouble, table_bench

FIVE = Topology(timeout_s=5)
DRAINED = TableTrials(drained=500)


@dataclass
class Draining(TableDouble):
    """Entries go `lag` seconds after their timeout, a thousand a second, and `stay` of them never."""

    timeout: float = 5.0
    lag: float = 0.0
    stay: int = 0
    now: float = 100.0
    asked_at: float = field(default=0.0)

    def connections(self) -> int:
        gone = int(max(0.0, self.now - self.asked_at - self.timeout - self.lag) * 1000) if self.entries else 0
        return max(self.entries - gone, min(self.stay, self.entries))

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


def drained(monkeypatch: pytest.MonkeyPatch, dut: Draining, limit: float = 10.0) -> Outcome:
    dut.asked_at = dut.now
    monkeypatch.setattr(table_expiry, "time", SimpleNamespace(monotonic=dut.monotonic, sleep=dut.sleep))
    return TABLE_DRAIN.run(table_bench(dut, how=DRAINED, limits={"drain_time": limit}, topology=FIVE))


def test_a_table_drains_after_its_timeout_and_the_rate_of_reaping_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drained(monkeypatch, Draining(lag=1.0))
    assert found.result is not None and found.result.value == pytest.approx(6.5, abs=table_expiry.EVERY_S)
    assert found.figures["drain_lag"].value == pytest.approx(1.5, abs=table_expiry.EVERY_S)
    assert found.figures["reaped_rate"].value == pytest.approx(1000, rel=0.5)
    assert found.verdicts["drain_time"].kept is True
    assert [(each.moment, each.found) for each in found.evidence.table] == [
        ("before", 0),
        ("opened", 500),
        ("answered", 500),
        ("in the end", 0),
    ]
    series = found.trials[0].samples[0]
    assert series.name == "entries_after_the_last_packet" and series.values[0] == 500 and series.values[-1] == 0


@pytest.mark.parametrize(
    ("dut", "state", "said"),
    [
        (Draining(lag=9.0), "good", "500 entries were gone 14."),
        (Draining(timeout=2.0), "bad", "before their timeout of 5 s"),
        (Draining(stay=7), "bad", "7 of 500 entries were left 55 s after the last packet"),
    ],
    ids=["later than promised", "before their timeout", "never"],
)
def test_entries_that_go_too_late_too_soon_or_never_are_missed_and_said(
    monkeypatch: pytest.MonkeyPatch, dut: Draining, state: str, said: str
) -> None:
    found = drained(monkeypatch, dut)
    assert found.trials[0].state == state and found.verdicts["drain_time"].kept is False
    assert said in found.verdicts["drain_time"].reason
    assert ("drain_time" in found.figures) == (dut.stay == 0)


def test_a_dut_that_dies_is_a_fault_and_one_that_was_disturbed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    died = drained(monkeypatch, Draining(problems=[[Problem("fatal", "ovs-vswitchd died.")]]))
    assert died.limited_by == "fault" and "ovs-vswitchd died" in died.reason
    spoilt = drained(monkeypatch, Draining(problems=[[Problem("invalid", "the machine slept")]]))
    assert [each.state for each in spoilt.trials] == ["invalid", "bad"]  # time goes on for the double


STEADY = ConnectionProfile(name="steady", server_wait_ms=2000)
HOW = TableTrials.model_validate({"steady": ["1k", "2k"]})
OFFERED: Any = {"how": HOW, "topology": FIVE, "profile": STEADY}


@dataclass
class Settling(TableDouble):
    """A DUT that remembers connections for `seconds` in all and then until a sweep, and a generator that loses a share
    of them."""

    seconds: float = 7.0
    #: Seconds between two sweeps, since the last one when the load begins, and that each takes.
    swept: float = 20.0
    since: float = 5.0
    takes: float = 0.0
    loss: float = 0.0
    #: Rates at which it does not tell its entries.
    silent_at: tuple[float, ...] = ()

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.rate, self.duration = load.per_s, duration_s
        return made_up_trial(load.per_s, duration_s, loss=self.loss)

    def seen(self, at: float) -> float:
        """Entries so long after the load began: those that had expired at the last sweep go while it lasts."""
        last = (at + self.since) // self.swept * self.swept - self.since
        gone, before = (max(0.0, sweep - self.seconds) for sweep in (last, last - self.swept))
        share = min(1.0, (at - last) / self.takes) if self.takes else 1.0
        return self.rate * (at - before - share * (gone - before))


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probe would have seen: entries grow until a sweep."""
    watch = TrialRunner.watch

    def watched(self: TrialRunner, offer: object, **how: bool) -> Observation:
        seen = watch(self, offer, **how)  # type: ignore[arg-type]
        dut = self.dut
        if not isinstance(dut, Settling):
            return seen
        every_s = table_expiry.STEADY_EVERY_S
        times = [number * every_s for number in range(int(dut.duration / every_s) + 5)]
        values: list[float | None] = [None if dut.rate in dut.silent_at else dut.seen(at) for at in times]
        return replace(seen, samples=(Samples("table_entries", "entries", every_s, values),))

    monkeypatch.setattr(TrialRunner, "watch", watched)


LIMITS = {"table_most": 1.15, "table_least": 0.95, "sweep_per_million": 8.0}


def settled(dut: Settling, limits: Mapping[str, float] = LIMITS) -> Outcome:
    return TABLE_STEADY.run(table_bench(dut, limits=limits, **OFFERED))


def kept(found: Outcome) -> dict[str, bool | None]:
    return {name: each.kept for name, each in found.verdicts.items()}


def test_a_table_settles_where_rate_lifetime_timeout_and_sweep_say() -> None:
    found = settled(Settling())
    # Two looks each 0.2 s, of 54 000 entries: a sweep that takes no time at all is seen within one of them.
    assert {name: found.figures[name].value for name in LIMITS} == {
        "table_most": pytest.approx(1.0, abs=0.01),
        "table_least": pytest.approx(1.0, abs=0.04),
        "sweep_per_million": pytest.approx(0.2 / 0.027, rel=0.02),
    }
    assert found.figures["table_level"].value == pytest.approx(2000 * (7 + 10), rel=0.02)
    assert found.figures["table_slope"].value == pytest.approx(0, abs=10)
    assert [(each.moment, each.expected) for each in found.evidence.table] == [
        ("most at 1.0 k/s", 27_000),
        ("least at 1.0 k/s", 7_000),
        ("most at 2.0 k/s", 54_000),
        ("least at 2.0 k/s", 14_000),
    ]
    assert set(kept(found).values()) == {True} and len(found.trials) == 2


@pytest.mark.parametrize(
    ("dut", "missed"),
    [
        (lambda: Settling(swept=40.0), {"table_most"}),
        (lambda: Settling(swept=40.0, since=1.0), {"table_most"}),
        (lambda: Settling(seconds=6.0), {"table_least"}),
        (lambda: Settling(takes=2.0), {"sweep_per_million"}),
        (lambda: Settling(seconds=15.0), {"table_most"}),
    ],
    ids=["sweeps half as often", "and last did just before", "forgets early", "sweeps slowly", "remembers longer"],
)
def test_a_dut_that_sweeps_seldom_or_slowly_or_forgets_too_early_or_late_is_missed(
    dut: Callable[[], Settling], missed: set[str]
) -> None:
    found = settled(dut())
    assert {name for name, each in kept(found).items() if each is False} == missed
    assert "at 1.0 k/s a sweep found" in found.verdicts["table_most"].reason


def test_a_rate_that_is_not_held_keeps_no_promise_and_is_the_last_one() -> None:
    found = settled(Settling(loss=0.3))
    assert kept(found) == dict.fromkeys(LIMITS, False)
    assert [each.load for each in found.trials] == [1000]


@pytest.mark.parametrize("silent_at", [(1000,), (1000, 2000)])
def test_a_level_that_the_dut_does_not_tell_is_not_measured_and_no_number(silent_at: tuple[float, ...]) -> None:
    found = settled(Settling(silent_at=silent_at))
    assert (found.figures, found.verdicts, found.limited_by) == ({}, {}, "dut")
    assert len(found.trials) == 2 and len(found.evidence.table) == 2 * (2 - len(silent_at))
    # A load that is not held is missed all the same.
    assert set(kept(settled(Settling(silent_at=silent_at, loss=0.3))).values()) == {False}


def test_a_level_that_breaks_a_promise_is_missed_where_another_one_is_not_told() -> None:
    found = settled(Settling(swept=40.0, silent_at=(2000,)))
    assert {name: (each.kept, each.code) for name, each in found.verdicts.items()} == {
        "table_most": (False, Code.FIGURE),
        "table_least": (None, Code.NOTHING),
        "sweep_per_million": (None, Code.NOTHING),
    }
    assert found.figures["table_most"].value > LIMITS["table_most"]


def test_rates_without_room_or_beyond_the_generator_are_left_out() -> None:
    usual = table_bench(Settling(), limits=LIMITS, **OFFERED)
    small = replace(usual, most_held=40_000.0)
    slow, slower = (replace(usual, campaign=usual.campaign.limited_to({"connections": most})) for most in (1500, 500))
    for bench in (small, slow):
        found = TABLE_STEADY.run(bench)
        assert [each.load for each in found.trials] == [1000]
        assert found.reason.endswith("; not tried, because the table or the generator is too small for that: 2.0 k/s")
    with pytest.raises(MissingResource, match="choose a lower rate"):
        TABLE_STEADY.run(replace(usual, most_held=1000.0))
    with pytest.raises(MissingResource, match=r"offers 500/s at most \(max_cps of the testbed file\)"):
        TABLE_STEADY.run(slower)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_expiry, "_LATER_S", 0.01)
    monkeypatch.setattr(table_expiry, "_EVERY_S", 0.001)
    monkeypatch.setattr(table_expiry, "LARGE_TABLE", 20_000)


@dataclass
class Reaper(TableDouble):
    """A DUT that serves 20 000 a second, and loses some of a load while entries expire."""

    limit: int = 5_000_000
    sweep_s: float = 0.01
    loss: float = 0.0
    alone: float = 0.0
    #: Of the trial in which entries expire: its connect time, and what its generator says of itself.
    p99_us: float = 200.0
    late_ms: float = 0.0
    limited: str = ""
    stays: bool = False
    #: How long a load lasts then, seconds; and whether its main thread answers.
    lasts_s: float = 0.0
    answers: bool = True
    #: Profiles of the connections that were left.
    left: list[ConnectionProfile] = field(default_factory=list)
    offered: list[tuple[float, float]] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        if isinstance(load, Saturation):
            points = {"timeline_step_s": 1.0, "timeline_completed": [20_000]}
            return made_up_trial(20_000, duration_s).model_copy(update={"under_way": 512, **points})
        self.offered.append((load.per_s, duration_s))
        expiring = bool(self.entries)
        if expiring:
            time.sleep(self.lasts_s)
        if not self.stays:
            self.entries = 0
        if not expiring:
            return made_up_trial(load.per_s, duration_s, loss=self.alone)
        made = made_up_trial(load.per_s, duration_s, loss=self.loss, p99_us=self.p99_us, generator_limited=self.limited)
        return made.model_copy(update={"late_max_ms": self.late_ms})

    @property
    def control_plane(self) -> Any:
        return SimpleNamespace(main_thread=lambda: ThreadLook(0.0, waits=self.answers))

    def hold(self, profile: ConnectionProfile, load: Hold) -> HoldingDouble:
        self.left.append(profile)
        return super().hold(profile, load)


def reaped(dut: Reaper, udp_percent: int = 0, topology: Topology = CABLE, **limits: float) -> Outcome:
    profile = ConnectionProfile(name="short-lived", udp_percent=udp_percent)
    limits = {"loss_while_reaping": 0.01, **limits}
    return TABLE_REAPING.run(table_bench(dut, limits=limits, profile=profile, topology=topology))


def test_half_of_what_is_served_is_offered_alone_and_while_entries_expire() -> None:
    dut = Reaper(loss=0.005)
    found = reaped(dut)
    assert dut.offered == [(10_000, 3.0), (10_000, pytest.approx(30.02))]
    assert found.figures["loss_while_reaping"].value == pytest.approx(0.005)
    assert found.verdicts["loss_while_reaping"].kept is True
    assert [(each.moment, each.found) for each in found.evidence.table] == [("before", 0), ("opened", 20_000)]
    assert reaped(Reaper(loss=0.02)).verdicts["loss_while_reaping"].kept is False


def test_a_main_thread_that_does_not_answer_while_entries_expire_is_missed() -> None:
    promised = {"held_connections": 30_000.0, "main_thread_longest": 0.02}
    for answers in (True, False):
        dut = Reaper(lasts_s=0.1, answers=answers)
        found = reaped(dut, udp_percent=100, **promised)
        assert {name: each.kept for name, each in found.verdicts.items()} == {
            "loss_while_reaping": True,
            "held_connections": True,
            "main_thread_longest": answers,
        }
        # As many as are promised, of the load's protocol, on addresses of their own.
        assert (dut.opened, [each.udp_percent for each in dut.left]) == ([30_000], [100])


@pytest.mark.parametrize(
    ("dut", "promises", "code"),
    [
        (Reaper(), (True, True), Code.FIGURE),
        (Reaper(p99_us=2e6), (True, False), Code.FIGURE),
        (Reaper(p99_us=2e6, late_ms=2000), (True, None), Code.GENERATOR),
        (Reaper(late_ms=2000), (True, True), Code.FIGURE),
        (Reaper(loss=0.5, p99_us=2e6, limited="it was 2 s late"), (None, None), Code.INVALID),
    ],
)
def test_connections_that_wait_while_entries_expire_are_missed_unless_for_the_generator(
    dut: Reaper, promises: tuple[bool | None, bool | None], code: Code
) -> None:
    found = reaped(dut, connect_time_while_reaping=1.0)
    waited = found.verdicts["connect_time_while_reaping"]
    assert (found.verdicts["loss_while_reaping"].kept, waited.kept, waited.code) == (*promises, code)
    assert (found.figures == {}) is (code is Code.INVALID)


def test_connections_that_did_not_all_open_in_time_prove_nothing_of_their_expiry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = Reaper(limit=20_000)
    full.limit_now = lambda: 5_000_000  # type: ignore[method-assign]  # it says that there is room
    few = reaped(full, held_connections=25_000.0, main_thread_longest=1.0)
    assert (few.verdicts, few.figures) == ({}, {}) and "20000 of 25000 connections opened" in few.reason
    monkeypatch.setattr(table_expiry, "open_all", lambda _, number: time.sleep(1.05) or number)
    slow = reaped(Reaper(), topology=Topology(timeout_s=1))
    assert (slow.verdicts, slow.figures) == ({}, {}) and "were forgotten meanwhile" in slow.reason


def test_entries_that_stay_are_missed_and_a_load_that_is_not_held_alone_says_nothing() -> None:
    kept = reaped(Reaper(stays=True)).verdicts["loss_while_reaping"]
    assert kept.kept is False and "20000 entries were left in the end" in kept.reason
    nothing = reaped(Reaper(alone=0.5))
    assert (nothing.verdicts, nothing.figures, nothing.limited_by) == ({}, {}, "dut")


def test_a_load_whose_own_entries_would_fill_the_table_is_smaller_and_one_without_room_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dut = Reaper(limit=25_050)
    reaped(dut)
    assert dut.offered[0][0] == pytest.approx(0.9 * 5050 / 1.01)
    with pytest.raises(MissingResource, match="no room for a load besides 20000"):
        reaped(Reaper(limit=900))
    dut = Reaper()
    monkeypatch.setattr(table_expiry, "LARGE_TABLE", 2020)
    reaped(dut)
    assert dut.offered[0][0] == pytest.approx(2000)


@dataclass
class Telling(TableDouble):
    """A DUT that tells how long its entries still stay."""

    longest: float | None = 4.0

    def longest_timeout_s(self) -> float | None:
        return self.longest


@pytest.mark.parametrize(
    ("dut", "kept", "said"),
    [
        (Telling(), True, "stays for 4 s more, where 5 s were asked for"),
        (Telling(longest=86_400.0), False, "stays for 86400 s more"),
        (Telling(longest=None), False, "stays for no time"),
        (Telling(miscount=1), False, "the DUT counted 101 entries where 100 connections were open"),
        (Telling(mute=1), False, "the DUT counted 100 entries where 99 connections were open"),
    ],
    ids=["as asked for", "the default instead", "no entry", "an entry too many", "one does not answer"],
)
def test_the_longest_time_that_an_entry_stays_is_what_was_asked_for(dut: Telling, kept: bool, said: str) -> None:
    found = TIMEOUT_POLICY.run(
        table_bench(dut, limits={"longest_timeout": 5.0}, topology=Topology(timeout_s=5, zone_policy="first"))
    )
    verdict = found.verdicts["longest_timeout"]
    assert verdict.kept is kept and said in verdict.reason
