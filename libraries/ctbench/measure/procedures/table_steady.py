"""Whether the connection table settles: connections of a lifetime at a rate, for longer than they are remembered. As
many are in the table then as begin in a lifetime and a timeout (the steady connections of the conference of 2017)."""

import math
import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ctbench.base.errors import MissingResource
from ctbench.base.units import format_count, format_rate
from ctbench.dut.kind import Ability
from ctbench.dut.table import TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.observation import Observation
from ctbench.measure.probe import TableEntries
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.procedures.table_drain import timeout_of
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, Profile

METRIC = METRICS["table_deviation"]
#: Between two looks at the table, seconds.
EVERY_S = 0.2
#: Seconds beyond the longest time between two sweeps of an empty table; of the room in the table, the share that is
#: filled until then.
_NOTICED_S, _LEAD_SHARE = 1.0, 0.25
#: Room for more than what is expected.
_SPARE = 1.1


@dataclass(frozen=True)
class Level:
    """Where the table settled at one rate, over two sweeps: it is a saw-tooth, as what has expired since a sweep is
    still there until the next one. Entries; None where nobody could tell."""

    per_s: float
    expected: float
    #: Right after a sweep, which leaves what has not expired; in the mean; and by how much that grew per second, from
    #: one sweep to the next.
    least: float | None
    mean: float | None
    slope: float

    @property
    def deviation(self) -> float:
        """How far the table after a sweep is from what is expected, as a ratio of that."""
        return abs(self.least / self.expected - 1) if self.least is not None else 1.0

    def __str__(self) -> str:
        if self.least is None:
            return f"at {format_rate(self.per_s)} the DUT did not tell"
        return (
            f"at {format_rate(self.per_s)} a sweep left {format_count(self.least)} entries, where rate x (lifetime + "
            f"timeout) is {format_count(self.expected)}, and there were {format_count(self.mean or 0)} in the mean"
        )


