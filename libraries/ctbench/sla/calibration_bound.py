"""How low the figures of a machine may lie that are yet to come: what a floor of this machine has to be below.

The logarithms of the rates of its runs are taken to be normal: a machine that others use multiplies a rate by what it
takes away. The bound is a lower tolerance bound: 95 % of further runs are above it, with 95 % confidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from ctbench.results.tolerance import tolerance_factor
from ctbench.sla.calibration_figures import Figures

CONTENT = CONFIDENCE = 0.95
#: No scatter (standard deviation, ratio) is taken to be less: searches that begin at the same hint try the same loads,
#: so their results are alike without being exact.
LEAST_SCATTER = 0.02
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
    at all is no farther than `widest` from its median; at most `most`."""
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
