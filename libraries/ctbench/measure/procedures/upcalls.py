"""New datapath flows per second with nothing lost: every packet of the load is the first of its flow, so the DUT has to
look its rules up, and to make a flow of its datapath.

In closed loops, each of which begins with an empty datapath and ends before that is full: a load on a schedule comes
late where the generator shares its CPU with the threads that look at all flows.
"""

import statistics
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_count
from ctbench.dut.kind import Ability
from ctbench.dut.upcalls import UpcallDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.loss import limits_in
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome
from ctbench.measure.procedures.saturation import served
from ctbench.measure.sequential import MOST_INVALID
from ctbench.measure.trial import Step, broken_trial
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.quantiles import median_interval
from ctbench.results.record import LimitedBy
from ctbench.traffic.loads import Load, Saturation, saturating
from ctbench.traffic.profiles import Profile

METRIC = METRICS["new_flow_rate"]
#: Trials that count: as few as have a 99 % interval of their median that assumes no distribution.
TRIALS = 9
#: Length of a trial, seconds: short enough that 200 000 flows are seldom reached, which is as many as there may be.
TRIAL_S = 0.5
#: Share of the packets that have to be the first of their flow, or the load does not ask what is to be measured.
LEAST_NEW = 0.9


@dataclass
class _Upcalls:
    """A probe that deletes all flows before a trial, and asks after it for how many packets new ones were made."""

    dut: UpcallDut
    name: str = "upcalls"
    unit: str = "packets"
    every_s: float = 3600.0
    #: Of the last trial: with a flow made, and where that failed.
    made: tuple[int, int] = (0, 0)

    def before(self) -> None:
        """See `Probe.before`."""
        self.dut.forget_flows()

    def sample(self) -> float:
        """See `Probe.sample`: none yet."""
        return 0.0

    def after(self) -> None:
        """See `Probe.after`."""
        self.made = self.dut.upcalls()


@dataclass
class _Found:
    """What the trials that count came to."""

    rates: list[float] = field(default_factory=list)
    made: int = 0
    failed: int = 0
    sent: int = 0
    #: The last one.
    seen: Observation | None = None


@dataclass(frozen=True)
class NewFlows:
    """Implements `Procedure`."""

    name: str = "new-flows"
    times: tuple[str, ...] = (METRIC.name,)
    loads: frozenset[type[Load]] = frozenset((Saturation,))
    abilities: frozenset[Ability] = frozenset({"upcalls"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return Expected(TRIALS, TRIALS * TRIAL_S)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        assert isinstance(bench.dut, UpcallDut), "its ability was required"
        probe, load = _Upcalls(bench.dut), saturating(bench.profile)
        runner = replace(bench, conditions=limits_in(bench.conditions), probes=(*bench.probes, probe)).runner
        steps: list[Step] = []
        found = _Found()
        while len(found.rates) < TRIALS and len(steps) < TRIALS + MOST_INVALID:
            number = bench.made + len(steps) + 1
            try:
                seen = runner.offer(load, TRIAL_S)
            except TestbedError as error:
                return _broken(broken_trial(number, 0.0, str(error)), steps)
            left_s = (TRIALS - len(found.rates) - 1) * (seen.trial.wall_s or TRIAL_S)
            steps.append(Step(len(steps) + 1, "saturation", seen, left_s))
            bench.on_trial(steps[-1])
            if seen.fault:
                return _broken(broken_trial(number, served(seen), seen.fault), steps)
            if seen.good:
                _add(found, seen, probe.made)
        return _outcome(bench, found, steps)


def _broken(why: str, steps: list[Step]) -> Outcome:
    return Outcome(METRIC, {}, "fault", why, held=False, steps=tuple(steps))


def _add(found: _Found, seen: Observation, made: tuple[int, int]) -> None:
    found.seen = seen
    found.made, found.failed = found.made + made[0], found.failed + made[1]
    sent = seen.trial.packets_sent
    found.sent += sent
    # Of the packets that came through per second, those that got a flow: that is known of the whole trial.
    found.rates.append(seen.trial.pps * min(1.0, made[0] / max(1, sent)))


def _outcome(bench: Bench, found: _Found, steps: list[Step]) -> Outcome:
    made, trials = tuple(steps), len(found.rates)
    if trials < TRIALS:
        last = steps[-1].observation
        limited_by: LimitedBy = "generator" if last.state == "invalid" else "dut"
        why = f"{trials} of {len(steps)} trials count, of {TRIALS} that are needed: {last.reason}"
        return Outcome(METRIC, {}, limited_by, why, held=False, steps=made)
    new = (found.made + found.failed) / max(1, found.sent)
    if new < LEAST_NEW:
        why = f"only {new * 100:.0f} % of the packets were the first of their flow"
        return Outcome(METRIC, {}, "dut", why, held=False, steps=made)
    low, high = median_interval(found.rates)
    figure = Figure(value=statistics.median(found.rates), unit=METRIC.unit.name, low=low, high=high)
    without = f", and {format_count(found.failed)} got none" if found.failed else ""
    said = (
        f"{format_count(found.made)} of {format_count(found.sent)} packets got a datapath flow of their own{without}, "
        f"in {trials} closed loops"
    )
    limit = bench.limits.get(METRIC.name)
    decisions = {} if limit is None else {METRIC.name: _decide(low, high, limit)}
    return Outcome(
        METRIC, {METRIC.name: figure}, "dut", said, held=True, steps=made, decisions=decisions
    )  # fmt: skip


def _decide(low: float, high: float, limit: float) -> Decision:
    kept = {METRIC.keeps(end, limit) for end in (low, high)}
    text = f"median of {TRIALS}, between {METRIC.format(low)} and {METRIC.format(high)}"
    if len(kept) == 1:
        return Decision(kept.pop(), text)
    return Decision(None, f"too close to call: {METRIC.title}, {text}, at least {METRIC.format(limit)} promised")
