"""A candidate and its base under the same open load, in turn (A B B A): the candidate has to hold what the base holds.

A closed loop measures what is served; an SLA promises what is held. The candidate has to serve the promised share of
its base's rate. The load is a share of that: the one at which the campaign's search begins. Where the base does not
hold the load, the candidate is not at fault, and less is offered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ctbench.measure.campaign import Campaign, SaturationSettings
from ctbench.measure.loads_in_turn import BothSides, TrialsInTurn, blocks, conditions_of, served_in_a_loop
from ctbench.measure.observation import Observation, Phase
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.measure.procedures.pair import BLOCK, SIDES
from ctbench.measure.procedures.rates import OfRate
from ctbench.measure.trial import Trials
from ctbench.results.evidence import PairRecord
from ctbench.results.metrics import RATES
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_turns, of_turns
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import Profile

#: Loads that are tried while they decide nothing.
LOADS = 3
#: Less is offered then. A candidate that lost more trials than its base at one load is not kept by holding less.
_GO_ON = (Code.BASE_TOO, Code.LOST_AT_TIMES, Code.INVALID)
#: Of the rate that a smoke floor promises, for rounding.
_EXACTLY = 1 - 1e-6


@dataclass(frozen=True)
class SameLoad(OfRate):
    """Trials in turn that decide whether a candidate holds its base's load, and with it a smoke floor, which every
    machine is promised."""

    how: SaturationSettings
    #: As `GateSettings.headroom`.
    headroom: float = 0.0
    name = "same-load"
    says = "offers a candidate and its base the same load in turn, which the candidate has to hold where the base does"

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Estimate the seconds of one block, which decides like builds."""
        return len(BLOCK) * self.how.final_duration

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Measure both in turn. Decide nothing where the served rate of a side is not known."""
        floor, sides = bench.floor, BothSides(bench, trials) if bench.sides else None
        if sides is None or not (serves := self._has_to_serve(bench, sides)):
            why = "what both builds serve is not known, so neither was offered a share of it"
            metrics = *conditions_of(bench), *floor.smoke_rates
            undecided = dict.fromkeys(metrics, Verdict(None, Code.NOTHING, why))
            return Outcome.nothing(self.metric(bench.profile), "dut", why, undecided)
        smoke = floor.load(self.headroom) if floor.smoke_rates else 0.0
        most = bench.campaign.load_range(bench.profile).max
        load, factor = min(max(self.how.first * serves, smoke), most), self.how.first
        tried: list[TrialsInTurn] = []
        while not tried or (len(tried) < LOADS and tried[-1].code in _GO_ON):
            tried.append(self._at(sides, load, blocks(bench.gated_rows)))
            load, factor = load * factor, factor * factor
        return self._outcome(bench, tried)

    def _has_to_serve(self, bench: Bench, sides: BothSides) -> float:
        """Return the rate that the candidate has to serve: the promised share of its base's rate, or its own rate where
        a lower one is accepted; 0 where the rate of a side is not known. Where the rates are from backlogs, the rate
        that the generator reaches in a closed loop with the base bounds it."""
        ours, base = (_serves(bench, side) for side in SIDES)
        if not ours or not base:
            return 0.0
        known, accepted = [base * min(1.0, bench.floor.limit("of_build") or 1.0)], bench.floor.accepted
        if accepted and "of_build" in accepted.covers:
            known.append(ours)
        if (pair := _pair_of(bench)) and pair.served == "from backlogs":
            known.append(served_in_a_loop(sides, "other", self.how.trial_duration))
        return min(known)

    def _at(self, sides: BothSides, load: float, most: int) -> TrialsInTurn:
        """Offer both sides a load, in at most `most` blocks, until it is decided. Set both up again before each block
        but the first."""

        def one(at: Bench, trials: Trials, phase: Phase) -> Observation:
            return trials.offer(at.runner, Rate(load), self.how.final_duration, phase)

        tried = TrialsInTurn(load)
        for block in range(most):
            if block:
                sides.begin_again()
            for side in BLOCK:
                if tried.adds(side, sides.make(side, one)) is Code.INVALID:
                    return tried
            made = len(tried.made["tested"])
            if found := by_turns(tried.lost("tested"), tried.lost("other"), made, most):
                tried.code = found
                break
        return tried

    def _outcome(self, bench: Bench, tried: Sequence[TrialsInTurn]) -> Outcome:
        metric, code = self.metric(bench.profile), _code_of(tried)
        tested = next(each.made["tested"] for each in tried if each.code is code)
        said, holds = "; ".join(each.sentence for each in tried), code is Code.HOLDS_AS_BASE
        if holds:
            proof = min((seen for seen in tested if seen.good), key=lambda seen: seen.trial.completed)
            most = max(proof.rate, _serves(bench, "tested") or 0.0)
            figure = Estimate(value=proof.rate, unit=metric.unit.name, low=proof.rate, high=most)
            figures = figures_of(proof, metric, figure)
        else:  # what was lost is not a rate that is held
            worst = min(tested, key=lambda seen: seen.trial.completed, default=None)
            figures = {name: each for name, each in figures_of(worst, metric).items() if name not in RATES}
        return Outcome(
            metric=metric,
            figures=figures,
            limited_by="generator" if code is Code.INVALID else "dut",
            reason=said,
            kept_conditions=holds,
            verdicts=_verdicts(bench, tried, said),
        )


def _code_of(tried: Sequence[TrialsInTurn]) -> Code:
    """Return the reason code of all loads. A lower load that the candidate held does not make up for trials that it
    alone lost."""
    last, lost = tried[-1].code, any(each.code is Code.LOST_AT_TIMES for each in tried)
    return Code.LOST_AT_TIMES if lost and last is not Code.HOLDS_LESS else last


def _verdicts(bench: Bench, tried: Sequence[TrialsInTurn], said: str) -> dict[str, Verdict]:
    """Return the verdicts by metric: on the conditions of trials, and on the rates of a smoke floor."""
    last, code, conditions, smoke = tried[-1], _code_of(tried), conditions_of(bench), bench.floor.smoke_rates
    found = dict.fromkeys((*conditions, *smoke), Verdict(None, code, said))
    if code is Code.HOLDS_LESS:
        return {name: found[name] for name in smoke} | last.misses(conditions or [*smoke], said)
    if code is Code.HOLDS_AS_BASE:
        kept, reached = of_turns(code, said), last.load >= _EXACTLY * bench.floor.load(0.0)
        # Less than the smoke floor was offered: as the first load was not held, or as no more could be.
        why = Code.NOTHING if tried[0].code is Code.HOLDS_AS_BASE else tried[0].code
        of_smoke = kept if reached else Verdict(None, why, said)
        found = dict.fromkeys(conditions, kept) | dict.fromkeys(smoke, of_smoke)
    return found


def _pair_of(bench: Bench) -> PairRecord | None:
    """Return the pair of candidate and base, which was measured last; None without one."""
    pairs = bench.earlier.evidence.pairs if bench.earlier else []
    return pairs[-1] if pairs else None


def _serves(bench: Bench, side: Side) -> float | None:
    """Return the rate that a side serves in its slices, in a closed loop or from backlogs, or holds where its turns
    were searches; None: not known."""
    pair = _pair_of(bench)
    return pair.sides[side].rate if pair else None