@dataclass(frozen=True)
class TableSteady:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-steady"
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset({"connections"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: timeout and sweep are the DUT's, which is not known here."""
        return Expected(len(self.how.steady), 0.0)

    def wanted(self, profile: ConnectionProfile) -> list[float]:
        """The profile's own rate, else those of the campaign."""
        return [profile.new_per_s] if profile.new_per_s else self.how.steady

    def rates(self, bench: Bench) -> list[float]:
        """Those of the campaign at which the table has room; `MissingResource` where it has for none."""
        assert isinstance(bench.profile, ConnectionProfile), "the metric is of connections"
        assert isinstance(bench.dut, TableDut), "its ability was required"
        wanted, offered = self.wanted(bench.profile), bench.campaign.most.get(bench.profile.kind, math.inf)
        if min(wanted) > offered:
            raise MissingResource(
                f"The table settles at {format_rate(min(wanted))}, and the traffic generator offers "
                f"{format_rate(offered)} at most (max_cps of the testbed file): use a testbed with a faster one."
            )
        sweep_s, most = bench.dut.sweeps_within(timeout_of(bench)), bench.most_held
        remembered_s = bench.profile.lifetime_s + timeout_of(bench) + sweep_s
        self.how.require_time(lead_s(bench.dut, sweep_s) + remembered_s + 2 * sweep_s, "A table that settles")
        offered_too = [per_s for per_s in wanted if per_s <= offered]
        fitting = [per_s for per_s in offered_too if most is None or per_s * remembered_s * _SPARE <= most]
        if not fitting:
            raise MissingResource(
                f"Connections of {remembered_s:g} s at {format_rate(min(wanted))} are more than the "
                f"{format_count(most or 0)} that there is room for: choose a lower rate (table.steady of the campaign)."
            )
        return fitting

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`: a trial at each rate."""
        trials: TableTrials[Level] = TableTrials(bench, METRIC)
        levels: list[Level] = []
        fitting = self.rates(bench)
        assert isinstance(bench.profile, ConnectionProfile), "the metric is of connections"
        wanted = self.wanted(bench.profile)
        for per_s in fitting:

            def one(number: int, per_s: float = per_s) -> tuple[Observation, Level, Sequence[TableCount]]:
                return settle(bench, number, per_s)

            if broken := trials.run(per_s, one):
                return broken
            levels.append(trials.made[-1])
            if not trials.last.good:
                break
        return _outcome(bench, levels, trials, [per_s for per_s in wanted if per_s not in fitting])


def settle(bench: Bench, number: int, per_s: float) -> tuple[Observation, Level, Sequence[TableCount]]:
    """Offer a rate until the table has settled, and then for two sweeps, which count. `number`: of the trial.

    Before, little is offered to a DUT that sweeps a table of short-lived entries more often than an empty one, until it
    has noticed."""
    dut, profile = bench.dut, bench.profile
    assert isinstance(dut, TableDut) and isinstance(profile, ConnectionProfile), "both were required"
    remembered_s, sweep_s = profile.lifetime_s + timeout_of(bench), dut.sweeps_within(timeout_of(bench))
    runner = replace(bench, probes=(TableEntries(dut.connections, every_s=EVERY_S),)).runner
    before_s = 0.0

    def offer() -> Trial:
        nonlocal before_s
        begun, lead = time.monotonic(), lead_s(dut, sweep_s)
        if lead:
            few = _LEAD_SHARE * (bench.most_held or per_s * lead) / (lead + remembered_s)
            bench.generator.run_trial(profile, Rate(min(few, per_s)), lead)
        before_s = time.monotonic() - begun
        return bench.generator.run_trial(profile, Rate(per_s), remembered_s + 3 * sweep_s)

    seen = runner.watch(offer)
    samples = seen.samples[0]
    end = int((before_s + seen.trial.ramp_up_s + seen.trial.counted_s) / samples.every_s)
    sweep = int(sweep_s / samples.every_s)
    first, second = (_known(samples.values[max(0, end - back) : end - back + sweep]) for back in (2 * sweep, sweep))
    means = [statistics.fmean(each) for each in (first, second) if each]
    level = Level(
        per_s,
        per_s * remembered_s,
        min([*first, *second], default=None),
        statistics.fmean(means) if means else None,
        (means[1] - means[0]) / sweep_s if len(means) > 1 else 0.0,
    )
    moment = f"least at {format_rate(per_s)}"
    count = TableCount(trial=number, moment=moment, expected=round(level.expected), found=round(level.least or 0))
    return seen, level, [count]


def lead_s(dut: TableDut, sweep_s: float) -> float:
    """Seconds until a DUT whose table was empty sweeps it each `sweep_s`."""
    return dut.sweep_s + _NOTICED_S if sweep_s < dut.sweep_s else 0.0


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _outcome(bench: Bench, levels: Sequence[Level], trials: TableTrials[Level], left_out: Sequence[float]) -> Outcome:
    seen, worst = trials.last, max(levels, key=lambda each: each.deviation)
    invalid, good = seen.state == "invalid", seen.good
    limited_by: LimitedBy = "generator" if invalid else "dut"
    rates = ", ".join(map(format_rate, left_out))
    room = [f"not tried, because the table or the generator is too small for that: {rates}"] if left_out else []
    reason = seen.reason if not good else "; ".join([*map(str, levels), *room])
    limit = bench.limits.get(METRIC.name)
    decisions = {}
    if limit is not None:
        decisions[METRIC.name] = Decision(None if invalid else good and worst.deviation <= limit, reason)
    figures = figures_by_name(
        {METRIC.name: worst.deviation, "table_level": levels[-1].mean, "table_slope": levels[-1].slope}
    )
    return Outcome(
        METRIC, {} if invalid else figures, limited_by, reason, held=good, steps=tuple(trials.steps),
        table=tuple(trials.counts), decisions=decisions,
    )  # fmt: skip
