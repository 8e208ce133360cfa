"""What a DUT can say of its connection table: what passes between it and a procedure."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class FullSaid:
    """What a DUT says of its table that was full."""

    #: Packets (each SYN that was sent again is one more) that found no room, by its own counter.
    counted: int
    #: Lines of its log that say so; None where nobody may read it.
    logged: int | None
    #: Connections that it forgot to make room.
    forgotten: int = 0

    def since(self, before: "FullSaid") -> "FullSaid":
        """What came after `before`."""
        logged = None if self.logged is None or before.logged is None else self.logged - before.logged
        return FullSaid(self.counted - before.counted, logged, self.forgotten - before.forgotten)


@runtime_checkable
class TableDut(Protocol):
    """A DUT with the ability `connections`."""

    @property
    def sweep_s(self) -> float:
        """Seconds from one sweep of the table to the next, at most: an entry may stay so long beyond its timeout."""

    def connections(self) -> int:
        """See `Dut.connections`."""

    def flush_state(self) -> None:
        """See `Dut.flush_state`."""

    def table_memory(self) -> int | None:
        """By how much the memory that the table is part of has grown since the DUT was started, bytes: that of a
        process, or of the kernel of the whole machine. None where nobody can tell."""

    def sweeps_within(self, timeout_s: float) -> float:
        """Seconds between two sweeps, at most, of a table that has been full of entries for a while, each of which goes
        `timeout_s` after its last packet."""

    def limit_now(self) -> int | None:
        """Entries that the table may have now; None where it does not say."""

    def full_said(self) -> FullSaid:
        """What it has said of its table that was full, since it was started."""

    def limit_table(self, entries: int) -> None:
        """Let the table have so many entries from now on; `MissingResource` where that cannot be changed."""
