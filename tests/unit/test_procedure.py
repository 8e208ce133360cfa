"""Procedures: what they need, what they find out, how long they take, and what is sampled meanwhile; the closed loop,
and the search below what it shows."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from time import sleep

import pytest

from ctbench.base.errors import GeneratorError, MissingResource, TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.registry import abilities
from ctbench.measure.campaign import Campaign, GateSettings, SaturationSettings
from ctbench.measure.observation import Observation
from ctbench.measure.probe import TableEntries
from ctbench.measure.procedure import Bench, Outcome, Scripted, require
from ctbench.measure.procedures.accounting import ACCOUNTING
from ctbench.measure.procedures.port_exhaustion import PORT_EXHAUSTION
from ctbench.measure.procedures.rates import AtFloor, ClosedLoop, HighestRate
from ctbench.measure.procedures.reassembly import REASSEMBLY
from ctbench.measure.procedures.restart import RESTART
from ctbench.measure.procedures.table_limits import TABLE_FULL
from ctbench.measure.search import SearchResult, descend
from ctbench.measure.trial import TrialRunner, Trials, series_of
from ctbench.results.evidence import Evidence, PairRecord, SideRecord
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Load, Rate, Saturation
from ctbench.traffic.profiles import Profile

from .simulated import (
    SHORT,
    HealthyDut,
    SimulatedDut,
    campaign,
    floor_of,
    made_up_trial,
    runner_of,
    seen,
)


@dataclass
class SharpDut(SimulatedDut):
    """One whose trials take until its table was asked for so many entries."""

    until_entries: int = 0
    entries: int = 0

    def connections(self) -> int:
        self.entries += 10
        if self.entries == 20:
            raise TestbedError("`ovs-appctl` failed")
        return self.entries

    def run_trial(self, profile: Profile | None, load: Load, duration_s: float) -> Trial:
        for _ in range(1000):
            if self.entries >= self.until_entries:
                break
            sleep(0.01)
        return super().run_trial(profile, load, duration_s)


def breaks(_number: int) -> None:
    raise GeneratorError("The link broke.")


def bench(dut: SharpDut, told: list[Observation] | None = None, **limits: float) -> Bench:
    tell = told.append if told is not None else lambda _seen: None
    return Bench(dut, dut, floor_of(**limits), campaign(), on_trial=tell)  # type: ignore[arg-type]


def test_the_highest_rate_is_a_figure_between_what_held_and_what_did_not_with_the_others_of_its_trial() -> None:
    outcome = HighestRate(campaign().search_for(SHORT)).run(bench(SharpDut(300_000)))
    assert (outcome.metric.name, outcome.kept_conditions, outcome.limited_by) == ("cps", True, "dut")
    assert outcome.result.low == outcome.result.value <= 300_000 * 1.0002
    assert outcome.result.high == outcome.evidence.upper_bound > 300_000
    assert outcome.figures["pps"].unit == "packets/s"
    assert outcome.figures["connect_time_p99"].value == pytest.approx(200e-6)


def test_repetitions_are_samples_of_one_figure() -> None:
    told: list[Observation] = []
    outcome = HighestRate(campaign().search_for(SHORT), repetitions=3).run(bench(SharpDut(300_000), told))
    assert len(outcome.result.samples) == 3
    assert [each.number for each in outcome.trials] == list(range(1, len(told) + 1))
    assert [each.number for each in told] == list(range(1, len(told) + 1))


def test_at_the_floor_the_load_that_held_is_the_figure_and_a_lower_bound() -> None:
    how = GateSettings.model_validate({"trial_duration": "5s", "headroom": "1%"})
    held = AtFloor(how).run(bench(SharpDut(300_000), cps=50_000.0))
    assert (held.kept_conditions, held.limited_by, held.result.value, held.result.high) == (True, "floor", 50_500, None)
    missed = AtFloor(how).run(bench(SharpDut(40_000), cps=50_000.0))
    assert (missed.kept_conditions, missed.result.value) == (False, pytest.approx(40_000))


def test_a_probe_samples_while_the_load_is_offered_and_ends_with_the_trial() -> None:
    dut = SharpDut(300_000, until_entries=30)
    seen = bench(dut).runner_for({}, TableEntries(dut.connections, every_s=0.005)).offer(Rate(1000), 0.5)
    (samples,) = seen.samples
    assert (samples.name, samples.unit, samples.every_s) == ("table_entries", "entries", 0.005)
    # The second could not be taken; on a busy machine others were missed as well.
    assert [value for value in samples.values if value is not None][:2] == [10, 30]
    assert None in samples.values
    first, second = series_of([seen, seen])
    assert (first.trial, first.name, list(first.values)) == (1, "table_entries", samples.values)
    assert second.trial == 2, "as the record counts its trials"
    dut = SharpDut(300_000, before=breaks)
    with pytest.raises(GeneratorError):
        bench(dut).runner_for({}, TableEntries(dut.connections, every_s=0.001)).offer(Rate(1000), 0.5)
    taken = dut.entries
    sleep(0.02)
    assert dut.entries == taken


TRUTH, HI = 381_000.0, 1_000_000.0
HOW = SaturationSettings.model_validate({"final_duration": "2s"})


def below(dut: TrialRunner, hi: float = HI) -> SearchResult:
    return descend(dut, TRUTH, hi, HOW, Trials())


def test_a_little_below_the_saturation_rate_one_trial_is_enough_in_the_campaigns_range() -> None:
    dut = SimulatedDut(TRUTH)
    found = below(dut)
    assert (dut.loads, dut.durations) == ([0.92 * TRUTH], [2])
    assert (found.capacity, found.upper, found.limited_by) == (0.92 * TRUTH, TRUTH, "dut")
    assert found.reason == "350.5 k/s held, and a closed loop shows that the DUT serves 381.0 k/s"
    found = below(SimulatedDut(TRUTH), hi=100_000)
    assert (found.capacity, found.upper, found.limited_by) == (100_000, None, "range")


def test_after_five_trials_that_did_not_hold_there_is_no_capacity() -> None:
    dut = SimulatedDut(0.0)
    found = below(dut)
    assert (len(dut.loads), found.capacity, found.limited_by) == (5, 0, "dut")
    assert found.upper == min(dut.loads)


@pytest.mark.parametrize("spoilt", [(1,), (1, 2), (2,), (2, 3)])
def test_an_invalid_trial_is_made_again_and_never_a_step_down(spoilt: tuple[int, ...]) -> None:
    """A busy second once made "capacity" 7 % of what a DUT serves."""
    offered: list[float] = []

    def busy(load: float, duration: float) -> Observation:
        offered.append(load / TRUTH)
        limited = "late" if len(offered) in spoilt else ""
        return seen(load=load, duration=duration, generator_limited=limited, loss=0.1 if load > 0.9 * TRUTH else 0.0)

    found = below(runner_of(busy))
    assert sorted(set(offered)) == pytest.approx([0.92**2, 0.92**1.5, 0.92])
    assert (found.capacity, found.upper, found.limited_by) == (pytest.approx(0.92**1.5 * TRUTH), 0.92 * TRUTH, "dut")
    assert len(found.trials) == 3 + len(spoilt)


@dataclass
class LoopingDut(HealthyDut):
    """Serves what it can, and its generator, which has a closed loop; what it says of itself, trial by trial."""

    served: float = TRUTH
    limited: list[str] = field(default_factory=list)
    loss: float = 0.0
    #: By how much it serves less in one trial, and more in the next.
    uneven: float = 0.0
    error: Exception | None = None
    offered: list[Load] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.offered.append(load)
        if self.error:
            raise self.error
        rate = self.served if isinstance(load, Saturation) else load.per_s  # type: ignore[union-attr]
        limited = self.limited.pop(0) if self.limited else ""
        rate *= 1 + (self.uneven if len(self.offered) % 2 else -self.uneven)
        made = made_up_trial(rate, duration_s, generator_limited=limited, loss=self.loss)
        parts = {"timeline_step_s": 0.05, "timeline_completed": [round(rate * 0.05)] * 10}
        closed = {"under_way": load.under_way} | parts if isinstance(load, Saturation) else {}
        return made.model_copy(update=closed)


QUICK = load("campaigns", "quick", Campaign)


def looping(dut: LoopingDut) -> Bench:
    return Bench(dut, dut, floor_of(), QUICK)


def test_the_closed_loop_has_one_figure_over_a_cable_even_the_generators() -> None:
    dut = LoopingDut()
    outcome = ClosedLoop(SaturationSettings()).run(looping(dut))
    assert {name: figure.value for name, figure in outcome.figures.items()} == {"saturation_cps": TRUTH}
    assert dut.offered == [Saturation(512)]
    assert (outcome.limited_by, [each.phase for each in outcome.trials]) == ("dut", ["saturation"])
    assert outcome.verdicts == {}
    dut = LoopingDut(limited=["most of what was under way waited for the generator itself"])
    ceiling = ClosedLoop(SaturationSettings(), of_generator=True).run(looping(dut))
    assert (len(dut.offered), ceiling.result and ceiling.result.value) == (1, TRUTH)


def test_a_closed_loop_that_breaks_or_that_the_generator_limits_has_no_figure() -> None:
    one = ClosedLoop(SaturationSettings()).run(looping(LoopingDut(limited=["late", "late"])))
    assert (len(one.trials), one.limited_by, len(one.figures)) == (3, "dut", 1)
    none = ClosedLoop(SaturationSettings()).run(looping(LoopingDut(limited=["late"] * 3)))
    assert (len(none.trials), none.limited_by, none.figures) == (3, "generator", {})
    broken = ClosedLoop(SaturationSettings()).run(looping(LoopingDut(error=GeneratorError("The link broke."))))
    assert (broken.limited_by, broken.trials) == ("fault", ())
    assert broken.reason.startswith("The link broke, in trial 1")


@pytest.mark.parametrize(
    ("promised", "uneven", "kept", "loops"),
    [(0.99, 0.0, True, 3), (1.01, 0.0, False, 3), (1.0, 0.2, None, 5), (0.8, 0.02, True, 4), (1.3, 0.02, False, 3)],
)
def test_what_is_served_is_tried_until_decided(promised: float, uneven: float, kept: bool | None, loops: int) -> None:
    bench = replace(looping(LoopingDut(uneven=uneven)), floor=floor_of(saturation_cps=promised * TRUTH))
    found = ClosedLoop(SaturationSettings()).run(bench)
    assert (found.verdicts["saturation_cps"].kept, len(found.trials)) == (kept, loops)
    spoilt = replace(looping(LoopingDut(limited=["late"] * 3)), floor=bench.floor)
    assert ClosedLoop(SaturationSettings()).run(spoilt).verdicts["saturation_cps"].code is Code.GENERATOR


def test_without_its_rate_the_search_is_with_mlrsearch() -> None:
    outcome = HighestRate(QUICK.search_for(SHORT)).run(looping(LoopingDut()))
    assert outcome.limited_by == "range" and outcome.evidence.goal is not None


def test_where_the_generator_was_the_limit_of_the_closed_loop_a_little_less_is_a_lower_bound() -> None:
    dut = LoopingDut(limited=["late"] * 3)
    earlier = ClosedLoop(QUICK.saturation).run(looping(dut))
    found = HighestRate(QUICK.search_for(SHORT)).run(replace(looping(dut), earlier=earlier))
    assert [each.per_s for each in dut.offered[3:]] == pytest.approx([0.85 * TRUTH])  # type: ignore[union-attr]
    assert (found.limited_by, found.evidence.upper_bound) == ("generator", None)
    assert found.result and found.result.value == pytest.approx(0.85 * TRUTH)
    assert found.reason == "323.9 k/s held, and the generator serves no more than 381.0 k/s itself"


@pytest.mark.parametrize(
    ("late", "loss", "held", "limited_by"),
    [(3, 0.0, 200_000, "generator"), (6, 0.0, None, "generator"), (3, 0.1, 0, "dut")],
)
def test_where_the_generator_limits_all_else_the_load_of_a_promised_ratio_is_tried(
    late: int, loss: float, held: float | None, limited_by: str
) -> None:
    dut, how = LoopingDut(limited=["late"] * late, loss=loss), SaturationSettings()
    other = SideRecord(key="other", serves=Estimate(value=100_000, low=99_000, high=101_000))
    pair = PairRecord(tested=SideRecord(key="tested"), other=other, how="side by side", ratios=[], looks=[])
    figures = {"saturation_cps": Estimate(TRUTH, "connections/s")}
    known = Outcome(METRICS["ratio"], figures, "dut", "", True, (), evidence=Evidence(trials=[], pairs=[pair]))
    found = HighestRate(how).run(replace(looping(dut), earlier=known, floor=floor_of(ratio=2.0)))
    assert found.limited_by == limited_by
    assert [load.per_s for load in dut.offered[3:4]] == [200_000]  # type: ignore[union-attr]
    assert (found.result and found.result.value, found.kept_conditions) == (held, bool(held))
    spoilt = LoopingDut(limited=["late"] * 3)
    assert HighestRate(how).run(replace(looping(spoilt), earlier=known)).result is None
    assert len(spoilt.offered) == 3
    # A ratio of 50 is kept above what was tried: there is nothing to gain from that, and less tells what is lost.
    above = LoopingDut(limited=["late"] * late, loss=loss)
    HighestRate(how).run(replace(looping(above), earlier=known, floor=floor_of(ratio=50.0)))
    tried, less = (load.per_s for load in above.offered[2:4])  # type: ignore[union-attr]
    assert less == pytest.approx(0.6 * tried)


@pytest.mark.parametrize(
    ("procedure", "loads", "kind", "lacks"),
    [
        (TABLE_FULL, {Hold}, "ovs-dpdk", ""),
        (TABLE_FULL, {Hold}, "linux-router", "asks the DUT for table limit"),
        (TABLE_FULL, {Rate}, "ovs-dpdk", "a number of connections that stay open"),
        (PORT_EXHAUSTION, {Hold, Saturation}, "linux-router", ""),
        (PORT_EXHAUSTION, {Hold}, "linux-router", "a closed loop"),
        (RESTART, {Hold, Rate}, "ovs-dpdk", ""),
        (RESTART, {Hold, Rate}, "linux-router", "asks the DUT for restart"),
        (REASSEMBLY, {Rate, Saturation}, "ovs-dpdk", ""),
        (REASSEMBLY, {Rate, Saturation}, "linux-router", ""),
        (REASSEMBLY, {Rate, Saturation}, "cable", "asks the DUT for fragments"),
        (ACCOUNTING, {Hold}, "linux-router", ""),
        (ACCOUNTING, {Hold}, "ovs-dpdk", "asks the DUT for accounting"),
    ],
)
def test_what_a_dut_or_a_generator_cannot_do_is_skipped(
    procedure: Scripted, loads: set[type[Load]], kind: str, lacks: str
) -> None:
    with pytest.raises(MissingResource, match=lacks) if lacks else nullcontext():
        require(procedure, frozenset(loads), abilities(kind))
