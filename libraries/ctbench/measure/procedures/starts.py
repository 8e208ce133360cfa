"""The comparison of a candidate and its base by starts: each start sets both up again, and is one sample.

Both are set up at once. The side that is wired first, and has the first slice, changes from start to start, so that its
advantage falls on each as often. Where the two cannot stand side by side, blocks of searches take the place of starts.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ctbench.base.errors import Crashed, TestbedError
from ctbench.measure import duet, start_rule
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench
from ctbench.measure.procedures.pair import (
    AFRESH,
    MOST_MADE,
    SET_UP_S,
    SLICE_S,
    WARM_UP,
    Comparison,
    Pair,
    Searches,
    Slices,
    search_of_turns,
    with_slices,
)
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord, StartRecord
from ctbench.results.verdict import CRASHES, Verdict, by_crashes, by_ratio
from ctbench.testbed.two_sides import InTurn, SideBySide
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import Profile

#: So many times the samples of the last look, more of them are worth making.
_WORTH_MORE = 4
#: A ratio that has a logarithm, where nothing came through the candidate.
_LEAST = 1e-9


@dataclass(frozen=True)
class Starts(Pair):
    """The ratio of two builds of one topology, by starts. Where they cannot stand side by side, each block of searches
    sets both up again."""

    found_out: tuple[str, ...] = ("of_build",)

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Estimate the seconds of the first look, which decides most rows."""
        return start_rule.FIRST_LOOK * seconds_of_start(profile)

    def _comparison(self, bench: Bench) -> Comparison:
        promised, most = bench.floor.limit(self.promise), bench.campaign.starts
        if isinstance(bench.sides, InTurn):
            searches = Searches(bench, None, (), 0.0, bench.sides, search_of_turns(bench))
            return _Blocks(bench, promised, start_rule.looks(most), 0.0, searches)
        looks, seconds = start_rule.looks(most), seconds_of_start(bench.profile)
        if bench.more_starts.left_s >= (start_rule.FURTHER[0] - 1) * most * seconds:
            looks += [each * most for each in start_rule.FURTHER]
        return _Starts(bench, promised, looks, SLICE_S)


def seconds_of_start(profile: Profile) -> float:
    """Return the seconds of a start of two builds side by side."""
    return SET_UP_S + (start_rule.ROUNDS[profile.kind] + WARM_UP) * duet.ROUND * SLICE_S


def first(number: int) -> Side:
    """Return the side that is first in the start of this number, from 0 on. The last start of each look has the
    candidate first: later procedures go on with that side."""
    return "tested" if number % 2 else "other"


