"""Two simulated DUTs side by side on one simulated machine. Nothing here measures anything."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctbench.dut.base import Problem
from ctbench.results.evidence import SideRecord
from ctbench.testbed.two_sides import SideBySide
from ctbench.traffic.generator import Side, Slice

from .simulated import HealthyDut

#: At the beginning of each turn, not counted, seconds: as much of a slice of 50 ms as is settling.
SETTLING_S = 0.0125


@dataclass
class SimulatedPair(SideBySide):
    """Both sides run on the same machine."""

    #: What the tested side serves, relative to the other one; and the other one's rate, per second.
    ratio: float = 1.0
    rate: float = 400_000.0
    #: Standard deviation of a slice's own rate, relative.
    scatter: float = 0.0
    #: Share of the slices that something disturbed.
    disturbed: float = 0.0
    seed: int | str = 0
    keys: Mapping[Side, str] = field(
        default_factory=lambda: {"tested": "linux-router/forward/1cpu-1rxq", "other": "the same"}
    )
    first: Side = "tested"
    #: What tells their programs from others.
    programs: Mapping[Side, str] = field(default_factory=dict)
    #: The build that the other one is of.
    base: str = ""
    #: Each with its generator, for trials; whose turn it is.
    duts: Mapping[Side, Any] = field(default_factory=lambda: dict.fromkeys(("tested", "other"), HealthyDut()))
    having: Side = "tested"
    #: `SideBySide.known`, and whether each side is served alone.
    flows: Mapping[Side, int] = field(default_factory=lambda: {"tested": 0, "other": 0})
    alone: bool = False
    #: Whether both do the same to a packet.
    like: bool = True
    #: What the generator can serve in a closed loop, per second.
    generator: float = math.inf
    #: What it was asked for; how many of these slices were of backlogs, and whether the last ones are.
    order: list[Side] = field(default_factory=list)
    flushes: int = 0
    of_backlogs: int = 0
    backlogs: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(f"pair {self.seed}")

    def sides(self) -> Mapping[Side, SideRecord]:
        builds = {"other": self.base}
        return {
            side: SideRecord(key=key, build=builds.get(side, ""), program=self.programs.get(side, ""))
            for side, key in self.keys.items()
        }

    def turn(self, side: Side) -> tuple[Any, Any]:
        self.having = side
        return self.duts[side], self.duts[side]

    @property
    def known(self) -> Mapping[Side, int]:
        return self.flows

    @property
    def one_at_a_time(self) -> bool:
        return self.alone

    @property
    def of_like_code(self) -> bool:
        return self.like

    def count(self, side: Side) -> None: ...

    def speed(self, _seconds: float) -> float:
        """The mean speed of the machine while so much time passes, relative to its usual one."""
        return 1.0

    def flush(self) -> None:
        """Takes 20 ms."""
        self.flushes += 1
        self.speed(0.02)

    def run_slices(
        self, order: Sequence[Side], slice_s: float, *, before: bool = False, backlogs: bool = False
    ) -> list[Slice]:
        self.order += order
        self.backlogs = backlogs
        self.of_backlogs += len(order) if backlogs else 0
        return [self._slice(side, slice_s) for side in order]

    def health(self) -> list[Problem]:
        return []

    def _slice(self, side: Side, slice_s: float) -> Slice:
        self.speed(SETTLING_S)
        seconds = slice_s - SETTLING_S
        rate = self.rate * self.speed(seconds) * self.random.gauss(1, self.scatter)
        if self.random.random() < self.disturbed:
            rate *= self.random.gauss(1, 0.2)
        if side == "tested":
            rate *= self.ratio
        waited = 0.9 if rate > self.generator and not self.backlogs else 0.0
        if waited:
            rate = self.generator
        return Slice(side=side, seconds=seconds, completed=max(0, round(rate * seconds)), waited=waited)
