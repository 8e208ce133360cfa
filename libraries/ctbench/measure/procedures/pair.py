"""The ratio of two set-ups that take turns, with looks until it decides what is promised (duet benchmarking).

One engine serves two comparisons: the ratio of two topologies, and each start of two builds. Several starts are the
samples of a comparison of builds: `ctbench.measure.procedures.starts`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import fmean, geometric_mean, median
from typing import ClassVar, Literal

from ctbench.base.errors import Crashed, MissingResource, TestbedError
from ctbench.base.units import format_rate, format_ratio
from ctbench.measure import duet, start_rule
from ctbench.measure.campaign import Campaign, SaturationSettings, SearchSettings
from ctbench.measure.observation import Observation, limits_in
from ctbench.measure.procedure import Bench, BenchProcedure, Look, Outcome
from ctbench.measure.procedures.rates import HighestRate, search_s
from ctbench.measure.trial import Repetitions, Trials
from ctbench.results.evidence import LookRecord, PairRecord, SideRecord
from ctbench.results.floor import build_in_words
from ctbench.results.metrics import METRICS, SATURATION_OF, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_interval, by_ratio, of_ratio
from ctbench.testbed.two_sides import InTurn, SideBySide
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

#: Seconds of a turn: the shorter, the more of what the machine does falls on both sides alike; but one that stood
#: still, and whose caches the other one had, needs a while to be as fast as before.
SLICE_S = 0.05
#: Rounds where nothing is promised, and only the ratio is wanted.
WITHOUT_PROMISE = 48
#: Rounds after each flush that do not count: connection tables fill.
WARM_UP = 1
#: Rounds after which a side through which nothing came is not waited for.
_SILENT = 20
#: Rounds at most until each flow was seen.
_LONGEST_WARM_UP = 400
#: Rounds with new connections next to many, after which both tables are filled again: those that are new stay until a
#: sweep, and are not to be as many as the others.
AFRESH = 16
#: Seconds of a turn for which a table is filled alone, which takes seconds, and how many looks there are time for.
_APART_S, _APART_LOOKS = 0.3, 2
#: Rounds that are made at most, of which some may have to be dropped, as a multiple of those that a look waits for.
MOST_MADE = 1.5
#: Looks that a pair has in any case; those after it take of the run's time for repeating.
OWN_LOOKS = 2
#: Share of its time from which on it is said that a side stood still.
WORTH_SAYING = 0.01
#: Share of its slices beyond which a side is said to have waited for the generator.
MOST_WAITED = 0.5
SIDES: tuple[Side, Side] = ("tested", "other")
#: Searches of a block. A drift that is straight falls on both sides alike.
BLOCK: tuple[Side, ...] = ("tested", "other", "other", "tested")
_EXCHANGED: tuple[Side, ...] = ("other", "tested", "tested", "other")
#: Seconds that it takes to set both up, as it was measured on 2 CPUs.
SET_UP_S = 2.4
#: The loads that end a turn's search are so near to each other, relative to the lower one. Farther apart, two like
#: builds may end at neighbouring loads in each block: with 10 % a simulated one that was 0.4 % slower was found 4.6 %
#: slower in each, and missed.
NEAR = 0.02
#: Trials that a turn's search may have, as it is finer than others.
_LEAST_TRIALS = 24


@dataclass(frozen=True)
class Pair(BenchProcedure):
    """The ratio of the bench's two `sides`: they stand side by side, or one DUT is set up as each in turn."""

    found_out: tuple[str, ...] = ("ratio",)
    #: Rounds after which the interval is looked at; None: as many as the promise needs.
    looks: Sequence[int] | None = None
    name = "pair"
    says = "measures two set-ups in turn, and looks at the interval of their ratio until that decides what is promised"

    @property
    def promise(self) -> str:
        """The metric that the ratio decides."""
        return self.found_out[0]

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Estimate the seconds of the first look side by side, which decides most ratios."""
        return (duet.LOOKS[0] + 2 * WARM_UP) * duet.ROUND * SLICE_S

    def expected_at(self, bench: Bench) -> float:
        """Estimate the seconds of the first look at a bench: at blocks, where both are set up in turn."""
        if isinstance(bench.sides, SideBySide):
            return super().expected_at(bench)
        search = search_s(search_of_turns(bench), bench.campaign.load_range(bench.profile))
        return start_rule.FIRST_LOOK * (2 * SET_UP_S + len(BLOCK) * search)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Measure the ratio. Raise `ConfigError` where the bench has nothing to compare with."""
        metric, comparison = self.metric(bench.profile), self._comparison(bench)
        fault, nothing = comparison.serve()
        pair = comparison.record()
        trials.made += comparison.trials
        trials.keep(pairs=[pair])
        waited = comparison.waited()
        figures: dict[str, Estimate] = {}
        verdicts: dict[str, Verdict] = {}
        # Without a promise only the ratio is wanted, and that of the generator to itself says nothing.
        last = None if fault or (waited and comparison.promised is None) else pair.result
        if last:
            shown = last.speaks(comparison.promised)
            figures[metric.name] = Estimate(shown.value, metric.unit.name, shown.low, shown.high)
            in_a_loop = "tested" not in waited and not comparison.backlogs
            if (served := pair.tested.serves) and served.value and in_a_loop:
                saturation = SATURATION_OF[bench.profile.kind]
                limit = bench.floor.limit(saturation.name)
                of_served = by_interval(saturation, served, limit, "turns in the pair")
                if not any(each.kept is None for each in of_served.values()):  # else closed loops decide
                    figures[saturation.name] = served
                    verdicts |= of_served
        if fault:
            verdict = comparison.broke(fault)
        elif not pair.result:
            verdict = Verdict(None, Code.NOTHING, nothing or _too_few(comparison))
        else:
            verdict = _verdict(comparison, pair, pair.result, waited)
        return Outcome(
            metric=metric,
            figures=figures,
            limited_by="fault" if fault else "generator" if waited and verdict.kept is None else "dut",
            reason=verdict.reason,
            kept_conditions=verdict.kept is True,
            verdicts=verdicts | ({} if comparison.promised is None else {metric.name: verdict}),
        )

    def _comparison(self, bench: Bench) -> "Comparison":
        """Return the turns: side by side, with the rounds that the promise needs, else `WITHOUT_PROMISE`; or
        searches."""
        promised = bench.floor.limit(self.promise)
        if isinstance(bench.sides, SideBySide):
            default = duet.LOOKS if promised is not None else (WITHOUT_PROMISE,)
            if bench.sides.one_at_a_time:
                return Slices(bench, promised, self.looks or default[:_APART_LOOKS], _APART_S, bench.sides)
            return Slices(bench, promised, self.looks or default, SLICE_S, bench.sides)
        assert bench.sides, "both are set up"
        looks = start_rule.looks(bench.campaign.starts if promised is not None else start_rule.FIRST_LOOK)
        return Searches(bench, promised, looks, 0.0, bench.sides, search_of_turns(bench))


