"""One start of two set-ups: both are served in turn, and give one ratio, tested to other, with its rounds.

The one engine for two things side by side. The ratio of two topologies, that of two builds, and each start of
`./run compare --installations` are measured by `measure_start`; several starts become the samples of a comparison in
`ctbench.compare.starts`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import fmean, median
from typing import ClassVar, Literal

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.measure import pairs
from ctbench.measure.campaign import SearchSettings
from ctbench.measure.procedure import Bench, Look
from ctbench.measure.procedures.rates import HighestRate
from ctbench.measure.search import expected
from ctbench.measure.trial import Expected, Step
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord
from ctbench.testbed.pair import InTurn, SideBySide
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import PacketProfile

#: Seconds of a turn: the shorter, the more of what the machine does falls on both sides alike; but one that stood
#: still, and whose caches the other one had, needs a while to be as fast as before.
SLICE_S = 0.05
#: Rounds where nothing is promised, and only the ratio is wanted.
WITHOUT_PROMISE = 48
#: Rounds after each flush that do not count: connection tables fill.
WARM_UP = 1
#: Rounds at most until each flow was seen.
_LONGEST_WARM_UP = 400
#: Rounds that are made at most, of which some may have to be dropped, as a multiple of those that a look waits for.
_MOST_MADE = 1.5
#: Share of its slices beyond which a side is said to have waited for the generator.
_MOST_WAITED = 0.5
#: Searches of a block. A drift that is straight falls on both sides alike, and the DUT is set up twice a block.
BLOCK: tuple[Side, ...] = ("tested", "other", "other", "tested")


@dataclass(frozen=True)
class StartRatio:
    """What one start of both sides says, in whichever way they were served."""

    pair: PairRecord
    #: Trials of the tested side, where searches were the samples.
    steps: tuple[Step, ...] = ()
    #: How a DUT or the generator broke; empty where none did.
    fault: str = ""
    #: Why there is no ratio, where nothing broke; empty where there is one.
    nothing: str = ""

    @property
    def sides(self) -> Mapping[Side, SideRecord]:
        """What the two are, with what they did."""
        return {"tested": self.pair.tested, "other": self.pair.other}

    @property
    def waited_for_generator(self) -> tuple[Side, ...]:
        """The sides that the generator could not keep busy."""
        return _waited({side: known.held for side, known in self.sides.items()})


def measure_start(bench: Bench, slice_s: float = SLICE_S, looks: Sequence[int] | None = None) -> StartRatio:
    """Serve the two sides of a bench, both of which are set up, until their ratio decides what is promised, or there is
    no time left. `looks`: rounds after which the interval is looked at where both stand side by side (None: as many as
    the promise needs, else `WITHOUT_PROMISE`). A DUT that breaks is a `fault`. `ConfigError` where the bench has
    nothing to compare with."""
    if isinstance(bench.sides, SideBySide):
        default = pairs.LOOKS if bench.promised_ratio is not None else (WITHOUT_PROMISE,)
        return _Slices(bench, looks or default, slice_s, bench.sides).measure()
    if bench.sides is not None:
        how = bench.campaign.search_for(bench.profile, closed_loop=False)
        return _Searches(bench, pairs.BLOCK_LOOKS, 0.0, bench.sides, how).measure()
    raise ConfigError("A ratio is asked for, and there is nothing to compare with.\n  Expected two set-ups.")


def decide(found: LookRecord, promised: float | None, waited: Collection[Side] = ()) -> bool | None:
    """Whether a promise is kept: all of the interval keeps it, or none of it does. None: go on.

    `waited`: sides that waited for the generator. These may be faster than was seen, so with the other one among them
    the ratio is the most that it can be, and with the tested one the least.
    """
    if promised is None:
        return None
    if found.low >= promised:
        return None if "other" in waited else True
    if found.high < promised:
        return None if "tested" in waited else False
    return None


def hopeless(found: LookRecord, promised: float | None, waited: Collection[Side]) -> bool:
    """Whether a promise stays undecided, however long it is looked at, because of the generator."""
    if promised is None or not waited:
        return False
    return len(waited) == 2 or (found.low >= promised if "other" in waited else found.high < promised)


def _waited(shares: Mapping[Side, float]) -> tuple[Side, ...]:
    """The sides that waited for the generator for most of their time, by the share in which they did."""
    return tuple(side for side, share in shares.items() if share > _MOST_WAITED)


@dataclass
class _Turns(ABC):
    """Two sides that have their turns, and what was measured of them so far."""

    bench: Bench
    #: Rounds (blocks) after which the interval is looked at.
    looks: Sequence[int]
    #: Length of a turn, seconds; 0 where a turn is a search.
    slice_s: float
    how: ClassVar[Literal["side by side", "reconfigured"]]
    #: Of each round that counts, and how many others were dropped.
    logs: list[float] = field(default_factory=list, init=False)
    dropped: int = field(default=0, init=False)
    found: list[LookRecord] = field(default_factory=list, init=False)
    notes: dict[str, None] = field(default_factory=dict, init=False)
    steps: list[Step] = field(default_factory=list, init=False)

    def measure(self) -> StartRatio:
        """Look after more and more rounds, until the ratio is decided."""
        fault = nothing = ""
        try:
            self._measure()
        except MissingResource as error:
            nothing = str(error)
        except TestbedError as error:
            fault = str(error)
        sides = self._sides()
        pair = PairRecord(
            tested=sides["tested"],
            other=sides["other"],
            how=self.how,
            slice_s=self.slice_s,
            ratios=[exp(each) for each in self.logs],
            dropped=self.dropped,
            looks=self.found,
            notes=list(self.notes),
        )
        return StartRatio(pair, tuple(self.steps), fault, nothing)

    def _measure(self) -> None:
        for number, target in enumerate(self.looks, 1):
            self._serve_until(target)
            if found := self._estimate():
                self.found.append(found)
            if self._tell(number, found):
                break

    def _tell(self, number: int, found: LookRecord | None) -> bool:
        """Say where the ratio stands. Returns whether that is the end: it decides what is promised, or nothing will."""
        promised, waited = self.bench.promised_ratio, self._waited_for_generator()
        ends = found is not None and (decide(found, promised, waited) is not None or hopeless(found, promised, waited))
        self.bench.on_look(Look(number, found, promised, ends, 0.0 if ends else self._left_s(number)))
        return ends

    def _waited_for_generator(self) -> tuple[Side, ...]:
        return ()

    @abstractmethod
    def _serve_until(self, target: int) -> None:
        """Have turns until so many rounds count, or too many had to be dropped. `TestbedError` where a DUT or the
        generator broke, `MissingResource` where a side cannot be set up."""

    @abstractmethod
    def _estimate(self) -> LookRecord | None:
        """The ratio by the rounds so far; None for too few."""

    @abstractmethod
    def _left_s(self, number: int) -> float:
        """Seconds until the last look, after this one."""

    @abstractmethod
    def _sides(self) -> Mapping[Side, SideRecord]:
        """What the sides are, with what they did."""


@dataclass
class _Slices(_Turns):
    """Both stand side by side and have their turns within one trial, a round (a slice of each) after the other."""

    pair: SideBySide
    _slices: list[Slice] = field(default_factory=list, init=False)
    #: Rounds that were made, for where the order goes on.
    _made: int = field(default=0, init=False)

    how = "side by side"

    def _serve_until(self, target: int) -> None:
        self.pair.flush()
        self._warm_up()
        while (missing := min(target - len(self.logs), round(_MOST_MADE * target) - len(self.logs) - self.dropped)) > 0:
            for parts in pairs.rounds_of(self._serve(missing)):
                if (ratio := pairs.log_ratio(parts)) is None:
                    self.dropped += 1
                else:
                    self.logs.append(ratio)
                    self._slices += parts
        problems = self.pair.health()
        self.notes |= dict.fromkeys(problem.text for problem in problems)
        if fatal := next((problem.text for problem in problems if problem.severity == "fatal"), ""):
            raise TestbedError(fatal)

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

    def _serve(self, rounds: int) -> list[Slice]:
        order = pairs.turns(self._made, rounds)
        self._made += rounds
        return self.pair.run_slices(order, self.slice_s)

    def _estimate(self) -> LookRecord | None:
        return pairs.estimate(self.logs, pairs.ERROR / len(self.looks))

    def _left_s(self, number: int) -> float:
        rounds = self.looks[-1] - self.looks[number - 1] + WARM_UP * (len(self.looks) - number)
        return rounds * pairs.ROUND * self.slice_s

    def _sides(self) -> Mapping[Side, SideRecord]:
        return {side: self._told(side, known) for side, known in self.pair.sides().items()}

    def _told(self, side: Side, known: SideRecord) -> SideRecord:
        own = [part for part in self._slices if part.side == side]
        lost, ended = sum(part.lost for part in own), sum(part.lost + part.completed for part in own)
        rate = median(part.rate for part in own) if own else None
        waited = self._share_waited(side)
        return known.model_copy(update={"rate": rate, "lost": lost / ended if ended else 0.0, "held": waited})

    def _share_waited(self, side: Side) -> float:
        """Share of a side's time in which it waited for the generator."""
        own = [part.waited for part in self._slices if part.side == side]
        return fmean(own) if own else 0.0

    def _waited_for_generator(self) -> tuple[Side, ...]:
        return _waited({"tested": self._share_waited("tested"), "other": self._share_waited("other")})


