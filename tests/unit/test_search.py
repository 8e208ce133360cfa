"""The search on simulated DUTs: the result is within the width of the truth, whatever the DUT does."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.base.errors import GeneratorError
from ctbench.base.units import format_rate
from ctbench.dut.base import Problem
from ctbench.measure.campaign import Bisection, GateSettings, LoadRange, Mlr
from ctbench.measure.observation import Observation
from ctbench.measure.search import expected, planned_trials, search
from ctbench.measure.search_result import Goal, Made, SearchResult, repeat
from ctbench.measure.trial import Step
from ctbench.measure.trials import Trials

from .simulated import LIMITS, SimulatedDut, outcome_of, seen

LO, HI, WIDTH = 1_000.0, 1_000_000.0, 0.05


def how(**keys: Any) -> Bisection:
    base = {
        "trial_duration": "1s",
        "max_iterations": 12,
        "relative_width": "5%",
        "final_duration": "3s",
    }
    return Bisection.model_validate(base | keys)


#: Eight times the middle and nothing else.
PUBLISHED = how(middle="arithmetic", max_iterations=8, relative_width=None, final_duration=None)


TRUTH = 381_000.0


def phases(result: SearchResult) -> list[str]:
    return [step.phase for step in result.steps]


@settings(max_examples=60, deadline=None)
@given(st.floats(min_value=LO * 1.2, max_value=HI / 1.2), st.sampled_from([1.0, 0.1]))
def test_a_sharp_capacity_is_found_within_the_width_also_when_the_dut_collapses(truth: float, overload: float) -> None:
    result = search(SimulatedDut(truth, overload=overload), LO, HI, how())
    assert result.upper is not None
    # A load above the capacity by less than the loss limit is good, so that the edge is not at the truth itself.
    assert result.capacity <= truth * 1.0003
    assert truth <= result.upper <= result.capacity * (1 + WIDTH) * (1 + 1e-9)
    assert result.limited_by == "dut"
    assert result.proof is not None
    assert result.proof.trial.duration_s == 3
    figure = outcome_of(result).result
    assert figure is not None
    assert (figure.value, figure.low) == (result.capacity, result.capacity)


@settings(max_examples=40, deadline=None)
@given(st.floats(min_value=LO * 1.2, max_value=HI / 1.2), st.integers(0, 10**6))
def test_a_noisy_capacity_is_found_within_the_width_and_the_noise(truth: float, seed: int) -> None:
    result = search(SimulatedDut(truth, noise=0.005, seed=seed), LO, HI, how())
    # The final trial may fail at a load on the edge, and the result then steps down by a width.
    assert truth / (1 + WIDTH) ** 2 * 0.97 <= result.capacity <= truth * 1.03


def test_a_dut_that_never_passes_has_no_capacity() -> None:
    result = search(SimulatedDut(0.0), LO, HI, how())
    assert (result.capacity, result.proof, result.limited_by) == (0, None, "dut")
    assert result.reason.startswith("no load held, not even 1.0 k/s: 100.0 % of the connections were lost")
    figure = outcome_of(result).result
    assert figure is not None
    assert figure.value == 0


def test_a_dut_that_always_passes_reaches_the_end_of_the_range() -> None:
    result = search(SimulatedDut(10 * HI), LO, HI, how())
    assert (result.limited_by, result.upper) == ("range", None)
    assert HI / (1 + WIDTH) <= result.capacity <= HI
    assert "the range of the campaign ends there" in result.reason


def test_asked_to_start_at_the_maximum_one_trial_and_its_confirmation_are_enough() -> None:
    dut = SimulatedDut(10 * HI)
    result = search(dut, LO, HI, how(start="max"))
    assert (dut.loads, dut.durations) == ([HI, HI], [1, 3])
    assert (result.capacity, result.limited_by) == (HI, "range")


def test_the_published_procedure_is_eight_times_the_middle_and_nothing_else() -> None:
    dut = SimulatedDut(41_600)
    result = search(dut, 1_000, 100_000, PUBLISHED)
    # cps_ndr.py in the 2022 article: 50.5K 25.8K 38.1K 44.3K 41.2K 42.8K 42.0K 41.6K
    assert [round(load / 100) / 10 for load in dut.loads] == [50.5, 25.8, 38.1, 44.3, 41.2, 42.8, 42.0, 41.6]
    assert set(phases(result)) == {"search"}
    assert result.upper is not None
    assert result.proof is not None
    assert result.upper - result.proof.load == pytest.approx(99_000 / 2**8)


def test_the_published_procedure_on_a_machine_of_today_reaches_the_end_of_its_range() -> None:
    result = search(SimulatedDut(381_000), 1_000, 100_000, PUBLISHED)
    assert (result.limited_by, len(result.steps)) == ("range", 8)
    assert result.capacity == pytest.approx(100_000 - 99_000 / 2**8)


def test_the_search_stops_when_the_bounds_are_near_enough() -> None:
    wide, narrow = (SimulatedDut(381_000) for _ in range(2))
    search(wide, LO, HI, how(relative_width="20%"))
    search(narrow, LO, HI, how(relative_width="2%"))
    assert len(wide.loads) < len(narrow.loads) <= 12 + 1 + 1


def test_no_more_than_the_permitted_iterations_are_made() -> None:
    result = search(SimulatedDut(381_000), LO, HI, how(relative_width="0.001%", max_iterations=5))
    assert phases(result).count("search") == 5


def test_a_good_hint_saves_trials_and_a_bad_one_costs_no_truth() -> None:
    truth = 381_000.0
    plain, hinted = SimulatedDut(truth), SimulatedDut(truth)
    search(plain, LO, HI, how())
    search(hinted, LO, HI, how(), hint=380_000)
    assert len(hinted.loads) <= len(plain.loads) - 4
    for hint in (2_000, 900_000, LO, HI, 10 * HI):
        result = search(SimulatedDut(truth), LO, HI, how(), hint=hint)
        assert truth / (1 + WIDTH) * (1 - 1e-9) <= result.capacity <= truth


def test_a_capacity_below_which_the_longer_trial_fails_is_stepped_down() -> None:
    def tires(load: float, duration: float) -> Observation:
        return seen(load=load, duration=duration, loss=0.5 if load > (100_000 if duration < 2 else 91_000) else 0.0)

    result = search(tires, LO, HI, how())
    assert 91_000 / (1 + WIDTH) <= result.capacity <= 91_000
    assert result.proof is not None
    assert result.proof.trial.duration_s == 3


def test_a_dut_that_slows_down_under_the_search_is_not_said_to_do_nothing() -> None:
    tried: list[float] = []

    def slows(load: float, duration: float) -> Observation:
        tried.append(load)
        return seen(load=load, duration=duration, loss=0.05 if load > (450_000 if len(tried) < 4 else 300_000) else 0.0)

    result = search(slows, LO, HI, how(), hint=440_000)
    assert tried[0] == 440_000
    assert 150_000 < result.capacity <= 300_000
    assert result.proof is not None
    assert result.proof.trial.duration_s == 3
    assert result.upper is not None and result.upper > 300_000


def test_a_load_that_no_longer_trial_confirms_is_no_capacity() -> None:
    def never_for_long(load: float, duration: float) -> Observation:
        return seen(load=load, duration=duration, loss=0.5 if load > 100_000 or duration > 2 else 0.0)

    result = search(never_for_long, LO, HI, how())
    assert (result.capacity, result.upper) == (0, LO)


def test_nothing_is_tried_again_because_it_failed() -> None:
    dut = SimulatedDut(TRUTH, noise=0.05, disturbed=0.2)
    search(dut, LO, HI, how())
    shorter = [load for load, duration in zip(dut.loads, dut.durations, strict=True) if duration == 1]
    assert len(shorter) == len(set(shorter))


@pytest.mark.parametrize(
    ("outcomes", "bound"),
    [([(1, True)], "lower"), ([(1, False)], "upper"), ([(1, True), (3, False)], "upper"),
     ([(1, False), (3, True)], "lower"), ([(3, True), (3, False)], "lower"),
     ([(3, True), (3, False), (3, False)], "upper"),
     ([(1, True), (1, False), (1, False)], "upper")],
)  # fmt: skip
def test_where_trials_at_a_load_disagree_more_bad_than_good_ones_make_it_too_high(
    outcomes: list[tuple[float, bool]], bound: str
) -> None:
    goal = Goal(final_duration_s=3, duration_sum_s=0, exceed_ratio=0.5)
    trials = [Made(duration, seen(duration=duration, loss=0.0 if good else 0.1)) for duration, good in outcomes]
    assert goal.classify(trials) == bound


def test_a_generator_that_is_slower_than_the_dut_is_named_as_the_limit() -> None:
    result = search(SimulatedDut(800_000, generator_limit=300_000), LO, HI, how())
    assert result.limited_by == "generator"
    assert 300_000 / (1 + WIDTH) <= result.capacity <= 300_000
    assert "the generator was the limit" in result.reason


def test_a_generator_that_only_fails_far_above_the_capacity_is_not_the_limit() -> None:
    assert search(SimulatedDut(100_000, generator_limit=400_000), LO, HI, how()).limited_by == "dut"


def test_a_generator_that_can_do_nothing_leaves_no_result() -> None:
    result = search(SimulatedDut(800_000, generator_limit=0), LO, HI, how())
    assert (result.capacity, result.limited_by, outcome_of(result).figures) == (0, "generator", {})


def test_a_fatal_problem_of_the_dut_stops_the_search_with_its_reason() -> None:
    def dies(load: float, duration: float) -> Observation:
        calls.append(load)
        return seen((Problem("fatal", "ovs-vswitchd was restarted"),) if len(calls) == 3 else (), load=load)

    calls: list[float] = []
    result = search(dies, LO, HI, how())
    reason = f"ovs-vswitchd was restarted, in trial 3, at {format_rate(calls[-1])}"
    assert (result.limited_by, result.reason, len(result.steps)) == ("fault", reason, 3)


def test_a_trial_that_cannot_be_made_stops_the_search_and_keeps_the_trials_before_it() -> None:
    def breaks(number: int) -> None:
        if number == 4:
            raise GeneratorError("the memif link broke")

    dut = SimulatedDut(381_000, before=breaks)
    result = search(dut, LO, HI, how())
    reason = f"the memif link broke, in trial 4, at {format_rate(dut.loads[-1])}"
    assert (result.limited_by, result.reason, len(result.steps)) == ("fault", reason, 3)


def test_every_trial_is_told_with_its_number_and_the_time_left_runs_out() -> None:
    told: list[Step] = []
    result = search(SimulatedDut(381_000), LO, HI, how(), Trials(told.append))
    assert [step.number for step in told] == list(range(1, len(told) + 1))
    assert [step.observation for step in told] == list(result.observations)
    assert told[-1].left_s == 0
    assert told[0].left_s > told[-2].left_s > 0
    spent = sum(step.observation.trial.wall_s for step in told[1:])
    assert told[0].left_s == pytest.approx(spent, rel=0.35)


def test_repetitions_give_the_median_and_all_trials() -> None:
    duts = iter([SimulatedDut(300_000), SimulatedDut(100_000), SimulatedDut(200_000)])
    result = repeat(3, lambda _last: search(next(duts), LO, HI, how()))
    assert 200_000 / (1 + WIDTH) <= result.capacity <= 200_000
    assert len(result.capacities) == 3
    assert phases(result).count("final") == 3


def test_each_repetition_begins_where_the_one_before_ended() -> None:
    dut, begun = SimulatedDut(300_000), []

    def again(last: float | None) -> SearchResult:
        begun.append(last)
        return search(dut, LO, HI, how(), hint=last)

    result = repeat(3, again)
    assert begun == [None, *result.capacities[:2]]
    figure = outcome_of(result).result
    assert figure is not None and figure.spread is not None
    assert figure.spread <= WIDTH
    assert (figure.low, figure.high) == (min(result.capacities), max(result.capacities))


def test_a_search_that_was_made_once_has_no_spread() -> None:
    figure = outcome_of(repeat(1, lambda _last: search(SimulatedDut(300_000), LO, HI, how()))).result
    assert figure is not None
    assert (figure.spread, figure.samples, figure.repetitions) == (None, (), (figure.value,))


def test_packets_that_collapse_under_overload_are_not_crept_up_to() -> None:
    dut = SimulatedDut(300_000, overload=0.1, packets=True)
    result = search(dut, LO, HI, how(max_iterations=16), hint=310_000)
    assert result.capacity >= 300_000 / (1 + WIDTH)


def test_a_fault_ends_the_repetitions() -> None:
    def breaks(_number: int) -> None:
        raise GeneratorError("gone")

    duts = iter([SimulatedDut(300_000), SimulatedDut(300_000, before=breaks)])
    result = repeat(5, lambda _last: search(next(duts), LO, HI, how()))
    assert (result.limited_by, len(result.capacities)) == ("fault", 2)


def test_the_plan_counts_the_bisections_that_the_width_needs() -> None:
    assert planned_trials(LO, HI, how()) == math.ceil(math.log2(math.log(1000) / math.log(1.05)))
    assert planned_trials(1_000, 100_000, PUBLISHED) == 8
    assert planned_trials(100, 104, how()) == 0
    assert planned_trials(LO, HI, how(middle="arithmetic")) <= 12


def test_a_pause_of_the_generator_does_not_end_the_search() -> None:
    truth, paused = 381_000.0, [0]

    def pauses(load: float, duration: float) -> Observation:
        paused[0] += 1
        limited = "late by 6 ms" if paused[0] in (3, 7) else ""
        return seen(load=load, duration=duration, loss=0.5 if load > truth else 0.0, generator_limited=limited)

    result = search(pauses, LO, HI, how())
    assert result.limited_by == "dut"
    assert truth / (1 + WIDTH) <= result.capacity <= truth


@settings(deadline=None)
@given(st.floats(LO * 1.2, HI * 0.8), st.sampled_from([1.0, 0.7, 0.1]))
def test_what_is_forwarded_of_too_many_packets_leads_to_the_capacity_and_never_past_it(
    truth: float, overload: float
) -> None:
    dut = SimulatedDut(truth, overload=overload, packets=True)
    result = search(dut, LO, HI, how(relative_width="5%", max_iterations=30), hint=truth / 2)
    assert truth / 1.06 <= result.capacity <= truth * (1 + LIMITS["loss_ratio"])


def test_packets_need_fewer_trials_for_the_same_width() -> None:
    trials = {}
    for packets in (False, True):
        dut = SimulatedDut(123_456, packets=packets)
        search(dut, LO, HI, how(relative_width="5%", max_iterations=30), hint=250_000)
        trials[packets] = len(dut.loads)
    assert trials[True] < trials[False]


pytestmark = pytest.mark.unit
SPAN = LoadRange.model_validate({"min": "5k", "max": "1.5M"})
BISECTION = {"trial_duration": "1s", "final_duration": "2s", "max_iterations": 10, "relative_width": "10%"}
MLR = {"trial_duration": "1s", "final_duration": "5s", "relative_width": "10%"}


@pytest.mark.parametrize("capacity", [60_000.0, 250_000.0, 900_000.0])
@pytest.mark.parametrize("settings", [Bisection.model_validate(BISECTION), Mlr.model_validate(MLR)], ids=["bi", "mlr"])
def test_a_search_makes_about_as_many_trials_as_were_expected(settings: Any, capacity: float) -> None:
    found = search(SimulatedDut(capacity), SPAN.min, SPAN.max, settings, hint=50_000.0)
    assert len(found.steps) / 2 <= expected(settings, SPAN).trials <= len(found.steps) * 2


def test_a_gate_is_two_trials_and_what_each_takes_beside_its_traffic() -> None:
    settings = GateSettings.model_validate({"trial_duration": "3s", "headroom": "1%"})
    assert expected(settings, SPAN).seconds(0.5) == 7.0
