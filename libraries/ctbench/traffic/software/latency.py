"""One-way latency of messages that arrive in the sustain phase, with the jitter from one to the next: of those of every
eighth connection, because timing all of them costs the generator 6 to 10 % of what it can do.

A connection has one message under way at a time, and both ends are here: when it was sent stands in the connection's
record, in the place of what only its connect time needed. So the frames of a trial are the same as without it.
"""

import numpy as np
from numba import njit

from ctbench.traffic.generator import Latency
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import histogram as bins
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.drive import Counts
from ctbench.traffic.software.machine_code import load32, store32

#: Messages of one connection of so many are timed, by the number of its record: a power of two.
EVERY = 8
#: Rows of the histograms of a trial: connect times, and the latency of messages by the port that sends.
CONNECT, MESSAGE = 0, 1
ROWS = 3

Histograms = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def room() -> Histograms:
    """Empty histograms."""
    return np.zeros((ROWS, bins.BINS), np.int64)


@njit(nogil=True, forceinline=True)
def sent(record, slot, now, p):  # type: ignore[no-untyped-def]
    """A message goes out now. Where nobody wants its latency, the record keeps when the connection was begun."""
    if p[lay.TIMES_MESSAGES] and slot & (EVERY - 1) == 0:
        store32(record + c.STARTED, now >> bins.UNIT_SHIFT)


@njit(nogil=True, forceinline=True, error_model="numpy")
def taken(record, slot, port, now, s, counts, histograms):  # type: ignore[no-untyped-def]
    """A message has come that `port` sent."""
    if slot & (EVERY - 1) or not s[lay.TIMING]:
        return
    took = ((now >> bins.UNIT_SHIFT) - load32(record + c.STARTED)) & 0xFFFFFFFF
    histograms[MESSAGE + port, bins.bin_of(took)] += 1
    if took > counts[lay.LATENCY_MAX + port]:
        counts[lay.LATENCY_MAX + port] = took
    if counts[lay.TIMED + port]:
        counts[lay.JITTER_SUM + port] += abs(took - counts[lay.LATENCY_LAST + port])
    counts[lay.LATENCY_LAST + port] = took
    counts[lay.TIMED + port] += 1


def read(histograms: Histograms, counts: Counts, hertz: float) -> dict[str, Latency]:
    """What came of it, by the port that sends; one that sent fewer than two messages is not there."""
    return {
        side: Latency(
            p50=bins.percentile(histograms[MESSAGE + port], 0.5, hertz),
            p99=bins.percentile(histograms[MESSAGE + port], 0.99, hertz),
            max=bins.microseconds(int(counts[lay.LATENCY_MAX + port]), hertz),
            jitter=bins.microseconds(int(counts[lay.JITTER_SUM + port]) / (int(counts[lay.TIMED + port]) - 1), hertz),
        )
        for port, side in enumerate(("client", "server"))
        if counts[lay.TIMED + port] > 1
    }
