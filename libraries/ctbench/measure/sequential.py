"""Wald's sequential test of trials (SPRT): whether a DUT holds a load, by evidence of equal weight in both directions.

Good and bad trials are counted. No trial is repeated or deleted because of its result. Invalid trials say nothing about
the DUT and do not count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Literal

from ctbench.base.units import format_rate, format_ratio
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Outcome, figures_of
from ctbench.measure.trial import TrialFault, TrialRunner, Trials
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import NEAR_CEILING, Code, Verdict, of_trials
from ctbench.traffic.loads import Rate

#: Trials that count at most; what they do not decide is too close to call.
MOST_TRIALS = 9
#: Farther than so many standard deviations from what is known of the DUT, one trial is enough.
FAR_SDS = 3
#: Standard deviation of the rate from trial to trial (relative): at least what a machine at rest was seen to have, and
#: at most what says something of a machine. Connections that end in bursts scatter more, whatever the machine does.
LEAST_SCATTER, MOST_SCATTER = 0.05, 0.2


def scatter(seen: Sequence[Observation]) -> float:
    """Return the scatter of this machine's rate (standard deviation, relative), from the parts of the closed-loop
    trials among `seen`: in these only the DUT's speed decides."""
    found = LEAST_SCATTER
    for trial in (each.trial for each in seen if each.trial.under_way):
        parts = trial.timeline_completed
        if len(parts) > 1 and mean(parts) > 0:
            found = max(found, stdev(parts) / mean(parts))
    return min(found, MOST_SCATTER)


@dataclass(frozen=True)
class KnownRates:
    """Knowledge of a DUT before a load is tried."""

    #: Rates at which it served or held, each its own limit; and rates that it does at least.
    rates: tuple[float, ...] = ()
    at_least: tuple[float, ...] = ()
    scatter: float = LEAST_SCATTER
    #: Trials of an open loop under the same conditions.
    trials: tuple[Observation, ...] = ()

    def nearest(self, load: float) -> float | None:
        """Return the known rate that is nearest to a load; None without one."""
        some = self.rates + tuple(rate for rate in self.at_least if rate > load)
        return min(some, key=lambda rate: abs(math.log(rate / load)), default=None)

    def far(self, load: float) -> bool | None:
        """Return True where all known rates lie far above a load, False where they lie far below it, else None."""
        rate = self.nearest(load)
        if rate is None or len({known > load for known in self.rates}) > 1:
            return None
        return rate > load if abs(math.log(rate / load)) > FAR_SDS * self.scatter else None

    def proof(self, load: float, duration_s: float, *, kept: bool) -> Observation | None:
        """Return a trial that confirms a decision: good, as long and at no lower load; or bad, at no higher load."""
        for seen in self.trials:
            as_long = seen.trial.duration_s >= duration_s * 0.999
            if kept and seen.state == "good" and seen.load >= load * 0.999 and as_long:
                return seen
            if not kept and seen.state == "bad" and seen.load <= load * 1.001:
                return seen
        return None

    def contradiction(self, load: float, *, kept: bool) -> str:
        """Return the earlier trial that seems to contradict a decision, in words for its reason; empty without one."""
        if kept:
            low = min((seen.load for seen in self.trials if seen.state == "bad" and seen.load < load), default=None)
            return f", although a trial at {format_rate(low)} had not" if low else ""
        high = max((seen.load for seen in self.trials if seen.good and seen.load >= load), default=None)
        return f", although a trial at {format_rate(high)} had held" if high else ""


#: What ended the trials where they did not decide.
_LIMITS: dict[Code, Literal["generator", "fault"]] = {
    Code.GENERATOR: "generator", Code.INVALID: "generator", Code.FAULT: "fault"
}  # fmt: skip


