"""The time to remove one entry, a zone's or all of a very large connection table, and the load's loss meanwhile."""

import math
import time
from collections.abc import Callable
from functools import partial

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Done, TableEntry
from ctbench.dut.base import Dut, wait_until
from ctbench.dut.kind import Ability
from ctbench.measure.held import LARGE_TABLE, others
from ctbench.measure.procedure import Bench, Promise
from ctbench.measure.procedures.control_plane import Action, NothingLeft, timed
from ctbench.results.metrics import CONNECTIONS
from ctbench.traffic.loads import Hold, Load, Rate

#: Share of the table that is filled: the load's own entries have the rest.
_SHARE = 0.7
#: Connections that are opened first and known by their entries: enough for some in each of 64 zones.
_KNOWN = 500
#: Seconds that a DUT gets to count without the entries that were removed: it may give them back later than it answers.
_COUNTED_S = 2.0
#: Seconds from the beginning of a trial until its load is offered for certain.
_OFFERED_S = 1.0
#: Seconds between two removals; those of all come once in a trial.
_EVERY_S, _ONCE_S = 1.0, 3600.0
#: Seconds of a trial at least: of a removal each second, or of all and what waits behind it.
_LEAST_S = 6.0
#: Entries that the load may have made since all were removed, as a share of those.
_MADE_SINCE = 0.5


#: Entries of which some are removed: those that are known, and were not removed so far.
_Known = list[TableEntry]


def _remove_one(_action: Action, dut: Dut, known: _Known) -> Done:
    """Remove the next known entry."""
    return dut.remove_entries(_next_entry(known))


def _prove_one(dut: Dut, known: _Known) -> tuple[str, int]:
    dut.remove_entries(_next_entry(known))
    return "the removal of one entry", 1


def _next_entry(known: _Known) -> TableEntry:
    if not known:
        raise NothingLeft("No entry is left that was not removed.")
    return known.pop()


def _remove_zone(_action: Action, dut: Dut, known: _Known) -> Done:
    """Remove the entries of the next zone."""
    return dut.remove_entries(zone=_next_zone(known))


def _prove_zone(dut: Dut, known: _Known) -> tuple[str, int]:
    zone = _next_zone(known)
    inside = len(dut.list_entries(zone))
    dut.remove_entries(zone=zone)
    return f"the removal of the {inside} entries of zone {zone}", inside


def _next_zone(known: _Known) -> int:
    if not known:
        raise NothingLeft("No zone is left whose entries were not removed.")
    zone = known[-1].zone
    known[:] = [entry for entry in known if entry.zone != zone]
    return zone


def _remove_all(action: Action, dut: Dut, _known: _Known) -> Done:
    """Remove all entries, once in a trial. Set `action.wrong` where half of them stay."""
    time.sleep(_OFFERED_S)
    done = dut.remove_entries()
    if not wait_until(lambda: dut.connections() < _MADE_SINCE * done.size, _COUNTED_S):
        action.wrong = f"the removal of all {done.size:.0f} entries left {dut.connections()}"
    return done


def _removing(
    metric: str,
    remove: Callable[[Action, Dut, _Known], Done],
    prove: Callable[[Dut, _Known], tuple[str, int]] | None,
    bench: Bench,
) -> Action:
    """Return an action that removes entries of a table filled before the load is offered, with room left for the load's
    own entries. `prove`: removes entries before the load, and returns what it removed and how many entries. It proves
    that the command removes these and nothing else: during the load the number of entries is not known."""
    dut = bench.dut
    how = bench.campaign.table
    known: _Known = []
    number = int(min(LARGE_TABLE, math.inf if bench.most_held is None else _SHARE * bench.most_held))

    def begin(action: Action) -> None:
        few = min(_KNOWN, number)
        with bench.generator.hold(others(), Hold(number, how.opened_per_s)) as held:
            held.open(few)
            known[:] = dut.list_entries()
            held.open(number - few)
        if (found := dut.connections()) != number or len(known) != few:
            raise TestbedError(
                f"{number} connections were opened to fill the table: the DUT counted {found} entries, and listed "
                f"{len(known)} of the first {few}."
            )
        if prove:
            what, gone = prove(dut, known)
            if not wait_until(lambda: dut.connections() == number - gone, _COUNTED_S):
                action.wrong = f"{what} left {dut.connections()} entries where {number - gone} have to be"
        dut.begin_trial()  # frames that filled the table are not of the load

    return Action(
        name=metric, every_s=_EVERY_S if prove else _ONCE_S, title="removal", sizes="entries", expected=number,
        begin=begin, do=lambda action: action.did(metric, remove(action, dut, known)),
    )  # fmt: skip


_LOADS: tuple[type[Load], ...] = (Hold, Rate)
_ABILITIES: tuple[Ability, ...] = ("connections", "removal")
ENTRY_REMOVAL = timed(
    "entry-removal",
    "removes one entry after the other of a table that holds very many, under a load of new connections",
    ("entry_removal_time",),
    partial(_removing, "entry_removal_time", _remove_one, _prove_one),
    least_s=_LEAST_S,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("entry removal time", "control plane", "removal", CONNECTIONS, long=True),
)
ZONE_REMOVAL = timed(
    "zone-removal",
    "removes the entries of one zone after the other of a table that holds very many, under a load of new connections",
    ("zone_removal_time",),
    partial(_removing, "zone_removal_time", _remove_zone, _prove_zone),
    least_s=_LEAST_S,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("zone removal time", "control plane", "removal", CONNECTIONS, long=True),
)
#: Each time from a table that was filled again.
TABLE_REMOVAL = timed(
    "table-removal",
    "removes all entries of a table that holds very many, under a load of new connections, three times",
    ("table_removal_time",),
    partial(_removing, "table_removal_time", _remove_all, None),
    least_s=_LEAST_S,
    rounds=3,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("table removal time", "control plane", "removal", CONNECTIONS, long=True),
)
