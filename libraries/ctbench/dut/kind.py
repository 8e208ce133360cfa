"""What a kind of DUT says of itself; everything else asks it and not which kind it is."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ctbench.base.yaml_files import YamlModel
from ctbench.dut.base import Dut
from ctbench.dut.port_config import PortSettings
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.examination import facts
from ctbench.hosts.examination.facts import Examined
from ctbench.hosts.examination.finding import Finding
from ctbench.hosts.machine import Machine, Placement

#: The limit of the kernel's connection table, which all network namespaces share; nf_conntrack-sysctl.
NF_CONNTRACK_MAX = Path(facts.NF_CONNTRACK_MAX)


#: What a DUT can be asked for besides forwarding. `connections`: `Dut.connections` counts the entries of its table.
#: `table limit`: `TableDut.limit_table` works. `instructions`: it is a `ctbench.dut.counting.CountingDut`. `control
#: plane`: it is a `ctbench.dut.control_plane.ControlPlaneDut`. `dump`: it is a
#: `ctbench.dut.control_plane.DumpingDut`. `samples`: it is a `ctbench.dut.sampling.SampledDut`.
#: `upcalls`: it is a `ctbench.dut.upcalls.UpcallDut`.
Ability = Literal["connections", "table limit", "instructions", "control plane", "dump", "samples", "upcalls"]


class DutSettings(Protocol):
    """What an entry of `duts` in a testbed file says, whatever the kind."""

    @property
    def type(self) -> str:
        """The kind's name."""

    @property
    def host(self) -> str:
        """Where it is: an entry of `hosts`, `local` or `sandbox`."""

    @property
    def ports(self) -> PortSettings:
        """Its two ports."""

    def model_dump(self) -> dict[str, Any]:
        """As a testbed file has it."""


@dataclass(frozen=True)
class ConnectionTable:
    """What a DUT's connection table holds."""

    #: For example `OVS' connection table`.
    name: str
    #: Entries at most.
    entries: int
    #: Seconds that a closed TCP connection, and an answered UDP flow, stay in it.
    tcp_s: int
    udp_s: int
    #: What to do where it is too small, with `{entries}` for how many are needed.
    remedy: str
    #: Memory that an entry takes, bytes, roughly: for what a test will need.
    entry_bytes: int = 512
    #: Whether the limit is its host's, and no run can change it.
    of_host: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What the testbed gives a DUT."""

    host: Host
    #: `read_machine(host)`.
    machine: Machine
    #: Which CPUs a topology uses; `MissingResource` when short.
    placement: Callable[[Topology], Placement]
    #: Where logs go.
    log_folder: Path
    #: MAC addresses of the generator's two ports, client side first; `ConfigError` where the testbed file has to say
    #: them and does not.
    generator_macs: Callable[[], tuple[str, str]]
    #: Whether threads of the generator work on the DUT's CPUs, which carry its frames there.
    generator_carries: bool


class Builds(Protocol):
    """A kind of DUT that can be installed in several places, which `./run compare` measures in turn."""

    @property
    def title(self) -> str:
        """What is installed, for sentences."""

    @property
    def key(self) -> str:
        """Key of the DUT's settings below which the installation is named: what builds differ in."""

    def with_prefix(self, data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """A DUT's entry of a testbed file, with another installation. `prefix`: `distribution`, or a folder."""

    def prefix(self, config: Any) -> str:
        """Which installation a DUT's settings name: `distribution`, or a folder."""

    def check(self, host: Host, prefix: str) -> None:
        """Raise `ConfigError` where the prefix is no folder of `host`, `MissingResource` where something in it is
        missing or does not work."""

    def versions(self, host: Host, config: Any) -> dict[str, Any]:
        """What is installed there, by a name for people; empty facts where nothing is."""


class DutKind(Protocol):
    """A kind of DUT. Its settings are a model of their own, with the kind's name under the key `type`."""

    @property
    def name(self) -> str:
        """As topologies call it: `Topology.datapath`."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def settings(self) -> type[YamlModel]:
        """The model of its entry in a testbed file; see `DutSettings`. Kinds may share one."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can be asked for besides forwarding."""

    @property
    def builds(self) -> Builds | None:
        """How installations of it are compared; None where there is but one."""

    @property
    def polls(self) -> bool:
        """Whether its threads poll, and want CPUs that nobody else has."""

    @property
    def families(self) -> tuple[str, ...]:
        """Families of the rulesets that it knows, `ctbench.dut.rulesets`."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of every test with it."""

    @property
    def bridges(self) -> bool:
        """Whether frames pass it as they are, to whatever address they go."""

    def require(self, config: Any) -> None:
        """Raise `MissingResource` with the first thing that this machine lacks for a DUT in a sandbox."""

    def build(self, config: Any, around: Surroundings) -> Dut:
        """The DUT. Nothing is started before its first `apply`."""

    def table(self, config: Any, limit: Path = NF_CONNTRACK_MAX) -> ConnectionTable | None:
        """What its connection table holds; None where it is not known. `limit`: the file with the limit of this
        machine's kernel."""

    def hugepages_mb(self, config: Any) -> int:
        """MiB of hugepages that it takes where they are there."""

    def examine(self, config: Any, on: Examined) -> Iterator[Finding]:
        """The doctor's rows of it on its host. Changes nothing."""

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """What was measured, by its `snapshot`: `Open vSwitch 3.1.0`; with `whole` what belongs to it too:
        `Open vSwitch 3.1.0, DPDK 22.11.11`. Empty where nothing is known."""
