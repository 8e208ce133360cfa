"""Whether a table settles where rate, lifetime and timeout say."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Problem
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import TableSettings
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Samples
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_expiry
from ctbench.measure.procedures.table_expiry import TableSteady
from ctbench.measure.trial import TrialRunner
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, Profile

from .simulated import made_up_trial
from .table_double import TableDouble, table_bench

pytestmark = pytest.mark.unit

STEADY = ConnectionProfile(name="steady", server_wait_ms=2000)
FIVE = Topology(timeout_s=5)
HOW = TableSettings.model_validate({"steady": ["1k", "2k"]})
OFFERED: Any = {"how": HOW, "topology": FIVE, "profile": STEADY}


@dataclass
class Settling(TableDouble):
    """A DUT that remembers connections for `seconds` in all, and a generator that loses a share of them."""

    seconds: float = 7.0
    loss: float = 0.0
    growing: float = 0.0

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.rate, self.duration = load.per_s, duration_s
        return made_up_trial(load.per_s, duration_s, loss=self.loss)


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probe would have seen: entries grow to their level, and stay there, or go on growing."""
    watch = TrialRunner.watch

    def watched(self: TrialRunner, offer: object) -> Observation:
        seen = watch(self, offer)  # type: ignore[arg-type]
        dut = self.dut
        assert isinstance(dut, Settling)
        times = [
            number * table_expiry.STEADY_EVERY_S
            for number in range(int(dut.duration / table_expiry.STEADY_EVERY_S) + 5)
        ]
        values: list[float | None] = [dut.rate * min(at, dut.seconds) + dut.growing * at for at in times]
        object.__setattr__(seen, "samples", (Samples("table_entries", "entries", table_expiry.STEADY_EVERY_S, values),))
        return seen

    monkeypatch.setattr(TrialRunner, "watch", watched)


def measured(dut: Settling, limit: float = 0.05) -> Outcome:
    return TableSteady().run(table_bench(dut, limits={"table_deviation": limit}, **OFFERED))


def test_a_table_settles_at_the_rate_times_lifetime_and_timeout() -> None:
    found = measured(Settling())
    assert found.result is not None and found.result.value < 0.001
    assert (found.figures["table_level"].value, found.figures["table_slope"].value) == (14_000, 0)
    assert [(each.moment, each.expected, each.found) for each in found.evidence.table] == [
        ("least at 1.0 k/s", 7_000, 7_000), ("least at 2.0 k/s", 14_000, 14_000),
    ]  # fmt: skip
    assert found.decisions["table_deviation"].kept is True and len(found.steps) == 2


def test_a_dut_that_remembers_longer_is_missed_with_its_level() -> None:
    found = measured(Settling(seconds=8.0))
    decision = found.decisions["table_deviation"]
    assert decision.kept is False and found.result is not None
    assert "at 1.0 k/s a sweep left 8.0 k entries, where rate x (lifetime + timeout) is 7.0 k" in decision.reason
    assert measured(Settling(seconds=5.0)).decisions["table_deviation"].kept is False


def test_rates_for_which_there_is_no_room_are_left_out() -> None:
    room = table_bench(Settling(), limits={"table_deviation": 0.05}, **OFFERED, most_held=40_000.0)
    found = TableSteady().run(room)
    assert [step.observation.load for step in found.steps] == [1000]
    assert found.reason.endswith("; not tried, because the table or the generator is too small for that: 2.0 k/s")
    with pytest.raises(MissingResource, match="choose a lower rate"):
        TableSteady().run(replace(room, most_held=1000.0))


def test_rates_beyond_the_generator_are_left_out() -> None:
    usual = table_bench(Settling(), limits={"table_deviation": 0.05}, **OFFERED)
    slow = replace(usual, campaign=usual.campaign.limited_to({"connections": 1500}))
    assert [step.observation.load for step in TableSteady().run(slow).steps] == [1000]
    with pytest.raises(MissingResource, match=r"offers 500/s at most \(max_cps of the testbed file\)"):
        TableSteady().run(replace(usual, campaign=usual.campaign.limited_to({"connections": 500})))


def test_a_table_that_goes_on_growing_has_a_slope() -> None:
    found = measured(Settling(growing=100.0))
    assert found.figures["table_slope"].value == pytest.approx(100)


def test_what_loses_connections_does_not_settle() -> None:
    found = measured(Settling(loss=0.1))
    assert found.decisions["table_deviation"].kept is False and "10" in found.decisions["table_deviation"].reason
    assert len(found.steps) == 1  # no higher rate is tried


def test_a_fault_and_a_disturbance_decide_nothing() -> None:
    assert measured(Settling(problems=[[Problem("fatal", "it died.")]])).limited_by == "fault"
    spoilt = measured(Settling(problems=[[Problem("invalid", "the machine slept")]] * 9))
    assert spoilt.decisions["table_deviation"].kept is None and not spoilt.figures


def test_a_rate_that_the_generator_spoils_leaves_the_promise_undecided() -> None:
    quiet: list[list[Problem]] = [[]]
    found = measured(Settling(problems=quiet + [[Problem("invalid", "the machine slept")]] * 9))
    assert found.steps[0].observation.state == "good"
    assert found.decisions["table_deviation"].kept is None and not found.figures


@dataclass
class Lazy(Settling):
    """A DUT that sweeps an empty table seldom, and a busy one often."""

    sweep_s: float = 60.0

    def sweeps_within(self, timeout_s: float) -> float:
        return 2 * timeout_s

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        self.offered = [*getattr(self, "offered", []), (load.per_s, duration_s)]
        return super().run_trial(profile, load, duration_s)


def test_a_dut_that_sweeps_an_empty_table_seldom_gets_little_first_and_a_profile_may_name_its_rate() -> None:
    dut, own = Lazy(), STEADY.model_copy(update={"new_per_s": 3000.0})
    bench = table_bench(dut, how=HOW, limits={"table_deviation": 0.05}, topology=FIVE, profile=own, most_held=280_000.0)
    TableSteady().run(bench)
    assert dut.offered == [(pytest.approx(280_000 / 4 / 68), 61.0), (3000.0, 37.0)]
