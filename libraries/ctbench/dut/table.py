"""A DUT's connection table: its settings, its flush and dump, and the readers of printed entries."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Accounts, Done, TableEntry
from ctbench.dut.base import wait_until
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host

#: Seconds that a table gets to become empty, and between two looks.
FLUSH_TIMEOUT_S = 30.0
POLL_S = 0.02


class TableSettings(BaseModel):
    """The settings that every connection table has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Entries at most.
    max_connections: int
    #: Seconds, by the DUT's own names.
    timeouts: dict[str, int]
    #: Names of timeouts that only a topology with one timeout sets.
    further: tuple[str, ...] = Field((), exclude=True)

    def of(self, topology: Topology) -> Self:
        """Return these settings with those that a topology asks for."""
        own: dict[str, object] = {}
        if topology.timeout_s is not None:
            own["timeouts"] = dict.fromkeys([*self.timeouts, *self.further], topology.timeout_s)
        if topology.max_connections is not None:
            own["max_connections"] = topology.max_connections
        return self.model_copy(update=own)


def empty(flush: Callable[[], object], count: Callable[[], int]) -> None:
    """Flush a table until it has no entry: frames that waited in the rings may have opened connections since. Raise
    `TestbedError` when entries stay."""

    def is_empty() -> bool:
        flush()
        return count() == 0

    if not wait_until(is_empty, FLUSH_TIMEOUT_S, POLL_S):
        raise TestbedError(f"{count()} connections are left {FLUSH_TIMEOUT_S:g} s after conntrack was flushed.")


def dump(host: Host, argv: Sequence[str], env: dict[str, str] | None = None) -> Done:
    """Print a table by a command, a line for each entry. Count the lines and do not keep them: a million entries are
    150 MB, and take some ten seconds. Raise `TestbedError` where the command prints none."""
    begun = time.monotonic()
    printed = host.run(["sh", "-c", '"$@" 2>/dev/null | wc -l', "sh", *argv], 300.0, env=env).stdout
    seconds = time.monotonic() - begun
    if not (entries := int(printed)):  # the status of a pipe is not that of its first command
        raise TestbedError(f"{' '.join(argv[-2:])} printed no connection.")
    return Done(seconds, entries)


#: What Open vSwitch and conntrack(8) print of an entry: the direction that it began in first.
_ENTRY = re.compile(
    r"^(tcp|udp)\b.*?\bsrc=([^ ,]+)[ ,]+dst=([^ ,]+)[ ,]+sport=(\d+)[ ,]+dport=(\d+)"
    r"(?:.*\bzone=(\d+))?(?:.*\btimeout=(\d+))?",
    re.MULTILINE,
)


def read_entries(printed: str) -> list[TableEntry]:
    """Return the entries of TCP and UDP in a printed table."""
    return [
        TableEntry(protocol, source, destination, int(port), int(other), int(zone or 0), int(timeout or 0))
        for protocol, source, destination, port, other, zone, timeout in _ENTRY.findall(printed)
    ]


#: Who sends in the direction that a connection began in, and who in the other one.
_SIDES = ("client", "server")
#: What conntrack(8) prints of an entry of TCP or UDP whose packets are counted, for each direction.
_COUNTED = re.compile(r"\bpackets=(\d+) bytes=(\d+)")
#: How it marks an entry that is in a flowtable: `[OFFLOAD]`, and `[HW_OFFLOAD]` in that of a card.
_OFFLOADED = "OFFLOAD]"


def read_accounts(printed: Sequence[str]) -> Accounts:
    """Return the counts of the entries of TCP and UDP, from the lines that conntrack(8) prints of them."""
    lines = [line for line in printed if line.startswith(("tcp", "udp"))]
    counted = [found for line in lines if len(found := _COUNTED.findall(line)) == len(_SIDES)]
    packets, sizes = (
        {side: sum(int(found[place][what]) for found in counted) for place, side in enumerate(_SIDES) if counted}
        for what in range(2)
    )
    return Accounts(len(lines), sum(_OFFLOADED in line for line in lines), packets, sizes)
