"""The sustained rate: what a DUT holds with its table at the steady state, while sweeps remove as many entries as come.

RFC 9411 sustains a rate for 300 s. A trial of a second begins with an empty table and ends before an entry has gone.
"""

import math
import statistics
from dataclasses import replace

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import format_count, format_duration, format_rate
from ctbench.dut.base import CLOSED_S
from ctbench.measure.held import conclude
from ctbench.measure.loads_in_turn import MOST_LASTING, BothSides, TrialsInTurn, conditions_of, served_in_a_loop
from ctbench.measure.observation import Observation, Phase, hopeless, limits_in
from ctbench.measure.probe import TableEntries
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted, figures_by_name
from ctbench.measure.procedures.table_expiry import offer_little
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import CONNECTIONS, LASTS_S, METRICS
from ctbench.results.record import LimitedBy
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_long_turns, of_turns
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation

SUSTAINED = METRICS["sustained_cps"]
#: Sweeps that a trial lasts at least.
_SWEEPS = 2
#: The table is filled at so many times the rate, in that part of the time: the first sweep of the trial meets up to
#: half as much again as a sweep of the steady state.
_FILLED_AT = 2
#: Entries in the mean that the table may have, as a share of what there is before a sweep: more outlive their timeout.
_MOST_LEVEL = 1.1
#: Between two looks at the table, seconds.
_EVERY_S = 2.0
#: A search ends where the loads that held and did not are so near, as a factor.
_NEAR = 1.05
#: Trials of a search that a campaign makes of a candidate as well, at least.
_SEARCHES = 4
#: Of what a base serves in a closed loop, what a candidate is offered: some 80 to 90 % of what Open vSwitch 3.1 was
#: seen to sustain, of conntrack and of SNAT (docs/evidence/table-sustained.csv).
_OF_SERVED = 0.2


def _sustained(bench: Bench, trials: Trials) -> Outcome:
    """Try the promised rate, and search for the highest one where the campaign has time."""
    return _searched(bench, trials, bench.campaign.table.sustained)


def _searched(bench: Bench, trials: Trials, number: int) -> Outcome:
    """Search for the highest rate above the promise, in so many trials over two sweeps of a table that was filled
    first. Each load is the geometric mean of the loads that held and did not. Where none held, try the promise itself.
    Raise `ConfigError` where nothing is promised, `MissingResource` where the table has no room for it."""
    state, promised = _Steady(bench), bench.floor.limit(SUSTAINED.name)
    if promised is None:
        raise ConfigError("A sustained rate is measured, and none is promised.\n  Expected sustained_cps.")
    room, span = state.room, bench.campaign.load_range(bench.profile)
    if promised > room:
        raise MissingResource(f"{_limit_said(room)}, and {format_rate(promised)} are promised: promise less.")

    def attempt(per_s: float) -> Observation:
        """Make a trial, and repeat it once where it is invalid."""
        return trials.make("hold", lambda number: state.offer(trials, per_s, number), per_s, most=2)

    tried: list[Observation] = []
    low, most = promised, min(room, span.max)
    high = most
    while len(tried) < number and high > _NEAR * low and all(each.state != "invalid" for each in tried):
        seen = attempt(math.sqrt(low * high))
        tried.append(seen)
        low, high = (seen.load, high) if seen.good else (low, seen.load)
    if not any(each.good for each in tried):
        # A load above the promise that lasts would prove it: where none does, it is tried itself.
        tried.append(attempt(promised))
    best = max((each for each in tried if each.good), key=lambda each: each.load, default=None)
    lost = min((each for each in tried if not each.good), key=lambda each: each.load, default=None)
    limited_by: LimitedBy = "range" if number else "floor"
    if lost:
        limited_by = "generator" if lost.state == "invalid" else "dut"
    said = [f"{format_rate(best.load)} held for {format_duration(best.trial.counted_s)}"] if best else []
    if limited_by == "range" and room <= span.max:
        said.append(_limit_said(room))
    if lost:
        how = "says nothing" if lost.state == "invalid" else "did not hold"
        said.append(f"a trial at {format_rate(lost.load)} {how}: {lost.reason}")
    shown = best or tried[-1]
    values = _values(shown, shown.load if best else min(shown.rate, shown.load))
    found = conclude(
        bench, shown, (SUSTAINED,), values, "; ".join(said),
        right=best is not None, limited_by=limited_by, held=best is not None,
    )  # fmt: skip
    if best is None:
        return found
    # The lowest load that did not last is what the figure lies below; an invalid trial bounds nothing.
    bound = min((each.load for each in tried if each.state == "bad"), default=None)
    figure = Estimate(best.load, SUSTAINED.unit.name, best.load, bound)
    return replace(found, figures={**found.figures, SUSTAINED.name: figure})


