"""Times: the processor's cycle counter, histograms of what took how long, and a trial's points over time."""

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from ctbench.base.errors import MissingResource
from ctbench.traffic.generator import Latency
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.machine_code import cycles
from ctbench.traffic.software.plan import Timing


@njit(nogil=True, cache=True)
def read_cycles():  # type: ignore[no-untyped-def]
    return cycles()


def _sample() -> tuple[int, int]:
    """Clock (ns) and counter at the same moment: the best of some tries."""
    best: tuple[int, int, int] | None = None
    for _ in range(20):
        before = time.perf_counter_ns()
        count = int(read_cycles())
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, count)
    assert best is not None
    return best[1], best[2]


@functools.cache
def cycles_per_second() -> float:
    """The counter's rate in hertz, within about one part in 100 000. Takes 50 ms once per process."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    if "constant_tsc" not in flags:
        raise MissingResource(
            "The software traffic generator keeps time with the processor's time stamp counter, and this processor's"
            " is not constant (no constant_tsc in /proc/cpuinfo). Use TRex on another host."
        )
    read_cycles()
    first_ns, first = _sample()
    time.sleep(0.05)
    last_ns, last = _sample()
    return (last - first) * 1e9 / (last_ns - first_ns)


#: Bins of a histogram: they hold any 32-bit number of units.
BINS = 1024
UNIT_SHIFT = 6

Histogram = np.ndarray[tuple[int], np.dtype[np.int64]]


@njit(nogil=True, forceinline=True)
def bin_of(units):  # type: ignore[no-untyped-def]
    exponent = 0
    while units >= 64:
        units >>= 1
        exponent += 1
    return (exponent << 5) + units if exponent else units


def percentile(histogram: Histogram, share: float, hertz: float) -> float:
    """Microseconds that `share` of the times took at most: the upper edge of the bin. `hertz`: of the counter."""
    total = np.cumsum(histogram)
    place = int(np.searchsorted(total, share * total[-1]))
    exponent, rest = (0, place) if place < 64 else (place // 32 - 1, place % 32 + 32)
    return microseconds((rest + 1) * 2.0**exponent, hertz)


def microseconds(units: float, hertz: float) -> float:
    return float(units * (1 << UNIT_SHIFT) * 1e6 / hertz)


def latency_of(histogram: Histogram, most: int, differences: int, count: int, hertz: float) -> Latency:
    """Of `count` packets or messages, two or more: `most` and `differences` (from one to the next, added) in units."""
    return Latency(
        p50=percentile(histogram, 0.5, hertz),
        p99=percentile(histogram, 0.99, hertz),
        max=microseconds(most, hertz),
        jitter=microseconds(differences / (count - 1), hertz),
    )


#: Columns of a point. Open now; completed so far; set up so far (TCP that counts), and the sum of their connect time;
#: the longest connect time since the last point. Times in the units of `histogram`.
POINT_ACTIVE, POINT_COMPLETED, POINT_SETUPS, POINT_SETUP_SUM, POINT_SETUP_MAX = range(5)
POINT_COLUMNS = 5

Points = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def timeline_room(timing: Timing) -> Points:
    return np.zeros((int(timing.sustain_s / timing.timeline_step_s) + 1, POINT_COLUMNS), np.int64)


@njit(nogil=True, forceinline=True)
def note_points(points, until, due, step, s, counts):  # type: ignore[no-untyped-def]
    """Note the points that were due by `until` (cycles). Returns when the next one is due."""
    while due <= until:
        if s[lay.POINTS] < points.shape[0]:
            point = points[s[lay.POINTS]]
            point[POINT_ACTIVE] = s[lay.ACTIVE]
            point[POINT_COMPLETED] = counts[lay.ALL_COMPLETED]
            point[POINT_SETUPS] = counts[lay.TCP_ESTABLISHED]
            point[POINT_SETUP_SUM] = counts[lay.SETUP_SUM]
            point[POINT_SETUP_MAX] = counts[lay.SETUP_MAX]
            counts[lay.SETUP_MAX] = 0
            s[lay.POINTS] += 1
        due += step
    return due


def timeline_of(points: Points, completed_before: int, hertz: float) -> dict[str, Any]:
    """The points that were noted, by fields of `Trial`. `completed_before`: connections completed before the sustain
    phase; `hertz`: of the cycle counter."""
    setups, sums = np.diff(points[:, POINT_SETUPS], prepend=0), np.diff(points[:, POINT_SETUP_SUM], prepend=0)

    def time(units: float, count: int) -> float | None:
        # Nanoseconds: the counter tells no more.
        return round(microseconds(units, hertz), 3) if count else None

    means = [time(total / max(count, 1), count) for total, count in zip(sums, setups, strict=True)]
    longest = [time(most, count) for most, count in zip(points[:, POINT_SETUP_MAX], setups, strict=True)]
    return {
        "timeline_active": points[:, POINT_ACTIVE].tolist(),
        "timeline_completed": np.diff(points[:, POINT_COMPLETED], prepend=completed_before).tolist(),
        "timeline_connect_mean_us": means,
        "timeline_connect_max_us": longest,
    }
