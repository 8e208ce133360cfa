"""The procedures of rates: the saturation rate in a closed loop, the highest rate held, and trials at the floor."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ctbench.base.units import format_rate
from ctbench.measure import duet
from ctbench.measure.campaign import Bisection, Campaign, GateSettings, LoadRange, SaturationSettings, SearchSettings
from ctbench.measure.observation import Observation, limits_in
from ctbench.measure.procedure import Bench, BenchProcedure, Outcome, figures_of
from ctbench.measure.search import SearchResult, descend, repeat, search
from ctbench.measure.sequential import KnownRates, SequentialTest, scatter
from ctbench.measure.start_rule import around
from ctbench.measure.trial import Trials
from ctbench.results.evidence import Evidence
from ctbench.results.metrics import PDR_OF, RATE_OF, RATES, SATURATION_OF, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_interval
from ctbench.traffic.loads import Rate, Saturation, saturating
from ctbench.traffic.profiles import Profile

#: Of the saturation rate: where a search begins.
BELOW_SATURATION = 0.97
#: So much more than what is promised (ratio) a search begins at that knows nothing else.
_HEADROOM = 0.01
#: Of a load that the generator cannot offer, because it is kept from its CPU for milliseconds: what came late fits the
#: DUT's rings then.
_OFFERED = 0.6
#: Of the seconds that classify a load, those of the trials at both bounds of a goal, as MLRsearch ends at them.
_TO_CLASSIFY = 1.5
#: Closed loops until their interval decides what is promised: two hardly tell how far apart they lie.
_LEAST_LOOPS, _MOST_LOOPS = 3, 5


@dataclass(frozen=True)
class ClosedLoop(BenchProcedure):
    """The saturation rate: what the DUT completes in a closed loop, with a fixed number under way. One short trial
    without overload gives a hint for searches and a figure for the history. A promised rate gets more trials until it
    is decided."""

    how: SaturationSettings
    #: Whether the generator itself is measured, over a cable: then its limit is what is looked for.
    of_generator: bool = False
    name = "saturation"
    found_out = ()
    says = "keeps a fixed number of connections or packets under way, and counts what is completed per second"
    loads = frozenset((Saturation,))

    def metric(self, profile: Profile) -> Metric:
        """Return the saturation metric of the profile's unit."""
        return SATURATION_OF[profile.kind]

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        return self.how.trial_duration

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Measure the saturation rate. The outcome has no figure without a valid trial."""
        load, metric = saturating(bench.profile), self.metric(bench.profile)
        # Times in a closed loop are those of its queues: only what is lost says that something was wrong.
        runner = bench.runner_for(limits_in(bench.conditions))

        def one(_number: int) -> Observation:
            seen = runner.offer(load, self.how.trial_duration)
            if self.of_generator:  # that it is the limit is not a fault of the trial
                seen = replace(seen, trial=seen.trial.model_copy(update={"generator_limited": ""}))
            return seen

        rates: list[float] = []
        verdicts: dict[str, Verdict] = {}
        promised = bench.floor.limit(metric.name)
        for _ in range(_MOST_LOOPS):
            seen = trials.make("saturation", one)
            if seen.state == "invalid":
                break
            rates.append(seen.served)
            figure = _of_loops(rates, metric)
            verdicts = by_interval(metric, figure, promised, f"closed loops: {len(rates)}")
            if promised is None or (verdicts and all(each.kept is not None for each in verdicts.values())):
                break
        if promised is not None and not verdicts:
            reason = f"{len(rates)} closed loops do not tell how far apart they lie: {seen.reason}"
            verdicts = {metric.name: Verdict(None, Code.GENERATOR, reason)}
        if not rates:
            return Outcome.nothing(metric, "generator", seen.reason, verdicts)
        said = f"a closed loop of {load.under_way} was served at {metric.format(figure.value)}"
        return Outcome(metric, {metric.name: figure}, "dut", said, True, verdicts=verdicts)


def _of_loops(rates: Sequence[float], metric: Metric) -> Estimate:
    """Return the mean rate of closed loops, with Student's interval from the scatter between them: within one loop, a
    machine that changes its speed now and then looks as if it had one speed. Each look has its share of the errors."""
    value, unit = fmean(rates), metric.unit.name
    if len(rates) < _LEAST_LOOPS:
        return Estimate(value, unit)
    error = duet.ERROR / 2 / (_MOST_LOOPS - _LEAST_LOOPS + 1)
    return around(value, [math.log(max(rate, 0.5)) for rate in rates], error, unit)


class OfRate(BenchProcedure):
    """A procedure that finds the rate of a profile, with loads at a rate."""

    loads = frozenset((Rate,))
    found_out = RATES

    def metric(self, profile: Profile) -> Metric:
        return RATE_OF[profile.kind]


@dataclass(frozen=True)
class HighestRate(OfRate):
    """The search for the highest rate that the DUT holds (RFC 2544, section 26.1; RFC 9411, section 7.2)."""

    how: SearchSettings
    #: How often the whole search is made; the (lower) median is the result.
    repetitions: int = 1
    #: Loss ratio of the partial drop rate, which the same search looks for; 0: for none.
    partial_drop: float = 0.0
    name = "highest-rate"
    says = "searches for what the DUT holds: the highest load whose loss stays within the limit"

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        goals = 2 if self.partial_drop else 1
        return self.repetitions * search_s(self.how, campaign.load_range(profile), goals)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Search the highest rate. After a fault, the outcome has the figure that was known until then."""
        span, how = bench.campaign.load_range(bench.profile), self.how
        runner = replace(bench.runner, partial_drop=self.partial_drop)
        saturation = bench.earlier.figure(SATURATION_OF[bench.profile.kind]) if bench.earlier else None
        below = saturation or _served_by_generator(bench.earlier)
        if isinstance(how, SaturationSettings) and not below:
            how = bench.campaign.search_for(bench.profile, closed_loop=False)
        # The capacity is a little below what a closed loop shows, which a descent takes into account by itself.
        near = saturation * BELOW_SATURATION if saturation else bench.hint

        def tell(seen: Observation) -> None:
            trials.made.append(seen)
            bench.on_trial(seen)

        def once(last: float | None) -> SearchResult:
            own = Trials(tell, trials.before + len(trials.made), bench.repetitions)
            if isinstance(how, SaturationSettings):
                # Above this rate every trial would say the same again, and a bisection makes them all.
                found = descend(runner, below, span.max, how, own, of_generator=not saturation)
                return _at_promised(found, bench, how, own)
            return search(
                runner, span.min, span.max, how, own, hint=last or near or bench.floor.load(_HEADROOM) or None,
                rough=not (last or near), cold=not last and bench.earlier is None, partial_drop=self.partial_drop,
            )  # fmt: skip

        return outcome_of(repeat(self.repetitions, once), bench.rate_metric)


