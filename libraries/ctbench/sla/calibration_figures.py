"""What several runs measured of each test, and how low the figures of the machine may lie that are yet to come.

The logarithms of the rates of its runs are taken to be normal: a machine that others use multiplies a rate by what it
takes away. The bound is a lower tolerance bound: 95 % of further runs are above it, with 95 % confidence.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from ctbench.base.units import format_ratio
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, RATES, SATURATION_OF, SERVED, Metric, kind_of
from ctbench.results.record import Record
from ctbench.results.statistics import tolerance_factor
from ctbench.traffic.profiles import ConnectionProfile


@dataclass(frozen=True)
class Figures:
    """What several runs measured of one topology and profile, by one procedure."""

    key: str
    profile: str
    #: The profile of which this one is the substitute; empty for others.
    derived_from: str
    #: What was looked for, and its value of each run.
    metric: Metric
    results: tuple[float, ...]
    #: How far the load that did not hold was above the highest that did (ratio), in the median; 0 where none is known.
    resolution: float
    #: Runs that tried it and measured nothing.
    without: int
    #: false: something else was the limit of all runs, so the DUT may do better.
    judged: bool
    #: By metric, the conditions of a good trial as the SLA file that was measured with has them. What was measured was
    #: measured within them, so the floors have them too.
    conditions: Mapping[str, str]
    #: Share of its trials that say nothing: other processes, or the generator, had the CPUs.
    disturbed: float = 0.0


def gather(records: Sequence[Record]) -> list[Figures]:
    """Figures by topology, profile and metric, in the order of the tests. What was not measured is counted apart, and
    what is relative to something else is left out: it holds on any machine, or on none. So are instructions: they do
    not scatter, and hold for an image, not for a machine."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        promised = METRICS[record.metric].role == "promise" and kind_of(record.metric) == "absolute"
        if promised and record.metric not in COSTS and not METRICS[record.metric].of_table:
            groups[record.topology.key, record.profile.name, record.metric].append(record)
        if record.metric in RATES:
            served = SATURATION_OF[record.profile.kind].name
            groups[record.topology.key, record.profile.name, served].append(record)
    made = [_figures(group, METRICS[metric]) for (_, _, metric), group in groups.items()]
    # A generator without a closed loop finds out nothing of what is served, which is not said of each test.
    return [each for each in made if each.results or each.metric.name not in SERVED]


def _figures(group: Sequence[Record], metric: Metric) -> Figures:
    first = group[0]
    judged = [record for record in group if record.verdict != "not measured"]
    # A rate that is too close to its floor to call, or is below a floor of another machine, is a rate all the same.
    # Floors that are beyond the generator leave nothing but what it reached, which holds as well.
    known = [record for record in group if record in judged or (record.limited_by == "dut" and _is_found(record))]
    held = [record for record in known or filter(_is_found, group) if _held(record)]
    served = metric.name in SERVED
    if served:  # it stands on closed loops, whatever became of the search
        valid = [record for record in group if record.limited_by != "fault" and _counts(record)]
        known = held = [record for record in valid if metric.name in record.figures]
    profile, states = first.profile, [made.state for record in group for made in record.evidence.trials]
    return Figures(
        key=first.topology.key,
        profile=profile.name,
        derived_from=(profile.derived_from or "") if isinstance(profile, ConnectionProfile) else "",
        metric=metric,
        results=tuple(record.figures[metric.name].value for record in held),
        resolution=0.0 if served else _resolution(held),
        without=len(group) - len(held),
        judged=bool(known),
        conditions={
            each.metric: each.written
            for each in first.thresholds
            if METRICS[each.metric].role == "condition" and not served
        },
        disturbed=states.count("invalid") / len(states) if states else 0.0,
    )


def _resolution(records: Sequence[Record]) -> float:
    """Of what the load counts: nothing else was searched in steps."""
    widths = [
        upper / result.value - 1
        for record in records
        if record.metric == RATE_OF[record.profile.kind].name
        and (upper := record.evidence.upper_bound)
        and (result := record.result)
        and result.value > 0
    ]
    return max(0.0, median(widths)) if widths else 0.0


