"""The interface of a DUT kind, and the settings of its ports. Other code asks the kind, and does not compare its
name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.network import MOST_PORT_PAIRS, Interface, InterfacePair, PathText, PciAddress, named_ports, valid
from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Examined, Finding, Machine, Placement


class RingPorts(YamlModel):
    """Ports without a network card, which need no root."""

    #: `veth`: pairs of interfaces, which Open vSwitch reads by af_packet; `memif`: shared memory, Open vSwitch only.
    kind: Literal["veth", "memif"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: Literal[64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
    #: Pairs of ports, one towards clients and one towards servers.
    pairs: int = Field(1, ge=1, le=MOST_PORT_PAIRS)

    @property
    def speed_gbit(self) -> float | None:
        return None

    @property
    def cards(self) -> list[tuple[str, str]]:
        return []


class PciPair(YamlModel):
    """A pair of ports: the card towards the clients, and towards the servers."""

    client: PciAddress
    server: PciAddress


class CardPorts(YamlModel):
    """Network cards, in pairs of ports."""

    #: Speed of the cards, Gbit/s; None: not known. A load that they cannot carry is then said before the first trial.
    speed_gbit: float | None = Field(None, ge=0.01, le=10_000)
    client: str
    server: str
    more_pairs: Sequence[InterfacePair | PciPair]

    @property
    def cards(self) -> list[tuple[str, str]]:
        return named_ports([(self.client, self.server), *((each.client, each.server) for each in self.more_pairs)])

    @property
    def pairs(self) -> int:
        return 1 + len(self.more_pairs)

    @model_validator(mode="after")
    def _differ(self) -> Self:
        names: dict[str, str] = {}
        for name, card in self.cards:
            if card in names:
                raise ValueError(f"{names[card]} and {name} are both {quoted(card)}.\n  Expected each card once.")
            names[card] = name
        return self


class InterfacePorts(CardPorts):
    """Network cards of a lab's host."""

    kind: Literal["interfaces"]
    #: The interface towards the clients, and towards the servers.
    client: Interface
    server: Interface
    #: Further pairs of ports.
    more_pairs: list[InterfacePair] = Field(default_factory=list, max_length=MOST_PORT_PAIRS - 1)
    #: Frames of each receive ring, which ethtool sets (2019: 4096); None: as it is found.
    ring_size: int | None = Field(None, ge=64, le=65536)
    #: `none`: GRO, LRO, TSO and GSO are off during the run, so that each frame passes as it came; None: as they are
    #: found, which the record has.
    offloads: Literal["none"] | None = None


class PciPorts(CardPorts):
    """Network cards that DPDK drives."""

    kind: Literal["pci"]
    #: PCI address of the card towards the clients, and towards the servers; with bonds, those of the second link too.
    client: PciAddress
    server: PciAddress
    more: list[PciAddress] = Field(default_factory=list)
    #: Further pairs of ports; not with bonds.
    more_pairs: list[PciPair] = Field(default_factory=list, max_length=MOST_PORT_PAIRS - 1)

    @property
    def cards(self) -> list[tuple[str, str]]:
        return [*super().cards, *(("more", address) for address in self.more)]

    @model_validator(mode="after")
    def _bonds_are_of_one_pair(self) -> Self:
        if len(self.more) % 2 or (self.more and self.more_pairs):
            raise ValueError(
                f"more: {self.more} are not second links of both ports.\n"
                "  Expected cards in pairs, and no more_pairs with them: a bond is of one pair of ports."
            )
        return self


#: `distribution`, or the prefix of a build.
OvsPrefix = Annotated[PathText, valid(
    "distribution|/.*", "an installation of Open vSwitch",
    '"distribution", or the absolute path that a build was configured with (--prefix), for example "/opt/ovs-3.7.1"',
)]  # fmt: skip


#: What a DUT can be asked for besides forwarding, by methods of `Dut`: `connections` and what is known of its table;
#: `limit_table`; `control_plane`; `dump_connections`; `list_entries` and `remove_entries`; `sample_thread`; `upcalls`
#: and `forget_flows`; `restart`; `fragments`; `longest_timeout_s`; `accounts`. One with `instructions` is no `Dut`, but
#: a `ctbench.dut.abilities.Counter`.
Ability = Literal[
    "connections", "table limit", "instructions", "control plane", "dump", "removal", "samples", "upcalls", "restart",
    "fragments", "timeouts", "accounting",
]  # fmt: skip


