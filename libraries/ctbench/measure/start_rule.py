"""The statistics of starts: what several starts of a candidate and its base say of one row, and when they are enough.

A start sets both builds up again. Slices within one start share what the start decides (where memory lies, which core's
cache): however many there are, their interval describes one start. So the samples are the starts, or blocks of searches
where two builds cannot stand side by side. Each sample is a log ratio, candidate to base. The variance is learned from
the row itself and from earlier rows, which share the machine: it is moderated (Smyth 2004), with its degrees of freedom
counted. The rule was simulated before it was chosen: docs/evidence/README.md.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
#: turn (`ctbench.measure.loads_in_turn`) miss it as seldom: both together in one case of 100.
ERROR = 0.005
#: Two builds of one source, whose code lies elsewhere, differ by as much: no evidence of a slower one (a ratio).
ALIKE = 0.01
#: Of what a row's bound errs by: a row that is met is below its floor in at most one case of 20.
BOUND_ERROR = 0.05
#: Degrees of freedom that the rows before are worth: they scatter alike, and not quite.
MOST_BORROWED = 8
#: Bartlett's test of two variances objects beyond this: the 80 % quantile of chi-squared with one degree of freedom. By
#: the 95 % one a like build was red in 1.1 % of gates that were simulated with the scatter of 42 measured rows; by this
#: one it was in 0.7 %, and with half of the error it is in 0.1 % (docs/evidence/starts-measured.csv).
UNLIKE = 1.642
#: The 99.9 % one. The rows before can be those of a candidate that stalls or loses: behind one whose starts lay apart
#: by factors, a row had 98.8 % +- 27 % after 64 starts.
VERY_UNLIKE = 10.828
#: The logarithm of the largest number of a record, 1e18.
_FARTHEST = 41.0
#: What is called seen is missed in nine of ten runs: this quantile of the normal distribution.
_MOSTLY = 1.2816


def looks(most: int) -> list[int]:
    """Return the numbers of starts after which the interval is looked at: doubled each time, and `most` at the end."""
    found = [FIRST_LOOK]
    while 2 * found[-1] < most:
        found.append(2 * found[-1])
    return [*found, most] if most > FIRST_LOOK else found


@dataclass(frozen=True)
class Budget:
    """The error budget of a row. More rows in a run, or more looks at a row, demand more evidence for each."""

    #: Rows of the run that compare two builds.
    rows: int
    #: How often the starts of the row are looked at, at most.
    looks: int
    #: Figures of each row that may call it slower: the middle of its starts and the whole of them; of blocks of
    #: searches what is held.
    figures: int = 2

    @property
    def of_bound(self) -> float:
        """Error probability of each bound at one look."""
        return BOUND_ERROR / self.looks

    @property
    def of_slower(self) -> float:
        """Probability that one figure of a row calls a like build slower at one look."""
        return ERROR / (self.figures * self.rows * self.looks)


@dataclass
class Scatter:
    """The scatter of starts within one row, estimated from the rows of the run so far."""

    #: Of each row, degrees of freedom and variance of its log ratios.
    rows: tuple[tuple[int, float], ...] = ()

    def add(self, logs: Sequence[float]) -> None:
        """Add the log ratios of a row that has ended. Fewer than two add nothing."""
        if len(logs) > 1:
            self.rows += ((len(logs) - 1, _squares(logs) / (len(logs) - 1)),)

    @property
    def degrees(self) -> int:
        return sum(degrees for degrees, _ in self.rows)

    @property
    def variance(self) -> float:
        """The median variance of the rows, which one row with far more scatter does not dominate; 0 without rows."""
        return median(variance / middle_of_variances(degrees) for degrees, variance in self.rows) if self.rows else 0.0


@dataclass(frozen=True)
class Moderated:
    """The mean log ratio of a row's starts with a moderated standard deviation, from which estimates are made."""

    log: float
    #: Of one start, as a log ratio.
    deviation: float
    degrees: int
    starts: int
    budget: Budget

    @classmethod
    def of(cls, logs: Sequence[float], before: Scatter, budget: Budget = Budget(1, 1)) -> "Moderated":
        """Moderate the scatter of two or more starts by `before`, the scatter of earlier rows. Ignore all earlier rows
        where their common variance is unlike that of these starts."""
        own, borrowed = len(logs) - 1, min(MOST_BORROWED, before.degrees)
        squares, lent = _squares(logs), before.variance * borrowed
        if borrowed and unlike(squares, own, lent, borrowed):
            borrowed, lent = 0, 0.0
        variance = (squares + lent) / (own + borrowed)
        return cls(math.fsum(logs) / len(logs), math.sqrt(variance), own + borrowed, len(logs), budget)

    @property
    def error(self) -> float:
        """Standard error of the mean log ratio."""
        return self.deviation / math.sqrt(self.starts)

    @property
    def interval(self) -> Estimate:
        """The ratio and its interval, each bound of which errs in `BOUND_ERROR` of the rows, all looks together."""
        return self.within(self.budget.of_bound)

    def within(self, error: float) -> Estimate:
        """Return the ratio with an interval, each bound of which errs with this probability."""
        # Farther than this no interval says anything; what is lost in scatter stays a number that a record may hold.
        reach = min(self.error * student(1 - error, self.degrees), max(0.0, _FARTHEST - abs(self.log)))
        value, low, high = map(math.exp, (self.log, self.log - reach, self.log + reach))
        return Estimate(value, "ratio", low, high)

    @property
    def is_slower(self) -> bool:
        """True where a like build would hardly look so slow in this run."""
        return self.log + self.error * self._unlikely < math.log(1 - ALIKE)

    def needed(self, floor: float) -> int:
        """Estimate the number of starts that would decide on a floor, if the mean stays where it is."""
        return 2 * math.ceil(max(reach / max(apart, 1e-3) for reach, apart in self._asked(floor)) ** 2 / 2)

    def _asked(self, floor: float) -> list[tuple[float, float]]:
        """Return pairs of log ratios: the reach of a bound with one start, and the distance of the mean that the reach
        has to fall below."""
        of_floor = self._sure * self.deviation, abs(self.log - math.log(floor))
        if self.log >= math.log(floor):
            return [of_floor]
        return [of_floor, (self._unlikely * self.deviation, math.log(1 - ALIKE) - self.log)]

    def sees(self, floor: float, starts: int) -> float:
        """Return the slowdown (ratio) at which nine of ten rows with so many such starts would be missed."""
        error = self.deviation / math.sqrt(starts)
        lost = max(self._sure * error - math.log(floor), self._unlikely * error - math.log(1 - ALIKE))
        return 1 - math.exp(-lost - _MOSTLY * error)

    @property
    def _sure(self) -> float:
        return student(1 - self.budget.of_bound, self.degrees)

    @property
    def _unlikely(self) -> float:
        return student(1 - self.budget.of_slower, self.degrees)


