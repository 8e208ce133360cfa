"""One trial in which connections are held: opened, kept, asked; and counted by the DUT at every step.

RFC 9693 validates that the connections of its first phase are there before the second one begins; here the DUT's own
count has to be the generator's, to the connection, before, between and after.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ctbench.base.units import format_count
from ctbench.dut.abilities import FullSaid, TableDut
from ctbench.dut.base import Problem
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome, Procedure, figures_by_name
from ctbench.measure.trials import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import Answered, HoldingGenerator, Opened
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile

#: The DUT's memory is known by its growth: where less of it than this share came in this trial, the rest is what an
#: earlier one left, and nothing is said of an entry.
_OWN_GROWTH = 0.5
#: Seconds that a DUT's threads take to hand their counters in, at most.
COUNTERS_S = 3.0


@dataclass
class Counts:
    """What the DUT counted at the moments of a trial."""

    dut: TableDut
    #: Number of the trial in its test.
    trial: int
    made: list[TableCount] = field(default_factory=list)
    #: Entries that the table might have when the trial began, and how that changed.
    limit: int | None = None
    changed: str = ""

    def look_at_limit(self) -> None:
        """Notice where something has changed the DUT's limit meanwhile."""
        if (now := self.dut.limit_now()) != self.limit:
            self.changed = f"the DUT's limit of entries was {self.limit} when the trial began, and {now} at its end"

    def take(self, moment: str, expected: int) -> int:
        """Ask the DUT. Returns what it counted."""
        found = self.dut.connections()
        self.made.append(TableCount(trial=self.trial, moment=moment, expected=expected, found=found))
        return found

    @property
    def wrong(self) -> str:
        """The first count that is not the generator's, or how the limit was changed, in words; empty where all is as it
        has to be."""
        if self.changed:
            return self.changed
        apart = next((each for each in self.made if each.found != each.expected), None)
        if apart is None:
            return ""
        return f"{apart.moment}: the DUT counted {apart.found} entries where {apart.expected} connections were open"


@dataclass
class TableTrial:
    """What came of one trial of the table."""

    counts: Counts


Made = TypeVar("Made", bound=TableTrial)


def of_table(trials: Trials, per_s: float, one: Callable[[int], tuple[Observation, Made]]) -> tuple[Observation, Made]:
    """A trial of the table with `one`, which is told its number, again where it was invalid; and what came of the last
    one. What the DUT counted in each is evidence. `per_s`: the load for a sentence."""
    found: list[Made] = []

    def counted(number: int) -> Observation:
        seen, made = one(number)
        found.append(made)
        trials.keep(table=made.counts.made)
        return seen

    return trials.make("hold", counted, per_s), found[-1]


def tools(bench: Bench) -> tuple[TableDut, HoldingGenerator, ConnectionProfile]:
    """DUT, generator and profile as a measurement of the table needs them; `require` has seen that they are."""
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(dut, TableDut) and isinstance(generator, HoldingGenerator), "both were required"
    assert isinstance(profile, ConnectionProfile), "the metric is of connections"
    return dut, generator, profile


class TableProcedure(Procedure):
    """A procedure of the connection table."""

    loads = frozenset((Hold,))
    abilities = frozenset({"connections"})

    def conclude(
        self,
        bench: Bench,
        trials: Trials,
        seen: Observation,
        values: Mapping[str, float | None],
        reason: str,
        *,
        right: bool,
        limited_by: LimitedBy = "dut",
        held: bool | None = None,
    ) -> Outcome:
        """What the last trial says: figures, and a decision on each that is promised, where it was valid. `right`:
        whether all else went as it has to; no promise is kept without. `held`: where that differs."""
        invalid, decisions = seen.state == "invalid", {}
        for name in self.found_out:
            if (limit := bench.limits.get(name)) is not None:
                value = values[name]
                kept = right and value is not None and METRICS[name].keeps(value, limit)
                decisions[name] = Decision.by_figure(None if invalid else kept, reason)
        return Outcome(
            self.metric(bench.profile), {} if invalid else figures_by_name(values),
            "generator" if invalid else limited_by, reason, not invalid and (right if held is None else held),
            trials.made, decisions, trials.evidence,
        )  # fmt: skip


@dataclass
class HeldTrial(TableTrial):
    """What one trial yielded."""

    opened: Opened | None = None
    answered: Answered | None = None
    #: Bytes by which the DUT's memory had grown before it, and when all were open; None where nothing can tell.
    memory: tuple[int | None, int | None] = (None, None)

    #: What the DUT said where connections were refused.
    said: FullSaid | None = None

    @property
    def full(self) -> list[Problem]:
        """What was lost in a table that was full is the DUT's own loss, however busy the machine was."""
        if self.said is None or not self.said.counted:
            return []
        text = f"The connection table was full: {self.said.counted} packets found no room in it"
        limit = "" if self.counts.limit is None else f" (limit {self.counts.limit})"
        return [Problem("stalled", f"{text}{limit}.")]

    @property
    def proven(self) -> int:
        """Connections that answered in the end, and that the DUT counted as well."""
        found = [each.found for each in self.counts.made if each.expected]
        return min(self.answered.answered if self.answered else 0, *found) if found else 0

    @property
    def entry_bytes(self) -> float | None:
        """Memory of the DUT for each connection; None where an earlier test left more than this one took."""
        before, after = self.memory
        if self.opened is None or not self.opened.established or before is None or not after:
            return None
        return after / self.opened.established if after - before >= _OWN_GROWTH * after > 0 else None


def hold(bench: Bench, number: int, load: Hold, hold_s: float) -> tuple[Observation, HeldTrial]:
    """Open connections, keep them open for `hold_s`, ask each, and count at every step. `number`: of the trial in its
    test. No connection may be lost. Raises what `TrialRunner.watch` raises."""
    dut, generator, profile = tools(bench)
    made = HeldTrial(Counts(dut, number))
    counts = made.counts

    def offer() -> Trial:
        counts.limit, said = dut.limit_now(), dut.full_said()
        counts.take("before", 0)
        with generator.hold(profile, load) as held:
            before = dut.table_memory()
            made.opened = opened = held.open(load.connections)
            counts.take("opened", opened.established)
            made.memory = before, dut.table_memory()
            if opened.refused:
                made.said = heard(dut, said)
            time.sleep(hold_s)
            counts.take("held", opened.established)
            made.answered = held.ask()
            counts.take("answered", made.answered.answered)
            counts.look_at_limit()
            return held.trial()

    seen = bench.runner_for({"loss_ratio": 0.0}).watch(offer)
    return replace(seen, wrong=counts.wrong, problems=(*seen.problems, *made.full)), made


def heard(dut: TableDut, before: FullSaid) -> FullSaid:
    """What the DUT has said since `before`; its threads hand their counters in each second or so."""
    deadline = time.monotonic() + COUNTERS_S
    while not (said := dut.full_said().since(before)).counted and time.monotonic() < deadline:
        time.sleep(0.1)
    return said


def refused(opened: Opened) -> str:
    """What became of connections that did not open, for a sentence; empty where all did."""
    if not opened.refused:
        return ""
    more = ", and no more were begun" if opened.gave_up else ""
    return f"{format_count(opened.refused)} of {format_count(opened.begun)} were refused{more}"
