"""A trial that is lost ends early: nothing that may still come would make it good."""

from numba import njit

#: Seconds of the sustain phase that every trial has: what the DUT forwards under this load is known by then.
EARLIEST_S = 0.15
#: Nothing is saved by ending this much before the end, seconds.
LEAST_SAVED_S = 0.02
#: How long connections under way are followed after an early end, besides their lifetime, seconds: those that get no
#: answer in this time are of those that were lost.
LINGER_S = 0.2


@njit(nogil=True, forceinline=True)
def is_due(lost, most_lost, now, earliest, latest):  # type: ignore[no-untyped-def]
    """Whether to end the sustain phase now. `lost`: for certain, of what counts; `most_lost`: 0 is without a limit;
    `earliest`, `latest`: cycles between which it pays."""
    return 0 < most_lost < lost and earliest <= now < latest
