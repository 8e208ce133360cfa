"""How fast what is late may go out: what the kernel functions share."""

from numba import njit

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
