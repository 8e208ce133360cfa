"""Times in logarithmic bins, 32 to a power of two: 3 % wide. The unit is 64 cycles of the processor's counter."""

import numpy as np
from numba import njit

#: Bins of a histogram: they hold any 32-bit number of units.
BINS = 1024
UNIT_SHIFT = 6

Histogram = np.ndarray[tuple[int], np.dtype[np.int64]]


@njit(nogil=True, forceinline=True)
def bin_of(units):  # type: ignore[no-untyped-def]
    """The bin of a time in units."""
    exponent = 0
    while units >= 64:
        units >>= 1
        exponent += 1
    return (exponent << 5) + units if exponent else units


def percentile(histogram: Histogram, share: float, hertz: float) -> float:
    """Microseconds that `share` of the times took at most: the upper edge of the bin. `hertz`: of the counter."""
    total = np.cumsum(histogram)
    place = int(np.searchsorted(total, share * total[-1]))
    exponent, rest = (0, place) if place < 64 else (place // 32 - 1, place % 32 + 32)
    return microseconds((rest + 1) * 2.0**exponent, hertz)


def microseconds(units: float, hertz: float) -> float:
    """Units as microseconds."""
    return float(units * (1 << UNIT_SHIFT) * 1e6 / hertz)
