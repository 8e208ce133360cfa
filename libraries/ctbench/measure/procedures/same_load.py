"""A candidate and its base under the same open load, in turn (A B B A): what the base holds, the candidate has to hold.

A closed loop tells what is served; an SLA promises what is held. The load is the share of what both serve at which the
campaign's search begins. Where the base does not hold it, that is not the candidate's fault, and less is offered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_duration, format_rate
from ctbench.measure.campaign import Campaign, SaturationSettings
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, BenchProcedure, Code, Decision, Outcome, figures_of
from ctbench.measure.procedures.pair import BLOCK
from ctbench.measure.trial import TrialFault, Trials
from ctbench.results.evidence import PairRecord
from ctbench.results.metrics import RATE_OF, RATES, Metric
from ctbench.results.record_model import Figure
from ctbench.testbed.pair import InTurn, SideBySide
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import Rate, Saturation, saturating
from ctbench.traffic.profiles import Profile

#: Blocks at one load until they decide; and loads that are tried while the base does not hold them.
BLOCKS, LOADS = 3, 3
#: Of the rate that a smoke floor promises, for rounding.
_EXACTLY = 1 - 1e-6


def decide(lost: int, base_lost: int, made: int) -> Code | None:
    """What it says of a load that the candidate lost it in so many of `made` trials, and the base in so many of as
    many; None: go on with another block.

    The candidate is missed (`HOLDS_LESS`) only where it lost all trials of all blocks, and the base none. Of two like
    builds that each lose a trial with any chance p, this befalls at most 2^-12 (p = 1/2): 0.6 % of runs of 24 rows. It
    holds what the base holds where it lost no more trials than the base, or no more than a third.
    """
    if lost == base_lost == made:
        return Code.BASE_TOO
    if lost <= base_lost or 3 * lost <= made:
        return Code.HOLDS_AS_BASE
    if made < 2 * BLOCKS:
        return None
    if 2 * base_lost >= made:
        return Code.BASE_TOO
    return Code.HOLDS_LESS if lost == made and not base_lost else Code.LOST_AT_TIMES


@dataclass
class _Tried:
    """What came of one load."""

    load: float
    code: Code = Code.INVALID
    made: Mapping[Side, list[Observation]] = field(default_factory=lambda: {"tested": [], "other": []})
    #: Why trials say nothing of either; empty where they do.
    invalid: str = ""

    def held(self, side: Side) -> int:
        """Trials that a side held."""
        return sum(seen.good for seen in self.made[side])

    @property
    def said(self) -> str:
        """What happened, for a reason."""
        rate, of = format_rate(self.load), len(self.made["tested"])
        if self.code is Code.HOLDS_AS_BASE:
            return f"{rate} held for {format_duration(self.made['tested'][0].trial.counted_s)}, in turn with the base"
        if self.code is Code.INVALID:
            return f"at {rate} a trial says nothing: {self.invalid}"
        held = f"the candidate held {self.held('tested')}, and the base {self.held('other')}"
        return f"of {of} trials each at {rate}, in turn, {held}"


@dataclass(frozen=True)
class SameLoad(BenchProcedure):
    """Whether a candidate holds the load that its base holds, and with it a smoke floor, which any machine is
    promised."""

    how: SaturationSettings
    #: As `GateSettings.headroom`.
    headroom: float = 0.0
    #: The comparison that it follows.
    promise = "of_build"
    name = "same-load"
    says = "offers a candidate and its base the same load in turn, which the candidate has to hold where the base does"
    loads = frozenset((Rate,))
    found_out = RATES

    def metric(self, profile: Profile) -> Metric:
        return RATE_OF[profile.kind]

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Of one block, which decides what is alike."""
        return len(BLOCK) * self.how.final_duration

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Nothing is decided where it is not known what either serves."""
        floor, turns = bench.floor, _Turns(bench, trials, self.how) if bench.sides else None
        if turns is None or not (serves := turns.serve()):
            why = "what both builds serve is not known, so neither was offered a share of it"
            metrics = *_conditions(bench), *floor.smoke_rates
            undecided = dict.fromkeys(metrics, Decision(None, why, code=Code.NOTHING))
            return Outcome.nothing(self.metric(bench.profile), "dut", why, undecided)
        smoke = floor.load(self.headroom) if floor.smoke_rates else 0.0
        most = bench.campaign.load_range(bench.profile).max
        load, factor = min(max(self.how.first * serves, smoke), most), self.how.first
        tried: list[_Tried] = []
        while not tried or (len(tried) < LOADS and tried[-1].code in (Code.BASE_TOO, Code.INVALID)):
            tried.append(turns.at(load))
            load, factor = load * factor, factor * factor
        return self._outcome(bench, tried)

    def _outcome(self, bench: Bench, tried: Sequence[_Tried]) -> Outcome:
        metric, last, before = self.metric(bench.profile), tried[-1], tried[:-1]
        said, tested = "; ".join([last.said, *(each.said for each in before)]), last.made["tested"]
        holds = last.code is Code.HOLDS_AS_BASE
        if holds:
            proof = min((seen for seen in tested if seen.good), key=lambda seen: seen.trial.completed)
            figure = Figure(value=proof.rate, unit=metric.unit.name, low=proof.rate, high=_serves(bench, "tested"))
            figures = figures_of(proof, metric, figure)
        else:  # what was lost is not a rate that is held
            worst = min(tested, key=lambda seen: seen.trial.completed, default=None)
            figures = {name: each for name, each in figures_of(worst, metric).items() if name not in RATES}
        return Outcome(
            metric=metric,
            figures=figures,
            limited_by="generator" if last.code is Code.INVALID else "dut",
            reason=said,
            kept_conditions=holds,
            decisions=_decisions(bench, tried, said),
        )


def _conditions(bench: Bench) -> list[str]:
    return [name for name, each in bench.floor.thresholds.items() if not each.is_promise]


def _decisions(bench: Bench, tried: Sequence[_Tried], said: str) -> dict[str, Decision]:
    """By metric: of the conditions that trials have to keep, and of the rates of a smoke floor."""
    last, conditions, smoke = tried[-1], _conditions(bench), bench.floor.smoke_rates
    found = dict.fromkeys((*conditions, *smoke), Decision(None, said, code=last.code))
    if last.code is Code.HOLDS_LESS:  # a condition that no trial broke is judged by its figure
        broken = [name for name in conditions if any(name in seen.broken for seen in last.made["tested"])]
        lost = Decision(False, said, last.made["tested"][-1].reason, last.code)
        return {name: found[name] for name in smoke} | dict.fromkeys(broken or conditions or smoke, lost)
    if last.code is Code.HOLDS_AS_BASE:
        kept = Decision(True, said, code=last.code)
        found |= dict.fromkeys(conditions, kept)
        if last.load >= _EXACTLY * bench.floor.load(0.0):
            found |= dict.fromkeys(smoke, kept)
        else:
            found |= dict.fromkeys(smoke, Decision(None, said, code=tried[0].code))
    return found


def _pair_of(bench: Bench) -> PairRecord | None:
    """Of candidate and base, which was measured last."""
    pairs = bench.earlier.evidence.pairs if bench.earlier else []
    return pairs[-1] if pairs else None


def _serves(bench: Bench, side: Side) -> float | None:
    """What a side serves in a closed loop; where a turn was a search, what it holds. None where it is not known."""
    if (pair := _pair_of(bench)) is None:
        return None
    known = pair.tested if side == "tested" else pair.other
    return known.serves.value if known.serves else known.rate


@dataclass
class _Turns:
    """Candidate and base, offered the same in turn."""

    bench: Bench
    trials: Trials
    how: SaturationSettings

    def __post_init__(self) -> None:
        assert self.bench.sides, "both stand"
        self._sides: SideBySide | InTurn = self.bench.sides
        self._base = Trials(self.bench.on_trial, repetitions=self.bench.repetitions)
        self._set_up = 0

    def serve(self) -> float:
        """What both serve; 0 where that is not known. Where that was seen from backlogs only, what the generator keeps
        up with in a closed loop bounds it."""
        known = [_serves(self.bench, side) or 0.0 for side in ("tested", "other")]
        if all(known) and (pair := _pair_of(self.bench)) and pair.served == "from backlogs":
            known.append(self._offer("other", saturating(self.bench.profile), self.how.trial_duration).served)
        return min(known)

    def at(self, load: float) -> _Tried:
        """Offer both a load, until it is decided. A block that is not the first has both set up again, as a start
        decides for as long as it lasts where memory lies."""
        tried = _Tried(load)
        for block in range(BLOCKS):
            if block:
                self._begin_again()
            for side in BLOCK:
                seen = self._offer(side, Rate(load), self.how.final_duration)
                if seen.state == "invalid":
                    tried.invalid = seen.reason
                    return tried
                tried.made[side].append(seen)
            made = len(tried.made["tested"])
            if found := decide(made - tried.held("tested"), made - tried.held("other"), made):
                tried.code = found
                break
        return tried

    def _begin_again(self) -> None:
        if self.bench.again is None:
            return
        try:
            self._sides = self.bench.again(self._set_up) or self._sides
        except TestbedError as error:
            raise TrialFault(str(error)) from error
        self._set_up += 1

    def _offer(self, side: Side, load: Rate | Saturation, duration_s: float) -> Observation:
        try:
            dut, generator = self._sides.turn(side)
        except TestbedError as error:
            raise TrialFault(str(error)) from error
        runner = replace(self.bench, dut=dut, generator=generator).runner
        if side == "tested":
            return self.trials.offer(runner, load, duration_s, "in turn")
        made = len(self._base.made)
        try:
            return self._base.offer(runner, load, duration_s, "base")
        except TrialFault as fault:
            raise TrialFault(f"{fault} (of the base)") from fault
        finally:
            self.trials.keep(base_trials=[seen.as_record() for seen in self._base.made[made:]])
