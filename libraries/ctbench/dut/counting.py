"""What a DUT can say whose clock is its own instruction count: what passes between it and a procedure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ctbench.base.bounds import Count, Real
from ctbench.dut.topology import Topology

#: What is sent through it: packets of connections that are known, or new connections of one protocol.
Workload = Literal["stream", "udp", "tcp"]


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
    """What one boot of an emulated machine counted of a topology with one workload."""

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
        ordered = sorted(each.each for each in self.rounds)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@runtime_checkable
class CountingDut(Protocol):
    """A DUT with the ability `instructions`."""

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[Counted]]:
        """Of each topology, what its boots counted: one for each seed, in the same order for all. What was counted
        before is not counted again: it would be the same. `MissingResource` where a topology needs what the machine
        lacks, `TestbedError` where the machine does not work."""

    def baseline(self, topology: Topology) -> Topology:
        """What a topology's figures are net of: the wires and the traffic alone, with the same number of hops."""
