"""The gate: two of three trials decide, what the generator spoilt counts as neither."""

import pytest

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_rate
from ctbench.dut.base import Problem
from ctbench.measure.campaign import GateSettings
from ctbench.measure.gate import GateResult, gate
from ctbench.measure.observation import Observation
from ctbench.measure.trial import Step

from .simulated import SimulatedDut, outcome_of, seen

SETTINGS = GateSettings.model_validate({"trial_duration": "5s", "headroom": "1%"})


def play(outcomes: str, told: list[Step] | None = None) -> GateResult:
    """Run the gate over a script: g(ood), b(ad), i(nvalid), f(atal), e(rror)."""
    script = iter(outcomes)

    def trial(load: float, duration: float) -> Observation:
        outcome = next(script)
        if outcome == "e":
            raise TestbedError("the table stays full")
        problems = (Problem("fatal", "restarted"),) if outcome == "f" else ()
        limited = "late" if outcome == "i" else ""
        return seen(problems, load=load, duration=duration, loss=0.05 * (outcome == "b"), generator_limited=limited)

    result = gate(trial, 10_000, SETTINGS, told.append if told is not None else lambda _step: None)
    assert next(script, None) is None, "the gate stopped too early"
    return result


@pytest.mark.parametrize("outcomes", ["gg", "gbg", "bgg", "gig", "igibg", "iiigg"])
def test_two_good_trials_pass(outcomes: str) -> None:
    result = play(outcomes)
    assert (result.passed, result.limited_by) == (True, "floor")
    figure = outcome_of(result).result
    assert figure is not None
    assert figure.value == 10_000


@pytest.mark.parametrize("outcomes", ["bb", "gbb", "bgb", "ibib"])
def test_two_bad_trials_fail_and_the_measured_rate_is_what_was_completed(outcomes: str) -> None:
    result = play(outcomes)
    assert result.passed is False
    figure = outcome_of(result).result
    assert figure is not None
    assert figure.value == pytest.approx(9_500)
    assert "5.00 % of the connections were lost" in result.reason


@pytest.mark.parametrize("outcomes", ["iiiii", "giiii", "giibi"])
def test_trials_that_the_generator_spoilt_decide_nothing_and_end_after_five(outcomes: str) -> None:
    result = play(outcomes)
    assert (result.passed, result.limited_by, outcome_of(result).figures) == (None, "generator", {})
    assert result.reason.endswith(": late")


@pytest.mark.parametrize(("outcomes", "reason"), [("gf", "restarted"), ("ge", "the table stays full")])
def test_a_fault_ends_the_gate_undecided_with_its_reason_and_the_trial_it_was_in(outcomes: str, reason: str) -> None:
    result = play(outcomes)
    where = f"in trial 2, at {format_rate(result.load)}"
    assert (result.passed, result.limited_by, result.reason) == (None, "fault", f"{reason}, {where}")
    assert result.observations[0].good


def test_every_trial_is_told_and_the_time_left_ends_at_nothing() -> None:
    told: list[Step] = []
    play("gbg", told)
    assert [step.number for step in told] == [1, 2, 3]
    assert [step.left_s > 0 for step in told] == [True, True, False]


def test_the_gate_is_right_where_a_single_trial_is_not() -> None:
    held, missed = 0, 0
    for seed in range(300):
        held += gate(SimulatedDut(10_300, noise=0.005, disturbed=0.05, seed=seed), 10_000, SETTINGS).passed is True
        missed += gate(SimulatedDut(9_700, noise=0.005, disturbed=0.05, seed=seed), 10_000, SETTINGS).passed is False
    assert held >= 294
    assert missed == 300