def _expected_s(bench: Bench) -> float:
    """Estimate the seconds of the search's trials, or of that at the promise, each with the filling of the table."""
    state = _Steady(bench)
    return max(1, bench.campaign.table.sustained) * (state.filling_s + state.offered_s)


def _values(seen: Observation, rate: float) -> dict[str, float | None]:
    """Return the figures of a trial, by metric."""
    found = {name: seen.values.get(name) for name in (*limits_in(seen.conditions), "connect_time_p99")}
    return {SUSTAINED.name: rate, "table_level": _level(seen), **found}


def _level(seen: Observation) -> float | None:
    """Return the mean number of entries over the time that counts; None where the DUT could not tell."""
    (samples,) = seen.samples
    counted = max(1, int(seen.trial.counted_s / samples.every_s))
    known = [value for value in samples.values[-counted:] if value is not None]
    return statistics.fmean(known) if known else None


def _limit_said(room: float) -> str:
    return f"the table is the limit: its entries are enough for {format_rate(room)} with what a sweep leaves"


def _beside_base(bench: Bench, trials: Trials) -> Outcome:
    """Offer a candidate, in turn with its base, a load that the base sustains. Measure the candidate alone where the
    generator has no closed loop, that load is not above the promise, the base does not hold it, or a trial is invalid;
    also where the candidate holds it and the campaign has time for a search."""
    promised, sides = bench.floor.limit(SUSTAINED.name), BothSides(bench, trials)
    number = bench.campaign.table.sustained
    # A gate compares: only a campaign that has time for as many trials again looks for the highest rate as well.
    searched = number if number >= _SEARCHES else 0
    if promised is None or Saturation not in bench.generator.offers:
        return _searched(sides.at("tested"), trials, searched)
    serves = served_in_a_loop(sides, "other", bench.campaign.saturation_for(bench.profile).trial_duration)
    most = min(_Steady(sides.at("tested")).room, bench.campaign.load_range(bench.profile).max)
    load = min(_OF_SERVED * serves, most)
    if load <= promised:
        return _searched(sides.at("tested"), trials, searched)
    tried = _in_turn(sides, load)
    metrics, said, tested = conditions_of(bench), tried.sentence, tried.made["tested"]
    holds = tried.code is Code.HOLDS_AS_BASE
    if tried.code in (Code.BASE_TOO, Code.INVALID) or (holds and searched):
        found = _searched(sides.at("tested"), trials, searched)
        return replace(found, reason=f"{found.reason}; {said}")
    seen = next((each for each in tested if each.good is holds), tested[-1])
    kept = of_turns(tried.code, said) if holds else Verdict(None, tried.code, said)
    verdicts = dict.fromkeys((SUSTAINED.name, *metrics), kept)
    if tried.code is Code.HOLDS_LESS:
        verdicts = {SUSTAINED.name: kept} | tried.misses(metrics or [SUSTAINED.name], said)
    values = _values(seen, seen.load)
    figures = figures_by_name({name: each for name, each in values.items() if holds or name != SUSTAINED.name})
    return Outcome(SUSTAINED, figures, "floor" if holds else "dut", said, holds, verdicts=verdicts)


