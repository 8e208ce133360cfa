"""What a number of times says: its quantiles, and how sure the median is. No distribution is assumed."""

import math
from collections.abc import Sequence

#: How sure an interval of a median is.
CONFIDENCE = 0.99


def quantile(values: Sequence[float], share: float) -> float:
    """The least of the values that `share` of them do not exceed (nearest rank). `ValueError` for none."""
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of values, as many from the least as from the most, that the median lies between with
    `CONFIDENCE`: how many of n values are below it is binomial. From the least to the most where n is too small for
    that (below 8). `ValueError` for no values."""
    if not values:
        raise ValueError("no values")
    ordered, count = sorted(values), len(values)
    outside, cut = 0.0, 0  # probability that the median is outside, where `cut` values are left out at either end
    for left_out in range(count // 2):
        outside += 2 * math.comb(count, left_out) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        cut = left_out
    return ordered[cut], ordered[count - 1 - cut]
