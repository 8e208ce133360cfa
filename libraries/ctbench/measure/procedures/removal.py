"""How long it takes to remove entries of a connection table that holds very many, and what a load loses meanwhile: one
entry, those of a zone, or all of them."""

import math
import time
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Done, TableEntry
from ctbench.dut.base import wait_until
from ctbench.dut.kind import Ability
from ctbench.measure.held import others
from ctbench.measure.procedure import Bench, Promise
from ctbench.measure.procedures.control_plane import Action, timed
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
#: Seconds of a trial at least: of a removal each second, or of all and what waits behind it.
_LEAST_S = 6.0
#: Entries that the load may have made since all were removed, as a share of those.
_MADE_SINCE = 0.5


@dataclass(kw_only=True)
class _Removal(Action):
    """Entries are removed of a table that is filled before the load is offered. What the command removes is proved
    then: beside the load the number of entries is not known."""

    bench: Bench
    every_s = 1.0
    #: Entries that are known, and were not removed so far.
    known: list[TableEntry] = field(default_factory=list)
    title = "removal"
    sizes = "entries"

    def before(self) -> None:
        dut, how, number = self.bench.dut, self.bench.campaign.table, int(self.expected)
        few = min(_KNOWN, number)
        with self.bench.generator.hold(others(), Hold(number, how.opened_per_s)) as held:
            held.open(few)
            self.known = dut.list_entries()
            held.open(number - few)
        if (found := dut.connections()) != number or len(self.known) != few:
            raise TestbedError(
                f"{number} connections were opened to fill the table: the DUT counted {found} entries, and listed "
                f"{len(self.known)} of the first {few}."
            )
        self.prove(number)
        dut.begin_trial()  # frames that filled the table are not of the load

    @abstractmethod
    def remove(self) -> Done:
        """Remove the next of what is to be removed."""

    def prove(self, number: int) -> None:
        """Whether the command removes what it is told, and nothing else, of a table of `number` entries."""

    def sample(self) -> float:
        return self.did(self.name, self.remove())

    def expect(self, what: str, left: int) -> None:
        """Note it where other entries are left after `what`."""
        dut = self.bench.dut
        if not wait_until(lambda: dut.connections() == left, _COUNTED_S):
            self.wrong = f"{what} left {dut.connections()} entries where {left} have to be"


class _OfOne(_Removal):
    """One entry after the other."""

    name = "entry_removal_time"

    def remove(self) -> Done:
        return self.bench.dut.remove_entries(self.known.pop())

    def prove(self, number: int) -> None:
        self.remove()
        self.expect("the removal of one entry", number - 1)


class _OfZone(_Removal):
    """The entries of one zone after the other."""

    name = "zone_removal_time"

    def _next(self) -> int:
        if not self.known:
            raise TestbedError("No zone is left whose entries were not removed.")
        zone = self.known[-1].zone
        self.known = [entry for entry in self.known if entry.zone != zone]
        return zone

    def remove(self) -> Done:
        return self.bench.dut.remove_entries(zone=self._next())

    def prove(self, number: int) -> None:
        zone = self._next()
        inside = len(self.bench.dut.list_entries(zone))
        self.bench.dut.remove_entries(zone=zone)
        self.expect(f"the removal of the {inside} entries of zone {zone}", number - inside)


class _OfAll(_Removal):
    """All entries, once in a trial."""

    name = "table_removal_time"
    every_s = 3600.0

    def remove(self) -> Done:
        time.sleep(_OFFERED_S)
        dut = self.bench.dut
        done = dut.remove_entries()
        if not wait_until(lambda: dut.connections() < _MADE_SINCE * done.size, _COUNTED_S):
            self.wrong = f"the removal of all {done.size:.0f} entries left {dut.connections()}"
        return done


def _removing(removal: type[_Removal], bench: Bench) -> Action:
    """Of as many entries as the table has room for beside those of the load."""
    most = math.inf if bench.most_held is None else bench.most_held
    return removal(bench=bench, expected=int(min(bench.campaign.table.expiring, _SHARE * most)))


_LOADS: tuple[type[Load], ...] = (Hold, Rate)
_ABILITIES: tuple[Ability, ...] = ("connections", "removal")
ENTRY_REMOVAL = timed(
    "entry-removal",
    "removes one entry after the other of a table that holds very many, beside a load of new connections",
    (_OfOne.name,),
    partial(_removing, _OfOne),
    least_s=_LEAST_S,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("entry removal time", "control plane", "removal", CONNECTIONS, long=True),
)
ZONE_REMOVAL = timed(
    "zone-removal",
    "removes the entries of one zone after the other of a table that holds very many, beside a load of new connections",
    (_OfZone.name,),
    partial(_removing, _OfZone),
    least_s=_LEAST_S,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("zone removal time", "control plane", "removal", CONNECTIONS, long=True),
)
#: Each time from a table that was filled again.
TABLE_REMOVAL = timed(
    "table-removal",
    "removes all entries of a table that holds very many, beside a load of new connections, three times",
    (_OfAll.name,),
    partial(_removing, _OfAll),
    least_s=_LEAST_S,
    rounds=3,
    loads=_LOADS,
    abilities=_ABILITIES,
    promised=Promise("table removal time", "control plane", "removal", CONNECTIONS, long=True),
)
