"""What a kind of DUT says of itself; everything else asks it and not which kind it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ctbench.dut.base import Dut
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine, Placement

#: The limit of the kernel's connection table, which all network namespaces share; nf_conntrack-sysctl.
NF_CONNTRACK_MAX = Path("/proc/sys/net/netfilter/nf_conntrack_max")


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


class DutKind(Protocol):
    """A kind of DUT. Its settings are a model of their own, with the kind's name under the key `type`."""

    @property
    def name(self) -> str:
        """As topologies call it: `Topology.datapath`."""

    @property
    def title(self) -> str:
        """Its name for people."""

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

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """What was measured, by its `snapshot`: `Open vSwitch 3.1.0`; with `whole` what belongs to it too:
        `Open vSwitch 3.1.0, DPDK 22.11.11`. Empty where nothing is known."""
