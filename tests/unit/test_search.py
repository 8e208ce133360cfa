"""The search on simulated DUTs: the result is within the width of the truth, whatever the DUT does."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.base.errors import GeneratorError
from ctbench.base.units import format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.base import Problem
from ctbench.measure.campaign import Bisection, Campaign, Mlr, SaturationSettings
from ctbench.measure.mlr import Goal
from ctbench.measure.observation import Observation
from ctbench.measure.search import SearchResult, conclude, repeat, search
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate

from .simulated import SimulatedDut, judged, made_up_floor, outcome_of, runner_of, seen

LO, HI, WIDTH, MLR_WIDTH, TRUTH = 1_000.0, 1_000_000.0, 0.05, 0.02, 381_000.0


def how(**keys: Any) -> Bisection:
    base = {"trial_duration": "1s", "max_iterations": 12, "relative_width": "5%"}
    return Bisection.model_validate(base | keys)


def mlr(**keys: Any) -> Mlr:
    base = {"trial_duration": "1s", "final_duration": "4s", "relative_width": "2%"}
    return Mlr.model_validate(base | keys)


#: Eight times the middle and nothing else.
PUBLISHED = how(middle="arithmetic", max_iterations=8, relative_width=None)
KINDS = ["bisection", "mlr"]
in_both_ways = pytest.mark.parametrize("searching", [how(), mlr()], ids=KINDS)


def phases(result: SearchResult) -> list[str]:
    return [each.phase for each in result.trials]


@in_both_ways
def test_a_dut_that_never_passes_has_no_capacity(searching: Bisection | Mlr) -> None:
    result = search(SimulatedDut(0.0), LO, HI, searching)
    assert (result.capacity, result.proof, result.limited_by) == (0, None, "dut")
    figure = outcome_of(result).result
    assert figure is not None and figure.value == 0


@in_both_ways
def test_a_dut_that_always_passes_ends_the_range(searching: Bisection | Mlr) -> None:
    result = search(SimulatedDut(10 * HI), LO, HI, searching, hint=500_000)
    assert (result.limited_by, result.upper) == ("range", None)
    assert HI / (1 + WIDTH) <= result.capacity <= HI


@in_both_ways
def test_a_generator_that_is_slower_than_the_dut_is_named_as_the_limit(searching: Bisection | Mlr) -> None:
    result = search(SimulatedDut(10 * HI, generator_limit=300_000), LO, HI, searching)
    assert result.limited_by == "generator"
    assert 300_000 / (1 + searching.relative_width) <= result.capacity <= 300_000  # type: ignore[operator]


@in_both_ways
def test_a_pause_of_the_generator_does_not_end_the_search(searching: Bisection | Mlr) -> None:
    paused = [0]

    def pauses(load: float, duration: float) -> Observation:
        paused[0] += 1
        limited = "late by 6 ms" if paused[0] in (3, 7) else ""
        return seen(load=load, duration=duration, loss=0.5 if load > TRUTH else 0.0, generator_limited=limited)

    result = search(runner_of(pauses), LO, HI, searching)
    assert result.limited_by == "dut"
    assert TRUTH / (1 + searching.relative_width) <= result.capacity <= TRUTH  # type: ignore[operator]


@pytest.mark.parametrize("searching", [how(), mlr(), SaturationSettings()], ids=[*KINDS, "saturation"])
@pytest.mark.parametrize("dies", [True, False], ids=["dut", "generator"])
def test_what_breaks_ends_a_search_with_its_reason_and_the_trials_so_far(searching: Any, dies: bool) -> None:
    dut = SimulatedDut(0.8 * TRUTH)

    def breaks(load: float, duration: float) -> Observation:
        made = dut.offer(Rate(load), duration)
        if len(dut.loads) < 2:
            return made
        if dies:
            return seen((Problem("fatal", "It broke."),), load=load)
        raise GeneratorError("It broke.")

    result = search(runner_of(breaks), LO, HI, searching, hint=TRUTH)
    reason = f"It broke, in trial 2, at {format_rate(dut.loads[-1])}"
    assert (result.limited_by, result.reason, len(result.trials)) == ("fault", reason, 1 + dies)


@pytest.mark.parametrize(
    ("holds", "low", "high", "tried"),
    [
        (41_639, 1_000, 100_000, [50_500, 25_750, 38_125, 44_312, 41_219, 42_766, 41_992, 41_605]),
        (975, 500, 2_000, [1_250, 875, 1_062, 969, 1_016, 992, 980, 975]),
    ],
)
def test_the_published_procedure_is_eight_times_the_middle(holds: int, low: int, high: int, tried: list[int]) -> None:
    """Both example runs of cps_ndr.py in the 2022 article, which prints 1.2K for 1250."""
    dut = SimulatedDut(holds)
    result = search(dut, low, high, PUBLISHED)
    assert dut.loads == pytest.approx(tried, abs=0.7)
    assert set(phases(result)) == {"search"}
    assert result.upper - result.proof.load == pytest.approx((high - low) / 2**8)


@pytest.mark.parametrize("hint", [2_000, 900_000, LO, HI, 10 * HI])
def test_a_bad_hint_costs_no_truth(hint: float) -> None:
    result = search(SimulatedDut(TRUTH), LO, HI, mlr(), hint=hint)
    assert TRUTH / (1 + MLR_WIDTH) * (1 - 1e-9) <= result.capacity <= TRUTH * 1.0002


def test_a_fault_ends_the_repetitions_and_a_bug_the_search() -> None:
    def breaks(_number: int) -> None:
        raise GeneratorError("gone")

    duts = iter([SimulatedDut(300_000), SimulatedDut(300_000, before=breaks)])
    result = repeat(5, lambda _last: search(next(duts), LO, HI, how()))
    assert (result.limited_by, len(result.capacities)) == ("fault", 2)

    def bug(_load: float, _duration: float) -> Observation:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        search(runner_of(bug), LO, HI, mlr())


# With MLRsearch.


@pytest.mark.parametrize("overload", [1.0, 0.1])
def test_one_disturbed_trial_in_twenty_does_not_move_the_result(overload: float) -> None:
    good = 0
    for seed in range(200):
        dut = SimulatedDut(TRUTH, noise=0.005, disturbed=0.05, overload=overload, seed=seed)
        result = search(dut, LO, HI, mlr(), hint=TRUTH * 0.8)
        good += TRUTH / (1 + MLR_WIDTH) * 0.98 <= result.capacity <= TRUTH * 1.02
    assert good >= 195


def test_it_reports_what_rfc_9971_asks_for_and_what_was_really_forwarded() -> None:
    result = search(SimulatedDut(TRUTH), LO, HI, mlr())
    goal = result.goal
    assert (goal.loss_ratio, goal.final_duration_s, goal.duration_sum_s, goal.exceed_ratio, goal.relative_width) == (
        0.0002,
        4.0,
        8.0,
        0.5,
        0.02,
    )
    assert (goal.relevant_lower_bound, goal.relevant_upper_bound) == (result.capacity, result.upper)
    assert goal.conditional_throughput == result.capacity
    # The conditional throughput is what was really forwarded.
    goal = Goal(final_duration_s=4, duration_sum=8, exceed_ratio=0.5)
    lossy = [seen(loss=loss, duration=4) for loss in (0.0001, 0.3)]
    assert goal.classify(lossy) == "lower"
    assert goal.conditional_throughput(10_000, lossy) == pytest.approx(9_999)
    # Half of the sum has to be measured, or nothing is known to be forwarded.
    assert goal.conditional_throughput(10_000, [seen(duration=1)]) == 0
    assert Goal(4, 8, 0.25).conditional_throughput(10_000, lossy) == pytest.approx(7_000)


def test_what_is_cold_is_warmed_up_by_a_trial_that_does_not_count() -> None:
    dut = SimulatedDut(TRUTH)
    result = search(dut, LO, HI, mlr(), hint=100_000, cold=True)
    assert phases(result)[0] == "warm-up"
    assert "warm-up" not in phases(result)[1:]
    assert dut.loads[0] == 100_000
    cold = search(SimulatedDut(TRUTH, cold=0.9, warm_after_s=1), LO, HI, mlr(), hint=100_000, cold=True)
    assert cold.capacity >= TRUTH / (1 + MLR_WIDTH)


def test_out_of_trials_it_says_so_and_gives_what_it_knows() -> None:
    result = search(SimulatedDut(TRUTH, overload=0.1), LO, HI, mlr(max_iterations=5))
    assert len(result.trials) == 5
    assert result.limited_by == "dut"
    assert result.reason.endswith("(stopped after 5 trials)")
    assert result.capacity <= TRUTH
    assert result.upper > TRUTH


@settings(max_examples=80, deadline=None)
@given(
    st.floats(1.001, 3.0),
    st.floats(0.5, 4.0),
    st.floats(0.3, 4.0),
    st.sampled_from(["0.5%", "5%", "50%"]),
    st.integers(0, 9999),
)
def test_a_narrow_range_or_noise_never_ends_it(ratio: float, truth: float, hint: float, width: str, seed: int) -> None:
    dut = SimulatedDut(truth * LO, noise=0.1, disturbed=0.2, seed=seed)
    wanted = mlr(relative_width=width, max_iterations=60)
    result = search(dut, LO, LO * ratio, wanted, hint=hint * LO)
    assert LO <= min(dut.loads) <= max(dut.loads) <= LO * ratio * (1 + 1e-9)
    assert result.capacity == 0 or result.proof is not None


# NDR and PDR in one search.

NIGHT = load("campaigns", "night", Campaign)
#: Of the goals of `night`, by which bounds are so near to each other.
NIGHT_WIDTH = 0.005


@dataclass
class SoftEdge(SimulatedDut):
    """Above its capacity it loses more and more: `at_tenth` where a tenth more is offered."""

    at_tenth: float = 0.005
    #: Lost whatever is offered.
    always: float = 0.0

    def serve(self, capacity: float, load: Load, duration_s: float) -> Trial:
        above = max(0.0, load.per_s / capacity - 1)
        return self.made_up(load.per_s, duration_s, max(self.always, above * self.at_tenth / 0.1))


def both(dut: SimulatedDut, partial_drop: float = NIGHT.partial_drop, hint: float = 1.02 * TRUTH) -> SearchResult:
    """NDR, and PDR as `partial`, as `night` searches them."""

    def without_a_loss(load: float, duration: float) -> Observation:
        return replace(dut.offer(Rate(load), duration), conditions=NIGHT.loss_limit)

    return search(runner_of(without_a_loss), LO, HI, NIGHT.mlr, hint=hint, partial_drop=partial_drop)


@pytest.mark.parametrize(
    ("dut", "pdr"),
    [
        (SimulatedDut(TRUTH), TRUTH / 0.995),
        (SoftEdge(TRUTH), 1.1 * TRUTH),
        (SoftEdge(TRUTH, at_tenth=0.02), 1.025 * TRUTH),
        (SoftEdge(TRUTH, noise=0.005, disturbed=0.05), 1.1 * TRUTH),
        (SimulatedDut(TRUTH, noise=0.005, overload=0.7), TRUTH),
    ],
    ids=["hard", "soft", "less soft", "soft and noisy", "hard and noisy"],
)
def test_one_search_finds_ndr_and_pdr_within_their_widths(dut: SimulatedDut, pdr: float) -> None:
    result, scatter = both(dut), 1 + 2 * dut.noise
    for found, truth in ((result, TRUTH), (result.partial, pdr)):
        lower, upper = (found.proof.load if found.proof else 0.0), found.upper or 0.0
        assert truth / (1 + NIGHT_WIDTH) / scatter <= lower <= truth * scatter
        assert truth / scatter <= upper <= truth * (1 + NIGHT_WIDTH) * scatter
    assert [each.goal and each.goal.loss_ratio for each in (result, result.partial)] == [0.0, 0.005]
    pdr_figure, goal = outcome_of(result).figures["pdr_cps"], result.partial.goal
    assert goal and pdr_figure.ends == (goal.relevant_lower_bound, goal.relevant_upper_bound)
    assert pdr / (1 + NIGHT_WIDTH) / scatter <= pdr_figure.value == pdr_figure.low
    assert sum(each.trial.duration_s for each in result.trials) <= (120 if dut.noise else 60)


def test_trials_of_one_goal_are_evidence_for_the_other() -> None:
    hard, alone = (len(both(SimulatedDut(TRUTH, overload=0.7), drop).trials) for drop in (NIGHT.partial_drop, 0.0))
    assert hard == alone


def test_a_dut_that_loses_at_every_load_has_a_pdr_alone_and_one_that_holds_nothing_has_neither() -> None:
    leaky = both(SoftEdge(TRUTH, always=0.001))
    assert (leaky.capacity, leaky.limited_by, leaky.goal and leaky.goal.relevant_lower_bound) == (0, "dut", None)
    assert outcome_of(leaky).figures["pdr_cps"].value == pytest.approx(1.1 * TRUTH, rel=0.01)
    verdict = judged(leaky, made_up_floor())
    assert (verdict.word, verdict.code) == ("missed", Code.LOWEST_LOAD_LOST)
    assert "pdr_cps" not in outcome_of(both(SimulatedDut(0.0))).figures


@pytest.mark.parametrize(
    ("dut", "limit"), [(SimulatedDut(TRUTH, generator_limit=200_000), "generator"), (SimulatedDut(10 * HI), "range")]
)
def test_what_ends_both_first_is_said_of_both(dut: SimulatedDut, limit: str) -> None:
    result = both(dut)
    assert (result.limited_by, result.partial and result.partial.limited_by) == (limit, limit)


def test_a_generator_that_spoils_every_trial_leaves_no_figure() -> None:
    nothing = both(SimulatedDut(TRUTH, generator_limit=0.0))
    assert (judged(nothing, made_up_floor()).code, outcome_of(nothing).figures) == (Code.NOTHING, {})


def test_a_load_is_classified_by_more_than_half_of_the_sum_and_by_invalid_trials_where_nothing_else_decides() -> None:
    goal = Goal(final_duration_s=1, duration_sum=21, exceed_ratio=0.5)
    good, lost, late = (seen(duration=1, **keys) for keys in ({}, {"loss": 0.5}, {"generator_limited": "late"}))
    assert [goal.classify([good] * number) for number in (10, 11)] == ["undecided", "lower"]
    assert [goal.classify([lost] * number + [good] * 9) for number in (10, 11)] == ["undecided", "upper"]
    assert goal.classify([lost] * 9 + [late] * 2) == "upper"
    assert goal.classify([good] * 11 + [late] * 11) == "lower"
    assert replace(goal, loss_ratio=0.5).classify([lost] * 11) == "lower"


def test_an_invalid_trial_bounds_nothing() -> None:
    held, spoilt = seen(load=1_000.0), seen(load=2_000.0, generator_limited="it was too slow")
    assert spoilt.state == "invalid"
    found = conclude(held, spoilt, (held, spoilt), 4_000.0)
    assert (found.capacity, found.limited_by, found.upper) == (1_000.0, "generator", None)


def test_a_bisection_is_bounded_by_the_lowest_load_that_was_lost_whatever_was_invalid_below() -> None:
    def offer(load: float, duration: float) -> Observation:
        limited = "it was too slow" if 3_000 < load < 5_000 else ""
        return seen(load=load, duration=duration, loss=0.1 if load >= 5_000 else 0.0, generator_limited=limited)

    halving = Bisection.model_validate({"trial_duration": "1s", "max_iterations": 5, "middle": "arithmetic"})
    found = search(runner_of(offer), 1_000, 11_000, halving)
    assert (found.limited_by, found.upper) == ("generator", 6_000)