@dataclass
class _Samples(Comparison):
    """The samples of a candidate and its base. Both are set up again for each."""

    _made: list[StartRecord] = field(default_factory=list, init=False)
    #: What the last one found by itself.
    _last: LookRecord | None = field(default=None, init=False)
    #: Whether nothing came through the candidate in one, while generator and base worked.
    _dead: bool = field(default=False, init=False)
    _crashed: int = field(default=0, init=False)
    #: Of those that were made, how many by an earlier gate.
    _earlier: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        assert self.promised is not None, "a row of a candidate has a promise"
        self.floor = self.promised
        #: As many samples as any row may have.
        self._own = self.bench.campaign.starts
        self._before = [replace(known) for known in self.bench.scatter]
        self._budget = start_rule.Budget(self.bench.gated_rows, len(self.looks), len(self._figures))

    @property
    def _figures(self) -> list[list[float]]:
        """Log ratios of the samples that count, by figure that has to keep the floor."""
        return [self.logs]

    def begin(self) -> None:
        """Go on from the samples of an earlier gate of the same builds. Each look is then at all samples together."""
        known, sides = self.bench.before, self.bench.sides
        if known is None or sides is None or known.how != self.how or not known.goes_on_with(sides.sides()):
            return
        looked = len(self.looks) + (known.shared_looks or len(known.looks))
        self._budget = replace(self._budget, looks=looked)
        counted = [each for each in known.starts if each.found]
        for each in counted:
            self._count(each)
        self._earlier, self.backlogs = len(counted), known.served == "from backlogs"
        self.looks, self._own = [len(self.logs) + each for each in self.looks], len(self.logs) + self._own
        self.notes[f"{len(self.logs)} of these {self.counts} were made by an earlier gate of this row."] = None

    def serve(self) -> tuple[str, str]:
        """Serve as `Comparison.serve`, and add the scatter of this row for the rows that follow."""
        found = super().serve()
        for known, logs in zip(self.bench.scatter, self._figures, strict=False):
            known.add([] if self._dead else logs)
        return found

    def record(self) -> PairRecord:
        sees = self._estimates[0].sees(self.floor, max(self._own, len(self.logs))) if self._decides else None
        shared = {"gated_rows": self._budget.rows, "shared_looks": self._budget.looks, "before": self._earlier}
        return super().record().model_copy(update={"starts": self._made, "sees": sees, **shared})

    def decided(self, found: LookRecord, waited: Collection[Side]) -> bool | None:
        if self._dead or not self._decides:
            return by_ratio((), self.floor, silent=self._dead)
        return start_rule.decide(self._estimates, self.floor, waited)

    def hopeless(self, found: LookRecord, waited: Collection[Side]) -> bool:
        if len(waited) == 2 and self.decided(found, ()) is None:
            return False  # more samples may show that they are alike
        return super().hopeless(found, waited)

    def no_slower_seen(self, found: LookRecord, waited: Collection[Side]) -> bool:
        return len(waited) == 2 and not self._dead and self.decided(found, ()) is True

    def broke(self, fault: str) -> Verdict:
        return by_crashes(self._crashed, len(self.bench.crashes), self.counts, fault)

    @property
    def would_decide(self) -> str:
        if self._needed <= len(self.logs):
            return ""
        worth = self._needed <= _WORTH_MORE * self.looks[-1]
        more = ": the same command with the same --outputdir makes more" if worth else ""
        return f"; some {self._needed} {self.counts} would decide it, and it had {len(self.logs)}{more}"

    @property
    def in_vain(self) -> bool:
        # Where none of a look counts, hardly any of the next ones would.
        return bool(self._made) and not self.logs

    @property
    def _needed(self) -> int:
        """Number of samples that would decide the row; 0 where it is not known."""
        return max(each.needed(self.floor) for each in self._estimates) if self._decides else 0

    @property
    def _decides(self) -> bool:
        return len(self.logs) >= start_rule.FIRST_LOOK

    @property
    def _estimates(self) -> list[start_rule.Moderated]:
        """Estimates by figure, in the order of `_figures`."""
        known = zip(self._figures, self._before, strict=False)
        return [start_rule.Moderated.of(logs, before, self._budget) for logs, before in known]

    def serve_until(self, target: int) -> None:
        while len(self.logs) < target and len(self._made) < MOST_MADE * target and not self._dead:
            try:
                self._count(self._sample(len(self._made) - self._earlier + self._crashed))
            except Crashed as error:
                self._crashed += 1
                self.bench.crashes.append(str(error))
                if len(self.bench.crashes) >= CRASHES:
                    raise
                self.notes[f"One of the {self.counts} does not count: {error}"] = None

    @abstractmethod
    def _sample(self, number: int) -> StartRecord:
        """Set both up for sample `number`, from 0 on, and measure. Raise `Crashed` where the candidate crashed."""

    def _count(self, sample: StartRecord) -> None:
        """Record a sample, and add its log ratios to `_figures` where it counts."""
        self._made.append(sample)
        self._last = sample.found
        known = sample.found.both if sample.found else ()
        if len(known) < len(self._figures):
            self.dropped += 1
            return
        for logs, ratio in zip(self._figures, known, strict=False):
            logs.append(math.log(max(ratio.value, _LEAST)))
        self._dead = not sample.tested

    def estimate(self) -> LookRecord | None:
        if self._dead or not self._decides:
            return self._last
        return start_rule.look(len(self.logs), *(each.interval for each in self._estimates))


