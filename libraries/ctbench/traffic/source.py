"""The base model of traffic sources in a testbed file. Other modules ask its properties, not which kind it is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.machine import Card, Examined, Finding


class TrafficSource(YamlModel, ABC):
    """A traffic source: the model of `generator` in a testbed file, with its `type` and its `host`, which is an entry
    of `hosts`, `local` or `sandbox`. `ctbench.testbed.connectors` connects it to the ports of a DUT. The defaults here
    are those of a generator in this process, without a network."""

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
        """CPUs that the generator needs for itself on a machine that it shares with the DUT."""
        return 1

    @property
    def cpus_of_use(self) -> int:
        """CPUs that the generator can use where the DUT leaves more than `cpus_needed`."""
        return self.cpus_needed

    @property
    def own_cpus(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """CPUs that the generator's own keys name: of generating threads, and of its other threads. Empty where
        `cpus.generator` applies."""
        return (), ()

    @property
    def most(self) -> dict[str, float]:
        """Upper limits of the load per second, by kind of profile; `held`: of the connections held open, and `opened`:
        of those opened per second."""
        return {}

    @property
    def has_cards(self) -> bool:
        """True where the generator sends through network cards of a lab."""
        return False

    @property
    def port_pairs(self) -> int | None:
        """Number of port pairs that the file names; None where the generator takes those of the DUT."""
        return None

    @property
    def port_macs(self) -> list[tuple[str, str]]:
        """MAC addresses of the ports of each pair, client side first; empty strings where the file names none."""
        return [("", "")]

    @property
    def cards(self) -> list[Card]:
        """Network cards that the generator sends through."""
        return []

    @property
    def numa_node(self) -> int | None:
        """NUMA node of the generator's cards by the file; None where the file names none."""
        return None

    @property
    def hugepages_mb(self) -> int:
        """MiB of hugepages that the generator takes on its host."""
        return 0

    def require(self) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks."""

    def out_of_reach(self, host: str, ports: str) -> str:
        """Return why the generator cannot be connected to ports of kind `ports` on `host`, as the rest of an error
        message with its line `Expected`. Empty where it can be, or where only `connect` finds out."""
        return ""

    @abstractmethod
    def examine(self, on: Examined) -> Iterator[Finding]:
        """Yield the doctor's rows of the generator on its host. Change nothing."""

    def examine_wiring(self, macs: Mapping[Card, str], *, bridges: bool) -> Iterator[Finding]:
        """Yield the doctor's rows of the destinations of frames. `macs`: the addresses that the kernels of both hosts
        show for their cards, empty where they show none; `bridges`: whether the DUT forwards frames unchanged."""
        yield from ()
