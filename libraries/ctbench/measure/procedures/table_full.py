"""What happens when the connection table is full: new connections are refused, those that are open go on, and new ones
open where there is room again. In the terms of RFC 9411 it is what comes after the capacity of section 7.5."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import ConfigError
from ctbench.base.units import format_duration
from ctbench.dut.kind import Ability
from ctbench.dut.table import FullSaid, TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.held import Counts, heard
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import ConnectionProfile, Profile

METRIC = METRICS["recovery_time"]
#: Connections beyond the limit, and as many more where there is room again.
BEYOND = 1000
#: Seconds in which connections are refused and counted, before those that are open are asked.
REFUSING_S = 10.0


@dataclass
class Fullness:
    """What was seen of a table that was filled."""

    counts: Counts
    #: What went wrong, a clause each.
    wrong: list[str] = field(default_factory=list)
    #: Seconds from the room to the first connection that opened; None where none did.
    recovered_s: float | None = None

    #: What the DUT said of it.
    said: FullSaid | None = None

    def listen(self, said: FullSaid) -> None:
        """Note what the DUT says: that it was full it has to count, and may log once."""
        self.said = said
        if not said.counted:
            self.wrong.append("the DUT does not say that its table was full")
        if said.logged is not None and said.logged > 1:
            self.wrong.append(f"the DUT's log says {said.logged} times that its table was full")

    @property
    def as_said(self) -> str:
        """The same for a sentence."""
        if self.said is None:
            return ""
        logged = "" if self.said.logged is None else f", and its log has {self.said.logged} lines about it"
        return f"it counted {self.said.counted} packets that found the table full{logged}"

    def expect(self, what: str, found: int, expected: int) -> None:
        """Note it where a number is not the one that is expected."""
        if found != expected:
            self.wrong.append(f"{found} of {expected} {what}")


@dataclass(frozen=True)
class TableFull:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-full"
    loads: frozenset[type[Load]] = frozenset((Hold,))
    abilities: frozenset[Ability] = frozenset({"connections", "table limit"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: the limit is the topology's, which is not known here."""
        return Expected(1, 1.0)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`. `ConfigError` where the topology has no limit of its own."""
        limit = bench.topology.max_connections if bench.topology else None
        if limit is None:
            raise ConfigError(
                "A full table is measured, and the topology does not say how many entries it has.\n"
                "  Expected max_connections=10000 or so behind the row."
            )
        load = Hold(limit + 2 * BEYOND, self.how.opened_per_s, asks=2, asked_after_s=REFUSING_S)
        trials: TableTrials[Fullness] = TableTrials(bench, METRIC)

        def one(number: int) -> tuple[Observation, Fullness, Sequence[TableCount]]:
            seen, made = fill(bench, number, load, limit)
            return seen, made, made.counts.made

        return trials.run(load.opened_per_s, one) or _outcome(bench, limit, trials)


def fill(bench: Bench, number: int, load: Hold, limit: int) -> tuple[Observation, Fullness]:
    """Fill the table, open more, ask, make room, and open more again. `number`: of the trial in its test."""
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(dut, TableDut) and isinstance(generator, HoldingGenerator), "both were required"
    assert isinstance(profile, ConnectionProfile), "the metric is of connections"
    made = Fullness(Counts(dut, number))
    counts = made.counts

    def offer() -> Trial:
        before = dut.full_said()
        dut.limit_table(limit)  # an earlier trial of this test has made room
        counts.take("before", 0)
        with generator.hold(profile, load) as held:
            made.expect("connections opened in a table with room for them", held.open(limit).established, limit)
            counts.take("full", limit)
            refused = held.open(BEYOND)
            made.expect("connections beyond the limit were refused", refused.refused, refused.begun)
            counts.take("refused", limit)
            made.expect("open connections answered while the table was full", held.ask().answered, limit)
            begun = time.monotonic()
            dut.limit_table(limit + BEYOND)
            told_s = time.monotonic() - begun
            more = held.open(BEYOND)
            if more.first_s is not None:
                made.recovered_s = told_s + more.waited_s + more.first_s
            made.listen(heard(dut, before))
            made.expect("connections opened when there was room again", more.established, BEYOND)
            counts.take("room again", limit + BEYOND)
            made.expect("connections answered in the end", held.ask().answered, limit + BEYOND)
            return held.trial()

    # Those that are refused are lost, and have to be: half of all is more than that.
    runner = replace(bench, conditions={"loss_ratio": 0.5}).runner
    seen = runner.watch(offer)
    return replace(seen, wrong="; ".join(filter(None, [*made.wrong, counts.wrong]))), made


def _outcome(bench: Bench, limit: int, trials: TableTrials[Fullness]) -> Outcome:
    seen, made = trials.last, trials.made[-1]
    invalid, wrong = seen.state == "invalid", seen.reason
    limited_by: LimitedBy = "generator" if invalid else "dut"
    reason = wrong or (
        f"{limit} entries filled the table, {BEYOND} connections more were refused, those that were open answered, and "
        f"new ones opened {format_duration(made.recovered_s or 0.0)} after there was room; {made.as_said}"
    )
    promised = bench.limits.get(METRIC.name)
    held = not wrong and made.recovered_s is not None
    decisions = {}
    if promised is not None:
        kept = None if invalid else held and made.recovered_s is not None and made.recovered_s <= promised
        decisions[METRIC.name] = Decision(kept, reason)
    figures = figures_by_name({METRIC.name: made.recovered_s})
    return Outcome(
        METRIC, {} if invalid else figures, limited_by, reason, held=held and not invalid, steps=tuple(trials.steps),
        table=tuple(trials.counts), decisions=decisions,
    )  # fmt: skip
