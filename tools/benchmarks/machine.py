"""A simulated machine, whose speed hops as that of a shared one does, and rings in which a simulated DUT falls behind.

Nothing here measures anything, and no clock is asked: time is what the simulation says it is."""

import random
from dataclasses import dataclass, field

#: Speeds that a shared machine was seen to hop between in windows of 50 ms (343 k, 393 k and 475 k packets/s of the
#: same test), relative to their mean; and how long it stays at one, in seconds. Saturated trials of 0.5 to 1 s of such
#: a machine scatter by 9 % (standard deviation).
HOPPING = (0.85, 0.97, 1.18)
STAYS_S = (0.1, 1.0)
#: A flush and a ramp, seconds.
BETWEEN_TRIALS_S = 0.5
#: What a generator leaves in a ring at a point besides a backlog: packets that are on their way (seconds' worth of the
#: load, in the mean), and, in this share of the points, what a pause of the generator at most has piled up (seconds).
ON_THEIR_WAY_S, PAUSED, LONGEST_PAUSE_S = 0.0002, 0.05, 0.0074


@dataclass
class Machine:
    """How fast a machine is from moment to moment, relative to its mean: it stays at one of its speeds for a while,
    then hops to another one, without regard to what runs on it."""

    speeds: tuple[float, ...] = HOPPING
    stays_s: tuple[float, float] = STAYS_S
    seed: int | str = 0
    _left_s: float = 0.0
    _speed: float = 1.0

    def __post_init__(self) -> None:
        self.random = random.Random(f"machine {self.seed}")

    def run(self, seconds: float) -> float:
        """Let so much time pass; the mean speed in it."""
        done, left_s = 0.0, seconds
        while left_s > 0:
            if self._left_s <= 0:
                self._speed, self._left_s = self.random.choice(self.speeds), self.random.uniform(*self.stays_s)
            part_s = min(left_s, self._left_s)
            done += part_s * self._speed
            self._left_s -= part_s
            left_s -= part_s
        return done / seconds


def step_of(duration_s: float) -> float:
    """Seconds from one point of a simulated timeline to the next, as in the software generator."""
    return max(0.05, duration_s / 100)


def quiet() -> Machine:
    """A machine that nobody else uses: its speed never changes."""
    return Machine(speeds=(1.0,))


@dataclass
class Passage:
    """What became of the load of one trial that went through a ring; counts of connections or packets."""

    intended: int
    #: Due in the sustain phase and never come out.
    lost: float = 0.0
    #: For each point of the sustain phase: under way, and come out since the point before.
    under_way: list[int] = field(default_factory=list)
    served: list[int] = field(default_factory=list)


def through_ring(
    load: float, duration_s: float, capacity: float, ring: int, machine: Machine, dice: random.Random
) -> Passage:
    """Offer `load` to a DUT of this mean `capacity` (both per second) that reads from a ring of so many frames.

    What waits takes one frame, whether it is a packet or a connection. Before the sustain phase the load is there for
    0.2 s; after it what is left in the ring has 0.2 s to come out, as with packets."""
    passage = Passage(intended=round(load * duration_s))
    step_s = step_of(duration_s)
    before, during = max(1, round(0.2 / step_s)), round(duration_s / step_s)
    backlog, arrived = 0.0, load * step_s
    for step in range(before + during):
        left = max(0.0, backlog + arrived - capacity * machine.run(step_s) * step_s)
        overflow = max(0.0, left - ring)
        served, backlog = backlog + arrived - left, left - overflow
        if step >= before:
            passage.lost += overflow
            passage.served.append(round(served))
            passage.under_way.append(round(backlog + _on_their_way(load, dice)))
    passage.lost += max(0.0, backlog - capacity * machine.run(0.2) * 0.2)
    return passage


def _on_their_way(load: float, dice: random.Random) -> float:
    paused_s = dice.uniform(0, LONGEST_PAUSE_S) if dice.random() < PAUSED else 0.0
    return load * (dice.expovariate(1 / ON_THEIR_WAY_S) + paused_s)