def search_of_turns(bench: Bench) -> SearchSettings:
    """Return the search settings of a turn: the campaign's, with a relative width of `NEAR` at most."""
    how = bench.campaign.search_for(bench.profile, closed_loop=False)
    if isinstance(how, SaturationSettings) or how.relative_width is None or how.relative_width <= NEAR:
        return how
    finer = {"relative_width": NEAR, "max_iterations": max(how.max_iterations, _LEAST_TRIALS)}
    return how.model_copy(update=finer)


def _verdict(comparison: "Comparison", pair: PairRecord, last: LookRecord, waited: Collection[Side]) -> Verdict:
    found = of_ratio(
        comparison.decided(last, waited),
        alike=comparison.no_slower_seen(last, waited),
        limited=bool(waited) and (comparison.promised is None or comparison.hopeless(last, waited)),
        still=not pair.starts and (not pair.tested.rate or last.speaks(comparison.promised) is not last),
    )
    said = _in_words(last, pair.other, comparison.promised)
    if found.code is Code.NO_SLOWER_SEEN:
        serves = format_rate(min(each.serves.value for each in pair.sides.values() if each.serves))
        said = f"no slower than the traffic generator can see ({serves} of both; {said})"
    elif found.code is Code.GENERATOR:
        keys = " and of ".join(dict.fromkeys(pair.sides[side].key for side in waited))
        said = f"the traffic generator was the limit of {keys}, which may be faster ({said})"
    elif found.code is Code.TOO_CLOSE and comparison.promised is not None:
        said = f"too close to call on this machine ({said}){comparison.would_decide}{comparison.spent}"
    return replace(
        found, reason="; ".join([said, *comparison.remarks, *_stalls(pair), *_losses(pair, comparison.bench)])
    )


