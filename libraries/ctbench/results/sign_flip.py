"""The exact sign-flip test of a few samples, and the interval that belongs to it.

Where nothing differs, a sample (a log ratio) is as likely to be +x as -x. Of all 2^n ways to choose the signs, the test
counts those whose sum is as far from 0 as the one seen (Fisher 1935). It assumes no distribution, only one that is
symmetric. The interval has every shift that the test does not reject; its ends are means of subsets of the samples
(Hartigan 1969, "typical values").
"""

import math
from collections.abc import Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

#: So many samples have a million subsets; more are not counted.
MOST_SAMPLES = 20
#: Sums that differ by less than this share of the largest are equal but for rounding.
_ROUNDING = 1e-12


def sign_flip_p(samples: Sequence[float]) -> float:
    """How often chance alone puts the sum as far from 0 as these samples do, or farther, on either side.

    Raises `ValueError` without samples, or with more than `MOST_SAMPLES`.
    """
    flipped = 2 * _subset_sums(samples) - sum(samples)  # what each choice of signs makes of the sum
    observed = abs(sum(samples)) - _ROUNDING * sum(map(abs, samples))
    return float(np.count_nonzero(np.abs(flipped) >= observed)) / len(flipped)


def least_sign_flip_p(samples: int) -> float:
    """The smallest p that so many samples can give: all of them on one side."""
    return float(2.0 ** (1 - samples))


def needed_signs(p: float) -> int:
    """Samples with which a p below this one is possible."""
    return max(1, math.floor(1 - math.log2(p)) + 1)


def sign_flip_interval(samples: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """The shifts that the test does not reject, lowest and highest; None where the samples are too few for this
    `confidence` (5 of them can give 93.75 %)."""
    tail = _tail(len(samples), confidence)
    if not tail:
        return None
    means = np.partition(_subset_means(samples), [tail - 1, 2 ** len(samples) - 1 - tail])
    return float(means[tail - 1]), float(means[2 ** len(samples) - 1 - tail])


def hodges_lehmann(samples: Sequence[float]) -> float:
    """The median of the means of all pairs, each sample with itself among them: nearly as exact as the mean, and one
    wild sample of four moves it little."""
    return median((one + other) / 2 for index, one in enumerate(samples) for other in samples[index:])


def to_be_seen(samples: int, confidence: float, found: float = 0.9, seed: int = 1) -> float:
    """The shift, in standard deviations of the samples, that such an interval excludes 0 with in this share of the
    cases (`found`), for a normal distribution; infinite where the samples are too few. Simulated, always alike."""
    counted = min(samples, _SIMULATED)
    if not (tail := _tail(counted, confidence)):
        return math.inf
    dice = np.random.default_rng(seed)
    lower = [
        np.partition(_subset_means(list(dice.standard_normal(counted))), tail - 1)[tail - 1] for _ in range(_DRAWS)
    ]
    # The error of a mean falls with the root of the number, also beyond what is worth simulating.
    return float(np.quantile(-np.array(lower), found)) * math.sqrt(counted / samples)


_SIMULATED, _DRAWS = 13, 800


def _tail(samples: int, confidence: float) -> int:
    """How many of the 2^n choices lie outside of the interval on either side."""
    return math.floor(math.ldexp(1.0, samples) * (1 - confidence) / 2 + _ROUNDING)


def _subset_sums(samples: Sequence[float]) -> NDArray[np.float64]:
    """The sum of each subset, the empty one first."""
    if not 1 <= len(samples) <= MOST_SAMPLES:
        raise ValueError(f"{len(samples)} samples cannot be counted: 1 to {MOST_SAMPLES} can")
    sums = np.zeros(1)
    for sample in samples:
        sums = np.concatenate([sums, sums + sample])
    return sums


def _subset_means(samples: Sequence[float]) -> NDArray[np.float64]:
    """The mean of each subset but the empty one."""
    sizes = _subset_sums([1.0] * len(samples))
    means: NDArray[np.float64] = _subset_sums(samples)[1:] / sizes[1:]
    return means