@dataclass(frozen=True)
class ConnectionTable:
    #: For example `OVS' connection table`.
    name: str
    #: Entries at most.
    entries: int
    #: Seconds that a closed TCP connection, and an answered UDP flow, stay in it.
    tcp_s: int
    udp_s: int
    #: What to do where it is too small, with `{entries}` for how many are needed.
    remedy: str
    #: Whether the limit is its host's, and no run can change it.
    of_host: bool = False


@dataclass(frozen=True)
class Surroundings:
    """The parts of the testbed that a DUT is given."""

    host: Host
    #: `read_machine(host)`.
    machine: Machine
    #: Which CPUs a topology uses; `MissingResource` when short.
    placement: Callable[[Topology], Placement]
    #: Where logs go.
    log_folder: Path
    #: MAC addresses of the generator's ports, client side first, of each pair; `ConfigError` where the testbed file has
    #: to say them and does not.
    generator_macs: Callable[[], list[tuple[str, str]]]
    #: Whether threads of the generator work on the DUT's CPUs, which carry its frames there.
    generator_carries: bool


class DutKind(ABC):
    """A kind of DUT. Its settings are a model of their own, with the kind's name under the key `type`."""

    #: As topologies call it (`Topology.datapath`), and for people.
    name: str
    title: str
    #: The model of its entry in a testbed file; it says `type`, `host` and `ports`. Kinds may share one.
    settings: type[YamlModel]
    #: What it can be asked for besides forwarding.
    abilities: frozenset[Ability] = frozenset()
    #: Key of its settings below which an installation is named by its `prefix` (`distribution`, or a folder): what its
    #: builds differ in, which a gate compares. Empty where there is but one.
    builds = ""
    #: Whether its threads poll, and want CPUs of their own.
    polls = False
    #: The options of a topology that it has; others are refused, because they would change nothing.
    options: frozenset[str] = frozenset({"ports", "mtu"})
    #: Families of the rulesets that it knows, `ctbench.dut.rulesets`.
    families: tuple[str, ...]
    #: Tags of every test with it.
    tags: tuple[str, ...] = ()
    #: Whether frames pass it as they are, to whatever address they go.
    bridges = False

    def require(self, config: Any) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks for a DUT in a sandbox."""

    def prefix(self, config: Any) -> str:
        """Return the prefix of the installation; empty without builds."""
        return str(getattr(config, self.builds).prefix) if self.builds else ""

    def with_prefix(self, data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Return the kind's entry of a testbed file, with another installation."""
        return {**data, self.builds: {**data[self.builds], "prefix": prefix}}

    @abstractmethod
    def program(self, config: Any, host: Host) -> str:
        """Return the identity of the DUT's program, which differs for any other build, as `snapshot` reports it. The
        DUT need not be set up. `host`: its machine."""

    def unpack(self, given: Path) -> Path:
        """Return the prefix of what a user named; packages are unpacked to one. Raise `ConfigError` or
        `MissingResource` where they cannot be unpacked."""
        return given

    def is_packaged(self, prefix: str) -> bool:
        """True for a prefix of packages, which only a sandbox can show."""
        return False

    def check_build(self, host: Host, prefix: str, ports: str) -> None:
        """Raise `ConfigError` where a prefix is not a folder of a host, `MissingResource` where something in it is
        missing or does not work. `ports`: the kind of its ports."""

    @abstractmethod
    def build(self, config: Any, around: Surroundings) -> Any:
        """Return the `Dut`, which starts nothing before its first `apply`; with the ability `instructions` the
        `Counter`, which makes nothing before it is asked to."""

    def table(self, config: Any) -> ConnectionTable | None:
        """Return the size and the timeouts of the connection table; None where they are not known."""
        return None

    def hugepages_mb(self, config: Any) -> int:
        """Return the MiB of hugepages that the kind takes where they are available."""
        return 0

    @abstractmethod
    def examine(self, config: Any, on: Examined) -> Iterator[Finding]:
        """Yield the doctor's rows of the kind on its host. Change nothing."""

    @abstractmethod
    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """Return the name of what was measured, by its `snapshot`: `Open vSwitch 3.1.0`; with `whole` its parts too:
        `Open vSwitch 3.1.0, DPDK 22.11.11`. Empty where nothing is known."""
