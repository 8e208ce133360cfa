"""Latency as TRex reports it: one-way latency from the histograms of its latency packets (time_histogram.cpp), those of
a stream in STL and ICMP packets next to the connections in ASTF; and the mean latency of its messages over UDP.

The bins have one decimal digit: 10 to below 20 us, … 90 to below 100 us, 100 to below 200 us, and so on; times below
10 us are one bin. So a percentile is known to one digit only: the upper end of its bin, a latency that was not
exceeded. Jitter is the smoothed one of RFC 3550 (section 6.4.1) at the end of the trial.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ctbench.traffic.generator import Latency, UdpLatency

#: Packets by the lower end of their bin, microseconds.
Histogram = Mapping[int, int]
#: TRex reads its clock twice for each message (latency_time_usec): where a second begins between the two, what it took
#: is anything up to an hour. So where one took longer than this, microseconds, the sum tells nothing.
_LONGEST_US = 1_000_000
#: Percentiles, and of how many packets at least: of fewer, a single packet would be one.
_SHARES = {"p50": (0.5, 2), "p90": (0.9, 2), "p99": (0.99, 100), "p999": (0.999, 1000)}


def latency_of_stream(counted: Mapping[str, Any]) -> Latency | None:
    """Return the latency of a group of latency packets, microseconds; None where fewer than two came back. TRex leaves
    the first ten packets out of its maximum, not out of the histogram."""
    told = counted.get("latency", {})
    histogram = {int(low): int(count) for low, count in told.get("histogram", {}).items()}
    return _latency(histogram, told.get("total_max", 0), told.get("jitter", 0))


def latency_of_port(before: Mapping[str, Any], after: Mapping[str, Any]) -> Latency | None:
    """Return the latency of the packets that reached a port between two readings of ASTF's latency counters,
    microseconds; None for fewer than two packets. The longest is that of the whole trial where it fell into this part,
    else the upper end of the last bin."""
    if not after:
        return None
    begin, end = (_histogram(told) for told in (before, after))
    grown = {low: count - begin.get(low, 0) for low, count in end.items() if count > begin.get(low, 0)}
    longest = after["hist"]["max_usec"]
    if grown and longest == before.get("hist", {}).get("max_usec"):
        longest = min(longest, _upper_end(max(grown)))
    return _latency(grown, longest, after["stats"]["m_jitter"])


def latency_of_messages(grown: Mapping[str, Mapping[str, int]]) -> UdpLatency | None:
    """Return the mean latency of UDP messages from the growth of both sides' counters (udp_latency.cpp); None where
    none came to a server. The server times a request on its way, and the client the request with its reply."""
    one_way, round_trip = (_mean(grown.get(side, {})) for side in ("server", "client"))
    return None if one_way is None else UdpLatency(one_way_us=one_way, round_trip_us=round_trip)


def _mean(told: Mapping[str, int]) -> float | None:
    known = told.get("total_pkts", 0) > 0 and told.get("max_time", 0) < _LONGEST_US
    return told["total_time"] / told["total_pkts"] if known else None


def _histogram(told: Mapping[str, Any]) -> Histogram:
    """Return the histogram of a reading, with times below 10 us as bin 0: in ASTF TRex lists no bin of them, and counts
    them half a second late."""
    if not told:
        return {}
    known = told["hist"]
    return {0: known["cnt"] - known["high_cnt"], **{each["key"]: each["val"] for each in known["histogram"]}}


def _latency(histogram: Histogram, longest: float, jitter: float) -> Latency | None:
    bins = sorted((low, count) for low, count in histogram.items() if count)
    packets = sum(count for _, count in bins)
    if packets < 2:
        return None
    longest = max(float(longest), float(bins[-1][0]))
    known = {
        name: min(_percentile(bins, share), longest) for name, (share, least) in _SHARES.items() if packets >= least
    }
    return Latency(**known, max=longest, jitter=float(jitter))


def _percentile(bins: list[tuple[int, int]], share: float) -> float:
    """Return the upper end of the bin in which the share of all packets is reached."""
    wanted = share * sum(count for _, count in bins)
    reached = accumulate(count for _, count in bins)
    return _upper_end(next(low for (low, _), seen in zip(bins, reached, strict=True) if seen >= wanted))


def _upper_end(low: int) -> float:
    return low + 10.0 ** max(1, len(str(low)) - 1)  # 10 wide from 0 and 10 to 90, 100 from 100 to 900 …