def _in_words(found: LookRecord, other: SideRecord, promised: float | None) -> str:
    """Describe a ratio: `101.2 % ± 2.3 % of linux-router/forward/1cpu-1rxq, at least 100 % promised`."""
    of = _named(other)
    least = "" if promised is None else f", at least {promised * 100:g} % promised"
    shown = found.speaks(promised)
    said = f"{shown.as_share(promised, tenths=True)} of {of}{least}"
    return said if shown is found else f"{said}, over all of the time (the middle is {found.value * 100:.1f} %)"


def _too_few(comparison: "Comparison") -> str:
    made, dropped = len(comparison.logs) + comparison.dropped, comparison.dropped
    return f"of {made} {comparison.counts}, {dropped} had to be dropped: {comparison.dropped_as}"


def _named(side: SideRecord) -> str:
    return build_in_words(side.build) if side.build else side.key


def _stalls(pair: PairRecord) -> list[str]:
    return [
        f"{_named(known)} stood still for {format_ratio(known.stalled)} of its time"
        for known in dict.fromkeys((pair.tested, pair.other))
        if known.stalled >= WORTH_SAYING
    ]


def _losses(pair: PairRecord, bench: Bench) -> list[str]:
    """Describe losses above the limit of a trial, although nothing was offered in excess."""
    limit, lost = min(limits_in(bench.conditions).values()), METRICS["loss_ratio"]
    return [
        f"{format_ratio(known.lost)} of the {bench.profile.kind} of {_named(known)} were lost in its turns (limit "
        f"{lost.format(limit)})"
        for known in dict.fromkeys((pair.tested, pair.other))
        if known.lost > limit
    ]


