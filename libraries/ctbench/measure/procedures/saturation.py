"""The saturation rate: what the DUT completes in a closed loop, with so many under way. One short trial without
overload: a hint for searches and a figure for the history, and never what a floor is judged by."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from ctbench.base.errors import TestbedError
from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign, SaturationSettings
from ctbench.measure.expected import Expected
from ctbench.measure.loss import limits_in
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.sequential import MOST_INVALID
from ctbench.measure.trial import Step, broken_trial
from ctbench.results.figure import Figure
from ctbench.results.metrics import SATURATION_OF, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.loads import Load, Saturation, saturating
from ctbench.traffic.profiles import Profile


@dataclass(frozen=True)
class ClosedLoop:
    """Implements `Procedure`."""

    how: SaturationSettings
    #: Whether the generator itself is measured, over a cable: then its limit is what is looked for.
    of_generator: bool = False
    name: str = "saturation"
    loads: frozenset[type[Load]] = frozenset((Saturation,))
    abilities: frozenset[Ability] = frozenset()
    found_out: Collection[str] = ()
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return SATURATION_OF[profile.kind]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return Expected(1, self.how.trial_duration)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`. What it found has no figure where the generator was the limit."""
        load, metric = saturating(bench.profile), self.metric(bench.profile)
        steps: list[Step] = []
        # Times in a closed loop are those of its queues: only what is lost says that something was wrong.
        runner = replace(bench, conditions=limits_in(bench.conditions)).runner

        def outcome(seen: Observation | None, limited_by: LimitedBy, reason: str) -> Outcome:
            figures = {}
            if seen and limited_by == "dut":
                figures[metric.name] = Figure(value=served(seen), unit=metric.unit.name)
            return Outcome(metric, figures, limited_by, reason, held=bool(figures), steps=tuple(steps))

        seen: Observation | None = None
        for number in range(1, MOST_INVALID + 1):
            try:
                seen = runner.offer(load, self.how.trial_duration)
            except TestbedError as error:
                return outcome(
                    None, "fault", broken_trial(bench.made + number, served(seen) if seen else 0.0, str(error))
                )
            if self.of_generator:  # that it is the limit is no fault of the trial
                seen = replace(seen, trial=seen.trial.model_copy(update={"generator_limited": ""}))
            step = Step(number, "saturation", seen, 0.0)
            steps.append(step)
            bench.on_trial(replace(step, left_s=0.0))
            if seen.fault:
                return outcome(None, "fault", broken_trial(bench.made + number, served(seen), seen.fault))
            if seen.state != "invalid":
                break
        assert seen is not None
        if seen.state == "invalid":
            return outcome(seen, "generator", seen.reason)
        return outcome(seen, "dut", f"a closed loop of {load.under_way} was served at {metric.format(served(seen))}")


def served(seen: Observation) -> float:
    """Connections (packets) per second that the DUT completed in a trial's sustain phase."""
    return seen.trial.service_rate or seen.trial.rate
