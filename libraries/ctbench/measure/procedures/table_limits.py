"""The connection table at its limit: how many connections it holds, the fate of more than that, and how soon new ones
open when there is room again.

Connections are opened below the connection rate, kept open, and sent a message each in the end (RFC 9411, section 7.5).
RFC 9693 finds the capacity of the table by a drop in the rate; here the DUT counts its entries.
"""

import time
from collections.abc import Callable

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import format_duration, format_ratio
from ctbench.dut.abilities import FullSaid
from ctbench.dut.base import Dut, Problem
from ctbench.dut.registry import ruleset_of
from ctbench.measure.held import TableTrial, conclude, others, refused, table_trial
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Holding, Opened, Trial
from ctbench.traffic.loads import Hold

HELD, RECOVERY, FORGOTTEN = (METRICS[name] for name in ("held_connections", "recovery_time", "forgotten_when_full"))
#: Seconds that the DUT's counts take, at most; and that its threads take to hand their counters in.
_COUNTING_S, COUNTERS_S = 3.0, 3.0


def said_since(dut: Dut, before: FullSaid) -> FullSaid:
    """Return what a DUT has reported of a full table since `before`. Its threads update their counters each second or
    so: wait up to `COUNTERS_S` for a count."""
    deadline = time.monotonic() + COUNTERS_S
    while not (said := dut.full_said().since(before)).counted and time.monotonic() < deadline:
        time.sleep(0.1)
    return said


