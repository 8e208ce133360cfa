"""What the connection table does at its limit: how many connections it holds, what becomes of more than that, and how
soon new ones open where there is room again.

Connections are opened below the connection rate, kept open, and each is asked a message in the end (RFC 9411, section
7.5). RFC 9693 finds the capacity of the table by a drop in the rate; here the DUT counts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import format_duration, format_ratio
from ctbench.dut.abilities import FullSaid
from ctbench.dut.base import Dut, Problem
from ctbench.dut.registry import ruleset_of
from ctbench.measure.held import TableTrial, conclude, others, refused, tools
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Answered, Holding, Opened, Trial
from ctbench.traffic.loads import Hold

HELD, RECOVERY, FORGOTTEN = (METRICS[name] for name in ("held_connections", "recovery_time", "forgotten_when_full"))
#: Seconds that the DUT's counts take, at most; and that its threads take to hand their counters in.
_COUNTING_S, COUNTERS_S = 3.0, 3.0


def said_since(dut: Dut, before: FullSaid) -> FullSaid:
    """What a DUT has said of a full table since then; its threads hand their counters in each second or so."""
    deadline = time.monotonic() + COUNTERS_S
    while not (said := dut.full_said().since(before)).counted and time.monotonic() < deadline:
        time.sleep(0.1)
    return said


@dataclass
class HeldTrial(TableTrial):
    """Connections are opened, kept open, and asked, each; none may be lost."""

    opened: Opened | None = None
    answered: Answered | None = None
    #: Entries that the table might have when the trial began, and how that changed.
    limit: int | None = None
    changed: str = ""
    #: Packets that found no room in the table.
    found_full: int = 0

    def begin(self) -> None:
        self.limit = self.dut.limit_now()

    def work(self, held: Holding) -> None:
        said = self.dut.full_said()
        self.opened = opened = held.open(self.load.connections)
        self.counts.take("opened", opened.established)
        if opened.refused:
            self.found_full = said_since(self.dut, said).counted
        time.sleep(self.bench.campaign.table.hold)
        self.counts.take("held", opened.established)
        self.answered = held.ask()
        self.counts.take("answered", self.answered.answered)
        if (now := self.dut.limit_now()) != self.limit:
            self.changed = f"the DUT's limit of entries was {self.limit} when the trial began, and {now} at its end"

    @property
    def wrong(self) -> str:
        return self.changed or self.counts.wrong

    def judged(self, seen: Observation) -> Observation:
        """What was lost in a table that was full is the DUT's own loss, however busy the machine was."""
        seen = super().judged(seen)
        if not self.found_full:
            return seen
        limit = "" if self.limit is None else f" (limit {self.limit})"
        text = f"The connection table was full: {self.found_full} packets found no room in it{limit}."
        return replace(seen, problems=(*seen.problems, Problem("stalled", text)))

    @property
    def proven(self) -> int:
        """Connections that answered in the end, and that the DUT counted as well."""
        found = [each.found for each in self.counts.made if each.expected]
        return min(self.answered.answered if self.answered else 0, *found) if found else 0


def _capacity(bench: Bench, trials: Trials) -> Outcome:
    """Limited by the floor (or the range) where as many were held as were asked for."""
    how, promised, most = bench.campaign.table, bench.floor.limit(HELD.name), bench.most_held
    # As many as are promised, or the campaign's number where it is more, as far as there can be so many.
    wanted = how.connections or 0
    asked = int(max(promised or 0, wanted if most is None else min(wanted, most))) or 1
    load = Hold(asked, how.opened_per_s, asked_after_s=how.hold + _COUNTING_S)
    seen, made = HeldTrial.make(bench, trials, load)
    found, opened, wrong = made.proven, made.opened, made.wrong
    assert opened is not None
    every = found >= asked and not wrong
    # What was asked for was held: the floor, or as many as the campaign wants to try, and the DUT may hold more.
    limit: LimitedBy = "floor" if asked == promised else "range"
    said = [wrong, refused(opened), seen.reason if seen.state == "invalid" else ""]
    reason = "; ".join(filter(None, said)) or (
        f"{found} were open at once, the DUT counted as many at every step, and each answered"
    )
    values = {HELD.name: found, "opening_rate": opening_rate(opened)}
    return conclude(
        bench, seen, (HELD,), values, reason, right=not wrong, limited_by=limit if every else "dut", held=every
    )


TABLE_CAPACITY = Scripted(
    name="table-capacity",
    says="opens connections, keeps them open, asks each a message, and compares their number with the DUT's own count "
    "at every step",
    found_out=(HELD.name,),
    script=_capacity,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections"}),
    promised=Promise("held connections", "table", "capacity", CONNECTIONS),
)


def opening_rate(opened: Opened) -> float | None:
    """Connections that opened, per second until the last one did; None where none did."""
    return opened.established / opened.last_s if opened.last_s else None


#: Connections beyond the limit, and as many more where there is room again.
BEYOND = 1000
#: Seconds in which connections are refused and counted, before those that are open are asked.
REFUSING_S = 10.0


