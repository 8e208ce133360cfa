"""The kernel's clock and what it measures: cycles per second, histograms of times, the points of a trial's timeline;
and the time limits of a trial."""

import ctypes
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np

from ctgen import layout as lay
from ctgen.errors import Unavailable
from ctgen.library import kernel
from ctgen.trial import Latency, Times

Histogram = np.ndarray[tuple[int], np.dtype[np.int64]]
Histograms = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def _sample() -> tuple[int, int]:
    """Return clock (ns) and cycle counter of the same moment: the quickest of some tries."""
    tries = []
    for _ in range(20):
        before, count, after = time.perf_counter_ns(), kernel().read_cycles(), time.perf_counter_ns()
        tries.append((after - before, (before + after) // 2, count))
    return min(tries)[1:]


@functools.cache
def cycles_per_second() -> float:
    """Return the cycle counter's rate in hertz, within about one part in 100 000. Takes 50 ms once per process."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    if "constant_tsc" not in flags:
        raise Unavailable(
            "The software traffic generator keeps time with the processor's time stamp counter, and this processor's"
            " is not constant (no constant_tsc in /proc/cpuinfo). Use TRex on another host."
        )
    kernel().read_cycles()
    first_ns, first = _sample()
    time.sleep(0.05)
    last_ns, last = _sample()
    return (last - first) * 1e9 / (last_ns - first_ns)


def mask_and_shift(count: int) -> tuple[int, int]:
    """Return mask and shift of the kernel's random order of the numbers below `count`."""
    bits = max(4, (count - 1).bit_length())
    return (1 << bits) - 1, (bits + 1) // 2


#: What is due within this time may go out at once all the same: the kernel's own loop is as coarse.
SLACK_S = 0.0001
#: What is late at the end of the sustain phase may still go out for this long. Later than that it is never sent.
LATEST_S = 0.05
#: Seconds of the sustain phase that every trial has: what the DUT forwards under this load is known by then.
EARLIEST_S = 0.15
#: Nothing is saved by ending this much before the end, seconds.
LEAST_SAVED_S = 0.02
#: How long connections under way are followed after an early end, besides their lifetime, seconds: those that get no
#: answer in this time are of those that were lost.
EARLY_LINGER_S = 0.2


#: Of a histogram: its percentiles by their names in a trial, and of how many times at least. Of less than a hundred,
#: p99 is the longest: floors of the connect time are judged by it at any rate.
_SHARES = {"p50": (0.5, 1), "p90": (0.9, 1), "p99": (0.99, 1), "p999": (0.999, 1000)}


def percentile(histogram: Histogram, share: float, longest: int, hertz: float) -> float:
    """Return the microseconds that `share` of the times took at most: the upper edge of the bin, or the `longest` time
    (units) where that is less. `hertz`: the cycle counter's rate.

    The bins are those of an HDR histogram: the edge is never below the time itself, and above it by a unit or 1/32 at
    most.
    """
    total = np.cumsum(histogram)
    place = int(np.searchsorted(total, share * total[-1]))
    exponent, rest = (0, place) if place < 64 else (place // 32 - 1, place % 32 + 32)
    return microseconds(min((rest + 1) * 2.0**exponent, longest), hertz)


def microseconds(units: float, hertz: float) -> float:
    return float(units * (1 << lay.UNIT_SHIFT) * 1e6 / hertz)


def _percentiles(histograms: Histograms, which: int, counts: ctypes.Structure, hertz: float) -> dict[str, float]:
    longest, count = counts.longest[which], histograms[which].sum()
    found = {
        name: percentile(histograms[which], share, longest, hertz)
        for name, (share, least) in _SHARES.items()
        if count >= least
    }
    return found | {"max": microseconds(longest, hertz)}


def latencies_of(histograms: Histograms, counts: ctypes.Structure, hertz: float) -> dict[str, Latency]:
    """Return the latencies of messages or packets, by the port that sends. A port with fewer than two is left out."""
    return {
        side: Latency(
            **_percentiles(histograms, lay.MESSAGE + port, counts, hertz),
            jitter=microseconds(counts.jitter_sum[port] / (counts.timed[port] - 1), hertz),
        )
        for port, side in enumerate(lay.SIDES)
        if counts.timed[port] > 1
    }


def times_of(histograms: Histograms, counts: ctypes.Structure, hertz: float) -> dict[str, Times]:
    """Return the times of TCP connections, by the field of a trial. A time that was never taken is left out."""
    known = {"connect_time_us": lay.CONNECT, "first_byte_us": lay.FIRST_BYTE, "last_byte_us": lay.LAST_BYTE}
    return {
        name: Times(**_percentiles(histograms, which, counts, hertz))
        for name, which in known.items()
        if histograms[which].any()
    }


def timeline_of(points: "ctypes.Array[ctypes.Structure]", completed_before: int, hertz: float) -> dict[str, Any]:
    """Return the points of the timeline, by the fields of `Trial`. `completed_before`: connections completed before the
    sustain phase; `hertz`: the cycle counter's rate."""
    noted: Any = np.array(points)
    counts = noted["counts"]
    setups, sums = (np.diff(counts[name], prepend=0) for name in ("tcp_established", "setup_sum"))

    def time(units: float, count: int) -> float | None:
        # Nanoseconds: the counter tells no more.
        return round(microseconds(units, hertz), 3) if count else None

    means = [time(total / max(count, 1), count) for total, count in zip(sums, setups, strict=True)]
    longest = [time(most, count) for most, count in zip(counts["setup_max"], setups, strict=True)]
    return {
        "timeline_active": noted["active"].tolist(),
        "timeline_completed": np.diff(counts["all_completed"], prepend=completed_before).tolist(),
        "timeline_connect_mean_us": means,
        "timeline_connect_max_us": longest,
    }
