"""How many connections the DUT holds at once: opened below its connection rate, kept open, and each asked a message in
the end (RFC 9411, section 7.5). RFC 9693 finds the capacity of the table by a drop in the rate; here the DUT counts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.held import HeldTrial, hold, refused
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.holding import Opened
from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import Profile

METRIC = METRICS["held_connections"]
#: Seconds that the DUT's counts take, at most.
_COUNTING_S = 3.0


@dataclass(frozen=True)
class TableCapacity:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-capacity"
    loads: frozenset[type[Load]] = frozenset((Hold,))
    abilities: frozenset[Ability] = frozenset({"connections"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: how long the opening takes follows from the floor, which is not known here."""
        return Expected(1, self.how.hold)

    def asked(self, promised: float | None, most: float | None) -> int:
        """Connections that are tried to be held: as many as are promised, or the campaign's number where it is more, as
        far as there can be so many."""
        wanted = self.how.connections or 0
        return int(max(promised or 0, wanted if most is None else min(wanted, most))) or 1

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        promised = bench.limits.get(METRIC.name)
        load = Hold(
            self.asked(promised, bench.most_held), self.how.opened_per_s, asked_after_s=self.how.hold + _COUNTING_S
        )
        trials: TableTrials[HeldTrial] = TableTrials(bench, METRIC)

        def one(number: int) -> tuple[Observation, HeldTrial, Sequence[TableCount]]:
            seen, made = hold(bench, number, load, self.how.hold)
            return seen, made, made.counts.made

        return trials.run(load.opened_per_s, one) or _outcome(load, promised, trials)


def _outcome(load: Hold, promised: float | None, trials: TableTrials[HeldTrial]) -> Outcome:
    """What the last trial says."""
    seen, made = trials.last, trials.made[-1]
    invalid, found, opened = seen.state == "invalid", made.proven, made.opened
    assert opened is not None
    every = found >= load.connections and not made.counts.wrong
    # What was asked for was held: the floor, or as many as the campaign wants to try, and the DUT may hold more.
    most: LimitedBy = "floor" if load.connections == promised else "range"
    limited_by: LimitedBy = "generator" if invalid else most if every else "dut"
    said = [made.counts.wrong, refused(opened), seen.reason if invalid else ""]
    reason = "; ".join(filter(None, said)) or (
        f"{found} were open at once, the DUT counted as many at every step, and each answered"
    )
    decisions = {}
    if promised is not None:
        kept = None if invalid else found >= promised and not made.counts.wrong
        decisions[METRIC.name] = Decision(kept, reason)
    figures = figures_by_name(
        {METRIC.name: found, "table_entry_bytes": made.entry_bytes, "opening_rate": _rate(opened)}
    )
    return Outcome(
        METRIC, {} if invalid else figures, limited_by, reason, held=not invalid and every,
        steps=tuple(trials.steps), table=tuple(trials.counts), decisions=decisions,
    )  # fmt: skip


def _rate(opened: Opened) -> float | None:
    return opened.established / opened.last_s if opened.last_s else None
