"""What a DUT may be able to do besides forwarding: tell of its table, answer commands, count instructions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

from ctbench.base.quantities import Count, Real
from ctbench.dut.topology import Topology


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


@dataclass(frozen=True)
class Done:
    """Something that the control plane did once."""

    seconds: float
    #: How much of it there was: entries that were dumped, ports of the bridge, flows of the datapath.
    size: float


@dataclass(frozen=True)
class TableEntry:
    """An entry of a connection table, as it began."""

    #: `tcp` or `udp`.
    protocol: str
    source: str
    destination: str
    source_port: int
    destination_port: int
    #: Of connection tracking.
    zone: int = 0
    #: Until it goes, whole seconds, rounded down; 0 where that is not told.
    timeout_s: int = 0


@dataclass(frozen=True)
class Accounts:
    """What a DUT says of the connections in its table."""

    entries: int
    #: Entries whose packets take a short cut: in a flowtable of Linux.
    offloaded: int
    #: Packets and bytes of IP that all entries count, by the side that sent them: `client`, which began each
    #: connection, and `server`. Empty where none counts.
    packets: Mapping[str, int]
    bytes: Mapping[str, int]


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


#: Flows that the datapath is allowed to have: as in the measurements of 2024, and Open vSwitch's own default.
FLOWS_ALLOWED = 200_000


class ControlPlane(Protocol):
    """The control plane of a DUT with the ability `control plane`. Every method raises `TestbedError` where the DUT
    does not do what it is asked for."""

    def add_port(self, name: str) -> Done:
        """Add a port that no packet of the load passes, and wait until it is there; `size`: how many such ports stay,
        whatever comes and goes."""

    def delete_port(self, name: str) -> Done:
        """Delete it, and wait until it is gone."""

    def check_port(self, name: str) -> None:
        """`TestbedError` where a port was added and does not work."""

    def delete_ports(self, names: Sequence[str]) -> None:
        """Delete those of them that are there."""

    def revalidation(self) -> Revalidation:
        """The last round in which all flows of the datapath were looked at."""

    def allow_flows(self, number: int) -> None:
        """Let the datapath have so many flows."""

    def revalidate_all(self) -> None:
        """Make it look at all flows now, as after a change of its rules."""

    def main_thread(self) -> ThreadLook | None:
        """What its main thread does now; None where that cannot be seen from here."""


@dataclass(frozen=True)
class ThreadSamples:
    """Samples of one thread that forwards."""

    #: CPU that it runs on.
    cpu: int
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

    @property
    def samples(self) -> int:
        return sum(self.functions.values())

    @property
    def of_locks(self) -> int:
        return sum(self.functions[name] for name in self.locks)


#: What is sent through it: packets of one connection that is known, or of a thousand or ten thousand; new connections
#: of one protocol; or UDP connections that are removed from the table, or read out of it.
Workload = Literal["stream", "stream-1k", "stream-10k", "udp", "tcp", "removal", "dump"]


@dataclass(frozen=True)
class Round:
    """A number of packets, or of connections, and what they cost."""

    sent: Count
    #: Packets that came out; connections that were served.
    received: Count
    instructions: Count

    @property
    def each(self) -> float:
        """Instructions for one of them."""
        return self.instructions / self.sent


@dataclass(frozen=True)
class Counted:
    """What one emulated machine counted of a topology with one workload."""

    #: `emulated/forward/1cpu-1rxq`.
    key: str
    #: What its hash functions were seeded by.
    seed: Count
    #: The rounds of the workload, in their order.
    rounds: tuple[Round, ...]
    #: Why they say nothing, one sentence; empty where the topology proved that it did what its figures stand for.
    doubt: str = ""
    #: Seconds from the start of the machine to its end.
    wall_s: Real = 0.0

    @property
    def each(self) -> float:
        """Instructions for one packet or connection: the median of the rounds."""
        return median(each.each for each in self.rounds)


class Counter(Protocol):
    """Counts instructions in emulated machines, which have DUT and traffic in them. All of it is in a sandbox, with
    which it ends. Every method but `baseline` raises `MissingResource` where something is not installed."""

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[Counted]]:
        """Of each topology, what its machines counted: one for each seed, in the same order for all. What was counted
        before is not counted again: it would be the same. `MissingResource` where a topology needs what the machine
        lacks, `TestbedError` where the machine does not work."""

    def baseline(self, topology: Topology, workload: Workload) -> Topology | None:
        """What a topology's figures are net of: the wires and the traffic alone, with the same number of hops. None
        where they are net as they are counted: of the same with an empty table."""

    def snapshot(self) -> dict[str, Any]:
        """What the record says of it: the kernel, versions, the identity of what it boots."""
