"""What both kernel functions go by: a random permutation, a trial's phases, the pace of what is late, an early end.

The permutation has every number of a range once before any comes again: a full-period generator modulo a power of two
(Knuth, volume 2, theorem A), scrambled by a bijection; numbers beyond the range are passed over by the caller. A trial
that is lost ends early, because nothing that may still come would make it good.
"""

from numba import njit

from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import cycles
from ctbench.traffic.software.packet_port import BUSY, FRAMES, REFUSED, total


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
def ends_early(lost, most_lost, now, earliest, latest):  # type: ignore[no-untyped-def]
    """Whether to end the sustain phase now. `lost`: for certain, of what counts; `most_lost`: 0 is without a limit;
    `earliest`, `latest`: cycles between which it pays."""
    return 0 < most_lost < lost and earliest <= now < latest


@njit(nogil=True, forceinline=True)
def enter(s):  # type: ignore[no-untyped-def]
    """Cycles that passed outside of the kernel function between its calls: its clock stood meanwhile."""
    if s[lay.LEFT_AT]:
        s[lay.AWAY] += cycles() - s[lay.LEFT_AT]
    return s[lay.AWAY]


@njit(nogil=True, forceinline=True)
def _link_work(sign, p, s):  # type: ignore[no-untyped-def]
    s[lay.LINK_BUSY] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], BUSY)
    s[lay.LINK_FRAMES] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], FRAMES)
    s[lay.LINK_REFUSED] += sign * total(p[lay.LINK], p[lay.LINK_THREADS], REFUSED)


@njit(nogil=True, forceinline=True)
def begin_counting(now, end, next_point, p, s, counts, marks):  # type: ignore[no-untyped-def]
    """The sustain phase begins. Returns when it ends, and when the first point of the timeline is due."""
    marks[0, :] = counts
    s[lay.COUNTED_FROM] = now
    s[lay.LONGEST_PAUSE] = 0
    s[lay.TIMING] = p[lay.TIMES_MESSAGES]
    _link_work(-1, p, s)
    if p[lay.UNDER_WAY]:  # however late it is: a slice has its whole length
        return now + p[lay.SUSTAIN], now + p[lay.TIMELINE_STEP]
    return end, next_point


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
    if late > s[lay.LATE_MAX]:
        s[lay.LATE_MAX] = late
    if late > p[lay.LATE_LIMIT]:
        s[lay.LATE_COUNT] += 1


@njit(nogil=True, forceinline=True, error_model="numpy")
def step(interval, due, start, ramp_end):  # type: ignore[no-untyped-def]
    """Cycles from one to the next: more on the ramp, on which the rate climbs."""
    if due < ramp_end:
        return interval / max(0.02, (due - start) / (ramp_end - start))
    return interval


@njit(nogil=True, forceinline=True, error_model="numpy")
def never_sent(interval, due, sustain, end, s):  # type: ignore[no-untyped-def]
    """What was due and never begun was intended all the same; but not what an early end left no time for."""
    if due < end and s[lay.ENDED_AFTER] == 0:
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
