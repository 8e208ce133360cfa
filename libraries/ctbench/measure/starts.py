"""The rule of starts: what several starts of a candidate and its base say of one row, and when that is enough.

A start is both builds set up again; slices within one start share what it decides (where memory lies, which core's
cache), so however many there are, their interval is that of one start. The samples are the starts, or where two builds
cannot stand side by side blocks of searches: a log ratio of each, candidate to base. How they scatter is learned from
the row itself and from the rows before it, which share a machine: the variance is moderated (Smyth 2004), its degrees
of freedom counted. Simulated before it was chosen: docs/evidence/README.md.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from ctbench.results.evidence import LookRecord
from ctbench.results.record_model import Estimate
from ctbench.results.statistics import student
from ctbench.results.verdict import by_ratio
from ctbench.traffic.generator import Side

#: Starts at the first look; each later one is at twice as many. Even: each build is first as often as the other.
FIRST_LOOK = 4
#: So many times the starts of any row, a row is looked at again that these leave open: on a machine that others use as
#: well, starts of a row can lie 8 % apart, and four times as many halve its interval (docs/evidence/gate-status.csv).
FURTHER = (2, 4)
#: Rounds of each start, some 3 s of traffic and half of that. Starts of packets lie much farther apart than their
#: rounds leave open, those of connections do not (docs/evidence/gate-like.csv).
ROUNDS = {"connections": 32, "packets": 16}
#: A run calls a like build slower in at most one case of 200, in whichever of its rows and at whichever look. Loads in
#: turn (`ctbench.measure.in_turn`) miss it as seldom: both together in one case of 100.
ERROR = 0.005
#: Two builds of one source, whose code lies elsewhere, differ by as much: no evidence of a slower one (a ratio).
ALIKE = 0.01
#: Of what a row's bound errs by: a row that is met is below its floor in at most one case of 20.
BOUND_ERROR = 0.05
#: Degrees of freedom that the rows before are worth: they scatter alike, and not quite.
MOST_BORROWED = 8
#: Bartlett's test of two variances objects beyond this: the 80 % quantile of chi-squared with one degree of freedom. By
#: the 95 % one a like build was red in 1.1 % of gates that were simulated with the scatter of 42 measured rows; by this
#: one it is in 0.7 % (docs/evidence/starts-measured.csv).
UNLIKE = 1.642
#: The 99.9 % one. The rows before can be those of a candidate that stalls or loses: behind one whose starts lay apart
#: by factors, a row had 98.8 % +- 27 % after 64 starts.
VERY_UNLIKE = 10.828
#: The logarithm of the largest number of a record, 1e18.
_FARTHEST = 41.0
#: What is called seen is missed in nine of ten runs: this quantile of the normal distribution.
_MOSTLY = 1.2816


def looks(most: int) -> list[int]:
    """Starts after which it is looked whether they decide, `most` at the end."""
    found = [FIRST_LOOK]
    while 2 * found[-1] < most:
        found.append(2 * found[-1])
    return [*found, most] if most > FIRST_LOOK else found


@dataclass(frozen=True)
class Budget:
    """What the errors of a row are shared by: a run that gates more rows needs more evidence of each, and so does a row
    that is looked at more often."""

    #: Rows of the run that compare two builds.
    rows: int
    #: How often the starts of the row are looked at, at most.
    looks: int
    #: Figures of each row that may call it slower: the middle of its starts and the whole of them; of blocks of
    #: searches what is held.
    figures: int = 2

    @property
    def of_bound(self) -> float:
        """What each bound of a look may err by."""
        return BOUND_ERROR / self.looks

    @property
    def of_slower(self) -> float:
        """How often a like build may be called slower by one figure of a row at a look."""
        return ERROR / (self.figures * self.rows * self.looks)


@dataclass
class Scatter:
    """How far apart the starts of one row lie, by the rows of a run so far."""

    #: Of each row, degrees of freedom and variance of its log ratios.
    rows: tuple[tuple[int, float], ...] = ()

    def add(self, logs: Sequence[float]) -> None:
        """One row more has ended."""
        if len(logs) > 1:
            self.rows += ((len(logs) - 1, _squares(logs) / (len(logs) - 1)),)

    @property
    def degrees(self) -> int:
        return sum(degrees for degrees, _ in self.rows)

    @property
    def variance(self) -> float:
        """The median of the rows, so that one whose starts lie much farther apart does not speak for all; 0 of none."""
        return median(variance / middle_of_variances(degrees) for degrees, variance in self.rows) if self.rows else 0.0


@dataclass(frozen=True)
class Moderated:
    """The mean of the log ratios of a row's starts, with a moderated standard deviation: what estimates are made of."""

    log: float
    #: Of one start, as a log ratio.
    deviation: float
    degrees: int
    starts: int
    budget: Budget

    @classmethod
    def of(cls, logs: Sequence[float], before: Scatter, budget: Budget = Budget(1, 1)) -> "Moderated":
        """By two starts or more; `before`: of the rows that were measured earlier."""
        own, borrowed = len(logs) - 1, min(MOST_BORROWED, before.degrees)
        squares, lent = _squares(logs), before.variance * borrowed
        if borrowed and unlike(squares, own, lent, borrowed):
            borrowed, lent = 0, 0.0
        variance = (squares + lent) / (own + borrowed)
        return cls(math.fsum(logs) / len(logs), math.sqrt(variance), own + borrowed, len(logs), budget)

    @property
    def error(self) -> float:
        """Standard error of the middle."""
        return self.deviation / math.sqrt(self.starts)

    @property
    def interval(self) -> Estimate:
        """The ratio between the bounds of which each errs in `BOUND_ERROR` of the rows, all looks together."""
        return self.within(self.budget.of_bound)

    def within(self, error: float) -> Estimate:
        """The ratio between two bounds of which each errs with this probability."""
        # Farther than this no interval says anything; what is lost in scatter stays a number that a record may hold.
        reach = min(self.error * _quantile(error, self.degrees), max(0.0, _FARTHEST - abs(self.log)))
        value, low, high = map(math.exp, (self.log, self.log - reach, self.log + reach))
        return Estimate(value, "ratio", low, high)

    @property
    def is_slower(self) -> bool:
        """Whether a like build would hardly look so slow in this run."""
        return self.log + self.error * self._unlikely < math.log(1 - ALIKE)

    def needed(self, floor: float) -> int:
        """Starts that would probably decide it, if the middle stays where it is."""
        return 2 * math.ceil(max(reach / max(apart, 1e-3) for reach, apart in self._asked(floor)) ** 2 / 2)

    def _asked(self, floor: float) -> list[tuple[float, float]]:
        """What has to be less than the distance of the middle from something, if it stays where it is: how far a bound
        reaches by one start."""
        of_floor = self._sure * self.deviation, abs(self.log - math.log(floor))
        if self.log >= math.log(floor):
            return [of_floor]
        return [of_floor, (self._unlikely * self.deviation, math.log(1 - ALIKE) - self.log)]

    def sees(self, floor: float, starts: int) -> float:
        """The loss (ratio) that nine of ten rows with so many such starts would be missed by."""
        error = self.deviation / math.sqrt(starts)
        lost = max(self._sure * error - math.log(floor), self._unlikely * error - math.log(1 - ALIKE))
        return 1 - math.exp(-lost - _MOSTLY * error)

    @property
    def _sure(self) -> float:
        return _quantile(self.budget.of_bound, self.degrees)

    @property
    def _unlikely(self) -> float:
        return _quantile(self.budget.of_slower, self.degrees)