@dataclass
class Comparison(ABC):
    """The turns of two sides, and what was measured so far."""

    bench: Bench
    #: The ratio that is promised; None where none is, and only the ratio is wanted.
    promised: float | None
    #: Rounds (blocks) after which the interval is looked at.
    looks: Sequence[int]
    #: Length of a turn, seconds; 0 where a turn is a search.
    slice_s: float
    how: ClassVar[Literal["side by side", "reconfigured"]]
    #: What a look counts, and why one of them is dropped.
    counts: ClassVar[str] = "rounds"
    dropped_as: ClassVar[str] = "the traffic generator stood still meanwhile, or nothing came through either side"
    #: Whether packets come from backlogs, because the generator was the limit of a closed loop.
    backlogs: bool = field(default=False, kw_only=True)
    #: Of each round that counts, and how many others were dropped.
    logs: list[float] = field(default_factory=list, init=False)
    dropped: int = field(default=0, init=False)
    #: The slices that count; none where a turn is a search.
    counted: list[Slice] = field(default_factory=list, init=False)
    found: list[LookRecord] = field(default_factory=list, init=False)
    notes: dict[str, None] = field(default_factory=dict, init=False)
    trials: list[Observation] = field(default_factory=list, init=False)
    #: That the run had no time left to go on, as the end of a sentence; empty where it had.
    spent: str = field(default="", init=False)

    def serve(self) -> tuple[str, str]:
        """Serve more and more rounds, with a look after each target, until the ratio is decided. Return the fault of a
        DUT or the generator, and the reason why there is no ratio without a fault; each may be empty."""
        try:
            self.begin()
            for number, target in enumerate(self.looks, 1):
                self.serve_until(target)
                if found := self.estimate():
                    self.found.append(found)
                if not self._goes_on(number, found):
                    break
        except MissingResource as error:
            return "", str(error)
        except TestbedError as error:
            return str(error), ""
        return "", ""

    def begin(self) -> None:
        """Prepare for the first look."""

    def record(self) -> PairRecord:
        """Return the evidence of the ratio."""
        sides = self.sides()
        return PairRecord(
            tested=sides["tested"],
            other=sides["other"],
            how=self.how,
            served="from backlogs" if self.backlogs else "in a closed loop",
            slice_s=self.slice_s,
            ratios=[exp(each) for each in self.logs],
            dropped=self.dropped,
            looks=self.found,
            notes=list(self.notes),
        )

    def decided(self, found: LookRecord, waited: Collection[Side]) -> bool | None:
        """Return whether the ratio keeps the promise, by its middle and by the whole; None where undecided."""
        if self.promised is None:
            return None
        return by_ratio([(each, True) for each in found.both], self.promised, waited)

    def hopeless(self, found: LookRecord, waited: Collection[Side]) -> bool:
        """Return whether the generator keeps a promise undecided at any number of looks."""
        if self.promised is None or not waited:
            return False
        return len(waited) == 2 or Comparison.decided(self, found, ()) is ("other" in waited)

    def no_slower_seen(self, found: LookRecord, waited: Collection[Side]) -> bool:
        """Return whether both sides are builds of one topology that wait for the generator alike. A build that is
        slower, and still faster than the generator, would not be seen."""
        return False

    def broke(self, fault: str) -> Verdict:
        """Return the verdict on the promise after a fault."""
        return Verdict(None, Code.FAULT, fault)

    @property
    def would_decide(self) -> str:
        """The number of samples that would decide the ratio, as the end of a sentence; empty where it is not known."""
        return ""

    @property
    def remarks(self) -> list[str]:
        """Remarks on the turns, where they were not in a closed loop side by side."""
        if self.how == "reconfigured":
            return [f"by {len(self.logs)} blocks of searches, as the two cannot stand side by side"]
        return ["from backlogs, as the traffic generator was the limit of a closed loop"] if self.backlogs else []

    @property
    def in_vain(self) -> bool:
        """True where further rounds would decide nothing."""
        return False

    def _goes_on(self, number: int, found: LookRecord | None) -> bool:
        """Announce the look. Return whether another follows: the ratio is undecided, and may be decided by it."""
        waited = self.waited()
        ends = self.in_vain or (
            found is not None and (self.decided(found, waited) is not None or self.hopeless(found, waited))
        )
        goes_on = not ends and number < len(self.looks) and self._may_go_on(number, self.looks[number])
        self.bench.on_look(Look(number, found, self.promised, ends, goes_on, self.counts))
        return goes_on

    def waited(self) -> tuple[Side, ...]:
        """Return the sides that waited for the generator for most of their time."""
        waited = {side: [part.waited for part in slices_of(self.counted, side)] for side in SIDES}
        return tuple(side for side, shares in waited.items() if shares and fmean(shares) > MOST_WAITED)

    def _may_go_on(self, looked: int, target: int) -> bool:
        """Return whether the run has the time, after so many looks, to go on until so many rounds count."""
        return True

    def _spend(self, seconds: float, left: Repetitions, what: str, key: str) -> bool:
        """Take time of what the run has `left` for something (campaign `key`). Return whether it had as much."""
        granted = left.spend(seconds)
        self.spent = "" if granted else f"; the run's time for {what} ({key}, in its campaign) was spent"
        return granted

    @abstractmethod
    def serve_until(self, target: int) -> None:
        """Serve turns until so many rounds count, or too many had to be dropped. Raise `TestbedError` where a DUT or
        the generator broke, `MissingResource` where a side cannot be set up."""

    @abstractmethod
    def estimate(self) -> LookRecord | None:
        """Return the ratio by the rounds so far; None for too few."""

    @abstractmethod
    def sides(self) -> Mapping[Side, SideRecord]:
        """Return the records of both sides, with their rates."""