@dataclass
class Beyond(TableTrial):
    """A trial in which more connections are opened than the table has room for, and some again when it has."""

    #: What the DUT said of its full table.
    said: FullSaid = field(default_factory=lambda: FullSaid(0, None))
    #: What went wrong, a clause each.
    faults: list[str] = field(default_factory=list)
    #: Seconds from the room to the first connection that opened; None where none did.
    recovered_s: float | None = None

    @property
    def limit(self) -> int:
        """Entries that the table has."""
        return self.load.connections - 2 * BEYOND

    @property
    def wrong(self) -> str:
        return "; ".join(filter(None, [*self.faults, self.counts.wrong]))

    def begin(self) -> None:
        self._before = self.dut.full_said()

    def listen(self) -> None:
        """Note what the DUT said of its table: it has to count what found that full."""
        self.said = said_since(self.dut, self._before)
        if not self.said.counted:
            self.faults.append("the DUT does not say that its table was full")

    def expect(self, what: str, found: int, expected: int) -> None:
        """Note it where a number is not the one that is expected."""
        if found != expected:
            self.faults.append(f"{found} of {expected} {what}")

    def reopen(self, held: Holding, make_room: Callable[[], None]) -> Opened:
        """Make room, and open as many connections again as there is room for; note how soon the first one opens."""
        begun = time.monotonic()
        make_room()
        told_s = time.monotonic() - begun
        again = held.open(BEYOND)
        if again.first_s is not None:
            self.recovered_s = told_s + again.waited_s + again.first_s
        return again


class Filled(Beyond):
    """The table is filled, more are opened, those that are open are asked, room is made, and more are opened again."""

    # Those that are refused are lost, and have to be: half of all is more than that.
    may_lose = 0.5

    def begin(self) -> None:
        super().begin()
        self.dut.limit_table(self.limit)  # an earlier trial of this test has made room

    def work(self, held: Holding) -> None:
        limit, counts = self.limit, self.counts
        self.expect("connections opened in a table with room for them", held.open(limit).established, limit)
        counts.take("full", limit)
        refused = held.open(BEYOND)
        self.expect("connections beyond the limit were refused", refused.refused, refused.begun)
        counts.take("refused", limit)
        self.expect("open connections answered while the table was full", held.ask().answered, limit)
        again = self.reopen(held, lambda: self.dut.limit_table(limit + BEYOND))
        self.listen()
        logged = self.said.logged
        if logged is not None and logged > 1:
            self.faults.append(f"the DUT's log says {logged} times that its table was full")
        self.expect("connections opened when there was room again", again.established, BEYOND)
        counts.take("room again", limit + BEYOND)
        self.expect("connections answered in the end", held.ask().answered, limit + BEYOND)

    def __str__(self) -> str:
        logged = "" if self.said.logged is None else f", and its log has {self.said.logged} lines about it"
        return (
            f"{self.limit} entries filled the table, {BEYOND} connections more were refused, those that were open "
            f"answered, and new ones opened {format_duration(self.recovered_s or 0.0)} after there was room; it "
            f"counted {self.said.counted} packets that found the table full{logged}"
        )


def _full(bench: Bench, trials: Trials) -> Outcome:
    """`ConfigError` where the topology has no limit of its own."""
    limit = bench.topology.max_connections if bench.topology else None
    if limit is None:
        raise ConfigError(
            "A full table is measured, and the topology does not say how many entries it has.\n"
            "  Expected max_connections=10000 or so behind the row."
        )
    load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asks=2, asked_after_s=REFUSING_S)
    seen, made = Filled.make(bench, trials, load)
    right = not seen.reason and made.recovered_s is not None
    return conclude(bench, seen, (RECOVERY,), {RECOVERY.name: made.recovered_s}, seen.reason or str(made), right=right)


#: What happens when the table is full: new connections are refused, those that are open go on, and new ones open where
#: there is room again. In the terms of RFC 9411 it is what comes after the capacity of section 7.5.
TABLE_FULL = Scripted(
    name="table-full",
    says="fills the table, opens more, asks those that are open, makes room and opens more again",
    found_out=(RECOVERY.name,),
    script=_full,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "table limit"}),
    promised=Promise("recovery time", "table", "full", CONNECTIONS),
)


class ZoneFilled(Beyond):
    """A zone is filled to its limit, and more of its connections are opened; then others are, of another zone."""

    # Those that are refused are lost, and have to be.
    may_lose = 0.5
    #: Connections of the other zone that opened and answered while the one was full.
    untouched: int = 0

    def work(self, held: Holding) -> None:
        limit = self.limit
        self.expect("connections opened in a zone with room for them", held.open(limit).established, limit)
        self.expect("connections beyond the limit of the zone were refused", held.open(BEYOND).refused, BEYOND)
        self.counts.take("zone full", limit)
        self.expect("open connections of the zone answered while it was full", held.ask().answered, limit)

    def _offer(self) -> Trial:
        """The trial is of the zone that is full: what the other one loses is a fault."""
        made, how = super()._offer(), self.bench.campaign.table
        with self.bench.generator.hold(others(), Hold(limit := self.limit, how.opened_per_s)) as held:
            opened = held.open(limit).established
            self.counts.take("other zone", limit + opened)
            self.untouched = min(opened, held.ask().answered)
        self.expect("connections of another zone opened and answered", self.untouched, limit)
        return made


