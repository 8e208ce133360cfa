"""Statistics of few samples: intervals of medians, tolerance factors, Student's t, losses."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

#: How sure an interval of a median is.
CONFIDENCE = 0.99


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest interval of the median at `CONFIDENCE` that leaves out as many values at either end: how
    many of n values are below the median is binomial. It goes from the least to the most where n is too small (below
    8)."""
    ordered, count = sorted(values), len(values)
    outside, cut = 0.0, 0  # probability that the median is outside, where `cut` values are left out at either end
    for left_out in range(count // 2):
        outside += 2 * math.comb(count, left_out) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        cut = left_out
    return ordered[cut], ordered[count - 1 - cut]


_NORMAL = NormalDist()
#: Steps of the integral.
_STEPS = 400


@cache
def tolerance_factor(samples: int, content: float = 0.95, confidence: float = 0.95) -> float:
    """Return the k of `mean - k s` for this number of samples, `s` their standard deviation (n - 1). Raises
    `ValueError` below 2.

    mean - k s is below 95 % of a normal distribution (its content) with 95 % confidence, where k sqrt(n) is the 95 %
    quantile of the noncentral t distribution with n - 1 degrees of freedom and the noncentrality z(0.95) sqrt(n)
    (NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.3; Natrella 1963, table A-7).
    """
    noncentrality = _NORMAL.inv_cdf(content) * math.sqrt(samples)

    def share(billionths: int) -> float:
        return _noncentral_t(billionths / 1e9 * math.sqrt(samples), samples - 1, noncentrality)

    return bisect_left(range(10**12), confidence, key=share) / 1e9


def _noncentral_t(t: float, freedom: int, noncentrality: float) -> float:
    """Return P(T <= t), t >= 0, by Simpson's rule: the normal probability given the sample's standard deviation, in the
    mean over its distribution (u = s/sigma; freedom u^2 is chi-square distributed)."""
    most = 1 + 12 / math.sqrt(2 * freedom)
    log_constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)

    def weighed(u: float) -> float:
        log_density = log_constant + (freedom - 1) * math.log(max(u, 1e-300)) - freedom * u * u / 2
        return math.exp(log_density) * _NORMAL.cdf(t * u - noncentrality)

    width = most / _STEPS
    inner = sum((4 if step % 2 else 2) * weighed(step * width) for step in range(1, _STEPS))
    return (weighed(0.0) + inner + weighed(most)) * width / 3


@cache
def student(share: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom, for a share above one half."""
    return bisect_left(range(10**12), share, key=lambda billionths: _student(billionths / 1e9, freedom)) / 1e9


def _student(t: float, freedom: int) -> float:
    """Return P(T <= t), t >= 0, in closed form (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    term = total = 1.0 if freedom % 2 == 0 else math.cos(angle)
    for step in range(2 + freedom % 2, freedom, 2):
        term *= math.cos(angle) ** 2 * (step - 1) / step
        total += term
    inside = math.sin(angle) * total
    if freedom % 2:
        inside = 2 / math.pi * (angle + (inside if freedom > 1 else 0.0))
    return (1 + inside) / 2


#: A ratio is judged where its limit allows at least so many of what was intended; of fewer, one more or less is chance.
LEAST_ALLOWED = 5
#: There, as many may be lost as a DUT that loses exactly as much as the limit loses in this share of its trials.
UNLIKELY = 0.02
#: But never more than this share: of a hundred, one is not chance any more.
LARGEST_SHARE = 0.01


def within(lost: float, of: float, limit: float) -> bool:
    """Return True where `lost` of `of` are within a limit (a ratio), or no more than `few`; False where `of` is 0."""
    if of <= 0:
        return False
    return lost / of <= limit or lost <= few(limit, of)


def few(limit: float, of: float) -> int:
    """Return how many may be lost where the limit allows less than `LEAST_ALLOWED` of `of`: the largest number that a
    Poisson distribution reaches or exceeds with a probability above `UNLIKELY`. It is at least 1, but at most
    `LARGEST_SHARE` of `of`, rounded down. 0 where the ratio itself is judged, and where the limit is 0."""
    expected = limit * of
    if expected <= 0 or expected >= LEAST_ALLOWED:
        return 0
    count, term = 1, math.exp(-expected)
    reached = 1 - term  # probability of `count` or more
    while (reached := reached - (term := term * expected / count)) > UNLIKELY:
        count += 1
    return min(count, int(LARGEST_SHARE * of))
