"""Two DUTs side by side that have their turns within one trial, a round (a slice of each) after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import fmean, median

from ctbench.base.errors import TestbedError
from ctbench.measure import pairs
from ctbench.measure.pair_found import Found, held_sides, tell
from ctbench.measure.pairs import Estimate
from ctbench.measure.procedure import Bench, PairBench
from ctbench.results.evidence import SideRecord
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import PacketProfile

#: Rounds after each flush that do not count: connection tables fill.
WARM_UP = 1
#: Rounds at most until each flow was seen.
_LONGEST_WARM_UP = 400
#: Rounds that are made at most, of which some may have to be dropped, as a multiple of those that a look waits for.
_MOST_MADE = 1.5


@dataclass
class SideBySide:
    """What was measured so far."""

    bench: Bench
    pair: PairBench
    #: Length of a turn, and the rounds after which the interval is looked at.
    slice_s: float
    looks: Sequence[int]
    #: Of each round that counts, and how many others were dropped.
    logs: list[float] = field(default_factory=list)
    dropped: int = 0
    _slices: list[Slice] = field(default_factory=list)
    _found: list[Estimate] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    #: Rounds that were made, for where the order goes on.
    _made: int = 0

    def measure(self) -> Found:
        """Look after more and more rounds, until the ratio is decided."""
        try:
            fault = self._measure()
        except TestbedError as error:
            fault = str(error)
        return Found(
            sides={side: self._told(side, known) for side, known in self.pair.sides().items()},
            how="side by side",
            ratios=[exp(log) for log in self.logs],
            dropped=self.dropped,
            looks=self._found,
            notes=list(self._notes),
            slice_s=self.slice_s,
            fault=fault,
        )

    def _measure(self) -> str:
        """Returns how a DUT broke; empty where none did."""
        for number, target in enumerate(self.looks, 1):
            self.pair.flush()
            self._warm_up()
            self._fill_up(target)
            problems = self.pair.health()
            self._notes |= dict.fromkeys(problem.text for problem in problems)
            if fatal := next((problem.text for problem in problems if problem.severity == "fatal"), ""):
                return fatal
            if found := pairs.estimate(self.logs, pairs.ERROR / len(self.looks)):
                self._found.append(found)
            if tell(self.bench, number, found, self._left_s(number), self._held_sides()):
                break
        return ""

    def _warm_up(self) -> None:
        """Until each side has seen every flow, both ways where there are two: creating its state is another
        measurement."""
        profile = self.bench.profile
        packets = profile.flows * profile.ways if isinstance(profile, PacketProfile) else 0
        seen = dict.fromkeys(("tested", "other"), 0)
        for made in range(0, _LONGEST_WARM_UP, WARM_UP):
            if made and min(seen.values()) >= packets:
                break
            for part in self._serve(WARM_UP):
                seen[part.side] += part.completed

    def _fill_up(self, target: int) -> None:
        """Have turns until so many rounds count, or too many had to be dropped."""
        while (missing := min(target - len(self.logs), round(_MOST_MADE * target) - self._tried)) > 0:
            for parts in pairs.rounds_of(self._serve(missing)):
                log = pairs.log_ratio(parts)
                if log is None:
                    self.dropped += 1
                else:
                    self.logs.append(log)
                    self._slices += parts

    @property
    def _tried(self) -> int:
        """Rounds made so far that could have counted."""
        return len(self.logs) + self.dropped

    def _serve(self, rounds: int) -> list[Slice]:
        order = pairs.turns(self._made, rounds)
        self._made += rounds
        return self.pair.run_slices(order, self.slice_s)

    def _left_s(self, number: int) -> float:
        """Seconds until the last look, after this one."""
        rounds = self.looks[-1] - self.looks[number - 1] + WARM_UP * (len(self.looks) - number)
        return rounds * pairs.ROUND * self.slice_s

    def _told(self, side: Side, known: SideRecord) -> SideRecord:
        """What a side is, with what it did."""
        own = [part for part in self._slices if part.side == side]
        lost, ended = sum(part.lost for part in own), sum(part.lost + part.completed for part in own)
        rate = median(part.rate for part in own) if own else None
        return known.model_copy(update={"rate": rate, "lost": lost / ended if ended else 0.0, "held": self._held(side)})

    def _held(self, side: Side) -> float:
        """Share of a side's time in which it waited for the generator."""
        own = [part.held for part in self._slices if part.side == side]
        return fmean(own) if own else 0.0

    def _held_sides(self) -> tuple[Side, ...]:
        return held_sides({"tested": self._held("tested"), "other": self._held("other")})
