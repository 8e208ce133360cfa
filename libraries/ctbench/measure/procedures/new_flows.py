"""New datapath flows per second with nothing lost: every packet of the load is the first of its flow, so the DUT has to
look its rules up, and to make a flow of its datapath.

In closed loops, each of which begins with an empty datapath and ends before that is full: a load on a schedule comes
late where the generator shares its CPU with the threads that look at all flows.
"""

import statistics
from dataclasses import dataclass, field

from ctbench.base.units import format_count
from ctbench.dut.abilities import UpcallDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Observation, limits_in
from ctbench.measure.probe import Probe
from ctbench.measure.procedure import Bench, Decision, Outcome, Procedure
from ctbench.measure.trial import MOST_INVALID, Expected, Trials
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Figure
from ctbench.results.statistics import median_interval
from ctbench.traffic.loads import Saturation, saturating
from ctbench.traffic.profiles import Profile

METRIC = METRICS["new_flow_rate"]
#: Trials that count: as few as have a 99 % interval of their median that assumes no distribution.
TRIALS = 9
#: Length of a trial, seconds: short enough that 200 000 flows are seldom reached, which is as many as there may be.
TRIAL_S = 0.5
#: Share of the packets that have to be the first of their flow, or the load does not ask what is to be measured.
LEAST_NEW = 0.9


@dataclass
class _Upcalls(Probe):
    """A probe that deletes all flows before a trial, and asks after it for how many packets new ones were made."""

    dut: UpcallDut
    #: Of the last trial: with a flow made, and where that failed.
    made: tuple[int, int] = (0, 0)
    name = "upcalls"
    unit = "packets"
    every_s = 3600.0

    def before(self) -> None:
        """Forget all flows."""
        self.dut.forget_flows()

    def sample(self) -> float:
        return 0.0

    def after(self) -> None:
        """Ask for how many packets flows were made."""
        self.made = self.dut.upcalls()


@dataclass
class _Found:
    """What the trials that count yielded."""

    rates: list[float] = field(default_factory=list)
    made: int = 0
    failed: int = 0
    sent: int = 0

    def add(self, seen: Observation, made: tuple[int, int]) -> None:
        """Count a good trial, in which flows were made for so many packets, and not for so many."""
        sent = seen.trial.packets_sent
        self.made, self.failed, self.sent = self.made + made[0], self.failed + made[1], self.sent + sent
        # Of the packets that came through per second, those that got a flow: that is known of the whole trial.
        self.rates.append(seen.trial.pps * min(1.0, made[0] / max(1, sent)))


@dataclass(frozen=True)
class NewFlows(Procedure):
    """Closed loops whose packets are each the first of its flow."""

    name = "new-flows"
    says = "sends packets that are each the first of its flow, and counts the datapath flows made per second"
    loads = frozenset((Saturation,))
    abilities = frozenset({"upcalls"})
    found_out = (METRIC.name,)

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        return Expected(TRIALS, TRIALS * TRIAL_S)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Nothing where too few trials were good, or most packets did not ask for a flow."""
        assert isinstance(bench.dut, UpcallDut), "its ability was required"
        probe, found = _Upcalls(bench.dut), _Found()
        load, runner = saturating(bench.profile), bench.runner_for(limits_in(bench.conditions), probe)

        def left_s(seen: Observation) -> float:
            return (TRIALS - len(found.rates) - 1) * (seen.trial.wall_s or TRIAL_S)

        while len(found.rates) < TRIALS and len(trials.steps) < TRIALS + MOST_INVALID:
            seen = trials.make("saturation", lambda _: runner.offer(load, TRIAL_S), note=left_s)
            if seen.good:
                found.add(seen, probe.made)
        return _outcome(bench, found, trials)


def _outcome(bench: Bench, found: _Found, trials: Trials) -> Outcome:
    number = len(found.rates)
    if number < TRIALS:
        last = trials.steps[-1].observation
        why = f"{number} of {len(trials.steps)} trials count, of {TRIALS} that are needed: {last.reason}"
        return Outcome.nothing(METRIC, "generator" if last.state == "invalid" else "dut", why)
    new = (found.made + found.failed) / max(1, found.sent)
    if new < LEAST_NEW:
        why = f"only {new * 100:.0f} % of the packets were the first of their flow"
        return Outcome.nothing(METRIC, "dut", why)
    low, high = median_interval(found.rates)
    figure = Figure(value=statistics.median(found.rates), unit=METRIC.unit.name, low=low, high=high)
    without = f", and {format_count(found.failed)} got none" if found.failed else ""
    said = (
        f"{format_count(found.made)} of {format_count(found.sent)} packets got a datapath flow of their own{without}, "
        f"in {number} closed loops"
    )
    decisions = Decision.of_interval(figure, METRIC, bench.limits, f"median of {TRIALS}")
    return Outcome(METRIC, {METRIC.name: figure}, "dut", said, True, decisions=decisions)
