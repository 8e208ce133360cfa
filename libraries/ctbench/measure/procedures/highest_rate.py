"""The highest rate that the DUT holds, by a search (RFC 2544, section 26.1; RFC 9411, section 7.2)."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign, SaturationSettings, SearchSettings
from ctbench.measure.descent import descend
from ctbench.measure.expected import Expected, expected
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.measure.repetition import repeat
from ctbench.measure.result import SearchResult
from ctbench.measure.search import search
from ctbench.measure.trial import Step
from ctbench.results.figure import Figure
from ctbench.results.metrics import RATE_OF, RATES, SATURATION_OF, Metric
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

#: Of the saturation rate: where a search begins.
BELOW_SATURATION = 0.97


@dataclass(frozen=True)
class HighestRate:
    """Implements `Procedure`."""

    how: SearchSettings
    #: How often the whole search is made; the (lower) median is the result.
    repetitions: int = 1
    #: What searches instead of `how` where that needs a closed loop, and none was to be had.
    otherwise: SearchSettings | None = None
    name: str = "highest-rate"
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset()
    found_out: Collection[str] = RATES
    headroom: float = 0.01

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return RATE_OF[profile.kind]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return expected(self.how, campaign.load_range(profile)).times(self.repetitions)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        span, runner, how = bench.campaign.load_range(bench.profile), bench.runner, self.how
        metric = SATURATION_OF[bench.profile.kind]
        saturation = bench.earlier.figure(metric) if bench.earlier else None
        beyond = _served_by_generator(bench.earlier)
        if isinstance(how, SaturationSettings) and not saturation and not beyond:
            how = self.otherwise or bench.campaign.ceiling
        # The capacity is a little below what a closed loop shows, which a descent takes into account by itself.
        near = saturation if isinstance(how, SaturationSettings) or not saturation else saturation * BELOW_SATURATION
        hint = near or bench.hint or bench.floor_load
        one, to_come = expected(how, span), self.repetitions

        def tell(step: Step) -> None:
            trial = step.observation.trial
            overhead_s = max(0.0, trial.wall_s - trial.duration_s)
            bench.on_trial(replace(step, left_s=step.left_s + one.times(to_come).seconds(overhead_s)))

        def once(last: float | None) -> SearchResult:
            nonlocal to_come
            to_come -= 1
            if isinstance(how, SaturationSettings) and not saturation:
                # Above this rate every trial would say the same again, and a bisection makes them all.
                return descend(runner, beyond, span.max, how, tell, bench.made, of_generator=True)
            begin = hint if isinstance(how, SaturationSettings) else last or hint
            return search(
                runner, span.min, span.max, how, tell,
                hint=begin, rough=not (last or near or bench.hint), cold=not last and bench.earlier is None,
                before=bench.made,
            )  # fmt: skip

        return outcome_of(repeat(self.repetitions, once), bench.rate_metric)


def _served_by_generator(earlier: Outcome | None) -> float:
    """The rate of the last closed loop that said that the generator was its limit; 0 where none did."""
    steps = [step for step in earlier.steps if step.phase == "saturation"] if earlier else []
    limited = steps and steps[-1].observation.trial.generator_limited
    return (steps[-1].observation.trial.service_rate or 0.0) if limited else 0.0


def outcome_of(found: SearchResult, metric: Metric) -> Outcome:
    """The outcome of a search for the highest load, in a metric's unit."""
    several = len(found.capacities) > 1
    figure = Figure(
        value=found.capacity,
        unit=metric.unit.name,
        low=min(found.capacities) if several else found.capacity,
        high=max(found.capacities) if several else found.upper,
        samples=found.capacities if several else (),
    )
    return Outcome(
        metric=metric,
        figures=figures_of(found.at_capacity(), metric, figure),
        limited_by=found.limited_by,
        reason=found.reason,
        held=bool(found.capacity),
        steps=found.steps,
        upper_bound=found.upper,
        goal=found.goal,
    )
