"""What a traffic source says of itself, by its part of a testbed file; everything else asks it and not which kind it
is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.machine import Card, Examined, Finding


class TrafficSource(YamlModel, ABC):
    """A kind of traffic source: a model of what `generator` of a testbed file says, with its `type`, and its `host`: an
    entry of `hosts`, `local` or `sandbox`. How it is connected to the ports of a DUT is the testbed's:
    `ctbench.testbed.connectors`. What a kind does not say is as for one that is this process, without a network."""

    #: Its name for people.
    title: ClassVar[str]
    #: Conditions, by metric, of which it can say nothing.
    unmeasured: ClassVar[frozenset[str]] = frozenset()
    #: Whether its threads work on the DUT's CPUs, which carry its frames there.
    carries: ClassVar[bool] = False
    #: Whether no other testbed may use its host at the same time.
    is_alone: ClassVar[bool] = False
    #: Memory on its host that it needs for each connection that it holds, bytes; 0 where it holds none.
    bytes_held: ClassVar[int] = 0

    @property
    def cpus_needed(self) -> int:
        """CPUs that it has for itself where it shares a machine with the DUT."""
        return 1

    @property
    def cpus_of_use(self) -> int:
        """CPUs that it makes use of where the DUT leaves more than it needs."""
        return self.cpus_needed

    @property
    def own_cpus(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """CPUs that it names itself: of threads that generate, and of its others. Empty where `cpus.generator` is what
        counts."""
        return (), ()

    @property
    def most(self) -> dict[str, float]:
        """Loads that are never exceeded, per second, by kind of profile; `held`: connections that it holds open, and
        `opened`: how many of them it opens per second."""
        return {}

    @property
    def has_cards(self) -> bool:
        """Whether it sends through network cards of a lab."""
        return False

    @property
    def port_pairs(self) -> int | None:
        """Pairs of ports that it names; None where it takes those that the DUT has."""
        return None

    @property
    def port_macs(self) -> list[tuple[str, str]]:
        """MAC addresses of the ports of each pair, client side first; empty texts where they are not known
        beforehand."""
        return [("", "")]

    @property
    def cards(self) -> list[Card]:
        """Network cards that it sends through."""
        return []

    @property
    def numa_node(self) -> int | None:
        """NUMA node that it says its cards are on; None where it says nothing."""
        return None

    @property
    def hugepages_mb(self) -> int:
        """MiB of hugepages that it takes on its host."""
        return 0

    def require(self) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks."""

    def out_of_reach(self, host: str, ports: str) -> str:
        """Why it cannot be connected to ports of kind `ports` on `host`, as the begin of a sentence with the lines of
        what was expected; empty where it can, or that is said when it is connected."""
        return ""

    @abstractmethod
    def examine(self, on: Examined) -> Iterator[Finding]:
        """The doctor's rows of it on its host. Changes nothing."""

    def examine_wiring(self, macs: Mapping[Card, str], *, bridges: bool) -> Iterator[Finding]:
        """The doctor's rows of where its frames go. `macs`: what the kernels of both hosts show of their cards, an
        empty text where they do not; `bridges`: whether the DUT passes frames as they are."""
        yield from ()
