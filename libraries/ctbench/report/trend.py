"""The change points of a test: the runs since which its figure has another level. The runs of a test are one series of
one testbed.

FD.io's jumpavg finds them: of all divisions of a series into groups it takes the one whose description has the fewest
bits. A group is described by its average, its scatter, and the distance of each figure from the average. A series that
falls by 1 % in each of ten runs is divided into two halves or not at all; a linear regression finds such small steps.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import correlation, linear_regression, pvariance

from jumpavg import classify

from ctbench.base.units import plural
from ctbench.report import figures, labels
from ctbench.results.metrics import COSTS, METRICS, OFFERED, RATES, SATURATION_OF, Metric
from ctbench.results.record import Record
from ctbench.results.record_model import WORTH_SHOWING

#: What a figure changes by at least (ratio), so that it is said: the same source built twice, or started with another
#: layout of its memory, differs by one or two percent. Of instructions, which do not scatter, seeds differ by less.
LEAST, LEAST_COUNTED = 0.03, 0.005
#: A run alone is an outlier: the next one tells.
_LEAST_RUNS = 2
#: Of a line: runs at least, and standard errors by which its slope differs from none. Of series of six like runs one in
#: 250 has so steep a line, of ten runs one in 3000.
_LEAST_OF_LINE, _STEEP = 6, 6.0
#: The newest runs that are looked at: the time grows with the square of their number.
_MOST_RUNS = 100
#: Changes that a page says in its line.
_SAID = 3


@dataclass(frozen=True)
class Level:
    """Consecutive runs whose figures scatter around one average."""

    #: Places in the series.
    first: int
    last: int
    average: float
    runs: int


@dataclass(frozen=True)
class Change:
    """The step from one level to the next."""

    metric: Metric
    before: Level
    after: Level
    #: The first run of the new level; in small steps, the first that is more than can be said from where they began.
    since: Record
    #: Of small steps, the run that they began with.
    anchor: Record | None = None

    @property
    def ratio(self) -> float:
        """The relative change of the average: 0.1 for an increase by 10 %; infinite where it was 0 before."""
        return self.after.average / self.before.average - 1 if self.before.average else math.inf

    @property
    def is_worse(self) -> bool:
        """True where the figure changed for the worse."""
        return (self.ratio < 0) == (self.metric.better == "higher")

    @property
    def words(self) -> str:
        """The change in words: `fell by 12 % with the run of 2026-11-03 20:00 UTC`; `fell by 8 % since the run of
        2026-11-03 20:00 UTC, in small steps`."""
        moved = "fell" if self.ratio < 0 else "rose"
        by = f"by {abs(self.ratio) * 100:.{0 if abs(self.ratio) > LEAST else 1}f} %"
        if math.isinf(self.ratio):
            by = f"from 0 to {self.metric.format(self.after.average)}"
        if self.anchor:
            return f"{moved} {by} since the run of {labels.moment(self.anchor.started)}, in small steps"
        return f"{moved} {by} with the run of {labels.moment(self.since.started)}"


def changes(test: Sequence[Record]) -> list[Change]:
    """Return the changes of a test, whose records are oldest first. A change in small steps is always the last one; it
    is counted from the first run of the level in which the steps begin."""
    metric = followed(test[-1])
    values = [_value(record, metric) for record in test]
    least = LEAST_COUNTED if metric.name in COSTS else LEAST
    found = levels(values, least)
    steps = [Change(metric, before, after, test[after.first]) for before, after in pairwise(found)]
    for number, level in enumerate(found):
        if ends := in_small_steps(values, level.first, least):
            before, after = ends
            return [*steps[:number], Change(metric, before, after, test[after.first], test[before.first])]
    return steps


def levels(values: Sequence[float | None], least: float = LEAST) -> list[Level]:
    """Return the levels of a series, each more than `least` (ratio) from the one before. Runs without a figure and
    single outliers are left out."""
    known = [(place, value) for place, value in enumerate(values) if value is not None][-_MOST_RUNS:]
    found: list[Level] = []
    if max((value for _, value in known), default=0.0) <= 0:
        return found
    begin = 0
    for group in classify([value for _, value in known]):
        size, average = group.stats.size, group.stats.avg
        first, last = known[begin][0], known[begin + size - 1][0]
        begin += size
        if size < _LEAST_RUNS:
            continue
        before = found[-1] if found else None
        if before and abs(average - before.average) <= least * before.average:
            runs = before.runs + size
            found[-1] = Level(before.first, last, (before.average * before.runs + average * size) / runs, runs)
        else:
            found.append(Level(first, last, average, size))
    return found


def in_small_steps(values: Sequence[float | None], begin: int = 0, least: float = LEAST) -> tuple[Level, Level] | None:
    """Return the first and the last level of a series that moves, from the place `begin` on, in steps too small to be
    reported, which together exceed `least` (ratio). None where it moves by a larger step, or not at all."""
    known = [(place, value) for place, value in enumerate(values) if value and place >= begin][-_MOST_RUNS:]
    runs, figure = range(len(known)), [value for _, value in known]
    if len(runs) < _LEAST_OF_LINE or min(figure) == max(figure):
        return None
    line, explained = linear_regression(runs, figure), correlation(runs, figure) ** 2
    moved = [line.slope * number / line.intercept for number in runs]
    if abs(moved[-1]) <= least or explained * (len(runs) - 2) < _STEEP**2 * (1 - explained):
        return None
    groups = [group.stats for group in classify(figure) if group.stats.size >= _LEAST_RUNS]
    steps = [abs(after.avg / before.avg - 1) for before, after in pairwise(groups)]
    # Either all steps are seen, each of them too small, or the runs lie nearer to the line than to their groups.
    all_seen = len(steps) > 1 and max(steps) <= least
    of_groups = sum(each.size * each.stdev**2 for each in groups)
    if not all_seen and (1 - explained) * pvariance(figure) * len(runs) >= of_groups:
        return None
    told = next(number for number in runs if abs(moved[number]) > least)
    (first, _), (since, _), (last, _) = known[0], known[told], known[-1]
    end = line.intercept * (1 + moved[-1])
    return Level(first, first, line.intercept, 1), Level(since, last, end, len(runs) - told)


def followed(record: Record) -> Metric:
    """Return the metric whose changes are searched for: the one that was measured. For a rate that the campaign finds
    among a few shares of the saturation rate (`search: saturation`), it is that saturation rate, the finer figure."""
    finer = SATURATION_OF[record.profile.kind]
    is_share = record.metric in RATES and record.campaign.search == "saturation" and finer.name in record.figures
    return finer if is_share else METRICS[record.metric]


def _value(record: Record, metric: Metric) -> float | None:
    """Return the figure of a run. None where the interval of an offered rate is wide, as after a search of a few loads
    that lie far apart. None also for the figure that the test judges where it was not measured, or where its limit was
    neither the DUT nor the campaign's range."""
    figure = record.figures.get(metric.name)
    if figure is None or (metric.name in OFFERED and figure.reach > WORTH_SHOWING * figure.value):
        return None
    if metric.name != record.metric:
        return figure.value
    usable = record.verdict != "not measured" and record.limited_by in ("dut", "range")
    return figure.value if usable else None


def sentence(tests: Iterable[Sequence[Record]]) -> str:
    """Return a line with the last change of each test: changes for the worse first, then by size; empty where nothing
    changed."""
    last = [found[-1] for test in tests if (found := changes(test))]
    last.sort(key=lambda each: (not each.is_worse, -abs(each.ratio)))
    said = [_of_test(each) for each in last[:_SAID]]
    more = plural(len(last) - _SAID, "more test") if len(last) > _SAID else ""
    return f"{'; '.join([*said, *filter(None, [more])])}: see the history." if said else ""


def _of_test(change: Change) -> str:
    what = figures.unit(change.metric) or change.metric.title
    return f"{what[:1].upper()}{what[1:]} of {labels.name(change.since.test)} {change.words}"
