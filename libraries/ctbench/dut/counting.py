"""Instructions that are counted: what passes between a counter, whose clock is its own instruction count, and a
procedure."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from ctbench.base.quantities import Count, Real
from ctbench.dut.base import Dut
from ctbench.dut.topology import Topology

#: What is sent through it: packets of one connection that is known, or of a thousand or ten thousand; new connections
#: of one protocol; or UDP connections that are removed from the table, or read out of it.
Workload = Literal["stream", "stream-1k", "stream-10k", "udp", "tcp", "removal", "dump"]
#: Those whose figures are net as they are counted: of the same with an empty table.
NET: tuple[Workload, ...] = ("removal", "dump")


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


@dataclass(frozen=True)
class ByFunction:
    """Where the instructions of one packet (connection) are, wires and traffic included."""

    #: By function, the dearest first.
    functions: Mapping[str, float]
    #: What the machine's own clock counted for one, in the mean over the rounds; the functions' sum is to be the same.
    clock: float

    @property
    def error(self) -> float:
        """How far the functions' sum is from the clock (ratio)."""
        return sum(self.functions.values()) / self.clock - 1


class Counter(Dut):
    """What counts instead of forwarding a generator's load: DUT and traffic are within it, so that it has no ports, and
    nothing runs in it between two counts. `apply` refuses what it cannot count, and makes ready for the rest."""

    @abstractmethod
    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[Counted]]:
        """Of each topology, what its machines counted: one for each seed, in the same order for all. What was counted
        before is not counted again: it would be the same. `MissingResource` where a topology needs what the machine
        lacks, `TestbedError` where the machine does not work."""

    @abstractmethod
    def baseline(self, topology: Topology) -> Topology:
        """What a topology's figures are net of: the wires and the traffic alone, with the same number of hops. The
        figures of `NET` are net already."""

    @abstractmethod
    def count_functions(self, topologies: Sequence[Topology], workload: Workload) -> dict[str, ByFunction]:
        """The functions that the instructions are in, by the topology's key: a machine for each with one seed, several
        times as long as others. Those whose functions do not add up to the clock are left out. Raises as `count`
        does."""

    @abstractmethod
    def keep_image(self, target: Path) -> str:
        """Write what the machine boots to a file, by which a testbed file can name it, and return its identity as
        records have it. `OutputError` where it cannot be written."""
