"""The one-sided tolerance factor: how far below the mean of a few samples nearly everything lies that is yet to come.

mean - k s is below 95 % of a normal distribution (its content) with 95 % confidence, where k sqrt(n) is the 95 %
quantile of the noncentral t distribution with n - 1 degrees of freedom and the noncentrality z(0.95) sqrt(n)
(NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.3; Natrella 1963, table A-7).
"""

import math
from functools import cache
from statistics import NormalDist

_NORMAL = NormalDist()
#: Steps of the integral, and of the bisection.
_STEPS, _HALVINGS = 400, 60


@cache
def tolerance_factor(samples: int, content: float = 0.95, confidence: float = 0.95) -> float:
    """The k of `mean - k s` for so many samples, `s` their standard deviation (n - 1). Raises `ValueError` below 2."""
    if samples < 2:
        raise ValueError("one sample does not scatter")
    noncentrality = _NORMAL.inv_cdf(content) * math.sqrt(samples)
    low, high = 0.0, 1.0
    while _noncentral_t(high * math.sqrt(samples), samples - 1, noncentrality) < confidence:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _noncentral_t(middle * math.sqrt(samples), samples - 1, noncentrality) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _noncentral_t(t: float, freedom: int, noncentrality: float) -> float:
    """P(T <= t), t >= 0: the normal probability given the sample's standard deviation, in the mean over what that may
    be (u = s/sigma; freedom u^2 is chi-square distributed). Simpson's rule."""
    most = 1 + 12 / math.sqrt(2 * freedom)
    log_constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)

    def weighed(u: float) -> float:
        log_density = log_constant + (freedom - 1) * math.log(u) - freedom * u * u / 2 if u > 0 else -math.inf
        if u == 0 and freedom == 1:
            log_density = log_constant
        return math.exp(log_density) * _NORMAL.cdf(t * u - noncentrality)

    width = most / _STEPS
    inner = sum((4 if step % 2 else 2) * weighed(step * width) for step in range(1, _STEPS))
    return (weighed(0.0) + inner + weighed(most)) * width / 3
