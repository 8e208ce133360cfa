"""What a kind of traffic source says of itself; everything else asks it and not which kind it is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.machine import Card, Examined, Finding


class SourceSettings(YamlModel):
    """What `generator` of a testbed file says: each kind has a model of its own."""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The kind's name."""

        @property
        def host(self) -> str:
            """Where it runs: an entry of `hosts`, `local` or `sandbox`."""

    @property
    def cpus_needed(self) -> int:
        """CPUs that it has for itself where it shares a machine with the DUT."""
        return 1

    @property
    def cpus_of_use(self) -> int:
        """CPUs that it makes use of where the DUT leaves more than it needs."""
        return self.cpus_needed

    @property
    def carries(self) -> bool:
        """Whether its threads work on the DUT's CPUs, which carry its frames there."""
        return False

    @property
    def most(self) -> dict[str, float]:
        """Loads that are never exceeded, per second, by kind of profile; `held`: connections that it holds open, and
        `opened`: how many of them it opens per second."""
        return {}


@dataclass(frozen=True)
class OwnCpus:
    """CPUs that the generator's part of the testbed file names; empty where `cpus.generator` is what counts."""

    generating: tuple[int, ...] = ()
    #: Of threads that do not generate.
    others: tuple[int, ...] = ()


class TrafficSourceKind(ABC):
    """A kind of traffic source, `Any` being its settings. How it is connected to a DUT's ports is the testbed's:
    `ctbench.testbed.connectors`. What a kind does not say is as for one that is this process, without a network."""

    #: As testbed files call it; its name for people; the model of its part of a testbed file.
    name: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[type[YamlModel]]
    #: Conditions, by metric, of which it can say nothing.
    unmeasured: ClassVar[frozenset[str]] = frozenset()

    def require(self, config: Any) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks."""

    def out_of_reach(self, config: Any, host: str, ports: str) -> str:
        """Why it cannot be connected to ports of kind `ports` on `host`, as the begin of a sentence with the lines of
        what was expected; empty where it can, or that is said when it is connected."""
        return ""

    def hosts_for_itself(self, config: Any) -> tuple[str, ...]:
        """Hosts that no other testbed may use at the same time."""
        return ()

    def has_cards(self, config: Any) -> bool:
        """Whether it sends through network cards of a lab."""
        return False

    def own_cpus(self, config: Any) -> OwnCpus:
        return OwnCpus()

    def held_bytes(self, config: Any, connections: int) -> int:
        """Memory on its host that it needs to hold so many connections, bytes; 0 where it holds none."""
        return 0

    def pairs(self, config: Any) -> int | None:
        """Pairs of ports that its settings name; None where it takes those that the DUT has."""
        return None

    def port_macs(self, config: Any) -> list[tuple[str, str]]:
        """MAC addresses of the ports of each pair, client side first; empty texts where they are not known
        beforehand."""
        return [("", "")]

    def cards(self, config: Any) -> list[Card]:
        return []

    def numa_node(self, config: Any) -> int | None:
        """NUMA node that its settings say its cards are on; None where they say nothing."""
        return None

    def hugepages_mb(self, config: Any) -> int:
        """MiB of hugepages that it takes on its host."""
        return 0

    @abstractmethod
    def examine(self, config: Any, on: Examined) -> Iterator[Finding]:
        """The doctor's rows of it on its host. Changes nothing."""

    def examine_wiring(self, config: Any, macs: Mapping[Card, str], *, bridges: bool) -> Iterator[Finding]:
        """The doctor's rows of where its frames go. `macs`: what the kernels of both hosts show of their cards, an
        empty text where they do not; `bridges`: whether the DUT passes frames as they are."""
        yield from ()
