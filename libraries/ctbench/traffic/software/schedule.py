"""What both kernel functions go by: a random permutation, the pace at which what is late goes out, and an early end.

The permutation has every number of a range once before any comes again: a full-period generator modulo a power of two
(Knuth, volume 2, theorem A), scrambled by a bijection; numbers beyond the range are passed over by the caller. A trial
that is lost ends early, because nothing that may still come would make it good.
"""

from numba import njit


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