def search_s(settings: SearchSettings, span: LoadRange, goals: int = 1) -> float:
    """Estimate the seconds of a whole search over `span` for so many goals, at best."""
    if isinstance(settings, SaturationSettings):
        return settings.final_duration
    halvings = min(settings.max_iterations, search_halvings(span, settings.relative_width))
    if isinstance(settings, Bisection):
        return halvings * settings.trial_duration
    return halvings * settings.trial_duration + goals * _TO_CLASSIFY * settings.classified_by_s


def search_halvings(span: LoadRange, width: float | None) -> float:
    """Return the halvings of a range until its ends are within `width` of each other, relative to the lower one."""
    return math.log2(math.log(span.max / span.min) / math.log1p(width)) if width else math.inf


def _at_promised(found: SearchResult, bench: Bench, how: SaturationSettings, trials: Trials) -> SearchResult:
    """Search again where the generator was the limit of all that was tried: from the load that keeps a promised ratio,
    or where that is not below all loads tried, from one that the generator can still offer. The result is a lower
    bound, with the losses at that load."""
    pairs_of = bench.earlier.evidence.pairs if bench.earlier else []
    other = next((pair.other.serves for pair in pairs_of if pair.other.serves), None)
    share = bench.floor.limit("ratio")
    if found.limited_by != "generator" or found.capacity or other is None or share is None:
        return found
    promised, tried = other.value * share, min(seen.load for seen in found.trials)
    load = promised if promised < tried else tried * _OFFERED
    lower = descend(bench.runner, load / how.first, load, how, trials)
    if lower.limited_by != "range":
        return lower
    held = f"{format_rate(load)} held{', which is promised' if load == promised else ''}"
    return replace(lower, limited_by="generator", reason=f"{held}; {found.reason}")


