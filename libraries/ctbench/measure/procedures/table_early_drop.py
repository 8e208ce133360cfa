"""What happens at a limit that cannot be changed, as that of the Linux kernel: connections beyond it are refused, or
others go early to make room ("early drop": those whose handshake was not seen to its end, or that had no reply).
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import MissingResource
from ctbench.base.units import format_duration, format_ratio
from ctbench.dut.kind import Ability
from ctbench.dut.table import FullSaid, TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.held import Counts, heard
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.procedures.table_full import BEYOND, REFUSING_S
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import ConnectionProfile, Profile

METRIC = METRICS["forgotten_when_full"]


@dataclass
class AtLimit:
    """What was seen of a table that was filled beyond its limit."""

    counts: Counts
    limit: int
    #: What went wrong, a clause each.
    wrong: list[str] = field(default_factory=list)
    #: Connections that opened, that were refused, and that answered while the table was full.
    opened: int = 0
    refused: int = 0
    answered: int = 0
    said: FullSaid | None = None
    #: Seconds from the moment that the table was emptied to the first connection that opened; None where none did.
    recovered_s: float | None = None

    @property
    def forgotten(self) -> float:
        """Share of the connections that had opened and did not answer any more."""
        return 1 - self.answered / self.opened if self.opened else 1.0


@dataclass(frozen=True)
class TableEarlyDrop:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-early-drop"
    loads: frozenset[type[Load]] = frozenset((Hold,))
    abilities: frozenset[Ability] = frozenset({"connections"})
    found_out: Collection[str] = (METRIC.name, "recovery_time")
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: the limit is the DUT's, which is not known here."""
        return Expected(1, 5.0)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`. `MissingResource` where no limit is known, or so many connections cannot be held."""
        dut, most = bench.dut, bench.most_held
        assert isinstance(dut, TableDut), "its ability was required"
        limit = dut.limit_now()
        if limit is None:
            raise MissingResource("The DUT does not say how many entries its table may have.")
        # The table itself bounds what is held; whatever else does, does so before it is full.
        if most is not None and most < limit:
            raise MissingResource(f"The DUT's table has {limit} entries, and {most:.0f} connections can be held here.")
        self.how.require_time(4 * limit / self.how.opened_per_s, f"Filling a table of {limit} entries")
        load = Hold(limit + 2 * BEYOND, self.how.opened_per_s, asked_after_s=REFUSING_S)
        trials: TableTrials[AtLimit] = TableTrials(bench, METRIC)

        def one(number: int) -> tuple[Observation, AtLimit, Sequence[TableCount]]:
            seen, made = fill(bench, number, load, limit)
            return seen, made, made.counts.made

        return trials.run(load.opened_per_s, one) or _outcome(bench, trials)


def fill(bench: Bench, number: int, load: Hold, limit: int) -> tuple[Observation, AtLimit]:
    """Open as many connections as there is room for, and more; ask them; empty the table, and open some again."""
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(dut, TableDut) and isinstance(generator, HoldingGenerator), "both were required"
    assert isinstance(profile, ConnectionProfile), "the metric is of connections"
    made = AtLimit(Counts(dut, number), limit)

    def offer() -> Trial:
        before = dut.full_said()
        made.counts.take("before", 0)
        with generator.hold(profile, load) as held:
            first, beyond = held.open(limit), held.open(BEYOND)
            made.opened, made.refused = first.established + beyond.established, first.refused + beyond.refused
            if made.counts.take("full", limit) > limit:
                made.wrong.append(f"the DUT counted more than its limit of {limit} entries")
            if not made.refused:
                made.wrong.append(f"none of {first.begun + beyond.begun} connections was refused")
            made.answered = held.ask().answered
            made.said = heard(dut, before)
            if not made.said.counted:
                made.wrong.append("the DUT does not say that its table was full")
            begun = time.monotonic()
            dut.flush_state()
            told_s = time.monotonic() - begun
            again = held.open(BEYOND)
            if again.first_s is not None:
                made.recovered_s = told_s + again.waited_s + again.first_s
            if again.established != BEYOND:
                made.wrong.append(f"{again.established} of {BEYOND} connections opened when there was room again")
            made.counts.take("room again", again.established)
            return held.trial()

    # What finds a table emptied is lost, and has to be.
    runner = replace(bench, conditions={"loss_ratio": 1.0}, probes=()).runner
    seen = runner.watch(offer)
    return replace(seen, wrong="; ".join(made.wrong)), made


def _outcome(bench: Bench, trials: TableTrials[AtLimit]) -> Outcome:
    seen, made = trials.last, trials.made[-1]
    invalid, wrong = seen.state == "invalid", seen.reason
    limited_by: LimitedBy = "generator" if invalid else "dut"
    said = made.said or FullSaid(0, None)
    reason = wrong or (
        f"of {made.opened} connections that opened at a limit of {made.limit} entries, {made.answered} answered "
        f"({format_ratio(made.forgotten)} were forgotten); {made.refused} were refused; the DUT counted {said.counted} "
        f"packets that found the table full and {said.forgotten} entries that it dropped early; new ones opened "
        f"{format_duration(made.recovered_s or 0.0)} after the table was emptied"
    )
    held = not wrong and made.recovered_s is not None
    decisions = {}
    found = {METRIC.name: made.forgotten, "recovery_time": made.recovered_s}
    for name, value in found.items():
        if (limit := bench.limits.get(name)) is not None:
            kept = None if invalid else held and value is not None and METRICS[name].keeps(value, limit)
            decisions[name] = Decision(kept, reason)
    return Outcome(
        METRIC, {} if invalid else figures_by_name(found), limited_by, reason, held=held and not invalid,
        steps=tuple(trials.steps), table=tuple(trials.counts), decisions=decisions,
    )  # fmt: skip
