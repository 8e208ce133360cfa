"""A candidate and its base: both are set up again for each start, have their turns, and the starts are the samples.

Both are set up at once. Which one is wired first, and has the first slice, changes from start to start: what favours
that one favours each as often.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ctbench.base.errors import Crashed, TestbedError
from ctbench.measure import pairs, starts
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench, Code, Decision
from ctbench.measure.procedures.pair import AFRESH, MOST_MADE, WARM_UP, Pair, Slices, Turns, slices_of, with_slices
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord, StartRecord
from ctbench.testbed.pair import SideBySide
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import Profile

#: Seconds that it takes to set both up, as it was measured on 2 CPUs.
SET_UP_S = 4.0
#: Crashes of the candidate in a run that are no accident, while base lives.
CRASHES = 2


@dataclass(frozen=True)
class Starts(Pair):
    """Of two builds of one topology. Where they cannot stand side by side, each block of searches has both set up
    again."""

    found_out: tuple[str, ...] = ("of_build",)

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """As long as the first look, which decides most rows."""
        rounds = starts.ROUNDS[profile.kind] + WARM_UP
        return starts.FIRST_LOOK * (SET_UP_S + rounds * pairs.ROUND * self.slice_s)

    def _turns(self, bench: Bench) -> Turns:
        promised = bench.floor.limit(self.promise)
        if isinstance(bench.sides, SideBySide) and bench.again and promised is not None:
            return _Starts(bench, promised, starts.looks(bench.campaign.starts), self.slice_s)
        return super()._turns(bench)


def first(number: int) -> Side:
    """Which side is the first one in the start of this number, from 0 on. The last one of each look leaves the
    candidate as the side that other procedures go on with."""
    return "tested" if number % 2 else "other"


@dataclass
class _Starts(Turns):
    how = "side by side"
    counts = "starts"
    #: The log ratios over all time of each start, as `logs` has their middles.
    wholes: list[float] = field(default_factory=list, init=False)
    _made: list[StartRecord] = field(default_factory=list, init=False)
    _known: dict[Side, SideRecord] = field(default_factory=dict, init=False)
    #: What the last start found by itself.
    _last: LookRecord | None = field(default=None, init=False)
    #: Whether nothing came through the candidate in a start, while generator and base worked.
    _dead: bool = field(default=False, init=False)
    _crashed: int = field(default=0, init=False)
    #: Of those that were made, how many by an earlier gate.
    _earlier: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        assert self.promised is not None, "a row of a candidate has a promise"
        self.floor = self.promised
        self._before = [replace(known) for known in self.bench.scatter]
        looked = len(self.looks)
        if (known := self.bench.before) and self.bench.sides and known.goes_on_with(self.bench.sides.sides()):
            looked += known.shared_looks or len(known.looks)
            self._go_on(known)
        self._budget = starts.Budget(self.bench.gated_rows, looked)

    def _go_on(self, known: PairRecord) -> None:
        """From the starts of an earlier gate on: those that follow are looked at together with them."""
        for each in known.starts:
            self._count(each)
        self._earlier, self.backlogs = len(known.starts), known.served == "from backlogs"
        self.looks = [len(self.logs) + each for each in self.looks]
        self.notes[f"{len(self.logs)} of these starts were made by an earlier gate of this row."] = None

    def serve(self) -> tuple[str, str]:
        """The scatter of this row is what the next ones begin with."""
        found = super().serve()
        for known, logs in zip(self.bench.scatter, (self.logs, self.wholes), strict=True):
            known.add([] if self._dead else logs)
        return found

    def record(self) -> PairRecord:
        sees = self._middle.sees(self.floor, self.looks[-1]) if self._decides else None
        shared = {"gated_rows": self._budget.rows, "shared_looks": self._budget.looks, "before": self._earlier}
        return super().record().model_copy(update={"starts": self._made, "sees": sees, **shared})

    def decided(self, found: LookRecord, waited: Collection[Side]) -> bool | None:
        if self._dead:
            return False
        kept = starts.decide(self._middle, self._whole, self.floor) if self._decides else None
        if kept is None or not waited:
            return kept
        return None if ("other" if kept else "tested") in waited else kept

    def hopeless(self, found: LookRecord, waited: Collection[Side]) -> bool:
        if len(waited) == 2 and self.decided(found, ()) is None:
            return False  # more starts may show that they are alike
        return super().hopeless(found, waited)

    def no_slower_seen(self, found: LookRecord, waited: Collection[Side]) -> bool:
        return len(waited) == 2 and not self._dead and self.decided(found, ()) is True

    def broke(self, fault: str) -> Decision:
        if not self._crashed or len(self.bench.crashes) < CRASHES:
            return super().broke(fault)
        many = f"it crashed in {len(self.bench.crashes)} starts of this run, and base in none"
        return Decision(False, f"{many}: {fault}", code=Code.CRASHED)

    @property
    def would_decide(self) -> str:
        if self._needed <= len(self.logs):
            return ""
        if self.in_vain:
            return f"; even {starts.GIVEN_UP * self.looks[-1]} starts would not decide it"
        return f"; some {self._needed} starts would decide it, and it had {len(self.logs)}: --resume makes more"

    @property
    def in_vain(self) -> bool:
        return self._decides and starts.in_vain(self._middle, self._whole, self.floor, self.looks[-1])

    @property
    def _needed(self) -> int:
        """Starts that would decide it; 0 where that is not known."""
        return starts.needed(self._middle, self._whole, self.floor) if self._decides else 0

    @property
    def _decides(self) -> bool:
        return len(self.logs) >= starts.FIRST_LOOK

    @property
    def _middle(self) -> starts.Estimate:
        return starts.Estimate.of(self.logs, self._before[0], self._budget)

    @property
    def _whole(self) -> starts.Estimate:
        return starts.Estimate.of(self.wholes, self._before[1], self._budget)

    def serve_until(self, target: int) -> None:
        while len(self.logs) < target and len(self._made) < MOST_MADE * target and not self._dead:
            try:
                self._start()
            except Crashed as error:
                self._crashed += 1
                self.bench.crashes.append(str(error))
                if len(self.bench.crashes) >= CRASHES:
                    raise
                self.notes[f"A start does not count: {error}"] = None

    def _start(self) -> None:
        assert self.bench.again is not None
        number = len(self._made) - self._earlier + self._crashed
        pair = self.bench.again(number) if number else self.bench.sides
        if not isinstance(pair, SideBySide):
            raise TestbedError(f"Start {number + 1}: both builds stood side by side before, and do not any more.")
        # Tables of a million are filled again for more rounds than that, which takes some 20 s.
        rounds = AFRESH if pair.of_scale else starts.ROUNDS[self.bench.profile.kind]
        slices = Slices(self.bench, None, (rounds,), self.slice_s, pair, backlogs=self.backlogs)
        slices.serve_until(rounds)
        self.backlogs = slices.backlogs
        self._last = slices.estimate()
        self.notes |= slices.notes
        self._known |= pair.sides()
        self.counted += slices.counted
        sides = slices.sides()
        served = {side: known.serves.value if known.serves else 0.0 for side, known in sides.items()}
        self._count(
            StartRecord(
                first=pair.first,
                found=self._last,
                tested=served["tested"],
                other=served["other"],
                stalled=sides["tested"].stalled,
                lost=sides["tested"].lost,
                dropped=slices.dropped,
            )
        )

    def _count(self, start: StartRecord) -> None:
        self._made.append(start)
        if start.found is None or start.found.whole is None:
            self.dropped += 1
            return
        self.logs.append(math.log(start.found.value))
        self.wholes.append(math.log(max(start.found.whole.value, 1e-9)))
        self._dead = not start.tested

    def estimate(self) -> LookRecord | None:
        return starts.look(self._middle, self._whole) if self._decides and not self._dead else self._last

    def sides(self) -> Mapping[Side, SideRecord]:
        known = self._known or self.bench.sides.sides() if self.bench.sides else self._known
        return {side: with_slices(each, slices_of(self.counted, side)) for side, each in known.items()}