def _capacity(bench: Bench, trials: Trials) -> Outcome:
    """Open connections, keep them open, and ask each; none may be lost. Where all that were asked for are held, the
    outcome is limited by the floor (or the range)."""
    dut, how, promised, most = bench.dut, bench.campaign.table, bench.floor.limit(HELD.name), bench.most_held
    # As many as are promised, or the campaign's number where it is more, as far as there can be so many.
    wanted = how.connections or 0
    asked = int(max(promised or 0, wanted if most is None else min(wanted, most))) or 1

    def offer(made: TableTrial) -> Trial:
        limit = dut.limit_now()
        with made.hold() as held:
            said = dut.full_said()
            opened = held.open(asked)
            made.count("opened", opened.established)
            if opened.refused and (full := said_since(dut, said).counted):
                # What was lost in a table that was full is the DUT's own loss, however busy the machine was.
                of = "" if limit is None else f" (limit {limit})"
                text = f"The connection table was full: {full} packets found no room in it{of}."
                made.problems.append(Problem("stalled", text))
            time.sleep(how.hold)
            made.count("held", opened.established)
            answered = held.ask().answered
            made.count("answered", answered)
            if (now := dut.limit_now()) != limit:
                changed = f"the DUT's limit of entries was {limit} when the trial began, and {now} at its end"
                made.faults.append(changed)
            else:
                made.compare()
            # Those that answered in the end, and that the DUT counted as well.
            found = [each.found for each in made.counts if each.expected]
            made.values = {HELD.name: min(answered, *found) if found else 0, "opening_rate": opening_rate(opened)}
            made.said = refused(opened)
            return held.trial()

    load = Hold(asked, how.opened_per_s, asked_after_s=how.hold + _COUNTING_S)
    seen, made = table_trial(bench, trials, load, offer)
    found, wrong = made.values[HELD.name] or 0, made.wrong
    every = found >= asked and not wrong
    # What was asked for was held: the floor, or as many as the campaign wants to try, and the DUT may hold more.
    limit: LimitedBy = "floor" if asked == promised else "range"
    said = [wrong, made.said, seen.reason if seen.state == "invalid" else ""]
    reason = "; ".join(filter(None, said)) or (
        f"{found} were open at once, the DUT counted as many at every step, and each answered"
    )
    return conclude(
        bench, seen, (HELD,), made.values, reason, right=not wrong, limited_by=limit if every else "dut", held=every
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
    """Return the connections opened per second, until the last one opened; None where none did."""
    return opened.established / opened.last_s if opened.last_s else None


#: Connections beyond the limit, and as many more where there is room again.
BEYOND = 1000
#: Seconds in which connections are refused and counted, before those that are open are asked.
REFUSING_S = 10.0


def heard(made: TableTrial, before: FullSaid) -> FullSaid:
    """Return the DUT's reports of a full table since `before`. Add a fault where it counted no packet that found
    one."""
    said = said_since(made.bench.dut, before)
    if not said.counted:
        made.faults.append("the DUT does not say that its table was full")
    return said


def reopen(made: TableTrial, held: Holding, make_room: Callable[[], None]) -> Opened:
    """Make room, and open `BEYOND` connections. Record the seconds until the first one opens as the recovery time; None
    where none does."""
    begun = time.monotonic()
    make_room()
    told_s = time.monotonic() - begun
    again = held.open(BEYOND)
    made.values[RECOVERY.name] = None if again.first_s is None else told_s + again.waited_s + again.first_s
    return again


def recovered(made: TableTrial) -> str:
    """Return the recovery time, in words."""
    return format_duration(made.values[RECOVERY.name] or 0.0)


def _full(bench: Bench, trials: Trials) -> Outcome:
    """Fill the table, open more connections, ask the open ones, make room, and open more again. Raise `ConfigError`
    where the topology has no limit of its own."""
    dut, limit = bench.dut, bench.topology.max_connections
    if limit is None:
        raise ConfigError(
            "A full table is measured, and the topology does not say how many entries it has.\n"
            "  Expected max_connections=10000 or so behind the row."
        )

    def offer(made: TableTrial) -> Trial:
        before = dut.full_said()
        dut.limit_table(limit)  # an earlier trial of this test has made room
        with made.hold() as held:
            made.expect("connections opened in a table with room for them", held.open(limit).established, limit)
            made.count("full", limit)
            beyond = held.open(BEYOND)
            made.expect("connections beyond the limit were refused", beyond.refused, beyond.begun)
            made.count("refused", limit)
            made.expect("open connections answered while the table was full", held.ask().answered, limit)
            again = reopen(made, held, lambda: dut.limit_table(limit + BEYOND))
            said = heard(made, before)
            if said.logged is not None and said.logged > 1:
                made.faults.append(f"the DUT's log says {said.logged} times that its table was full")
            made.expect("connections opened when there was room again", again.established, BEYOND)
            made.count("room again", limit + BEYOND)
            made.expect("connections answered in the end", held.ask().answered, limit + BEYOND)
            made.compare()
            logged = "" if said.logged is None else f", and its log has {said.logged} lines about it"
            made.said = (
                f"{limit} entries filled the table, {BEYOND} connections more were refused, those that were open "
                f"answered, and new ones opened {recovered(made)} after there was room; it counted {said.counted} "
                f"packets that found the table full{logged}"
            )
            return held.trial()

    # Those that are refused are lost, and have to be: half of all is more than that.
    load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asks=2, asked_after_s=REFUSING_S)
    seen, made = table_trial(bench, trials, load, offer, may_lose=0.5)
    right = not seen.reason and made.values[RECOVERY.name] is not None
    return conclude(bench, seen, (RECOVERY,), made.values, seen.reason or made.said, right=right)


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


