"""What a kind of traffic source says of itself; everything else asks it and not which kind it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.examination.facts import Card, Examined
from ctbench.hosts.examination.finding import Finding


class SourceSettings(Protocol):
    """What `generator` of a testbed file says, whatever the kind."""

    @property
    def type(self) -> str:
        """The kind's name."""

    @property
    def host(self) -> str:
        """Where it runs: an entry of `hosts`, `local` or `sandbox`."""

    @property
    def cpus_needed(self) -> int:
        """CPUs that it has for itself where it shares a machine with the DUT."""

    @property
    def carries(self) -> bool:
        """Whether its threads work on the DUT's CPUs, which carry its frames there."""

    @property
    def most(self) -> dict[str, float]:
        """Loads that are never exceeded, per second, by kind of profile; `held`: connections that it holds open, and
        `opened`: how many of them it opens per second."""


@dataclass(frozen=True)
class OwnCpus:
    """CPUs that the generator's part of the testbed file names; empty where `cpus.generator` is what counts."""

    generating: tuple[int, ...] = ()
    #: Of threads that do not generate.
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class OpenLimit:
    """Connections that a source can have open at the same time."""

    connections: int
    #: Seconds that it keeps a connection beyond its data.
    linger_s: float
    #: What holds so many, for a sentence: `TRex on 1 core(s)`, or the key of the testbed file.
    what: str
    #: Whether the testbed file says so; else the source has no more.
    in_file: bool
    #: What to do, behind the sentence.
    remedy: str


class TrafficSourceKind(Protocol):
    """A kind of traffic source. Its settings are a model of their own, with the kind's name under the key `type`. How
    it is connected to a DUT's ports is the testbed's: `ctbench.testbed.connectors`."""

    @property
    def name(self) -> str:
        """As testbed files call it."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def settings(self) -> type[YamlModel]:
        """The model of its part of a testbed file; see `SourceSettings`."""

    @property
    def unmeasured(self) -> frozenset[str]:
        """Conditions, by metric, of which it can say nothing."""

    def require(self, config: Any) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks."""

    def out_of_reach(self, config: Any, host: str, ports: str) -> str:
        """Why it cannot be connected to ports of kind `ports` on `host`, as the begin of a sentence with the lines of
        what was expected; empty where it can, or that is said when it is connected."""

    def hosts_for_itself(self, config: Any) -> tuple[str, ...]:
        """Hosts that no other testbed may use at the same time."""

    def has_cards(self, config: Any) -> bool:
        """Whether it sends through network cards of a lab."""

    def own_cpus(self, config: Any) -> OwnCpus:
        """CPUs that its settings name."""

    def open_limit(self, config: Any) -> OpenLimit | None:
        """Connections that it can have open; None where that is not known, or never the limit."""

    def held_bytes(self, config: Any, connections: int) -> int:
        """Memory on its host that it needs to hold so many connections, bytes; 0 where it holds none."""

    def port_macs(self, config: Any) -> tuple[str, str]:
        """MAC addresses of its two ports, client side first; empty where they are not known beforehand."""

    def cards(self, config: Any) -> list[Card]:
        """Network cards that its settings name."""

    def numa_node(self, config: Any) -> int | None:
        """NUMA node that its settings say its cards are on; None where they say nothing."""

    def hugepages_mb(self, config: Any) -> int:
        """MiB of hugepages that it takes on its host."""

    def examine(self, config: Any, on: Examined) -> Iterator[Finding]:
        """The doctor's rows of it on its host. Changes nothing."""

    def examine_wiring(self, config: Any, macs: Mapping[Card, str], *, bridges: bool) -> Iterator[Finding]:
        """The doctor's rows of where its frames go. `macs`: what the kernels of both hosts show of their cards, an
        empty text where they do not; `bridges`: whether the DUT passes frames as they are."""
