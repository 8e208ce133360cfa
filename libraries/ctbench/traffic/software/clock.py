"""What both kernel functions go by: the processor's cycle counter, a random permutation, a trial's phases, the pace of
what is late, an early end, histograms of what took how long, and a trial's points over time.

The permutation has every number of a range once before any comes again: a full-period generator modulo a power of two
(Knuth, volume 2, theorem A), scrambled by a bijection; numbers beyond the range are passed over by the caller. A trial
that is lost ends early, because nothing that may still come would make it good.
"""

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from ctbench.base.errors import MissingResource
from ctbench.traffic.generator import ConnectTime, Latency
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import cycles
from ctbench.traffic.software.packet_port import BUSY, FRAMES, REFUSED, total
from ctbench.traffic.software.ring import Counts


@njit(nogil=True, cache=True)
def read_cycles():  # type: ignore[no-untyped-def]
    return cycles()


def _sample() -> tuple[int, int]:
    """Clock (ns) and counter at the same moment: the best of some tries."""
    tries = []
    for _ in range(20):
        before, count, after = time.perf_counter_ns(), int(read_cycles()), time.perf_counter_ns()
        tries.append((after - before, (before + after) // 2, count))
    return min(tries)[1:]


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


def mask_and_shift(count: int) -> tuple[int, int]:
    """What `next_state` and `scrambled` need for numbers below `count`."""
    bits = max(4, (count - 1).bit_length())
    return (1 << bits) - 1, (bits + 1) // 2


@njit(nogil=True, forceinline=True)
def next_state(state, mask):  # type: ignore[no-untyped-def]
    return (state * 1664525 + 1013904223) & mask


@njit(nogil=True, forceinline=True)
def scrambled(state, mask, shift):  # type: ignore[no-untyped-def]
    """The number that a state stands for."""
    x = state ^ (state >> shift)
    x = (x * 0x2C1B3C6D) & mask
    return x ^ (x >> shift)


@njit(nogil=True, forceinline=True, error_model="numpy")
def next_tuple(at, p, s):  # type: ignore[no-untyped-def]
    """Number of the next client address and port, or flow: all of them once before any comes again. `at`: where the
    state has the next one, or what the random order goes by."""
    number = s[at]
    if p[lay.PORT_ORDER_RANDOM] == 0:
        s[at] = number + 1 if number + 1 < p[lay.TUPLES] else 0
        return number
    while True:
        s[at] = next_state(s[at], p[lay.TUPLE_MASK])
        number = scrambled(s[at], p[lay.TUPLE_MASK], p[lay.TUPLE_SHIFT])
        if number < p[lay.TUPLES]:
            return number


#: A generator that paused catches up at this multiple of its rate at most: more would be a burst of its own making, of
#: which the DUT's rings may have to hold a part.
CATCH_UP = 1.1
#: What is due within this time may go out at once all the same: the kernel function's own loop is as coarse.
SLACK_S = 0.0001
#: What is late at the end of the sustain phase may still go out for this long. Later than that it is never sent.
LATEST_S = 0.05


@njit(nogil=True, forceinline=True)
def next_allowed(not_before, now, slack, interval):  # type: ignore[no-untyped-def]
    """When the next one may go out at the earliest, after one that goes out now. All in cycles."""
    return max(not_before, now - slack) + interval / CATCH_UP


#: Seconds of the sustain phase that every trial has: what the DUT forwards under this load is known by then.
EARLIEST_S = 0.15
#: Nothing is saved by ending this much before the end, seconds.
LEAST_SAVED_S = 0.02
#: How long connections under way are followed after an early end, besides their lifetime, seconds: those that get no
#: answer in this time are of those that were lost.
EARLY_LINGER_S = 0.2


@njit(nogil=True, forceinline=True)
def ends_early(lost, now, sustain, end, p):  # type: ignore[no-untyped-def]
    """Whether to end the sustain phase, which is from `sustain` to `end`, now. `lost`: for certain, of what counts."""
    return 0 < p[lay.MOST_LOST] < lost and sustain + p[lay.EARLIEST] <= now < end - p[lay.LEAST_SAVED]


@njit(nogil=True, forceinline=True)
def enter(p, s):  # type: ignore[no-untyped-def]
    """Cycles that passed outside of the kernel function between its calls: its clock stood meanwhile. And by that
    clock: now, and when the ramp ends, and the sustain phase begins."""
    if s[lay.LEFT_AT]:
        s[lay.AWAY] += cycles() - s[lay.LEFT_AT]
    start = cycles() - s[lay.AWAY]
    return s[lay.AWAY], start, start + p[lay.RAMP], start + p[lay.RAMP] + p[lay.SETTLE]


@njit(nogil=True, forceinline=True)
def leave(phase, s, counts, marks):  # type: ignore[no-untyped-def]
    """The kernel function returns: 0: before the sustain phase, 1: in it, 2: after it."""
    if phase < 1:
        marks[0, :] = counts
    if phase < 2:
        marks[1, :] = counts
    s[lay.LEFT_AT] = cycles()


@njit(nogil=True, forceinline=True)
def _link_work(sign, p, s):  # type: ignore[no-untyped-def]
    s[lay.LINK_BUSY] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], BUSY)
    s[lay.LINK_FRAMES] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], FRAMES)
    s[lay.LINK_REFUSED] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], REFUSED)


