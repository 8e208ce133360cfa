"""The search with MLRsearch on simulated DUTs: near the truth whatever the DUT does, and every ending told apart."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.base.errors import GeneratorError
from ctbench.base.units import format_rate
from ctbench.dut.base import Problem
from ctbench.measure.campaign import Mlr
from ctbench.measure.mlr import MlrSearch
from ctbench.measure.observation import Observation
from ctbench.measure.search import search
from ctbench.measure.search_result import Goal, Made, SearchResult
from ctbench.measure.trial import Step
from ctbench.measure.trials import Trials

from .simulated import SimulatedDut, outcome_of, seen

pytestmark = pytest.mark.unit

LO, HI, WIDTH = 1_000.0, 1_000_000.0, 0.02
TRUTH = 381_000.0


def how(**keys: Any) -> Mlr:
    base = {"trial_duration": "1s", "final_duration": "4s", "relative_width": "2%"}
    return Mlr.model_validate(base | keys)


def phases(result: SearchResult) -> list[str]:
    return [step.phase for step in result.steps]


@settings(max_examples=60, deadline=None)
@given(
    st.floats(min_value=LO * 1.2, max_value=HI / 1.2),
    st.sampled_from([1.0, 0.7, 0.1]),
    st.booleans(),
    st.sampled_from([None, 0.3, 0.95, 1.0, 1.2, 4.0]),
)
def test_a_sharp_capacity_is_found_within_the_width_wherever_it_begins(
    truth: float, overload: float, packets: bool, guess: float | None
) -> None:
    dut = SimulatedDut(truth, overload=overload, packets=packets)
    result = search(dut, LO, HI, how(), hint=guess and truth * guess)
    assert result.upper is not None
    assert result.capacity <= truth * 1.0003
    assert truth <= result.upper * 1.0003
    # The capacity is what came through, which may be less than what was offered by as much as a trial may lose.
    assert result.upper <= result.capacity * (1 + WIDTH) * 1.0003
    assert result.limited_by == "dut"
    assert result.proof is not None
    assert result.proof.trial.duration_s == 4
    figure = outcome_of(result).result
    assert figure is not None
    assert (figure.value, figure.low) == (result.capacity, result.capacity)


@pytest.mark.parametrize("overload", [1.0, 0.1])
def test_one_disturbed_trial_in_twenty_does_not_move_the_result(overload: float) -> None:
    good = 0
    for seed in range(200):
        dut = SimulatedDut(TRUTH, noise=0.005, disturbed=0.05, overload=overload, seed=seed)
        result = search(dut, LO, HI, how(), hint=TRUTH * 0.8)
        good += TRUTH / (1 + WIDTH) * 0.98 <= result.capacity <= TRUTH * 1.02
    assert good >= 195


def test_a_dut_that_warms_up_is_not_judged_by_its_first_trials() -> None:
    result = search(SimulatedDut(TRUTH, cold=0.2, warm_after_s=10), LO, HI, how())
    assert result.capacity >= TRUTH / (1 + WIDTH) * 0.99


def test_short_trials_lead_there_and_long_ones_decide() -> None:
    dut = SimulatedDut(TRUTH)
    result = search(dut, LO, HI, how())
    assert dut.durations[:3] == [1, 1, 1]
    made = list(zip(dut.loads, dut.durations, strict=True))
    assert (result.capacity, 4) in made
    assert (result.upper, 4) in made


def test_a_hint_saves_trials_and_a_bad_one_costs_no_truth() -> None:
    plain, hinted = SimulatedDut(TRUTH, overload=0.1), SimulatedDut(TRUTH, overload=0.1)
    search(plain, LO, HI, how())
    search(hinted, LO, HI, how(), hint=380_000)
    assert len(hinted.loads) < len(plain.loads)
    assert max(hinted.loads) < 600_000


def test_a_disturbed_trial_near_the_hint_does_not_end_the_range_there() -> None:
    disturbed: list[float] = []

    def once(load: float, duration: float) -> Observation:
        first = not disturbed
        disturbed.append(load)
        return seen(load=load, duration=duration, loss=0.01 if first or load > TRUTH else 0.0)

    result = search(once, LO, HI, how(), hint=TRUTH / 2)
    assert disturbed[0] < TRUTH
    assert TRUTH / (1 + WIDTH) <= result.capacity <= TRUTH


def test_the_relevant_upper_bound_is_the_smallest_of_all_trials() -> None:
    # A DUT that has become faster by the time that the library comes back to a load.
    dut = SimulatedDut(TRUTH, noise=0.1, seed=3)
    search_of_ours = MlrSearch(dut, LO, HI, how(), Trials())
    result = search_of_ours.run(TRUTH)
    assert result.goal is not None
    uppers = [load for load, made in search_of_ours.made.items() if search_of_ours.goal.classify(made) == "upper"]
    assert result.upper == result.goal.relevant_upper_bound == min(uppers)
    assert result.goal.relevant_lower_bound == result.capacity < min(uppers)


def test_it_reports_what_rfc_9971_asks_for() -> None:
    result = search(SimulatedDut(TRUTH), LO, HI, how())
    goal = result.goal
    assert goal is not None
    assert (goal.loss_ratio, goal.final_duration_s, goal.duration_sum_s, goal.exceed_ratio, goal.relative_width) == (
        0.0002, 4.0, 8.0, 0.5, 0.02,
    )  # fmt: skip
    assert (goal.relevant_lower_bound, goal.relevant_upper_bound) == (result.capacity, result.upper)
    assert goal.conditional_throughput == result.capacity


def test_the_conditional_throughput_is_what_was_really_forwarded() -> None:
    goal = Goal(final_duration_s=4, duration_sum_s=8, exceed_ratio=0.5)
    lossy = [Made(4, seen(loss=loss)) for loss in (0.0001, 0.3)]
    assert goal.classify(lossy) == "lower"
    assert goal.conditional_throughput(10_000, lossy) == pytest.approx(9_999)
    # Half of the sum has to be measured, or nothing is known to be forwarded.
    assert goal.conditional_throughput(10_000, [Made(1, seen())]) == 0
    assert Goal(4, 8, 0.25).conditional_throughput(10_000, lossy) == pytest.approx(7_000)


def test_what_is_cold_is_warmed_up_by_a_trial_that_does_not_count() -> None:
    dut = SimulatedDut(TRUTH)
    result = search(dut, LO, HI, how(), hint=100_000, cold=True)
    assert phases(result)[0] == "warm-up"
    assert "warm-up" not in phases(result)[1:]
    assert dut.loads[0] == 100_000
    cold = search(SimulatedDut(TRUTH, cold=0.9, warm_after_s=1), LO, HI, how(), hint=100_000, cold=True)
    assert cold.capacity >= TRUTH / (1 + WIDTH)


def test_a_dut_that_never_passes_has_no_capacity() -> None:
    result = search(SimulatedDut(0.0), LO, HI, how())
    assert (result.capacity, result.proof, result.limited_by) == (0, None, "dut")
    assert result.reason.startswith("no load held, not even 1.0 k/s: 100.0 % of the connections were lost")


def test_a_dut_that_always_passes_reaches_the_end_of_the_range() -> None:
    result = search(SimulatedDut(10 * HI), LO, HI, how(), hint=500_000)
    assert (result.limited_by, result.upper, result.capacity) == ("range", None, HI)


def test_a_capacity_that_is_the_generators_says_so() -> None:
    result = search(SimulatedDut(10 * HI, generator_limit=300_000), LO, HI, how())
    assert result.limited_by == "generator"
    assert 300_000 / (1 + WIDTH) <= result.capacity <= 300_000
    assert "the generator was the limit" in result.reason


def test_a_pause_of_the_generator_is_tried_again() -> None:
    paused = [0]

    def pauses(load: float, duration: float) -> Observation:
        paused[0] += 1
        limited = "late by 6 ms" if paused[0] in (3, 7) else ""
        return seen(load=load, duration=duration, loss=0.5 if load > TRUTH else 0.0, generator_limited=limited)

    result = search(pauses, LO, HI, how())
    assert result.limited_by == "dut"
    assert TRUTH / (1 + WIDTH) <= result.capacity <= TRUTH


def test_a_generator_that_breaks_ends_it_as_a_fault_with_the_trials_so_far() -> None:
    def breaks(count: int) -> None:
        if count == 4:
            raise GeneratorError("The generator lost its link.")

    dut = SimulatedDut(TRUTH, before=breaks)
    result, asked = search(dut, LO, HI, how()), dut.loads
    assert (result.limited_by, result.reason, len(result.steps)) == (
        "fault",
        f"The generator lost its link, in trial 4, at {format_rate(asked[-1])}",
        3,
    )


def test_a_dut_that_dies_ends_it_as_a_fault() -> None:
    died = (Problem("fatal", "ovs-vswitchd is gone."),)
    result = search(lambda load, duration: seen(died, load=load, duration=duration), LO, HI, how())
    (step,) = result.steps
    reason = f"ovs-vswitchd is gone, in trial 1, at {format_rate(step.observation.load)}"
    assert (result.limited_by, result.reason) == ("fault", reason)


def test_out_of_trials_it_says_so_and_gives_what_it_knows() -> None:
    result = search(SimulatedDut(TRUTH, overload=0.1), LO, HI, how(max_iterations=5))
    assert len(result.steps) == 5
    assert result.limited_by == "dut"
    assert result.reason.endswith("(stopped after 5 trials)")
    assert result.capacity <= TRUTH
    assert result.upper is not None
    assert result.upper > TRUTH


def test_a_bug_in_a_trial_is_not_taken_for_an_end_of_the_search() -> None:
    def bug(_load: float, _duration: float) -> Observation:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        search(bug, LO, HI, how())


def test_a_contradiction_that_the_library_finds_costs_no_trial_that_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradiction(self: object, *_: object) -> None:
        search_of_ours: MlrSearch = _[0]  # type: ignore[assignment]
        search_of_ours.measure(1.0, 100_000.0)
        search_of_ours.measure(1.0, 500_000.0)
        raise RuntimeError("Load not worth: 1")

    monkeypatch.setattr("ctbench.measure.mlr.MultipleLossRatioSearch.search", contradiction)
    result = search(SimulatedDut(TRUTH), LO, HI, how())
    assert (result.capacity, result.upper) == (100_000, 500_000)
    assert result.reason.endswith("(MLRsearch gave up: Load not worth: 1)")


def test_the_console_is_told_each_trial_and_what_is_left() -> None:
    told: list[Step] = []
    result = search(SimulatedDut(TRUTH), LO, HI, how(), Trials(told.append))
    assert [step.number for step in told] == list(range(1, len(result.steps) + 1))
    assert all(step.left_s > 0 for step in told[:-2])


@settings(max_examples=80, deadline=None)
@given(
    st.floats(1.001, 3.0), st.floats(0.5, 4.0), st.floats(0.3, 4.0),
    st.sampled_from(["0.5%", "5%", "50%"]), st.integers(0, 9999),
)  # fmt: skip
def test_a_narrow_range_and_noise_never_break_it(
    ratio: float, truth: float, hint: float, width: str, seed: int
) -> None:
    dut = SimulatedDut(truth * LO, noise=0.1, disturbed=0.2, seed=seed)
    wanted = how(relative_width=width, max_iterations=60)
    result = search(dut, LO, LO * ratio, wanted, hint=hint * LO)
    assert LO <= min(dut.loads) <= max(dut.loads) <= LO * ratio * (1 + 1e-9)
    assert result.capacity == 0 or result.proof is not None