def around(value: float, logs: Sequence[float], error: float, unit: str) -> Estimate:
    """A value with the interval that these logarithms have by themselves, of which each bound errs with this
    probability, and which contains the value."""
    low, high = Moderated.of(logs, Scatter()).within(error).ends
    return Estimate(value, unit, min(low, value), max(high, value))


def middle_of_variances(degrees: int) -> float:
    """The median of variances of so many degrees of freedom, by their mean (Wilson and Hilferty 1931)."""
    return (1 - 2 / (9 * degrees)) ** 3


def unlike(squares: float, own: int, lent: float, borrowed: int) -> bool:
    """Whether starts lie so much farther apart than those of the rows before that these say nothing of them, or very
    much nearer: sums of squares and degrees of freedom of both, by Bartlett's test."""
    farther = squares * borrowed > lent * own
    if not squares or not lent:
        return farther
    pooled = math.log((squares + lent) / (own + borrowed))
    found = own * (pooled - math.log(squares / own)) + borrowed * (pooled - math.log(lent / borrowed))
    return found > (UNLIKE if farther else VERY_UNLIKE) * (1 + (1 / own + 1 / borrowed - 1 / (own + borrowed)) / 3)


def decide(figures: Sequence[Moderated], floor: float, waited: Collection[Side] = ()) -> bool | None:
    """Whether a candidate keeps its floor, by the robust middle of its slices and by all of their time, or by what its
    searches found: each has to keep it, and any can break it."""
    return by_ratio([(each.interval, each.is_slower) for each in figures], floor, waited)


def look(rounds: int, middle: Estimate, whole: Estimate | None = None) -> LookRecord:
    """For the record: the middle of so many rounds, starts or blocks, and all of their time."""
    return LookRecord(middle.value, middle.unit, middle.low, middle.high, rounds=rounds, whole=whole)


def _squares(logs: Sequence[float]) -> float:
    mean = math.fsum(logs) / len(logs)
    return math.fsum((each - mean) ** 2 for each in logs)


@cache
def _quantile(error: float, degrees: int) -> float:
    return student(1 - error, degrees)
