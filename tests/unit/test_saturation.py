"""The closed loop, and the search below what it shows: how many trials, which bounds, and what is made of a bad one."""

from dataclasses import dataclass, field, replace

import pytest

from ctbench.base.errors import GeneratorError
from ctbench.base.yaml_files import load
from ctbench.measure.campaign import Campaign, SaturationSettings
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench
from ctbench.measure.procedures.rates import ClosedLoop, HighestRate
from ctbench.measure.search import SearchResult, search
from ctbench.measure.trial import Step
from ctbench.measure.trials import Repetitions, Trials
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Saturation, saturating
from ctbench.traffic.profiles import PacketProfile, Profile

from .healthy import HealthyDut
from .simulated import LIMITS, SHORT, SimulatedDut, judged, made_up_floor, made_up_trial, outcome_of, seen

TRUTH, HI = 381_000.0, 1_000_000.0
HOW = SaturationSettings.model_validate({"final_duration": "2s"})


def below(dut: object, saturation: float = TRUTH, hi: float = HI, told: list[Step] | None = None) -> SearchResult:
    tell = told.append if told is not None else lambda _step: None
    return search(dut, 1_000, hi, HOW, Trials(tell), hint=saturation)  # type: ignore[arg-type]


def test_a_little_below_the_saturation_rate_one_trial_is_enough() -> None:
    dut = SimulatedDut(TRUTH)
    found = below(dut)
    assert (dut.loads, dut.durations) == ([0.92 * TRUTH], [2])
    assert (found.capacity, found.upper, found.limited_by) == (0.92 * TRUTH, TRUTH, "dut")
    assert found.reason == "350.5 k/s held, and a closed loop shows that the DUT serves 381.0 k/s"


def test_each_step_down_is_twice_as_far_and_the_load_above_is_the_bound() -> None:
    dut = SimulatedDut(0.6 * TRUTH, overload=0.2)
    found = below(dut)
    assert [load / TRUTH for load in dut.loads] == pytest.approx([0.92, 0.92**2, 0.92**4, 0.92**8])
    assert (found.capacity, found.upper) == pytest.approx((0.92**8 * TRUTH, 0.92**4 * TRUTH))
    assert found.reason.startswith("195.5 k/s held, 272.9 k/s did not: ")


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

    found = below(busy)
    assert set(offered) == {0.92, 0.92**2}
    assert (found.capacity, found.upper, found.limited_by) == (0.92**2 * TRUTH, 0.92 * TRUTH, "dut")
    assert len(found.steps) == 2 + len(spoilt)


def test_where_no_valid_trial_can_be_made_there_is_no_figure() -> None:
    dut = SimulatedDut(TRUTH, generator_limit=0.85 * TRUTH)
    found = below(dut)
    assert dut.loads == [0.92 * TRUTH] * 3
    assert (found.capacity, found.upper, found.limited_by) == (0, None, "generator")
    assert outcome_of(found).figures == {}
    # Nor is there one where a higher load was tried, and the DUT did not hold that.
    overloaded = below(lambda load, duration: seen(load=load, duration=duration, loss=0.1) if load > 0.9 * TRUTH
                       else seen(load=load, duration=duration, generator_limited="late"))  # fmt: skip
    assert [step.observation.state for step in overloaded.steps] == ["bad"] + ["invalid"] * 3
    assert (overloaded.upper, overloaded.limited_by) == (0.92 * TRUTH, "generator")
    assert outcome_of(overloaded).figures == {}
    assert judged(outcome_of(overloaded), made_up_floor()).word == "not measured"


def test_a_run_without_time_for_repetitions_makes_none() -> None:
    spent = Trials(repetitions=Repetitions(left_s=3.0))
    dut = SimulatedDut(TRUTH, generator_limit=0)
    found = search(dut, 1_000, HI, HOW, spent, hint=TRUTH)
    assert (len(dut.loads), found.limited_by, spent.repetitions.left_s < 3.0) == (2, "generator", True)
    again = search(dut, 1_000, HI, HOW, Trials(repetitions=spent.repetitions), hint=TRUTH)
    assert (len(dut.loads), again.limited_by) == (3, "generator")


def test_at_the_end_of_the_campaigns_range_the_capacity_is_at_least_that() -> None:
    found = below(SimulatedDut(TRUTH), hi=100_000)
    assert (found.capacity, found.upper, found.limited_by) == (100_000, None, "range")


