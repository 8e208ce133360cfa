"""How fast a backlog grows: the slope of a few noisy points, and how sure it is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Fewer points say nothing: of six, all 15 slopes have to be positive.
LEAST_POINTS = 6
#: Of the normal distribution: the slope is above `Growth.least_per_s` in 99 of 100 cases of independent noise.
_Z = 2.326


@dataclass(frozen=True)
class Growth:
    """Slopes per second."""

    #: Theil-Sen: the median over all pairs of points. One stall, or any other lie of less than 29 % of the points, does
    #: not move it far.
    per_s: float
    #: The lower end of its one-sided 99 % interval (Sen 1968: from the variance of Kendall's statistic).
    least_per_s: float
    #: The slope of the second half of the points alone: what grew at first and then stays is no growing backlog.
    late_per_s: float


#: Where there are too few points.
UNKNOWN = Growth(0.0, 0.0, 0.0)


def growth(points: Sequence[float], step_s: float) -> Growth:
    """The growth of points that are `step_s` seconds apart; `UNKNOWN` where there are too few."""
    count = len(points)
    if count < LEAST_POINTS or step_s <= 0:
        return UNKNOWN
    slopes = _slopes(points)
    spread = _Z * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    lowest = max(0, round((len(slopes) - spread) / 2) - 1)
    late = float(np.median(_slopes(points[count // 2 :])))
    return Growth(float(np.median(slopes)) / step_s, float(slopes[lowest]) / step_s, late / step_s)


def _slopes(points: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The slopes of all pairs, in ascending order, per step."""
    values = np.asarray(points, dtype=np.float64)
    first, last = np.triu_indices(len(values), k=1)
    return np.sort((values[last] - values[first]) / (last - first))
