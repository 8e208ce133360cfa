"""The statistics of pairs: the order of two sides' turns, one log ratio per round, and an interval for several looks.

A shared machine hops between speeds for tenths of a second, and drifts. Turns of a few hundredths of a second spread
both over the two sides (duet benchmarking: Bulej et al., ICPE 2020).
"""

import math
from collections.abc import Sequence
from functools import cache
from statistics import median

import numpy as np

from ctbench.measure.start_rule import around
from ctbench.results.record_model import Estimate
from ctbench.traffic.generator import Side, Slice

#: Slices of a round: one of each side. A drift is in all of them, with the sign that the order gives it: as often up as
#: down. Longer ones would let one slice that something disturbed spoil more of its neighbours.
ROUND = 2
#: Rounds after which the interval is looked at.
LOOKS = (16, 32, 80, 192)
#: The interval is a 99 % one however often it is looked at: each look has its part of the errors (Bonferroni).
ERROR = 0.01
#: Share of a slice beyond which the generator's own standstill spoils it.
MOST_PAUSED = 1 / 3
#: Of a side's median slice, what it serves at most while it stands still.
STALL = 0.1
#: Parts that rounds are put together to, at most: neighbours share what disturbs them, and a part has several.
BATCHES = 32


def turns(first: int, rounds: int) -> list[Side]:
    """Return the order of the slices of some rounds, after `first` earlier rounds. In this sequence of Thue and Morse
    (AB BA BA AB ...), no polynomial drift favours a side for long."""
    order: list[Side] = []
    for number in range(first, first + rounds):
        order += ("tested", "other") if number.bit_count() % 2 == 0 else ("other", "tested")
    return order


def spoilt(part: Slice) -> bool:
    """True where the generator stood still for much of a slice, which is void. A stall of the DUT voids none."""
    return part.pause_ms / 1000 > MOST_PAUSED * part.seconds


def log_ratio(parts: Sequence[Slice]) -> float | None:
    """Return the log ratio of a round's rates, tested to other; None where neither side completed anything. A side that
    completed nothing counts as half a connection (packet)."""
    if not any(part.completed for part in parts):
        return None
    rates = {part.side: max(part.completed, 0.5) / part.seconds for part in parts}
    return math.log(rates["tested"] / rates["other"])


def stalled(parts: Sequence[Slice]) -> float:
    """Return the share of one side's time in slices with at most `STALL` of its median rate; 1 where nothing
    completed."""
    middle = median(part.rate for part in parts)
    time_s = sum(part.seconds for part in parts)
    return sum(part.seconds for part in parts if part.rate <= STALL * middle) / time_s


def serves(parts: Sequence[tuple[float, float]], unit: str) -> Estimate:
    """Return the rate over all of these parts (number completed, seconds), stalls included, with its 99 % interval."""
    return _of_sums([(completed, seconds, 1.0, 1.0) for completed, seconds in parts], ERROR, unit)


def whole(slices: Sequence[Slice], error: float) -> Estimate:
    """Return the ratio of both sides' rates over all of their time, tested to other, with an interval that errs with
    about this probability. `slices`: whole rounds, in order."""
    counts = []
    for parts in rounds_of(slices):
        tested, other = sorted(parts, key=lambda part: part.side, reverse=True)
        counts.append((tested.completed, tested.seconds, other.completed, other.seconds))
    return _of_sums(counts, error, "ratio")


def _of_sums(counts: Sequence[tuple[float, float, float, float]], error: float, unit: str) -> Estimate:
    """Return the ratio of two rates over all rows, each a count by its seconds, with a jackknife interval: the ratios
    without each batch of neighbours in turn show how far it may be from the truth (Miller 1974; Student's t)."""
    batches = np.array([part.sum(axis=0) for part in np.array_split(counts, min(BATCHES, len(counts)))], float)
    total = batches.sum(axis=0)
    value = float(_rates(total)[0] / _rates(np.maximum(total, [0, 0, 0.5, 0]))[1])
    if len(batches) < 2:
        return Estimate(value, unit, value, value)
    logs = len(batches) * _log_ratio(total) - (len(batches) - 1) * _log_ratio(total - batches)
    return around(value, [float(log) for log in logs], error / 2, unit)


def _log_ratio(counts: np.ndarray) -> np.ndarray:
    """Return the log ratio of each row of both sides' counts and seconds; a count of 0 is taken as half of one."""
    one, other = _rates(np.maximum(counts, [0.5, 0, 0.5, 0]))
    found: np.ndarray = np.log(one / other)
    return found


def _rates(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return counts[..., 0] / counts[..., 1], counts[..., 2] / counts[..., 3]


def rounds_of(slices: Sequence[Slice]) -> list[Sequence[Slice]]:
    """Split the slices of `turns` into rounds."""
    return [slices[at : at + ROUND] for at in range(0, len(slices), ROUND)]


def estimate(logs: Sequence[float], error: float = ERROR / len(LOOKS)) -> Estimate | None:
    """Estimate the ratio from log ratios, which are taken to be symmetric: the median of their pairwise means (Hodges
    and Lehmann), with the exact interval of Wilcoxon's signed-rank test (Hollander and Wolfe, Nonparametric Statistical
    Methods, section 3.2 and 3.3). The interval errs with at most this probability. None for too few."""
    means = sorted((one + other) / 2 for at, one in enumerate(logs) for other in logs[at:])
    out = _outside(len(logs), error)
    if out is None:
        return None
    value, low, high = map(math.exp, (median(means), means[out], means[-1 - out]))
    return Estimate(value, "ratio", low, high)


@cache
def _outside(count: int, error: float) -> int | None:
    """Return the number of ordered means outside the interval, at either end; None where even the whole range errs more
    often. Under the null hypothesis every set of ranks is equally probable. The chance of each rank sum (its index, up
    to the middle one) is built up rank by rank, as each rank is in the set or not."""
    chances = np.zeros(count * (count + 1) // 4 + 1)
    chances[0] = 1
    for rank in range(1, count + 1):
        chances[rank:] += chances[:-rank]
        chances /= 2
    out = int(np.searchsorted(np.cumsum(chances), error / 2, side="right")) - 1
    return out if out >= 0 else None
