"""What a DUT can be asked besides forwarding: what passes between a DUT with an ability and a procedure."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class FullSaid:
    """What a DUT says of its table that was full."""

    #: Packets (each SYN that was sent again is one more) that found no room, by its own counter.
    counted: int
    #: Lines of its log that say so; None where it may not be read.
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
        """`Dut.connections`."""

    def flush_state(self) -> None:
        """`Dut.flush_state`."""

    def table_memory(self) -> int | None:
        """By how much the memory that the table is part of has grown since the DUT was started, bytes: that of a
        process, or of the kernel of the whole machine. None where it is not known."""

    def sweeps_within(self, timeout_s: float) -> float:
        """Seconds between two sweeps, at most, of a table that has been full of entries for a while, each of which goes
        `timeout_s` after its last packet."""

    def limit_now(self) -> int | None:
        """Entries that the table may have now; None where it does not say."""

    def full_said(self) -> FullSaid:
        """What it has said of its table that was full, since it was started."""

    def limit_table(self, entries: int) -> None:
        """Let the table have so many entries from now on; `MissingResource` where that cannot be changed."""


#: Seconds that a table gets to be printed: a million entries take some ten.
DUMP_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Done:
    """Something that the control plane did once."""

    seconds: float
    #: How much of it there was: entries that were dumped, ports of the bridge, flows of the datapath.
    size: float


@dataclass(frozen=True)
class Revalidation:
    """A round of looking at all flows of the datapath."""

    seconds: float
    #: Flows that there are now, and that there may be: fewer than was allowed, where the DUT has lowered that.
    flows: int
    limit: int


@dataclass(frozen=True)
class ThreadLook:
    """A look at a thread."""

    #: CPU time that it has had so far, seconds.
    ran_s: float
    #: Whether it waits for an event now.
    waits: bool


@runtime_checkable
class DumpingDut(Protocol):
    """A DUT with the ability `dump`."""

    def dump_connections(self) -> Done:
        """Print the connection table, as an operator does; `size`: its entries. `TestbedError` where that fails."""


class ControlPlane(ABC):
    """The control plane of a DUT with the ability `control plane`. Every method raises `TestbedError` where the DUT
    does not do what it is asked for."""

    @abstractmethod
    def add_port(self, name: str) -> Done:
        """Add a port that no packet of the load passes, and wait until it is there; `size`: how many such ports stay,
        whatever comes and goes."""

    @abstractmethod
    def delete_port(self, name: str) -> Done:
        """Delete it, and wait until it is gone."""

    @abstractmethod
    def check_port(self, name: str) -> None:
        """`TestbedError` where a port was added and does not work."""

    @abstractmethod
    def delete_ports(self, names: Sequence[str]) -> None:
        """Delete those of them that are there."""

    @abstractmethod
    def revalidation(self) -> Revalidation:
        """The last round in which all flows of the datapath were looked at."""

    @abstractmethod
    def allow_flows(self, number: int) -> None:
        """Let the datapath have so many flows."""

    @abstractmethod
    def revalidate_all(self) -> None:
        """Make it look at all flows now, as after a change of its rules."""

    @abstractmethod
    def command(self, *words: str) -> Done:
        """Any other command that the main thread answers, such as `dpif/show`, in the words of the DUT's own tool;
        `size`: lines of the answer."""

    @abstractmethod
    def main_thread(self) -> ThreadLook | None:
        """What its main thread does now; None where that cannot be seen from here."""


@runtime_checkable
class ControlPlaneDut(Protocol):
    """A DUT with the ability `control plane`."""

    @property
    def control_plane(self) -> ControlPlane:
        """What can be done while it forwards."""


@dataclass(frozen=True)
class ThreadSamples:
    """Samples of one thread that forwards."""

    #: CPU that it runs on.
    cpu: int
    #: How it was sampled: `perf, CPU clock, without the kernel`, `stack samples`.
    how: str
    #: Samples per second that were asked for, and seconds that it took.
    hz: int
    seconds: float
    #: Seconds in which the thread ran, and in which it was ready and something else had its CPU.
    ran_s: float
    waited_s: float
    #: By function, how many samples; a function without a name is where it begins in its file.
    functions: Mapping[str, int]
    #: The functions among them that acquire, or release, a lock.
    locks: frozenset[str]
    #: Share of the time in which it had packets to work on, by its own count (ratio).
    busy: float = 1.0
    #: Samples that the kernel had no room for.
    lost: int = 0

    @property
    def samples(self) -> int:
        return sum(self.functions.values())

    @property
    def of_locks(self) -> int:
        return sum(self.functions[name] for name in self.locks)


@runtime_checkable
class SampledDut(Protocol):
    """A DUT with the ability `samples`."""

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Sample the first of its forwarding threads for so long, while a load lasts. `TestbedError` where nothing can
        sample it."""


@runtime_checkable
class UpcallDut(Protocol):
    """A DUT with the ability `upcalls`."""

    def forget_flows(self) -> None:
        """Delete all flows of the datapath, and let it have as many as at first."""

    def upcalls(self) -> tuple[int, int]:
        """Packets since `begin_trial` for which a flow was made, and for which that failed."""