def around(value: float, logs: Sequence[float], error: float, unit: str) -> Estimate:
    """Return an estimate of `value` with Student's interval of these logarithms, each bound of which errs with this
    probability. Widen the interval where it does not contain the value."""
    low, high = Moderated.of(logs, Scatter()).within(error).ends
    return Estimate(value, unit, min(low, value), max(high, value))


def middle_of_variances(degrees: int) -> float:
    """Return the median of sample variances of so many degrees of freedom, divided by their mean (Wilson and Hilferty
    1931)."""
    return (1 - 2 / (9 * degrees)) ** 3


def unlike(squares: float, own: int, lent: float, borrowed: int) -> bool:
    """True where starts scatter so much more than those of earlier rows, or very much less, that these say nothing of
    them: sums of squares and degrees of freedom of both, by Bartlett's test."""
    farther = squares * borrowed > lent * own
    if not squares or not lent:
        return farther
    pooled = math.log((squares + lent) / (own + borrowed))
    found = own * (pooled - math.log(squares / own)) + borrowed * (pooled - math.log(lent / borrowed))
    return found > (UNLIKE if farther else VERY_UNLIKE) * (1 + (1 / own + 1 / borrowed - 1 / (own + borrowed)) / 3)


def decide(figures: Sequence[Moderated], floor: float, waited: Collection[Side] = ()) -> bool | None:
    """Return whether a candidate keeps its floor; None where undecided. Its figures are the robust middle of its slices
    and the rate over all of their time, or what its searches found: all have to keep it, any can break it."""
    return by_ratio([(each.interval, each.is_slower) for each in figures], floor, waited)


def look(rounds: int, middle: Estimate, whole: Estimate | None = None) -> LookRecord:
    """Return the record of a look: the middle of so many rounds, starts or blocks, and the whole of their time."""
    return LookRecord(middle.value, middle.unit, middle.low, middle.high, rounds=rounds, whole=whole)


def _squares(logs: Sequence[float]) -> float:
    mean = math.fsum(logs) / len(logs)
    return math.fsum((each - mean) ** 2 for each in logs)