@dataclass
class Slices(Comparison):
    """Turns of two sides that stand side by side, within one trial: one round (a slice of each) after the other."""

    pair: SideBySide
    #: Rounds that were made, for where the order goes on.
    _made: int = field(default=0, init=False)

    how = "side by side"

    def _may_go_on(self, looked: int, target: int) -> bool:
        seconds = (target - len(self.logs)) * duet.ROUND * self.slice_s
        return looked < OWN_LOOKS or self._spend(seconds, self.bench.repetitions, "going on", "repeating")

    def serve_until(self, target: int) -> None:
        """Serve in a closed loop. Where the generator is its limit and `_may_have_backlogs`, drop these rounds and
        serve both sides from backlogs."""
        self._serve_until(target)
        if self.waited() and self._may_have_backlogs():
            self.backlogs = True
            self.counted, self.logs, self.found, self.dropped = [], [], [], 0
            self._serve_until(target)

    def _may_have_backlogs(self) -> bool:
        """True for whole packets, like code and no difference of scale: packets of connections wait for each other.
        From a backlog, a packet takes up to 80 cycles less than in a closed loop, which a ratio of unlike code shows;
        and a million flows would be looked up in bursts."""
        likes, profile = self.pair.of_like_code and not self.pair.differs_in_scale, self.bench.profile
        whole = isinstance(profile, PacketProfile) and profile.fragments == 1  # a backlog is counted in frames
        return whole and likes and not self.backlogs

    def _serve_until(self, target: int) -> None:
        connections = isinstance(self.bench.profile, ConnectionProfile)
        afresh = self.pair.differs_in_scale and connections
        # Flows are known after the first look, and there are no more of them; of connections there are.
        begun = self._made > 0 and not connections
        while (missing := min(target - len(self.logs), round(MOST_MADE * target) - len(self.logs) - self.dropped)) > 0:
            if not self.pair.one_at_a_time and (afresh or not begun):
                self._begin(SIDES)
                begun = True
            for parts in duet.rounds_of(self._serve(min(missing, AFRESH) if afresh else missing)):
                spoilt, ratio = any(map(duet.spoilt, parts)), duet.log_ratio(parts)
                self.counted += [] if spoilt else parts
                if spoilt or ratio is None:
                    self.dropped += 1
                else:
                    self.logs.append(ratio)
        problems = self.pair.health()
        self.notes |= dict.fromkeys(problem.text for problem in problems)
        if fatal := next((problem.text for problem in problems if problem.severity == "fatal"), ""):
            raise TestbedError(fatal)
        if self.counted and not any(part.completed for part in self.counted if part.side == "other"):
            key = self.pair.sides()["other"].key
            raise TestbedError(f"Nothing comes through {key}, which the test is compared with.")

    def _begin(self, sides: Collection[Side]) -> None:
        """Empty the tables, then serve until each side has seen every flow, both ways where there are two: the creation
        of a flow's state is another measurement."""
        self.pair.flush()
        known, seen = self.pair.known, dict.fromkeys(sides, 0)
        for made in range(0, _LONGEST_WARM_UP, WARM_UP):
            short = [side for side in sides if not made or seen[side] < known[side]]
            if not short or (made >= _SILENT and not min(seen.values())):
                break
            order = [side for side in self._turns(WARM_UP) if side in short]
            for part in self.pair.run_slices(order, self.slice_s, before=True):
                seen[part.side] += part.completed
        if self.pair.differs_in_scale and min(seen.values()):
            for side in sides:
                self.pair.count(side)

    def _turns(self, rounds: int) -> list[Side]:
        self._made += rounds
        return duet.turns(self._made - rounds, rounds)

    def _serve(self, rounds: int) -> list[Slice]:
        if not self.pair.one_at_a_time:
            return self.pair.run_slices(self._turns(rounds), self.slice_s, backlogs=self.backlogs)
        made = []
        for side in self._turns(rounds):
            self._begin((side,))
            made += self.pair.run_slices((side,), self.slice_s)
        return made

    def estimate(self) -> LookRecord | None:
        error = duet.ERROR / len(self.looks)
        if (middle := duet.estimate(self.logs, error)) is None:
            return None
        return start_rule.look(len(self.logs), middle, duet.whole(self.counted, error))

    def sides(self) -> Mapping[Side, SideRecord]:
        return with_slices(self.pair.sides(), self.counted, self.bench.rate_metric)


def slices_of(slices: Sequence[Slice], side: Side) -> list[Slice]:
    """Return the slices of one side."""
    return [part for part in slices if part.side == side]


def with_slices(known: Mapping[Side, SideRecord], counted: Sequence[Slice], metric: Metric) -> dict[Side, SideRecord]:
    """Return the records of both sides, with the figures of their slices."""
    return {side: _with_own(each, slices_of(counted, side), metric) for side, each in known.items()}


def _with_own(known: SideRecord, own: Sequence[Slice], metric: Metric) -> SideRecord:
    lost, ended = sum(part.lost for part in own), sum(part.lost + part.completed for part in own)
    if not own:
        return known
    served = duet.serves([(part.completed, part.seconds) for part in own], metric.unit.name)
    return known.model_copy(
        update={
            "rate": served.value,
            "middle": median(part.rate for part in own),
            "serves": served,
            "stalled": duet.stalled(own),
            "lost": lost / ended if ended else 0.0,
            "held": fmean(part.waited for part in own),
        }
    )


