"""The interfaces of traffic generators, whose trials are the software generator's `Trial`; the growth of a backlog."""

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
    """Connections that a generator holds open. Nothing is sent between two calls."""

    def open(self, connections: int) -> Opened:
        """Open `connections` more, at the load's rate at most. Raise `GeneratorError` where generator or link broke."""

    def ask(self) -> Answered:
        """Send a message on each open connection, and wait for the replies."""

    def held(self) -> int:
        """Return the number of open connections by the generator's count."""

    def reconnect(self) -> None:
        """Make the links to a restarted DUT again. Open connections stay open."""

    def trial(self) -> Trial:
        """Return everything as one trial. `intended` are the connections asked for (of the software generator, those
        begun), `attempted` those begun, `completed` those that answered the last message (the open ones where none was
        sent), and the sustain phase is the time in which they were opened."""


class TrafficGenerator(Protocol):
    """A traffic generator, wired to the DUT's two ports. It offers a load and counts; it never judges."""

    @property
    def offers(self) -> frozenset[type[Load]]:
        """The kinds of load that the generator can offer."""

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        """Ramp up to the steady state, offer `load` (in the profile's unit) for `duration_s`, ramp down, count. `load`
        is a rate, or a closed loop where the generator `offers` one. Raise `GeneratorError` where the generator or the
        link to the DUT broke."""

    def hold(self, profile: ConnectionProfile, load: Hold) -> AbstractContextManager[Holding]:
        """Hold at most `load.connections` connections of a profile. None is opened yet."""

    def snapshot(self) -> dict[str, object]:
        """Return the generator's facts for the record: kind, version, CPUs, ports."""

    def close(self) -> None:
        """Release the ports. May be called twice."""


@runtime_checkable
class PairedGenerator(TrafficGenerator, Protocol):
    """A traffic generator that is wired to two DUTs at once and serves them in turn."""

    def offer_to(self, side: Side) -> None:
        """Offer trials and held connections to this side from now on. Initially they go to the side connected first."""

    def run_slices(
        self,
        profiles: Profiles,
        order: Sequence[Side],
        slice_s: float,
        turn: Callable[[Side], None],
        *,
        backlogs: bool = False,
    ) -> list[Slice]:
        """Serve the sides in `order`, each with its profile, for `slice_s` each, in a closed loop. `turn` is called
        before each slice, to wake one DUT and stop the other. What is under way on a side waits for its next turn, as
        long as the profiles stay the same. Raise `GeneratorError` where the generator or a link broke.

        `backlogs`, for packets only: instead of a closed loop, show the DUT thousands of packets at once, again and
        again. Only the time counts in which the DUT works them off."""

    def forget(self) -> None:
        """Forget what is under way on both sides, after the DUTs' tables were emptied."""

    def close(self, side: Side | None = None) -> None:
        """Release the ports of a side, or of both, and forget what is under way. May be called twice."""


#: Fewer points say nothing: of six, all 15 slopes have to be positive.
LEAST_POINTS = 6
#: Of the normal distribution: a slope is above 0 in 99 of 100 cases of independent noise.
_Z = 2.326


def growth(points: Sequence[float], step_s: float, limit: float) -> float:
    """Return the growth per second of a backlog whose points are `step_s` seconds apart. Return 0 where the growth is
    not above `limit` over all points and over their second half (a backlog that grows at first and then stays does not
    grow), where it may be noise, or where there are too few points.

    The growth is the Theil-Sen slope, the median over all pairs of points: one stall, or errors in less than 29 % of
    the points, move it little. It may be noise where the lower end of its one-sided 99 % interval is not above 0 (Sen
    1968: from the variance of Kendall's statistic)."""
    count = len(points)
    if count < LEAST_POINTS or step_s <= 0:
        return 0.0
    slopes, late = _slopes(points) / step_s, _slopes(points[count // 2 :]) / step_s
    spread = _Z * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    lowest = slopes[max(0, round((len(slopes) - spread) / 2) - 1)]
    per_s = float(np.median(slopes))
    return per_s if min(per_s, np.median(late)) > limit and lowest > 0 else 0.0


def _slopes(points: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the slopes per step of all pairs of points, in ascending order."""
    values = np.asarray(points, dtype=np.float64)
    first, last = np.triu_indices(len(values), k=1)
    return np.sort((values[last] - values[first]) / (last - first))
