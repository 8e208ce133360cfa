"""The interfaces of traffic generators. What their trials count is a `Trial`, as the software generator has it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import numpy as np

from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import ConnectionProfile, Profile
from ctgen import (
    ATTEMPTED_LIMIT,
    Answered,
    Direction,
    Latency,
    LinkWork,
    LoadUnit,
    Opened,
    PortPair,
    Profiles,
    Side,
    Slice,
    Times,
    Traffic,
    Transport,
    Trial,
    UdpLatency,
)

__all__ = [
    "ATTEMPTED_LIMIT",
    "Answered",
    "Direction",
    "Holding",
    "Latency",
    "LinkWork",
    "LoadUnit",
    "Opened",
    "PairedGenerator",
    "PortPair",
    "Profiles",
    "Side",
    "Slice",
    "Times",
    "Traffic",
    "TrafficGenerator",
    "Transport",
    "Trial",
    "UdpLatency",
    "growth",
]


class Holding(Protocol):
    """Connections that one generator holds. Between two calls nothing is sent."""

    def open(self, connections: int) -> Opened:
        """Open so many more, at the load's rate at most. `GeneratorError` when the generator or a link broke."""

    def ask(self) -> Answered:
        """Send a message on each that is open, and wait for its reply."""

    def held(self) -> int:
        """Connections that are open now, as the generator knows."""

    def reconnect(self) -> None:
        """Make the links again to the DUT, which was started again. What is open stays so."""

    def trial(self) -> Trial:
        """All of it as a trial: `intended` and `attempted` were begun, `completed` are those that answered last (those
        that are open where none was asked), and the sustain phase is the time in which they were opened."""


class TrafficGenerator(Protocol):
    """A traffic generator, wired to the DUT's two ports. It offers and counts; it never decides."""

    @property
    def offers(self) -> frozenset[type[Load]]:
        """The kinds of load that it can be asked for."""

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        """Ramp up to the steady state, offer `load` (in the profile's unit) for `duration_s`, ramp down, count. `load`
        is a rate, or a closed loop where it `offers` one. Raises `GeneratorError` when the generator or the link to the
        DUT broke."""

    def hold(self, profile: ConnectionProfile, load: Hold) -> AbstractContextManager[Holding]:
        """Hold connections of a profile, `load.connections` at most at once; none is opened yet."""

    def snapshot(self) -> dict[str, object]:
        """What the record says of the generator: kind, version, CPUs, ports."""

    def close(self) -> None:
        """Let go of the ports. May be called twice."""


@runtime_checkable
class PairedGenerator(TrafficGenerator, Protocol):
    """A traffic generator that is wired to two DUTs at once, of which one has its turn at a time."""

    def offer_to(self, side: Side) -> None:
        """The side that trials, and what is held, are offered to from now on: the first one at first."""

    def run_slices(
        self,
        profiles: Profiles,
        order: Sequence[Side],
        slice_s: float,
        turn: Callable[[Side], None],
        *,
        backlogs: bool = False,
    ) -> list[Slice]:
        """Serve the sides, each with its profile, in this order for `slice_s` each, in a closed loop; `turn` is called
        before each slice: it wakes one DUT and stops the other. What is under way on a side waits there until its next
        turn, for as long as the profiles stay the same. Raises `GeneratorError` when the generator or a link broke.

        `backlogs`, of packets: instead of a closed loop, thousands are shown to the DUT at once, again and again: only
        the time counts in which it works that off."""

    def forget(self) -> None:
        """Forget what is under way on both sides: for who has emptied the DUTs' tables, which knew it."""

    def close(self, side: Side | None = None) -> None:
        """Let go of the ports of a side, or of both, and of what is under way. May be called twice."""


#: Fewer points say nothing: of six, all 15 slopes have to be positive.
LEAST_POINTS = 6
#: Of the normal distribution: a slope is above 0 in 99 of 100 cases of independent noise.
_Z = 2.326


def growth(points: Sequence[float], step_s: float, limit: float) -> float:
    """The growth per second of a backlog whose points are `step_s` seconds apart; 0 where it is not above `limit` over
    all points and over the second half of them (what grew at first and then stays does not grow), where it may be
    noise, or where there are too few points.

    By Theil-Sen, the median over all pairs of points: one stall, or any other lie of less than 29 % of the points, does
    not move it far. Noise: by the lower end of its one-sided 99 % interval (Sen 1968: from the variance of Kendall's
    statistic)."""
    count = len(points)
    if count < LEAST_POINTS or step_s <= 0:
        return 0.0
    slopes, late = _slopes(points) / step_s, _slopes(points[count // 2 :]) / step_s
    spread = _Z * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    lowest = slopes[max(0, round((len(slopes) - spread) / 2) - 1)]
    per_s = float(np.median(slopes))
    return per_s if min(per_s, np.median(late)) > limit and lowest > 0 else 0.0


def _slopes(points: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The slopes of all pairs, in ascending order, per step."""
    values = np.asarray(points, dtype=np.float64)
    first, last = np.triu_indices(len(values), k=1)
    return np.sort((values[last] - values[first]) / (last - first))