def _zone_full(bench: Bench, trials: Trials) -> Outcome:
    """`ConfigError` where no zone of the ruleset has a limit."""
    ruleset = ruleset_of(bench.topology) if bench.topology else None
    limits = ruleset.zone_limits.values() if ruleset else ()
    if not limits:
        raise ConfigError(
            "A full zone is measured, and the ruleset limits the entries of none.\n  Expected zone_limits: {1: 10000} "
            "or so in its entry of the catalogue, for the zone of the profile."
        )
    load = Hold(min(limits) + 2 * BEYOND, bench.campaign.table.opened_per_s, asks=2, asked_after_s=REFUSING_S)
    seen, made = ZoneFilled.make(bench, trials, load)
    reason = seen.reason or (
        f"{made.limit} connections filled their zone, {BEYOND} more were refused, and {made.untouched} of another zone "
        "opened and answered meanwhile"
    )
    return conclude(bench, seen, (HELD,), {HELD.name: made.untouched}, reason, right=not seen.reason)


#: What a zone that is full does to the others: nothing.
ZONE_FULL = Scripted(
    name="zone-full",
    says="fills a zone of connection tracking to its limit, opens more, and opens connections of another zone",
    found_out=(HELD.name,),
    script=_zone_full,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections"}),
    promised=Promise("full zone", "table", "full", CONNECTIONS),
)


@dataclass
class AtLimit(Beyond):
    """As many connections are opened as there is room for, and more; they are asked; the table is emptied, and some are
    opened again."""

    #: Connections that opened, that were refused, and that answered while the table was full.
    opened: int = 0
    refused: int = 0
    answered: int = 0
    # What finds a table emptied is lost, and has to be.
    may_lose = 1.0

    @property
    def wrong(self) -> str:
        """What the DUT counts may differ: some go early, to make room."""
        return "; ".join(self.faults)

    @property
    def forgotten(self) -> float:
        """Share of the connections that had opened and did not answer any more."""
        return 1 - self.answered / self.opened if self.opened else 1.0

    def work(self, held: Holding) -> None:
        first, beyond = held.open(self.limit), held.open(BEYOND)
        self.opened, self.refused = first.established + beyond.established, first.refused + beyond.refused
        if self.counts.take("full", self.limit) > self.limit:
            self.faults.append(f"the DUT counted more than its limit of {self.limit} entries")
        if not self.refused:
            self.faults.append(f"none of {first.begun + beyond.begun} connections was refused")
        self.answered = held.ask().answered
        self.listen()
        again = self.reopen(held, self.dut.flush_state)
        self.expect("connections opened when there was room again", again.established, BEYOND)
        self.counts.take("room again", again.established)

    def __str__(self) -> str:
        return (
            f"of {self.opened} connections that opened at a limit of {self.limit} entries, {self.answered} answered "
            f"({format_ratio(self.forgotten)} were forgotten); {self.refused} were refused; the DUT counted "
            f"{self.said.counted} packets that found the table full and {self.said.forgotten} entries that it dropped "
            f"early; new ones opened {format_duration(self.recovered_s or 0.0)} after the table was emptied"
        )


def _early_drop(bench: Bench, trials: Trials) -> Outcome:
    """`MissingResource` where no limit is known, or so many connections cannot be held."""
    dut, most = tools(bench)[0], bench.most_held
    limit = dut.limit_now()
    if limit is None:
        raise MissingResource("The DUT does not say how many entries its table may have.")
    # The table itself bounds what is held; whatever else does, does so before it is full.
    if most is not None and most < limit:
        raise MissingResource(f"The DUT's table has {limit} entries, and {most:.0f} connections can be held here.")
    load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asked_after_s=REFUSING_S)
    seen, made = AtLimit.make(bench, trials, load)
    values = {FORGOTTEN.name: made.forgotten, RECOVERY.name: made.recovered_s}
    right = not seen.reason and made.recovered_s is not None
    return conclude(bench, seen, (FORGOTTEN, RECOVERY), values, seen.reason or str(made), right=right)


#: What happens at a limit that cannot be changed, as that of the Linux kernel: connections beyond it are refused, or
#: others go early to make room ("early drop": those whose handshake was not seen to its end, or that had no reply).
TABLE_EARLY_DROP = Scripted(
    name="table-early-drop",
    says="opens more connections than the table has entries, asks each, and opens new ones when it was emptied",
    found_out=(FORGOTTEN.name, RECOVERY.name),
    script=_early_drop,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections"}),
    promised=Promise("early drop", "table", "early-drop", CONNECTIONS),
)