def test_what_is_left_is_told() -> None:
    told: list[Step] = []
    below(SimulatedDut(0.8 * TRUTH), told=told)
    assert [step.left_s > 0 for step in told] == [True, True, False]


@dataclass
class LoopingDut(HealthyDut):
    """Serves what it can, and its generator, which has a closed loop; what it says of itself, trial by trial."""

    served: float = TRUTH
    limited: list[str] = field(default_factory=list)
    error: Exception | None = None
    offered: list[Load] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        self.offered.append(load)
        if self.error:
            raise self.error
        rate = self.served if isinstance(load, Saturation) else load.per_s  # type: ignore[union-attr]
        limited = self.limited.pop(0) if self.limited else ""
        made = made_up_trial(rate, duration_s, generator_limited=limited, loss=0.0)
        parts = {"timeline_step_s": 0.05, "timeline_completed": [round(rate * 0.05)] * 10}
        closed = {"under_way": load.under_way} | parts if isinstance(load, Saturation) else {}
        return made.model_copy(update=closed)


def bench(dut: LoopingDut) -> Bench:
    return Bench(dut, dut, SHORT, LIMITS, load("campaigns", "quick", Campaign))


def test_the_closed_loop_has_one_figure_and_says_nothing_of_loss() -> None:
    dut = LoopingDut()
    outcome = ClosedLoop(SaturationSettings()).run(bench(dut))
    assert {name: figure.value for name, figure in outcome.figures.items()} == {"saturation_cps": TRUTH}
    assert dut.offered == [Saturation(512)]
    assert (outcome.limited_by, [step.phase for step in outcome.steps]) == ("dut", ["saturation"])
    assert outcome.decisions == {}


def test_a_closed_loop_that_the_generator_limited_is_tried_three_times_and_has_no_figure() -> None:
    one = ClosedLoop(SaturationSettings()).run(bench(LoopingDut(limited=["late", "late"])))
    assert (len(one.steps), one.limited_by, len(one.figures)) == (3, "dut", 1)
    none = ClosedLoop(SaturationSettings()).run(bench(LoopingDut(limited=["late"] * 3)))
    assert (len(none.steps), none.limited_by, none.figures) == (3, "generator", {})


def test_over_a_cable_the_limit_of_the_generator_is_the_figure() -> None:
    dut = LoopingDut(limited=["most of what was under way waited for the generator itself"])
    ceiling = ClosedLoop(SaturationSettings(), of_generator=True).run(bench(dut))
    assert (len(dut.offered), ceiling.result and ceiling.result.value) == (1, TRUTH)


def test_a_closed_loop_that_breaks_is_a_fault() -> None:
    broken = ClosedLoop(SaturationSettings()).run(bench(LoopingDut(error=GeneratorError("The link broke."))))
    assert (broken.limited_by, broken.steps) == ("fault", ())
    assert broken.reason.startswith("The link broke, in trial 1")


def test_without_its_rate_the_search_is_a_bisection() -> None:
    quick = load("campaigns", "quick", Campaign)
    both = HighestRate(quick.search_for(SHORT), otherwise=quick.search_for(SHORT, closed_loop=False))
    dut = LoopingDut()
    outcome = both.run(bench(dut))
    assert outcome.limited_by == "range" and len(dut.offered) > 5


def test_where_the_generator_was_the_limit_of_the_closed_loop_a_little_less_is_a_lower_bound() -> None:
    quick = load("campaigns", "quick", Campaign)
    dut = LoopingDut(limited=["late"] * 3)
    earlier = ClosedLoop(quick.saturation).run(bench(dut))
    both = HighestRate(quick.search_for(SHORT), otherwise=quick.search_for(SHORT, closed_loop=False))
    found = both.run(replace(bench(dut), earlier=earlier))
    assert [each.per_s for each in dut.offered[3:]] == pytest.approx([0.85 * TRUTH])  # type: ignore[union-attr]
    assert (found.limited_by, found.upper_bound) == ("generator", None)
    assert found.result and found.result.value == pytest.approx(0.85 * TRUTH)
    assert found.reason == "323.9 k/s held, and the generator serves no more than 381.0 k/s itself"


def test_more_is_under_way_where_a_connection_has_many_messages() -> None:
    assert saturating(SHORT).under_way == 512
    assert saturating(SHORT.model_copy(update={"messages": 40})).under_way == 2048
    assert saturating(PacketProfile(name="p", kind="packets")).under_way == 2048