@dataclass
class _Searches(_Turns):
    """One DUT that is set up again for each turn, which is a search: A B B A, a block after the other.

    This is for a lab, where two DUTs cannot stand side by side. Minutes lie between the turns, so a block's ratio
    scatters as searches do, and the interval says so.
    """

    turns: InTurn
    search: SearchSettings
    _rates: dict[Side, list[float]] = field(default_factory=lambda: {"tested": [], "other": []}, init=False)
    _number: int = field(default=0, init=False)

    how = "reconfigured"

    def __post_init__(self) -> None:
        self.notes[self.turns.why] = None

    def _serve_until(self, target: int) -> None:
        for made in range(len(self.logs) + self.dropped, target):
            self._block(self.looks[-1] - made - 1)

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
                self.steps.append(numbered)
            self.bench.on_trial(numbered)

        hint = self._rates[side][-1] if self._rates[side] else self.bench.hint if side == "tested" else None
        at = replace(self.bench, dut=dut, generator=generator, on_trial=on_trial, floor_load=None, hint=hint, probes=())
        found = HighestRate(self.search).run(at)
        if found.limited_by == "fault":
            raise TestbedError(found.reason)
        if found.limited_by != "dut" or found.result is None:
            self.notes[f"A turn of {self.turns.sides()[side].key} does not count: {found.reason.rstrip('.')}."] = None
            return 0.0
        return found.result.value

    def _estimate(self) -> LookRecord | None:
        return pairs.estimate_of_blocks(self.logs)

    def _left_s(self, number: int) -> float:
        return self._expected(self.looks[-1] - self.looks[number - 1]).traffic_s

    def _expected(self, blocks: int) -> Expected:
        span = self.bench.campaign.load_range(self.bench.profile)
        return expected(self.search, span).times(len(BLOCK) * blocks)

    def _sides(self) -> Mapping[Side, SideRecord]:
        rates = {side: median(found) if found else None for side, found in self._rates.items()}
        return {side: known.model_copy(update={"rate": rates[side]}) for side, known in self.turns.sides().items()}