def _served_by_generator(earlier: Outcome | None) -> float:
    """Return the rate of the last closed loop, where the generator was its limit; else 0."""
    loops = [seen.trial for seen in earlier.trials if seen.phase == "saturation"] if earlier else []
    return (loops[-1].service_rate or 0.0) if loops and loops[-1].generator_limited else 0.0


def outcome_of(found: SearchResult, metric: Metric) -> Outcome:
    """Return the outcome of a search for the highest load, in a metric's unit. It has no figure where the generator was
    the limit before any load held."""
    several = len(found.capacities) > 1
    figure = Estimate(
        value=found.capacity,
        unit=metric.unit.name,
        low=min(found.capacities) if several else found.capacity,
        high=max(found.capacities) if several else found.upper,
        samples=found.capacities if several else (),
    )
    known = found.capacity or found.limited_by != "generator"
    figures = figures_of(found.at_capacity(), metric, figure) if known else {}
    if (partial := found.partial) and partial.proof and partial.limited_by in ("dut", found.limited_by):
        # The load, as what was forwarded of it depends on which of its trials is the proof.
        lower = partial.proof.load
        figures[PDR_OF[metric.name].name] = Estimate(lower, metric.unit.name, low=lower, high=partial.upper)
    return Outcome(
        metric=metric,
        figures=figures,
        limited_by=found.limited_by,
        reason=found.reason,
        kept_conditions=bool(found.capacity),
        trials=found.trials,
        evidence=Evidence(
            trials=[],
            upper_bound=found.upper,
            goal=found.goal,
            partial_goal=partial.goal if partial else None,
        ),
    )


@dataclass(frozen=True)
class AtFloor(OfRate):
    """Trials at the promised rate that decide whether the DUT holds the floor, in a sequential test (SPRT)."""

    how: GateSettings
    name = "at-floor"
    says = "offers the load that the floor promises, and no other one"

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Estimate the seconds of two trials, the mean: one at a floor far away, four to six at a near one."""
        return 2 * self.how.trial_duration

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Try the floor."""
        load = bench.floor.load(self.how.headroom)
        known = known_rates(bench.earlier, bench.profile)
        test = SequentialTest(bench.runner, load, self.how.trial_duration, known, trials, bench.rate_metric)
        return test.run(bench.ceiling)


def known_rates(earlier: Outcome | None, profile: Profile) -> KnownRates:
    """Return what the test has found out about a DUT so far, for the decision at its floor."""
    if earlier is None:
        return KnownRates()
    rates = [rate for rate in (earlier.figure(SATURATION_OF[profile.kind]),) if rate]
    at_least: list[float] = []
    if found := earlier.figure(RATE_OF[profile.kind]):
        (rates if earlier.limited_by == "dut" else at_least).append(found)
    elif earlier.limited_by == "dut" and earlier.evidence.upper_bound:
        rates.append(earlier.evidence.upper_bound)
    open_loop = tuple(seen for seen in earlier.trials if not seen.trial.under_way and seen.load)
    return KnownRates(tuple(rates), tuple(at_least), scatter(earlier.trials), open_loop)
