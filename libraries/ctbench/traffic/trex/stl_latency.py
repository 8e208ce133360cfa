"""One-way latency from the histogram that TRex keeps of its latency packets (time_histogram.cpp of TRex).

Its bins have one decimal digit: 10 to below 20 us, … 90 to below 100 us, 100 to below 200 us, and so on; what took less
than 10 us is one bin. So a percentile is known to a digit only, and what stands here is the upper end of its bin: the
latency that was not exceeded.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ctbench.traffic.generator import Latency


def latency_of(counted: Mapping[str, Any]) -> Latency | None:
    """Latency of a group of latency packets, microseconds; None when fewer than two came back.

    TRex leaves the first ten packets out of its maximum, not out of the histogram. Its jitter is the smoothed one of
    RFC 3550 (section 6.4.1) at the end of the trial.
    """
    told = counted.get("latency", {})
    bins = sorted((int(low), int(count)) for low, count in told.get("histogram", {}).items() if count)
    if sum(count for _, count in bins) < 2:
        return None
    longest = max(float(told["total_max"]), float(bins[-1][0]))
    return Latency(
        p50=min(_percentile(bins, 0.5), longest),
        p99=min(_percentile(bins, 0.99), longest),
        max=longest,
        jitter=float(told["jitter"]),
    )


def _percentile(bins: list[tuple[int, int]], share: float) -> float:
    """Upper end of the bin in which the share of all packets is reached."""
    wanted = share * sum(count for _, count in bins)
    reached = accumulate(count for _, count in bins)
    low = next(low for (low, _), seen in zip(bins, reached, strict=True) if seen >= wanted)
    return float(low + _width(low))


def _width(low: int) -> int:
    """Width of the bin that begins at `low` microseconds: 10 for 0 and 10 to 90, 100 for 100 to 900 …"""
    width = 10
    while low >= 10 * width:
        width *= 10
    return width