class SequentialTest:
    """One sequential test in progress. Its load covers every promised rate, so it decides on all of them."""

    def __init__(
        self,
        runner: TrialRunner,
        load: float,
        duration_s: float,
        known: KnownRates,
        trials: Trials | None = None,
        metric: Metric = METRICS["cps"],
    ) -> None:
        """`load`: the floor plus the campaign's headroom. `trials`: an empty recorder."""
        self.metric = metric
        self.runner, self.duration_s, self.known, self.trials = runner, duration_s, known, trials or Trials()
        #: What is promised, what is offered, and on which side of that all that is known is, where it is far.
        self.floor, self.load, self.side = load, load, known.far(load)
        self.good: list[Observation] = []
        self.bad: list[Observation] = []

    def run(self, ceiling: float | None = None) -> Outcome:
        """Decide whether the DUT holds the load. `ceiling`: the highest rate of the generator. Where it is below the
        load, a load within the ceiling is tried, and only that the DUT lies far below it can be found.

        A fatal problem of the DUT or a `TestbedError` of a trial ends the test.
        """
        beyond = None
        if ceiling is not None and ceiling < self.load:
            most, asked = format_rate(ceiling), format_rate(self.floor)
            text = f"the traffic generator reaches only {most}, the floor asks for {asked}"
            beyond = Verdict(None, Code.GENERATOR, text)
            self.load = NEAR_CEILING * ceiling
            self.side = self.known.far(self.load) if self.load else None
        if beyond and self.side is not False:
            return self._result(beyond)
        proof = None if self.side is None else self.known.proof(self.load, self.duration_s, kept=self.side)
        if proof and (found := self._decided_with(proof)):
            return self._result(found)
        try:
            found = self._trials()
        except TrialFault as fault:
            return self._result(Verdict(None, Code.FAULT, str(fault)))
        says_nothing = found.kept is not False and found.code is not Code.INVALID
        return self._result(beyond if beyond and says_nothing else found)

    def _trials(self) -> Verdict:
        """Make trials until they decide. Raise `TrialFault` where the DUT or the generator broke."""
        while len(self.good) + len(self.bad) < MOST_TRIALS:
            before = len(self.trials.made)
            seen = self.trials.offer(self.runner, Rate(self.load), self.duration_s, "gate", strict=True)
            if seen.state == "invalid":
                many = f"{len(self.trials.made) - before} trials in a row at {format_rate(self.load)}"
                return Verdict(None, Code.INVALID, f"{many} say nothing about the DUT: {seen.reason}")
            if found := self._decided_with(seen):
                return found
        return Verdict(None, Code.TOO_CLOSE, self._too_close())

    def _decided_with(self, seen: Observation) -> Verdict | None:
        """Count a trial. Return the verdict of all trials so far; None where they decide nothing yet."""
        (self.good if seen.good else self.bad).append(seen)
        found = of_trials(len(self.good), len(self.bad), self.side)
        if found is None:
            return None
        return replace(found, reason=self._confirmed(seen) if found.code is Code.FAR else self._counted(found))

    def _result(self, found: Verdict) -> Outcome:
        # What completed least of those that agree with it.
        kept = found.kept
        agreeing = self.bad or self.good if kept is None else self.good if kept else self.bad
        proof = min(agreeing, key=lambda seen: seen.trial.completed, default=None)
        if kept is False:
            found = replace(found, because=self.bad[-1].reason)
        # The offered load where it held, else what was completed of it.
        result = Estimate(value=self.load, unit=self.metric.unit.name, low=self.load) if kept else None
        return Outcome(
            self.metric, figures_of(proof, self.metric, result), _LIMITS.get(found.code, "floor"), found.whole,
            kept is True, tuple(self.trials.made), {self.metric.name: found},
        )  # fmt: skip

    # Reasons.

    def _counted(self, found: Verdict) -> str:
        held, made = len(self.good), len(self.good) + len(self.bad)
        seen = self.known.contradiction(self.load, kept=found.kept is True)
        return f"{held} of {made} trials at {format_rate(self.load)} held{seen}"

    def _confirmed(self, proof: Observation) -> str:
        rate = self.known.nearest(self.load)
        assert rate is not None
        how = "held" if proof.good else "did not hold"
        off = f"the DUT reaches {format_rate(rate)}, far {'above' if self.side else 'below'} the floor"
        if self.load < self.floor:
            off += f" of {format_rate(self.floor)}"
        sure = f"this machine scatters by {format_ratio(self.known.scatter)}"
        return f"{off} ({sure}), and a trial at {format_rate(proof.load)} {how}"

    def _too_close(self) -> str:
        rate, made = self.known.nearest(self.load), len(self.good) + len(self.bad)
        count = f"{len(self.good)} of {made} trials at {format_rate(self.load)} held"
        near = f"within {format_ratio(abs(rate / self.load - 1))} of the floor, " if rate else ""
        return f"too close to call: {near}this machine scatters by {format_ratio(self.known.scatter)} ({count})"
