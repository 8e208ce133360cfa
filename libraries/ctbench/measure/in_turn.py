"""Two set-ups of one DUT that is set up again for each turn, which is a search: A B B A, a block after the other.

This is for a lab, where two DUTs cannot stand side by side. Minutes lie between the turns, so a block's ratio scatters
as searches do, and the interval says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import median

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.measure import pairs
from ctbench.measure.campaign import SearchSettings
from ctbench.measure.expected import Expected, expected
from ctbench.measure.pair_found import Found, tell
from ctbench.measure.pairs import Estimate
from ctbench.measure.procedure import Bench, Turns
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.trial import Step
from ctbench.traffic.generator import Side

#: A drift that is straight falls on both sides alike, and the DUT is set up twice a block.
BLOCK: tuple[Side, ...] = ("tested", "other", "other", "tested")


class _Broke(Exception):
    """A DUT or the generator broke in a search."""


@dataclass
class InTurn:
    """What was measured so far."""

    bench: Bench
    turns: Turns
    how: SearchSettings
    looks: Sequence[int] = pairs.BLOCK_LOOKS
    logs: list[float] = field(default_factory=list)
    dropped: int = 0
    _rates: dict[Side, list[float]] = field(default_factory=lambda: {"tested": [], "other": []})
    _found: list[Estimate] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    _steps: list[Step] = field(default_factory=list)
    _number: int = 0

    def measure(self) -> Found:
        """Look after three blocks, and once more after six where three do not decide."""
        fault = nothing = ""
        try:
            self._measure()
        except MissingResource as error:
            nothing = str(error)
        except (_Broke, TestbedError) as error:
            fault = str(error)
        sides = {
            side: known.model_copy(update={"rate": median(self._rates[side]) if self._rates[side] else None})
            for side, known in self.turns.sides().items()
        }
        return Found(
            sides=sides,
            how="reconfigured",
            ratios=[exp(each) for each in self.logs],
            dropped=self.dropped,
            looks=self._found,
            notes=[self.turns.why, *self._notes],
            steps=tuple(self._steps),
            fault=fault,
            nothing=nothing,
        )

    def _measure(self) -> None:
        for number, target in enumerate(self.looks, 1):
            for made in range(len(self.logs) + self.dropped, target):
                self._block(self.looks[-1] - made - 1)
            if found := pairs.estimate_of_blocks(self.logs):
                self._found.append(found)
            if tell(self.bench, number, found, self._expected(self.looks[-1] - target).traffic_s):
                break

    def _block(self, to_come: int) -> None:
        """Search A, B, B and A; the block counts where the DUT limited all four."""
        rates: dict[Side, list[float]] = {"tested": [], "other": []}
        for side in BLOCK:
            rates[side].append(self._search(side, to_come))
        if min(map(min, rates.values())) <= 0:
            self.dropped += 1
            return
        self.logs.append(sum(map(log, rates["tested"])) / 2 - sum(map(log, rates["other"])) / 2)
        for side, found in rates.items():
            self._rates[side] += found

    def _search(self, side: Side, to_come: int) -> float:
        """What a side holds; 0 where something else than the DUT was the limit, which is noted."""
        dut, generator = self.turns.turn(side)

        def on_trial(step: Step) -> None:
            self._number += 1
            numbered = replace(step, number=self._number, left_s=step.left_s + self._expected(to_come).traffic_s)
            if side == "tested":
                self._steps.append(numbered)
            self.bench.on_trial(numbered)

        hint = self._rates[side][-1] if self._rates[side] else self.bench.hint if side == "tested" else None
        at = replace(self.bench, dut=dut, generator=generator, on_trial=on_trial, floor_load=None, hint=hint, probes=())
        found = HighestRate(self.how).run(at)
        if found.limited_by == "fault":
            raise _Broke(found.reason)
        if found.limited_by != "dut" or found.result is None:
            self._notes[f"A turn of {self.turns.sides()[side].key} does not count: {found.reason.rstrip('.')}."] = None
            return 0.0
        return found.result.value

    def _expected(self, blocks: int) -> Expected:
        span = self.bench.campaign.load_range(self.bench.profile)
        return expected(self.how, span).times(len(BLOCK) * blocks)