#: A generator that is kept off its CPU may take so many more times as long for its ramp-up.
MORE_RAMP_UPS = 2


@njit(nogil=True, forceinline=True)
def ramp_up_is_over(now, due, sustain, p):  # type: ignore[no-untyped-def]
    """Whether the sustain phase, planned for `sustain`, begins. What was due before it goes out first: it is not the
    load, and a DUT that is to know every flow has not seen all of them. `due`: when the next one is."""
    patience = MORE_RAMP_UPS * (p[lay.RAMP] + p[lay.SETTLE])
    return now >= sustain and (due >= sustain or now >= sustain + patience)


@njit(nogil=True, forceinline=True)
def begin_counting(now, sustain, p, s, counts, marks):  # type: ignore[no-untyped-def]
    """The sustain phase begins. Returns by how much that is later than it was planned for (`sustain`): however late it
    is, it has its whole length."""
    marks[0, :] = counts
    s[lay.COUNTED_FROM] = now
    s[lay.LONGEST_PAUSE] = 0
    s[lay.TIMING] = p[lay.TIMES_MESSAGES]
    _link_work(-1, p, s)
    s[lay.LAG] = now - sustain
    return now - sustain


@njit(nogil=True, forceinline=True)
def end_counting(now, p, s, counts, marks):  # type: ignore[no-untyped-def]
    """The sustain phase is over."""
    marks[1, :] = counts
    s[lay.COUNTED_UNTIL] = now
    s[lay.SUSTAIN_PAUSE] = s[lay.LONGEST_PAUSE]
    s[lay.TIMING] = 0
    _link_work(1, p, s)


@njit(nogil=True, forceinline=True)
def note_late(late, p, s):  # type: ignore[no-untyped-def]
    """Note by how many cycles one of those that count was late."""
    s[lay.LATE_MAX] = max(s[lay.LATE_MAX], late)
    if late > p[lay.LATE_LIMIT]:
        s[lay.LATE_COUNT] += 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def step(interval, due, start, ramp_end):  # type: ignore[no-untyped-def]
    """Cycles from one to the next: more on the ramp, on which the rate climbs, but not beyond its end: a slow rate has
    few in a trial."""
    if due < ramp_end:
        return max(interval, min(interval / max(0.02, (due - start) / (ramp_end - start)), ramp_end - due))
    return interval


@njit(nogil=True, forceinline=True, error_model="numpy")
def never_sent(interval, due, sustain, end, s):  # type: ignore[no-untyped-def]
    """What was due and never begun was intended all the same, and is late; but not what an early end left no time
    for."""
    if due < end and s[lay.ENDED_AFTER] == 0:
        s[lay.LATE_MAX] = max(s[lay.LATE_MAX], int(end - due))
        return int((end - max(due, float(sustain))) / interval) + 1
    return 0


@njit(nogil=True, error_model="numpy")
def look_at_own_rings(under_way, p, s):  # type: ignore[no-untyped-def]
    """Whether what is under way waits for the kernel function, and not for the DUT."""
    held = 0
    for port in range(2):
        for queue in range(p[lay.RX_RINGS + port]):
            held += r.backlog(p[lay.RX + port] + queue * r.ROW_BYTES)
    s[lay.LOOKS] += 1
    if 2 * held > under_way:
        s[lay.LOOKS_HELD] += 1


@njit(nogil=True, forceinline=True)
def put(ring, length, port, counts):  # type: ignore[no-untyped-def]
    """The frame in the next buffer of a port's ring is ready: count it."""
    r.put(ring, length)
    counts[lay.TX_PACKETS + port] += 1
    counts[lay.TX_BYTES + port] += length


#: Bins of a histogram: they hold any 32-bit number of units.
BINS = 1024
UNIT_SHIFT = 6


@njit(nogil=True, forceinline=True)
def bin_of(units):  # type: ignore[no-untyped-def]
    exponent = 0
    while units >= 64:
        units >>= 1
        exponent += 1
    return (exponent << 5) + units if exponent else units


