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
from ctbench.dut.abilities import FullSaid, TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.held import Counts, TableProcedure, TableTrial, heard, hold, of_table, refused, tools
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.trial import Expected
from ctbench.measure.trials import Trials
from ctbench.results.metrics import METRICS
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import Holding, Opened
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import Profile

HELD, RECOVERY, FORGOTTEN = (METRICS[name] for name in ("held_connections", "recovery_time", "forgotten_when_full"))
#: Seconds that the DUT's counts take, at most.
_COUNTING_S = 3.0


class TableCapacity(TableProcedure):
    """How many connections the DUT holds at once."""

    name = "table-capacity"
    says = (
        "opens connections, keeps them open, asks each a message, and compares their number with the DUT's own count "
        "at every step"
    )
    found_out = (HELD.name,)

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """The holding: how long the opening takes follows from the floor, which is not known here."""
        return Expected(1, campaign.table.hold)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Limited by the floor (or the range) where as many were held as were asked for."""
        how, promised, most = bench.campaign.table, bench.limits.get(HELD.name), bench.most_held
        # As many as are promised, or the campaign's number where it is more, as far as there can be so many.
        wanted = how.connections or 0
        asked = int(max(promised or 0, wanted if most is None else min(wanted, most))) or 1
        load = Hold(asked, how.opened_per_s, asked_after_s=how.hold + _COUNTING_S)
        seen, made = of_table(trials, load.opened_per_s, lambda number: hold(bench, number, load, how.hold))
        found, opened, wrong = made.proven, made.opened, made.counts.wrong
        assert opened is not None
        every = found >= asked and not wrong
        # What was asked for was held: the floor, or as many as the campaign wants to try, and the DUT may hold more.
        limit: LimitedBy = "floor" if asked == promised else "range"
        said = [wrong, refused(opened), seen.reason if seen.state == "invalid" else ""]
        reason = "; ".join(filter(None, said)) or (
            f"{found} were open at once, the DUT counted as many at every step, and each answered"
        )
        values = {HELD.name: found, "table_entry_bytes": made.entry_bytes, "opening_rate": _rate(opened)}
        return self.conclude(
            bench, trials, seen, values, reason, right=not wrong, limited_by=limit if every else "dut", held=every
        )


def _rate(opened: Opened) -> float | None:
    return opened.established / opened.last_s if opened.last_s else None


#: Connections beyond the limit, and as many more where there is room again.
BEYOND = 1000
#: Seconds in which connections are refused and counted, before those that are open are asked.
REFUSING_S = 10.0


@dataclass
class Fullness(TableTrial):
    """What was seen of a table that was filled."""

    #: What went wrong, a clause each.
    wrong: list[str] = field(default_factory=list)
    #: Seconds from the room to the first connection that opened; None where none did.
    recovered_s: float | None = None
    #: What the DUT said of it.
    said: FullSaid | None = None

    def reopen(self, held: Holding, make_room: Callable[[], None]) -> Opened:
        """Make room, and open as many connections again as there is room for; note how soon the first one opens."""
        begun = time.monotonic()
        make_room()
        told_s = time.monotonic() - begun
        again = held.open(BEYOND)
        if again.first_s is not None:
            self.recovered_s = told_s + again.waited_s + again.first_s
        return again

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


class TableFull(TableProcedure):
    """What happens when the table is full: new connections are refused, those that are open go on, and new ones open
    where there is room again. In the terms of RFC 9411 it is what comes after the capacity of section 7.5."""

    name = "table-full"
    says = "fills the table, opens more, asks those that are open, makes room and opens more again"
    abilities = frozenset({"connections", "table limit"})
    found_out = (RECOVERY.name,)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """`ConfigError` where the topology has no limit of its own."""
        limit = bench.topology.max_connections if bench.topology else None
        if limit is None:
            raise ConfigError(
                "A full table is measured, and the topology does not say how many entries it has.\n"
                "  Expected max_connections=10000 or so behind the row."
            )
        load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asks=2, asked_after_s=REFUSING_S)
        seen, made = of_table(trials, load.opened_per_s, lambda number: fill_and_make_room(bench, number, load, limit))
        reason = seen.reason or (
            f"{limit} entries filled the table, {BEYOND} connections more were refused, those that were open answered, "
            f"and new ones opened {format_duration(made.recovered_s or 0.0)} after there was room; {made.as_said}"
        )
        values = {RECOVERY.name: made.recovered_s}
        right = not seen.reason and made.recovered_s is not None
        return self.conclude(bench, trials, seen, values, reason, right=right)


def fill_and_make_room(bench: Bench, number: int, load: Hold, limit: int) -> tuple[Observation, Fullness]:
    """Fill the table, open more, ask, make room, and open more again. `number`: of the trial in its test."""
    dut, generator, profile = tools(bench)
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
            more = made.reopen(held, lambda: dut.limit_table(limit + BEYOND))
            made.listen(heard(dut, before))
            made.expect("connections opened when there was room again", more.established, BEYOND)
            counts.take("room again", limit + BEYOND)
            made.expect("connections answered in the end", held.ask().answered, limit + BEYOND)
            return held.trial()

    # Those that are refused are lost, and have to be: half of all is more than that.
    seen = bench.runner_for({"loss_ratio": 0.5}).watch(offer)
    return replace(seen, wrong="; ".join(filter(None, [*made.wrong, counts.wrong]))), made


@dataclass
class AtLimit(Fullness):
    """What was seen of a table that was filled beyond a limit that cannot be changed."""

    #: Connections that opened, that were refused, and that answered while the table was full.
    opened: int = 0
    refused: int = 0
    answered: int = 0

    @property
    def forgotten(self) -> float:
        """Share of the connections that had opened and did not answer any more."""
        return 1 - self.answered / self.opened if self.opened else 1.0


class TableEarlyDrop(TableProcedure):
    """What happens at a limit that cannot be changed, as that of the Linux kernel: connections beyond it are refused,
    or others go early to make room ("early drop": those whose handshake was not seen to its end, or that had no
    reply)."""

    name = "table-early-drop"
    says = "opens more connections than the table has entries, asks each, and opens new ones when it was emptied"
    found_out = (FORGOTTEN.name, RECOVERY.name)

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """A guess: the limit is the DUT's, which is not known here."""
        return Expected(1, 5.0)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """`MissingResource` where no limit is known, or so many connections cannot be held."""
        dut, most = bench.dut, bench.most_held
        assert isinstance(dut, TableDut), "its ability was required"
        limit = dut.limit_now()
        if limit is None:
            raise MissingResource("The DUT does not say how many entries its table may have.")
        # The table itself bounds what is held; whatever else does, does so before it is full.
        if most is not None and most < limit:
            raise MissingResource(f"The DUT's table has {limit} entries, and {most:.0f} connections can be held here.")
        load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asked_after_s=REFUSING_S)
        seen, made = of_table(trials, load.opened_per_s, lambda number: fill_and_empty(bench, number, load, limit))
        said = made.said or FullSaid(0, None)
        reason = seen.reason or (
            f"of {made.opened} connections that opened at a limit of {limit} entries, {made.answered} answered "
            f"({format_ratio(made.forgotten)} were forgotten); {made.refused} were refused; the DUT counted "
            f"{said.counted} packets that found the table full and {said.forgotten} entries that it dropped early; new "
            f"ones opened {format_duration(made.recovered_s or 0.0)} after the table was emptied"
        )
        values = {FORGOTTEN.name: made.forgotten, RECOVERY.name: made.recovered_s}
        right = not seen.reason and made.recovered_s is not None
        return self.conclude(bench, trials, seen, values, reason, right=right)


def fill_and_empty(bench: Bench, number: int, load: Hold, limit: int) -> tuple[Observation, AtLimit]:
    """Open as many connections as there is room for, and more; ask them; empty the table, and open some again."""
    dut, generator, profile = tools(bench)
    made = AtLimit(Counts(dut, number))

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
            again = made.reopen(held, dut.flush_state)
            made.expect("connections opened when there was room again", again.established, BEYOND)
            made.counts.take("room again", again.established)
            return held.trial()

    # What finds a table emptied is lost, and has to be.
    seen = bench.runner_for({"loss_ratio": 1.0}, alone=True).watch(offer)
    return replace(seen, wrong="; ".join(made.wrong)), made
