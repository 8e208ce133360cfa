"""What it does to a load when many entries of the table expire beside it: connections are opened and left, and while
they are forgotten the DUT serves others at half of the rate at which it can.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.units import format_count, format_rate, format_ratio
from ctbench.dut.base import CLOSED_S
from ctbench.dut.kind import Ability
from ctbench.dut.table import TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.held import Counts
from ctbench.measure.loss import within
from ctbench.measure.observation import Observation
from ctbench.measure.probe import TableEntries
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.procedures.saturation import served
from ctbench.measure.procedures.table_drain import timeout_of
from ctbench.measure.sequential import MOST_INVALID
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.trial import Phase, Step, broken_trial
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Load, Rate, Saturation, saturating
from ctbench.traffic.profiles import ConnectionProfile, Profile, load_profile

METRIC = METRICS["loss_while_reaping"]
_WAITED = METRICS["connect_time_while_reaping"]
#: Who expires: connections of this profile, from addresses of their own.
_LEFT, _THEIR_ADDRESS = "held", "16.128.0.0"
#: Of what a closed loop shows; seconds of that, and of the load alone.
_SHARE, _LOOP_S, _ALONE_S = 0.5, 1.0, 3.0
#: Seconds beyond the last sweep that is due.
_LATER_S = 3.0
#: Share of the table that the load's own entries may take besides.
_OWN_SHARE = 0.9
#: Entries over time are looked at so often, seconds.
_EVERY_S = 0.5
#: Fewer than this share of those that were left: they have gone.
_GONE = 0.1


@dataclass
class Reaping:
    """One measurement: a closed loop, half of its rate alone, and the same while entries expire."""

    bench: Bench
    dut: TableDut
    generator: HoldingGenerator
    profile: ConnectionProfile
    left: Hold
    counts: Counts
    steps: list[Step] = field(default_factory=list)

    def run(self) -> Outcome:
        """Measure. What breaks is an outcome (`limited_by: fault`)."""
        rate = 0.0
        try:
            loop = self._valid("saturation", saturating(self.profile), _LOOP_S)
            if loop.fault:
                return self._fault(loop.fault, 0.0)
            if not served(loop) or loop.state == "invalid":
                return self._nothing(f"a closed loop shows no rate: {loop.reason or 'nothing came back'}", "generator")
            rate = self._half(loop)
            alone = self._valid("alone", Rate(rate), _ALONE_S)
            if alone.fault:
                return self._fault(alone.fault, rate)
            if not alone.good:
                limited_by: LimitedBy = "generator" if alone.state == "invalid" else "dut"
                return self._nothing(f"the load alone is not held here: {alone.reason}", limited_by)
            beside = self._keep("beside", self._beside(rate))
        except TestbedError as error:
            return self._fault(str(error), rate, more=1)
        return self._fault(beside.fault, rate) if beside.fault else self._found(rate, alone, beside)

    @property
    def _seconds(self) -> float:
        """Of the load beside those that expire: their timeout, and a sweep of the table."""
        return timeout_of(self.bench) + self.dut.sweep_s + _LATER_S

    def _half(self, loop: Observation) -> float:
        """The load: less than half where its own entries, which stay until a sweep, would fill the table meanwhile, or
        be more than those that expire."""
        limit, most = self.dut.limit_now(), float(self.left.connections)
        if limit is not None:
            most = min(most, _OWN_SHARE * (limit - self.left.connections))
        if most <= 0:
            raise MissingResource(f"A table of {limit} entries has no room for a load besides {self.left.connections}.")
        closed_s = (self.bench.topology and self.bench.topology.timeout_s) or CLOSED_S
        return min(_SHARE * served(loop), most / (closed_s + self.dut.sweep_s))

    def _beside(self, rate: float) -> Observation:
        left = load_profile(_LEFT).model_copy(update={"client_ip": _THEIR_ADDRESS})
        assert isinstance(left, ConnectionProfile), "that of this name is of connections"

        def offer() -> Trial:
            self.counts.take("before", 0)
            with self.generator.hold(left, self.left) as held:
                opened = held.open(self.left.connections)
                self.counts.take("opened", opened.established)
            return self.bench.generator.run_trial(self.profile, Rate(rate), self._seconds)

        probe = TableEntries(self.dut.connections, every_s=_EVERY_S)
        runner = replace(self.bench, conditions={"loss_ratio": 1.0}, probes=(probe,)).runner
        promised = self.bench.limits.get(METRIC.name)
        limit = self.bench.campaign.loss_ratio if promised is None else promised
        seen = replace(runner.watch(offer), conditions={"loss_ratio": limit})
        return replace(seen, wrong=self._all_gone())

    def _all_gone(self) -> str:
        """What is wrong where those that were left have not gone in the end; empty where they have."""
        deadline = time.monotonic() + self.dut.sweep_s + _LATER_S
        few = int(_GONE * self.left.connections)
        while (entries := self.dut.connections()) > few and time.monotonic() < deadline:
            time.sleep(_EVERY_S)
        if self.counts.wrong:
            return self.counts.wrong
        return f"{entries} entries were left in the end" if entries > few else ""

    def _valid(self, phase: Phase, load: Load, duration_s: float) -> Observation:
        """A trial; another one where something else than the DUT spoilt it."""
        for _ in range(MOST_INVALID):
            seen = self._keep(phase, self.bench.runner.offer(load, duration_s))
            if seen.fault or seen.state != "invalid":
                break
        return seen

    def _keep(self, phase: Phase, seen: Observation) -> Observation:
        step = Step(self.bench.made + len(self.steps) + 1, phase, seen, 0.0)
        self.steps.append(step)
        self.bench.on_trial(step)
        return seen

    def _found(self, rate: float, alone: Observation, beside: Observation) -> Outcome:
        lost = max(0.0, beside.values["loss_ratio"])
        waited, before = (seen.values.get("connect_time_p99") for seen in (beside, alone))
        reason = beside.wrong or (
            f"{format_count(self.left.connections)} entries expired beside {format_rate(rate)}: {format_ratio(lost)} "
            f"of it lost, {_said(waited)} connect time (p99), {_said(before)} alone"
        )
        if beside.generator_fault:
            reason = beside.generator_fault
        figures = figures_by_name({METRIC.name: lost, _WAITED.name: waited})
        return Outcome(
            METRIC, {} if beside.state == "invalid" else figures, "generator" if beside.state == "invalid" else "dut",
            reason, held=not beside.wrong, steps=tuple(self.steps), table=tuple(self.counts.made),
            decisions=self._decide(lost, waited, beside, reason),
        )  # fmt: skip

    def _decide(self, lost: float, waited: float | None, beside: Observation, reason: str) -> dict[str, Decision]:
        trial, found = beside.trial, {}
        for name, value in ((METRIC.name, lost), (_WAITED.name, waited)):
            if (limit := self.bench.limits.get(name)) is None:
                continue
            kept = value is not None and METRICS[name].keeps(value, limit)
            if name == METRIC.name:
                kept = within(trial.intended - trial.completed, trial.intended, limit)
            explained = beside.generator_fault or (not kept and name == _WAITED.name and self._was_late(trial, limit))
            found[name] = Decision(None if explained else kept and not beside.wrong, reason)
        return found

    @staticmethod
    def _was_late(trial: Trial, limit: float) -> bool:
        return trial.late_max_ms / 1000 >= limit

    def _fault(self, why: str, rate: float, *, more: int = 0) -> Outcome:
        reason = broken_trial(self.bench.made + len(self.steps) + more, rate, why)
        return Outcome(METRIC, {}, "fault", reason, held=False, steps=tuple(self.steps), table=tuple(self.counts.made))

    def _nothing(self, why: str, limited_by: LimitedBy) -> Outcome:
        return Outcome(METRIC, {}, limited_by, why, held=False, steps=tuple(self.steps))


@dataclass(frozen=True)
class TableReaping:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-reaping"
    loads: frozenset[type[Load]] = frozenset((Hold, Rate, Saturation))
    abilities: frozenset[Ability] = frozenset({"connections"})
    found_out: Collection[str] = (METRIC.name, _WAITED.name)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: timeout and sweep are the DUT's, which is not known here."""
        return Expected(3, _LOOP_S + _ALONE_S + self.how.expiring / self.how.opened_per_s)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        dut, generator, profile = bench.dut, bench.generator, bench.profile
        assert isinstance(dut, TableDut) and isinstance(generator, HoldingGenerator), "both were required"
        assert isinstance(profile, ConnectionProfile), "the metric is of connections"
        self.how.require_time(timeout_of(bench) + 2 * dut.sweep_s, "A load beside entries that expire")
        most = bench.most_held if bench.most_held is not None else self.how.expiring
        left = Hold(int(min(self.how.expiring, most)), self.how.opened_per_s)
        return Reaping(bench, dut, generator, profile, left, Counts(dut, bench.made + 3)).run()


def _said(seconds: float | None) -> str:
    return "no" if seconds is None else _WAITED.format(seconds)