@dataclass
class _Starts(_Samples):
    """Starts of two builds that stand side by side and take turns for some seconds."""

    how = "side by side"
    counts = "starts"
    #: The log ratios over all time of each start, as `logs` has their middles.
    wholes: list[float] = field(default_factory=list, init=False)
    _known: dict[Side, SideRecord] = field(default_factory=dict, init=False)
    #: What the last start took, seconds.
    _seconds_of_one: float = field(default=0.0, init=False)

    @property
    def _figures(self) -> list[list[float]]:
        return [self.logs, self.wholes]

    def _may_go_on(self, looked: int, target: int) -> bool:
        if target <= self._own:
            return True
        # A start takes longer where many connections have to be known first.
        each = max(self._seconds_of_one, seconds_of_start(self.bench.profile))
        seconds = (target - len(self.logs)) * each
        return self._spend(seconds, self.bench.more_starts, "more of them", "more_starts")

    def _sample(self, number: int) -> StartRecord:
        began = time.monotonic()
        pair = self.bench.set_up_again(number) if number else self.bench.sides
        if not isinstance(pair, SideBySide):
            raise TestbedError(f"Start {number + 1}: both builds stood side by side before, and do not any more.")
        # Tables of a million are filled again for more rounds than that, which takes some 20 s.
        rounds = AFRESH if pair.differs_in_scale else start_rule.ROUNDS[self.bench.profile.kind]
        slices = Slices(self.bench, None, (rounds,), self.slice_s, pair, backlogs=self.backlogs)
        slices.serve_until(rounds)
        self.backlogs = slices.backlogs
        self.notes |= slices.notes
        self._known |= pair.sides()
        self.counted += slices.counted
        sides = slices.sides()
        served = {side: known.serves.value if known.serves else 0.0 for side, known in sides.items()}
        self._seconds_of_one = time.monotonic() - began
        return StartRecord(
            first=pair.first,
            found=slices.estimate(),
            tested=served["tested"],
            other=served["other"],
            stalled=sides["tested"].stalled,
            lost=sides["tested"].lost,
            dropped=slices.dropped,
        )

    def sides(self) -> Mapping[Side, SideRecord]:
        known = self._known or self.bench.sides.sides() if self.bench.sides else self._known
        return with_slices(known, self.counted, self.bench.rate_metric)


@dataclass
class _Blocks(_Samples):
    """Blocks of searches in a lab, where one DUT is set up as each build in turn."""

    searches: Searches
    #: Crashes after which it was.
    _replaced: int = field(default=0, init=False)

    how = "reconfigured"
    counts = "blocks"
    dropped_as = Searches.dropped_as

    def __post_init__(self) -> None:
        super().__post_init__()
        self.trials, self.notes = self.searches.trials, self.searches.notes

    def begin(self) -> None:
        """Set the base up before the samples of an earlier gate are compared: its program is known only then."""
        if self.bench.before:
            self.searches.in_turn.turn(first(0))
        super().begin()

    def _sample(self, number: int) -> StartRecord:
        if self._crashed > self._replaced:  # what died is replaced
            sides, self._replaced = self.bench.set_up_again(number), self._crashed
            assert isinstance(sides, InTurn), "two did not stand side by side before"
            self.searches.in_turn = sides
        found = self.searches.block(first(number))
        if found is None:
            return StartRecord(first=first(number), found=None, tested=0.0, other=0.0)
        ratio = found["tested"] / found["other"]
        alone = LookRecord(ratio, "ratio", ratio, ratio, rounds=1)
        return StartRecord(first=first(number), found=alone, tested=found["tested"], other=found["other"])

    def sides(self) -> Mapping[Side, SideRecord]:
        return self.searches.sides()
