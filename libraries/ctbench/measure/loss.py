"""How much a trial may lose: a ratio of many, or a few of not so many. Pure."""

import math
from collections.abc import Mapping

#: A ratio is judged where its limit allows at least so many of what was intended; of fewer, one more or less is chance.
LEAST_ALLOWED = 5
#: There, as many may be lost as a DUT that loses exactly as much as the limit loses in this share of its trials.
UNLIKELY = 0.02
#: But never more than this share: of a hundred, one is not chance any more.
LARGEST_SHARE = 0.01
#: A trial that has lost this many times what it may lose does not have to go on.
HOPELESS = 10


#: Metrics of what is lost, in either unit: a trial is judged by one of them, or by both.
LOSSES = ("loss_ratio", "packet_loss_ratio")


def limits_in(conditions: Mapping[str, float]) -> dict[str, float]:
    """What of a trial's conditions is about losses."""
    return {name: conditions[name] for name in LOSSES if name in conditions}


def within(lost: float, of: float, limit: float) -> bool:
    """Whether `lost` of `of` keep a limit (a ratio). Exactly at the limit they do; nothing of nothing does not."""
    if of <= 0:
        return False
    return lost / of <= limit or lost <= few(limit, of)


def few(limit: float, of: float) -> int:
    """How many may be lost where the limit allows less than `LEAST_ALLOWED` of `of`: the largest number that a Poisson
    distribution reaches or exceeds with more than `UNLIKELY`, at least 1, and at most `LARGEST_SHARE` of `of`. 0 where
    the ratio itself is judged; none may be lost where the limit is 0."""
    expected = limit * of
    if expected <= 0 or expected >= LEAST_ALLOWED:
        return 0
    count, term = 1, math.exp(-expected)
    reached = 1 - term  # probability of `count` or more
    while (reached := reached - (term := term * expected / count)) > UNLIKELY:
        count += 1
    return min(count, int(LARGEST_SHARE * of))


def hopeless(limit: float, of: float) -> float:
    """Losses that no trial of `of` survives, with a wide margin: more may be known to be lost only in a bad trial."""
    return HOPELESS * max(1.0, limit * of, few(limit, of))