def percentile(histogram: Counts, share: float, longest: int, hertz: float) -> float:
    """Microseconds that `share` of the times took at most: the upper edge of the bin, or the `longest` of them (units)
    where that is less. `hertz`: of the counter."""
    total = np.cumsum(histogram)
    place = int(np.searchsorted(total, share * total[-1]))
    exponent, rest = (0, place) if place < 64 else (place // 32 - 1, place % 32 + 32)
    return microseconds(min((rest + 1) * 2.0**exponent, longest), hertz)


def microseconds(units: float, hertz: float) -> float:
    return float(units * (1 << UNIT_SHIFT) * 1e6 / hertz)


#: Rows of the histograms of a trial: connect times, and the latency of messages (packets) by the port that sends.
CONNECT, MESSAGE = 0, 1
ROWS = 3

Histograms = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@njit(nogil=True, forceinline=True, error_model="numpy")
def note_latency(took, port, counts, histograms):  # type: ignore[no-untyped-def]
    """Count a message or packet that `port` sent and that took so many units."""
    histograms[MESSAGE + port, bin_of(took)] += 1
    counts[lay.LATENCY_MAX + port] = max(counts[lay.LATENCY_MAX + port], took)
    if counts[lay.TIMED + port]:
        counts[lay.JITTER_SUM + port] += abs(took - counts[lay.LATENCY_LAST + port])
    counts[lay.LATENCY_LAST + port] = took
    counts[lay.TIMED + port] += 1


def latencies_of(histograms: Histograms, counts: Counts, hertz: float) -> dict[str, Latency]:
    """What came of it, by the port that sends; one of which fewer than two messages (packets) came is not there."""
    return {
        side: Latency(
            p50=percentile(histograms[MESSAGE + port], 0.5, counts[lay.LATENCY_MAX + port], hertz),
            p99=percentile(histograms[MESSAGE + port], 0.99, counts[lay.LATENCY_MAX + port], hertz),
            max=microseconds(counts[lay.LATENCY_MAX + port], hertz),
            jitter=microseconds(counts[lay.JITTER_SUM + port] / (counts[lay.TIMED + port] - 1), hertz),
        )
        for port, side in enumerate(lay.SIDES)
        if counts[lay.TIMED + port] > 1
    }


def connect_time(histograms: Histograms, counts: Counts, slowest: int, hertz: float) -> ConnectTime | None:
    """Of all that were set up over TCP, None where none was; `slowest`: in units."""
    if not counts[lay.TCP_ESTABLISHED]:
        return None
    p50, p90, p99 = (percentile(histograms[CONNECT], share, slowest, hertz) for share in (0.5, 0.9, 0.99))
    return ConnectTime(p50=p50, p90=p90, p99=p99, max=microseconds(slowest, hertz))


#: Columns of a point: all counters so far, and what is open (on its way) now.
POINT_ACTIVE = lay.COUNTERS
POINT_COLUMNS = lay.COUNTERS + 1

Points = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@njit(nogil=True, forceinline=True)
def note_points(points, until, due, step, s, counts):  # type: ignore[no-untyped-def]
    """Note the points that were due by `until` (cycles). Returns when the next one is due."""
    while due <= until:
        if s[lay.POINTS] < points.shape[0]:
            points[s[lay.POINTS], :POINT_ACTIVE] = counts
            points[s[lay.POINTS], POINT_ACTIVE] = s[lay.ACTIVE]
            counts[lay.SETUP_MAX] = 0
            s[lay.POINTS] += 1
        due += step
    return due


def timeline_of(points: Points, completed_before: int, hertz: float) -> dict[str, Any]:
    """The points that were noted, by fields of `Trial`. `completed_before`: connections completed before the sustain
    phase; `hertz`: of the cycle counter."""
    setups, sums = (np.diff(points[:, at], prepend=0) for at in (lay.TCP_ESTABLISHED, lay.SETUP_SUM))

    def time(units: float, count: int) -> float | None:
        # Nanoseconds: the counter tells no more.
        return round(microseconds(units, hertz), 3) if count else None

    means = [time(total / max(count, 1), count) for total, count in zip(sums, setups, strict=True)]
    longest = [time(most, count) for most, count in zip(points[:, lay.SETUP_MAX], setups, strict=True)]
    return {
        "timeline_active": points[:, POINT_ACTIVE].tolist(),
        "timeline_completed": np.diff(points[:, lay.ALL_COMPLETED], prepend=completed_before).tolist(),
        "timeline_connect_mean_us": means,
        "timeline_connect_max_us": longest,
    }
