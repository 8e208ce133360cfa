"""Statistics of few samples: median and spread, the exact permutation test, the correction for many tests."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence


def spread(values: Sequence[float]) -> float | None:
    """Largest minus smallest value, relative to the median; None where that says nothing (no values, a median of 0)."""
    middle = statistics.median(values) if values else 0.0
    return (max(values) - min(values)) / middle if middle > 0 else None


def p_smaller(base: Sequence[float], candidate: Sequence[float]) -> float:
    """How often chance alone makes the candidate as small against the base as it is, or smaller: the exact one-sided
    permutation test of the sum of ranks, ties sharing their rank (Wilcoxon, Mann and Whitney).

    Every way to choose the candidate's samples from all samples is counted, so it holds for any distribution and for
    any number of samples. Ranks, so that one disturbed sample weighs no more than another one.
    """
    ranks = _doubled_ranks([*base, *candidate])
    observed = sum(ranks[len(base) :])
    #: By how many were chosen: how many choices have which sum.
    ways = [Counter({0: 1}), *(Counter[int]() for _ in candidate)]
    for rank in ranks:
        for chosen in range(len(candidate), 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank] += count
    as_small = sum(count for total, count in ways[len(candidate)].items() if total <= observed)
    return as_small / math.comb(len(ranks), len(candidate))


def least_p(base: int, candidate: int) -> float:
    """The smallest p that so many samples can give: one choice of all that there are."""
    return 1 / math.comb(base + candidate, candidate)


def needed_samples(p: float) -> int:
    """Samples on either side with which a p below this one is possible."""
    samples = 1
    while least_p(samples, samples) >= p:
        samples += 1
    return samples


def holm(ps: Sequence[float]) -> list[float]:
    """The p values after Holm's correction for their number (1979): reject those below a level, and the probability to
    reject even one wrongly is below that level, however the tests depend on each other."""
    corrected, highest = list(ps), 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - place)))
        corrected[index] = highest
    return corrected


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, which is whole where ties share their mean rank."""
    ordered = sorted(values)
    return [ordered.index(value) + len(ordered) - ordered[::-1].index(value) + 1 for value in values]