@dataclass
class Searches(Comparison):
    """Turns of one DUT that is set up again for each: a turn is a search, and four make a block (A B B A).

    This is for a lab, where two DUTs cannot stand side by side. Minutes lie between the turns, so a block's ratio
    scatters as searches do. The interval follows from the scatter of this row, and of those before it.
    """

    in_turn: InTurn
    search: SearchSettings
    _rates: dict[Side, list[float]] = field(default_factory=lambda: {"tested": [], "other": []}, init=False)

    how = "reconfigured"
    counts = "blocks"
    dropped_as = "something else than the device under test was the limit of a search, or one found no load that holds"

    def __post_init__(self) -> None:
        self.notes[self.in_turn.why] = None
        self._before = replace(self.bench.scatter[0])

    def serve(self) -> tuple[str, str]:
        """Serve as `Comparison.serve`, and add the scatter of this row for the rows that follow."""
        found = super().serve()
        self.bench.scatter[0].add(self.logs)
        return found

    def serve_until(self, target: int) -> None:
        while len(self.logs) + self.dropped < target:
            found = self.block("tested")
            if found and found["tested"]:
                self.logs.append(log(found["tested"] / found["other"]))
            else:
                self.dropped += 1

    def block(self, first: Side) -> Mapping[Side, float] | None:
        """Search A, B, B and A, from the `first` side on. Return what each side holds, the mean of its searches: 0 for
        a tested side for which neither found a load that holds; None where a search did not tell. Raise `Crashed` where
        the tested side itself crashed, `TestbedError` for another fault, or where the other side holds no load."""
        rates: dict[Side, list[float]] = {"tested": [], "other": []}
        for side in BLOCK if first == "tested" else _EXCHANGED:
            if (found := self._search(side)) is None:
                return None
            rates[side].append(found)
        if not any(rates["other"]):
            key = self.in_turn.sides()["other"].key
            raise TestbedError(f"{key}, which the test is compared with, holds no load that the campaign tries.")
        if not all(rates["other"]) or (any(rates["tested"]) and not all(rates["tested"])):
            self.notes["A block does not count: a side held some load in one search, and none in the other."] = None
            return None
        for each, made in rates.items():
            self._rates[each] += filter(None, made)
        return {each: geometric_mean(made) if all(made) else 0.0 for each, made in rates.items()}

    def _search(self, side: Side) -> float | None:
        """Return the rate that a side holds; None where something other than the DUT was the limit, which is noted."""
        dut, generator = self.in_turn.turn(side)

        def on_trial(seen: Observation) -> None:
            if side == "tested":
                self.trials.append(replace(seen, number=len(self.trials) + 1))
            self.bench.on_trial(self.trials[-1] if side == "tested" else replace(seen, phase="base"))

        known = self._rates[side] or self._rates["other" if side == "tested" else "tested"]
        at = replace(
            self.bench,
            dut=dut,
            generator=generator,
            floor=self.bench.floor.of_trials,  # a promise says nothing of what a side holds
            on_trial=on_trial,
            hint=known[-1] if known else self.bench.hint,
        )
        found = HighestRate(self.search).run(at)
        if found.limited_by == "fault":
            raise (Crashed if side == "tested" and dut.crashed() else TestbedError)(found.reason)
        if found.limited_by != "dut" or found.result is None:
            self.notes[f"A turn of {self.in_turn.sides()[side].key} does not count: {found.reason.rstrip('.')}."] = None
            return None
        return found.result.value

    def estimate(self) -> LookRecord | None:
        if len(self.logs) < start_rule.FIRST_LOOK:
            return None
        middle = start_rule.Moderated.of(self.logs, self._before).within(duet.ERROR / 2 / len(self.looks))
        return start_rule.look(len(self.logs), middle)

    def sides(self) -> Mapping[Side, SideRecord]:
        rates = {side: median(found) if found else None for side, found in self._rates.items()}
        return {side: known.model_copy(update={"rate": rates[side]}) for side, known in self.in_turn.sides().items()}