def _held(record: Record) -> bool:
    """Whether there is a figure. Of what is better the higher it is, 0 means that not even the lowest load held."""
    return record.result is not None and (record.result.value > 0 or METRICS[record.metric].better == "lower")


def _is_found(record: Record) -> bool:
    """Whether a test that is *not measured* found a value that held nevertheless: the least that the DUT does."""
    most, found = record.campaign.max_spread or math.inf, record.result
    apart = found is not None and found.spread is not None and found.spread > most
    searched = record.limited_by not in ("fault", "floor")
    return searched and not apart and _counts(record)


def _counts(record: Record) -> bool:
    """Whether rates of its testbed say anything."""
    testbed = record.environment.testbed
    return bool(testbed.rates.get("judged", True)) and not testbed.oversubscribe


def runs_of(records: Sequence[Record]) -> int:
    """How many runs the records are of."""
    return len({record.run_id for record in records})


CONTENT = CONFIDENCE = 0.95
#: No scatter (standard deviation, ratio) is taken to be less: searches that begin at the same hint try the same loads,
#: so their results are alike without being exact.
LEAST_SCATTER = 0.015
#: With fewer runs a bound is so far off that it says nothing.
LEAST_RUNS = 5


@dataclass(frozen=True)
class Bound:
    """The tolerance bound of a test's figures."""

    runs: int
    median: float
    #: Standard deviation (ratio) of a run: of the figures, with what the search cannot tell apart.
    scatter: float
    #: What 95 % of further figures are better than.
    value: float

    @property
    def width(self) -> float:
        """How much worse than the median the bound is (ratio)."""
        return abs(self.value / self.median - 1)


def scatter_text(figures: Figures, bound: Bound) -> str:
    """How much the runs scatter and why: by themselves, by the steps of the search, and with whom they shared the
    machine."""
    steps, runs = math.log1p(figures.resolution) / math.sqrt(12), stdev(map(math.log, figures.results))
    shared = f"; others disturbed {format_ratio(figures.disturbed)} of the trials" if figures.disturbed else ""
    parts = f"between runs {format_ratio(runs)}, within a step of the search {format_ratio(steps)}{shared}"
    return f"{format_ratio(bound.scatter)} ({parts})"


def bound_of(figures: Figures) -> Bound | None:
    """The bound of what was measured; None with fewer than two figures, or one of 0."""
    values = figures.results
    if len(values) < 2 or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    scatter = scatter_of(logs, figures.resolution)
    away = tolerance_factor(len(values), CONTENT, CONFIDENCE) * scatter
    worse = -away if figures.metric.better == "higher" else away
    return Bound(len(values), median(values), scatter, math.exp(mean(logs) + worse))


def scatter_of(logs: Sequence[float], resolution: float) -> float:
    """The standard deviation of figures, with that of where they lie within the last step of their search (a uniform
    distribution's)."""
    within_step = math.log1p(resolution) / math.sqrt(12)
    return max(LEAST_SCATTER, math.hypot(stdev(logs), within_step))


def runs_needed(figures: Sequence[Figures], widest: float, most: int) -> int:
    """How many runs it will probably take, by the scatter that is known: until the bound of each test that is measured
    at all is not farther than `widest` from its median; at most `most`."""
    needed = LEAST_RUNS
    for found in figures:
        bound = bound_of(found)
        if bound is None:
            continue
        runs = LEAST_RUNS
        while runs < most and math.expm1(tolerance_factor(runs, CONTENT, CONFIDENCE) * bound.scatter) > _as_log(widest):
            runs += 1
        needed = max(needed, runs)
    return needed


def _as_log(widest: float) -> float:
    """A bound that is `widest` below is this much above it, as a ratio."""
    return 1 / (1 - widest) - 1


def enough(figures: Sequence[Figures], runs: int, widest: float) -> bool:
    """Whether so many runs made every floor: each test that was measured at all has a bound within `widest`."""
    if runs < LEAST_RUNS:
        return False
    bounds = [bound_of(found) for found in figures if found.results]
    return all(bound is not None and bound.width <= widest for bound in bounds)
