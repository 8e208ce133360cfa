"""A trial with connections over time: the kernel function notes a point at the end of each step that it counts in."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from ctbench.traffic.software import histogram
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.plan import Timing

#: Columns of a point. Open now; completed so far; set up so far (TCP that counts), and the sum of their connect time;
#: the longest connect time since the last point. Times in the units of `histogram`.
ACTIVE, COMPLETED, SETUPS, SETUP_SUM, SETUP_MAX = range(5)
COLUMNS = 5

Points = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Timeline:
    """What the points say; see the fields of the same name in `Trial`."""

    active: list[int]
    completed: list[int]
    setup_mean_us: list[float | None]
    setup_max_us: list[float | None]


def room(timing: Timing) -> Points:
    """Memory for all points of a trial."""
    return np.zeros((int(timing.sustain_s / timing.timeline_step_s) + 1, COLUMNS), np.int64)


@njit(nogil=True, forceinline=True)
def note(points, until, due, step, s, counts):  # type: ignore[no-untyped-def]
    """Note the points that were due by `until` (cycles). Returns when the next one is due."""
    while due <= until:
        if s[lay.POINTS] < points.shape[0]:
            point = points[s[lay.POINTS]]
            point[ACTIVE] = s[lay.ACTIVE]
            point[COMPLETED] = counts[lay.ALL_COMPLETED]
            point[SETUPS] = counts[lay.TCP_ESTABLISHED]
            point[SETUP_SUM] = counts[lay.SETUP_SUM]
            point[SETUP_MAX] = counts[lay.SETUP_MAX]
            counts[lay.SETUP_MAX] = 0
            s[lay.POINTS] += 1
        due += step
    return due


def read(points: Points, completed_before: int, hertz: float) -> Timeline:
    """The points that were noted. `completed_before`: connections completed before the sustain phase; `hertz`: of the
    cycle counter."""
    setups, sums = np.diff(points[:, SETUPS], prepend=0), np.diff(points[:, SETUP_SUM], prepend=0)

    def time(units: float, count: int) -> float | None:
        # Nanoseconds: the counter tells no more.
        return round(histogram.microseconds(units, hertz), 3) if count else None

    return Timeline(
        active=[int(n) for n in points[:, ACTIVE]],
        completed=[int(n) for n in np.diff(points[:, COMPLETED], prepend=completed_before)],
        setup_mean_us=[time(total / max(count, 1), count) for total, count in zip(sums, setups, strict=True)],
        setup_max_us=[time(most, count) for most, count in zip(points[:, SETUP_MAX], setups, strict=True)],
    )