def _zone_full(bench: Bench, trials: Trials) -> Outcome:
    """Fill a zone to its limit, open more of its connections, then open connections of another zone. Raise
    `ConfigError` where no zone of the ruleset has a limit."""
    ruleset = ruleset_of(bench.topology)
    limits = ruleset.zone_limits.values() if ruleset else ()
    if not limits:
        raise ConfigError(
            "A full zone is measured, and the ruleset limits the entries of none.\n  Expected zone_limits: {1: 10000} "
            "or so in its entry of the catalogue, for the zone of the profile."
        )
    limit, per_s = min(limits), bench.campaign.table.opened_per_s

    def offer(made: TableTrial) -> Trial:
        with made.hold() as held:
            made.expect("connections opened in a zone with room for them", held.open(limit).established, limit)
            beyond = held.open(BEYOND).refused
            made.expect("connections beyond the limit of the zone were refused", beyond, BEYOND)
            made.count("zone full", limit)
            made.expect("open connections of the zone answered while it was full", held.ask().answered, limit)
            trial = held.trial()  # what the other zone loses is a fault
        with bench.generator.hold(others(), Hold(limit, per_s)) as held:
            opened = held.open(limit).established
            made.count("other zone", limit + opened)
            untouched = min(opened, held.ask().answered)
        made.expect("connections of another zone opened and answered", untouched, limit)
        made.compare()
        made.values[HELD.name] = untouched
        made.said = (
            f"{limit} connections filled their zone, {BEYOND} more were refused, and {untouched} of another zone "
            "opened and answered meanwhile"
        )
        return trial

    # Those that are refused are lost, and have to be.
    load = Hold(limit + 2 * BEYOND, per_s, asks=2, asked_after_s=REFUSING_S)
    seen, made = table_trial(bench, trials, load, offer, may_lose=0.5)
    return conclude(bench, seen, (HELD,), made.values, seen.reason or made.said, right=not seen.reason)


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


def at_limit(
    bench: Bench, trials: Trials, limit: int, say: Callable[[int, int, int, FullSaid], str], *, counts_full: bool
) -> tuple[Observation, TableTrial]:
    """Open as many connections as there is room for, and more; ask them; empty the table; open some again. `say`:
    returns that in words, from the numbers opened, refused and answered while the table was full, and the DUT's
    reports. `counts_full`: the DUT has to count packets that find its table full."""
    dut = bench.dut

    def offer(made: TableTrial) -> Trial:
        said = dut.full_said()
        with made.hold() as held:
            first, more = held.open(limit), held.open(BEYOND)
            opened, refused = first.established + more.established, first.refused + more.refused
            # What the DUT counts may differ: some go early, to make room.
            if made.count("full", limit) > limit:
                made.faults.append(f"the DUT counted more than its limit of {limit} entries")
            if not refused:
                made.faults.append(f"none of {first.begun + more.begun} connections was refused")
            answered = held.ask().answered
            if counts_full:
                said = heard(made, said)
            again = reopen(made, held, dut.flush_state)
            made.expect("connections opened when there was room again", again.established, BEYOND)
            made.count("room again", again.established)
            made.values[FORGOTTEN.name] = 1 - answered / opened if opened else 1.0
            made.values["ports_used"] = opened / limit
            made.said = f"{say(opened, refused, answered, said)} {recovered(made)} after the table was emptied"
            return held.trial()

    # What finds a table emptied is lost, and has to be.
    load = Hold(limit + 2 * BEYOND, bench.campaign.table.opened_per_s, asked_after_s=REFUSING_S)
    return table_trial(bench, trials, load, offer, may_lose=1.0)


def _early_drop(bench: Bench, trials: Trials) -> Outcome:
    """Measure early drop at a limit that cannot be changed. Raise `MissingResource` where the limit is not known, or
    where so many connections cannot be held."""
    limit, most = bench.dut.limit_now(), bench.most_held
    if limit is None:
        raise MissingResource("The DUT does not say how many entries its table may have.")
    # The table itself bounds what is held; whatever else does, does so before it is full.
    if most is not None and most < limit:
        raise MissingResource(f"The DUT's table has {limit} entries, and {most:.0f} connections can be held here.")

    def say(opened: int, refused: int, answered: int, said: FullSaid) -> str:
        forgotten = format_ratio(1 - answered / opened if opened else 1.0)
        return (
            f"of {opened} connections that opened at a limit of {limit} entries, {answered} answered ({forgotten} were "
            f"forgotten); {refused} were refused; the DUT counted {said.counted} packets that found the table full and "
            f"{said.forgotten} entries that it dropped early; new ones opened"
        )

    seen, made = at_limit(bench, trials, limit, say, counts_full=True)
    values = {each.name: made.values[each.name] for each in (FORGOTTEN, RECOVERY)}
    right = not seen.reason and values[RECOVERY.name] is not None
    return conclude(bench, seen, (FORGOTTEN, RECOVERY), values, seen.reason or made.said, right=right)


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
