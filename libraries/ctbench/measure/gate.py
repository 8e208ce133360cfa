"""The gate: trials at the floor, two of three decide, and it stops as soon as they have."""

from dataclasses import dataclass, replace
from typing import Literal

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_rate
from ctbench.measure.campaign import GateSettings
from ctbench.measure.observation import Observation
from ctbench.measure.trial import OnTrial, Step, TrialFn, broken_trial, nobody

#: Trials of the same outcome that decide.
_MAJORITY = 2


@dataclass(frozen=True)
class GateResult:
    """What the gate decided."""

    #: Offered load of all its trials, in the profile's unit per second: the floor and the campaign's headroom.
    load: float
    #: Whether the DUT held it; None when the trials did not decide.
    passed: bool | None
    #: `floor`: decided; `generator`: too many trials were the generator's; `fault`: something broke.
    limited_by: Literal["floor", "generator", "fault"]
    #: One sentence.
    reason: str
    #: The trial that stands for the decision: the one that completed less of the two.
    proof: Observation | None
    #: All trials in their order.
    steps: tuple[Step, ...]

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All trials in their order."""
        return tuple(step.observation for step in self.steps)


def gate(trial_fn: TrialFn, load: float, settings: GateSettings, on_trial: OnTrial = nobody) -> GateResult:
    """Decide whether the DUT holds `load` (the floor, see `Floor.load`).

    Invalid trials count as neither. A fatal problem of the DUT or a `TestbedError` of a trial ends it.
    """
    steps: list[Step] = []
    good: list[Observation] = []
    bad: list[Observation] = []
    invalid = ""

    def result(passed: bool | None, limited_by: Literal["floor", "generator", "fault"], reason: str) -> GateResult:
        deciding = {True: good, False: bad, None: []}[passed]
        proof = min(deciding, key=lambda seen: seen.trial.completed, default=None)
        return GateResult(load, passed, limited_by, reason, proof, tuple(steps))

    while len(steps) < settings.max_trials:
        try:
            seen = trial_fn(load, settings.trial_duration)
        except TestbedError as error:
            return result(None, "fault", broken_trial(len(steps) + 1, load, str(error)))
        if seen.state == "invalid":
            invalid = seen.reason
        else:
            (good if seen.good else bad).append(seen)
        step = Step(len(steps) + 1, "gate", seen, 0.0)
        steps.append(step)
        decided = max(len(good), len(bad)) >= _MAJORITY
        needed = 0 if decided or seen.fault else _MAJORITY - max(len(good), len(bad))
        needed = min(needed, settings.max_trials - len(steps))
        on_trial(replace(step, left_s=needed * seen.trial.wall_s))
        if seen.fault:
            return result(None, "fault", broken_trial(step.number, load, seen.fault))
        if decided:
            held = len(good) >= _MAJORITY
            count = f"{len(good)} of {len(good) + len(bad)} trials at {format_rate(load)} held"
            return result(held, "floor", count if held else f"{count}: {bad[-1].reason}")
    return result(
        None,
        "generator",
        f"{len(steps)} trials at {format_rate(load)} decided nothing, the generator spoilt "
        f"{len(steps) - len(good) - len(bad)} of them: {invalid}",
    )
