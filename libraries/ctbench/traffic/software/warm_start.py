"""A warm start: a trial of connections that live long begins with those that the steady state has open.

Each of them was begun, as it were, at some time before the start, and ends at a time after it that is known. But what
it waits for are whole waits of its server. So as many are opened at any moment of a wait as at any other: when the
opening is over they end evenly over time, as many of them as should, and ask evenly over time as well.
"""

import math

from numba import njit

from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.lifecycle import begin

#: Connections begun before the rings are polled again.
BURST = 16
#: Coprime to all that it is used with but its own multiples: a jump of 0.618 of 2**20, the golden section.
STRIDE = 648_059


@njit(nogil=True, forceinline=True, error_model="numpy")
def opened_share(elapsed, wait, waits):  # type: ignore[no-untyped-def]
    """The share of the population that is open, or was not worth opening, `elapsed` after the start: evenly within a
    wait, and less from one of the `waits` to the next, as those that are open take a growing share of the load."""
    before = min(elapsed // wait, waits)
    of_this_one = (waits - before) * (elapsed - before * wait) / wait
    return (before * waits - before * (before - 1) / 2 + of_this_one) / (waits * (waits + 1) / 2)


@njit(nogil=True, forceinline=True, error_model="numpy")
def ends_after(number, population, interval, short, short_per_million):  # type: ignore[no-untyped-def]
    """When one of the population ends, after the start: one each `interval`. Of those that live on when all short ones
    have ended, after `short`, only a share of the long ones ends in the same time."""
    at = (number * STRIDE % population + 0.5) * interval
    return max(at, short + (at - short) * 1000000 / (1000000 - short_per_million))


@njit(nogil=True, forceinline=True, error_model="numpy")
def messages_left(ends, elapsed, wait):  # type: ignore[no-untyped-def]
    """The messages that one has before it which is opened `elapsed` after the start: 0 where it is over by now."""
    return max(0, math.floor(ends / wait) - elapsed // wait)


@njit(nogil=True, error_model="numpy")
def open_population(now, start, interval, tx, p, s, counts):  # type: ignore[no-untyped-def]
    """Open some of the connections that are due by now. `interval`: cycles from one connection of the load to the
    next."""
    elapsed, wait = now - start, p[lay.SERVER_WAIT]
    wanted = int(p[lay.POPULATION] * opened_share(elapsed, wait, p[lay.OPENING_WAITS]))
    begun = 0
    while s[lay.OPENED] < wanted and begun < BURST:
        ends = ends_after(
            s[lay.OPENED], p[lay.POPULATION], interval, p[lay.SHORT_MESSAGES] * wait, p[lay.SHORT_PER_MILLION]
        )
        s[lay.OPENED] += 1
        messages = messages_left(ends, elapsed, wait)
        if messages:
            begin(tx, now, False, min(messages, p[lay.MESSAGES]), p, s, counts)
            begun += 1