def _in_turn(sides: BothSides, per_s: float) -> TrialsInTurn:
    """Offer the candidate a load, and its base after each trial that the candidate lost. Set both up again for each
    further trial."""

    def one(at: Bench, trials: Trials, phase: Phase) -> Observation:
        state = _Steady(at)
        return trials.make(phase, lambda number: state.offer(trials, per_s, number), per_s, most=2)

    tried = TrialsInTurn(per_s)
    for turn in range(MOST_LASTING):
        if turn:
            sides.begin_again()
        seen = sides.make("tested", one)
        if tried.adds("tested", seen) or (not seen.good and tried.adds("other", sides.make("other", one))):
            break
        made = len(tried.made["tested"])
        if code := by_long_turns(tried.lost("tested"), tried.lost("other"), made, MOST_LASTING):
            tried.code = code
            break
    return tried


SUSTAINED_IN_TURN = Scripted(
    name="sustained-in-turn",
    says="offers a candidate, and where it loses its base, a rate that the base sustains, each with its table filled",
    found_out=(SUSTAINED.name,),
    script=_beside_base,
    loads=frozenset((Rate,)),
    abilities=frozenset({"connections"}),
)

SUSTAINED_RATE = Scripted(
    name="sustained-rate",
    says="fills the table to what a rate leaves in it, and offers that rate over two sweeps of the table or more",
    found_out=(SUSTAINED.name,),
    script=_sustained,
    expects=_expected_s,
    loads=frozenset((Rate,)),
    abilities=frozenset({"connections"}),
    promised=Promise("sustained rate", "table", "sustained", CONNECTIONS, in_turn=SUSTAINED_IN_TURN),
)


class _Steady:
    """The steady state of a bench at any rate: its times and its room."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut, self.profile = bench, bench.dut, bench.connections
        timeout_s = bench.topology.timeout_s or CLOSED_S
        self.sweep_s = self.dut.sweeps_within(timeout_s)
        #: Seconds that an entry stays without the sweep, and with it.
        self.remembered_s = self.profile.lifetime_s + timeout_s
        self.whole_s = self.remembered_s + self.sweep_s
        #: Seconds for which the table is filled, and for which a rate is offered then.
        self.filling_s = self.whole_s / _FILLED_AT
        self.offered_s = max(LASTS_S, _SWEEPS * self.sweep_s)

    @property
    def room(self) -> float:
        """The rate that the table has room for, per second, at its fullest: before the first sweep."""
        limits = [limit for limit in (self.dut.limit_now(), self.bench.most_held) if limit is not None]
        return min(limits, default=math.inf) / (self.whole_s + self.sweep_s / _FILLED_AT)

    def offer(self, trials: Trials, per_s: float, number: int) -> Observation:
        """Fill the table, then offer the rate in the trial of this `number`."""
        bench, generator, profile = self.bench, self.bench.generator, self.profile.at_rate(per_s)
        lost = min(limits_in(bench.conditions).values(), default=bench.campaign.loss_ratio)
        filled = 0

        def offer() -> Trial:
            nonlocal filled
            offer_little(bench, self.dut, per_s, self.remembered_s, self.sweep_s)
            generator.run_trial(profile, Rate(_FILLED_AT * per_s), self.filling_s)
            filled = self.dut.connections()
            if not any(problem.severity == "fatal" for problem in self.dut.health()):
                self.dut.begin_trial()  # what disturbed the filling does not void the trial
            load = Rate(per_s, hopeless(lost, per_s * self.offered_s))
            return generator.run_trial(profile, load, self.offered_s)

        runner = bench.runner_for(bench.conditions, TableEntries(self.dut.connections, every_s=_EVERY_S))
        seen = runner.watch(offer)
        expected = round(per_s * self.whole_s)
        moment = f"filled for {format_rate(per_s)}"
        trials.keep(table=[TableCount(trial=number, moment=moment, expected=expected, found=filled)])
        level, wrong = _level(seen), ""
        if level is not None and level > _MOST_LEVEL * expected:
            wrong = (
                f"entries outlive their timeout: the table has {format_count(level)} in the mean, where rate x "
                f"(lifetime + timeout + time between two sweeps) is {format_count(expected)}"
            )
        return replace(seen, wrong=wrong)
