"""The recorder of trials: numbers, faults, and the one rule for invalid trials."""

from dataclasses import replace

import pytest

from ctbench.base.errors import GeneratorError
from ctbench.dut.base import Problem
from ctbench.measure.observation import Observation
from ctbench.measure.trial import Step
from ctbench.measure.trials import MOST_INVALID, PAUSE_S, Repetitions, TrialFault, Trials, merge
from ctbench.results.evidence import Evidence, TableCount

from .simulated import seen

GOOD, BAD, SLOW = seen(), seen(loss=0.1), seen(generator_limited="late")
BUSY = replace(SLOW, problems=(Problem("invalid", "It was swapped out."),))
LATE = replace(SLOW, trial=SLOW.trial.model_copy(update={"late_max_ms": 80.0}))
DIED = seen((Problem("fatal", "It died."),))


def made(trials: Trials, *each: Observation | Exception, **how: object) -> Observation:
    """Make a trial that ends as the first of these, and is made again as the next ones."""
    ends = iter(each)

    def one(_number: int) -> Observation:
        end = next(ends)
        if isinstance(end, Exception):
            raise end
        return end

    return trials.make("search", one, 1_000, **how)  # type: ignore[arg-type]


def test_trials_are_numbered_and_told_of_after_those_that_the_test_made_before() -> None:
    told: list[Step] = []
    trials = Trials(told.append, before=4)
    made(trials, GOOD, note=lambda _seen: 7.0)
    made(trials, BAD)
    assert [(step.number, step.left_s) for step in told] == [(5, 7.0), (6, 0.0)]
    assert [step.observation.state for step in trials.made] == ["good", "bad"]


@pytest.mark.parametrize(
    ("ends", "states"),
    [
        ([GOOD], ["good"]),
        ([BAD], ["bad"]),
        ([SLOW, GOOD], ["invalid", "good"]),
        ([SLOW, SLOW, BAD], ["invalid", "invalid", "bad"]),
        ([SLOW] * 9, ["invalid"] * MOST_INVALID),
    ],
)
def test_an_invalid_trial_is_made_again_and_a_valid_one_never(ends: list[Observation], states: list[str]) -> None:
    trials = Trials()
    assert made(trials, *ends).state == states[-1]
    assert [step.observation.state for step in trials.steps] == states


def test_a_repetition_may_have_a_phase_of_its_own() -> None:
    trials = Trials()
    made(trials, SLOW, GOOD, again="recheck")
    assert [step.phase for step in trials.steps] == ["search", "recheck"]


@pytest.mark.parametrize("spoilt", [BUSY, LATE])
def test_a_busy_machine_gets_a_pause_that_grows_and_a_slow_generator_none(spoilt: Observation) -> None:
    slept: list[float] = []
    made(Trials(repetitions=Repetitions(sleep=slept.append)), spoilt, spoilt, spoilt)
    assert slept == [PAUSE_S, 2 * PAUSE_S]
    slept.clear()
    made(Trials(repetitions=Repetitions(sleep=slept.append)), SLOW, SLOW, SLOW)
    assert slept == []


def test_the_repetitions_of_a_run_have_one_budget() -> None:
    budget = Repetitions(left_s=BUSY.trial.wall_s + PAUSE_S, sleep=lambda _seconds: None)
    first, second = Trials(repetitions=budget), Trials(repetitions=budget)
    assert made(first, BUSY, GOOD).good and budget.left_s == 0
    assert made(second, BUSY, GOOD).state == "invalid" and len(second.steps) == 1


@pytest.mark.parametrize(
    ("end", "steps", "reason"),
    [(DIED, 2, "It died, in trial 4, at 1.0 k/s"), (GeneratorError("No link."), 1, "No link, in trial 4, at 1.0 k/s")],
)
def test_what_breaks_ends_it_with_the_trials_so_far(end: Observation | Exception, steps: int, reason: str) -> None:
    trials = Trials(before=2)
    with pytest.raises(TrialFault) as fault:
        made(trials, SLOW, end)
    assert (str(fault.value), len(trials.steps)) == (reason, steps)


def test_evidence_is_merged_part_by_part() -> None:
    count = TableCount(trial=1, moment="opened", expected=1, found=1)
    one, later = Evidence(trials=[], upper_bound=2.0, table=[count]), Evidence(trials=[], upper_bound=1.0, ceiling=9.0)
    both = merge(one, later)
    assert (both.upper_bound, both.ceiling, both.table) == (1.0, 9.0, [count])
    assert merge(one, Evidence(trials=[])) == one
