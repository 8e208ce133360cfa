"""Abilities of a DUT besides forwarding: reports on its table, a control plane, instruction counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

from ctbench.base.quantities import Count, Real
from ctbench.dut.topology import Topology


@dataclass(frozen=True)
class FullSaid:
    """The reports of a DUT on its full connection table."""

    #: Packets (each SYN that was sent again is one more) that found no room, by its own counter.
    counted: int
    #: Lines of its log that say so; None where it may not be read.
    logged: int | None
    #: Connections that it forgot to make room.
    forgotten: int = 0

    def since(self, before: "FullSaid") -> "FullSaid":
        """Return the reports that came after `before`."""
        logged = None if self.logged is None or before.logged is None else self.logged - before.logged
        return FullSaid(self.counted - before.counted, logged, self.forgotten - before.forgotten)


@dataclass(frozen=True)
class Done:
    """One action of the control plane, with its time."""

    seconds: float
    #: How much of it there was: entries that were dumped, ports of the bridge, flows of the datapath.
    size: float


@dataclass(frozen=True)
class TableEntry:
    """An entry of a connection table, in the direction of its first packet."""

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
    """The packet and byte counts of the connections in a DUT's table."""

    entries: int
    #: Entries whose packets take a short cut: in a flowtable of Linux.
    offloaded: int
    #: Packets and bytes of IP that all entries count, by the side that sent them: `client`, which began each
    #: connection, and `server`. Empty where none counts.
    packets: Mapping[str, int]
    bytes: Mapping[str, int]


@dataclass(frozen=True)
class Revalidation:
    """A round of revalidation, which looks at all flows of the datapath."""

    seconds: float
    #: Flows that there are now, and that there may be: fewer than was allowed, where the DUT has lowered that.
    flows: int
    limit: int


@dataclass(frozen=True)
class ThreadLook:
    """The state of a thread at one moment."""

    #: CPU time that it has had so far, seconds.
    ran_s: float
    #: Whether it waits for an event now.
    waits: bool


#: Flows that the datapath is allowed to have: as in the measurements of 2024, and Open vSwitch's own default.
FLOWS_ALLOWED = 200_000
#: What the names of ports begin with that stay on a bridge, and of those that come and go; at most 15 characters with
#: their number, as interfaces of Linux.
STAYS, COMES = "stay", "pod"


class ControlPlane(Protocol):
    """The control plane of a DUT with the ability `control plane`. Every method raises `TestbedError` where the DUT
    does not carry out the command."""

    def add_port(self, name: str) -> Done:
        """Add a port that carries no packet of the load, and wait until it is there. `size`: idle ports that stay on
        the bridge all the time."""

    def delete_port(self, name: str) -> Done:
        """Delete the port, and wait until it is gone."""

    def check_port(self, name: str) -> None:
        """Raise `TestbedError` where a port was added and does not work."""

    def delete_ports(self, names: Sequence[str]) -> None:
        """Delete those of these ports that exist."""

    def revalidation(self) -> Revalidation:
        """Return the last round in which all flows of the datapath were looked at."""

    def allow_flows(self, number: int) -> None:
        """Set the limit of flows of the datapath."""

    def revalidate_all(self) -> None:
        """Make the DUT look at all flows now, as after a change of its rules."""

    def main_thread(self) -> ThreadLook | None:
        """Return the state of the DUT's main thread; None where this machine cannot see it."""


@dataclass(frozen=True)
class ThreadSamples:
    """Samples of one forwarding thread."""

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
class CountedRound:
    """A round of packets, or of connections, and the instructions that it cost."""

    sent: Count
    #: Packets that came out; connections that were served.
    received: Count
    instructions: Count

    @property
    def each(self) -> float:
        """Instructions per packet or connection."""
        return self.instructions / self.sent


@dataclass(frozen=True)
class InstructionCounts:
    """The instruction counts of one emulated machine, for a topology and a workload."""

    #: `emulated/forward/1cpu-1rxq`.
    key: str
    #: What its hash functions were seeded by.
    seed: Count
    #: The rounds of the workload, in their order.
    rounds: tuple[CountedRound, ...]
    #: Why they say nothing, one sentence; empty where the topology proved that it did what its figures stand for.
    doubt: str = ""
    #: Seconds from the start of the machine to its end.
    wall_s: Real = 0.0

    @property
    def each(self) -> float:
        """Instructions per packet or connection: the median of the rounds."""
        return median(each.each for each in self.rounds)


class Counter(Protocol):
    """Instruction counts in emulated machines, which have DUT and traffic in them. All of it is in a sandbox, with
    which it ends. Every method but `baseline` raises `MissingResource` where something is not installed."""

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[InstructionCounts]]:
        """Return the counts of the machines of each topology: one machine for each seed, in the same order for all.
        Earlier counts are used again: a new one would be the same. Raise `MissingResource` where a topology needs what
        the machine lacks, `TestbedError` where the machine does not work."""

    def baseline(self, topology: Topology, workload: Workload) -> Topology | None:
        """Return the topology whose counts are subtracted from those of `topology`: the wires and the traffic alone,
        with the same number of hops. Return None where the counts are net already: the cost of the same machine with an
        empty table is subtracted."""

    def snapshot(self) -> dict[str, Any]:
        """Return the counter's part of the record: the kernel, versions, the identity of the image that it boots."""
