"""The search below the saturation rate: what a closed loop served is above the capacity, so a little less is offered in
an open loop, and less again until it holds."""

from dataclasses import replace

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_rate
from ctbench.measure.campaign import SaturationSettings
from ctbench.measure.result import SearchResult, broken_off, conclude
from ctbench.measure.trial import OnTrial, Step, TrialFn, broken_trial


def descend(
    trial_fn: TrialFn,
    saturation: float,
    hi: float,
    settings: SaturationSettings,
    on_trial: OnTrial,
    before: int = 0,
    *,
    of_generator: bool = False,
) -> SearchResult:
    """Find a load that holds, at most `hi`: the first trial offers the campaign's share of the `saturation` rate, and
    each step down is twice as far as the one before. The saturation rate itself is the upper bound where nothing
    failed below it. A trial that says nothing about the DUT is a step down too: what held below it is a lower bound.
    `before`: trials that the test made already, for messages. `of_generator`: the generator was the limit of the closed
    loop, so what holds below its rate is a lower bound of what the DUT serves."""
    steps: list[Step] = []
    load, factor = min(saturation * settings.first, hi), settings.first

    while True:
        try:
            seen = trial_fn(load, settings.final_duration)
        except TestbedError as error:
            return broken_off(None, saturation, steps, broken_trial(before + len(steps) + 1, load, str(error)))
        step = Step(len(steps) + 1, "final", seen, 0.0)
        steps.append(step)
        end = seen.good or bool(seen.fault) or len(steps) == settings.max_trials
        on_trial(replace(step, left_s=0.0 if end else seen.trial.wall_s))
        if seen.fault:
            return broken_off(None, saturation, steps, broken_trial(before + step.number, load, seen.fault))
        if end:
            break
        load, factor = load * factor, factor * factor
    proof = seen if seen.good else None
    if failed := [each.observation for each in steps if not each.observation.good]:
        return conclude(proof, failed[-1], steps, hi)
    found = conclude(proof, None, steps, hi)
    if load >= hi:
        return found
    if of_generator:
        reason = f"{format_rate(load)} held, and the generator serves no more than {format_rate(saturation)} itself"
        return replace(found, limited_by="generator", reason=reason)
    reason = f"{format_rate(load)} held, and a closed loop shows that the DUT serves {format_rate(saturation)}"
    return replace(found, upper=saturation, limited_by="dut", reason=reason)
