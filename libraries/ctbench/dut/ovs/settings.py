"""Which Open vSwitch is measured, how its connection table is set up, and what a testbed file says of both."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.network import HostKey
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.abilities import TableSettings
from ctbench.dut.base import CLOSED_S
from ctbench.dut.kind import MemifPorts, OvsPrefix, PciPorts, VethPorts
from ctbench.hosts.config import SANDBOX

#: Where Debian and Ubuntu put the DPDK build (package openvswitch-switch-dpdk).
DISTRIBUTION_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
#: What Debian and Ubuntu users install when a binary is missing.
PACKAGES = (
    "openvswitch-switch-dpdk, and librte-net-memif* (for veth: librte-net-af-packet*) with librte-mempool-ring* of the"
    " same DPDK"
)


@dataclass(frozen=True)
class OvsInstallation:
    """Where the binaries are: the distribution's, or a build of one's own (`./configure --prefix=/opt/x`)."""

    #: What `make install` was given; tools and database schema are found below it.
    prefix: str = "/usr"

    @classmethod
    def at(cls, prefix: str) -> "OvsInstallation":
        """What `ovs.prefix` of a testbed file names: `distribution`, or the prefix of a build."""
        return cls() if prefix == "distribution" else cls(prefix=prefix)

    @property
    def vswitchd_path(self) -> str:
        """The daemon under test."""
        return DISTRIBUTION_VSWITCHD if self.prefix == "/usr" else f"{self.prefix}/sbin/ovs-vswitchd"

    @property
    def ovsdb_server(self) -> str:
        return f"{self.prefix}/sbin/ovsdb-server"

    @property
    def database_schema(self) -> str:
        return f"{self.prefix}/share/openvswitch/vswitch.ovsschema"

    @property
    def state_prefix(self) -> str:
        """What stands before /var and /etc in the paths of one that was started as usual: nothing for a
        distribution's, whose prefix is /usr."""
        return "" if self.prefix == "/usr" else self.prefix

    def tool(self, name: str) -> str:
        return f"{self.prefix}/bin/{name}"

    @property
    def files(self) -> tuple[str, ...]:
        tools = (self.tool(name) for name in ("ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool"))
        return (self.vswitchd_path, self.ovsdb_server, self.database_schema, *tools)


class OvsConntrackSettings(TableSettings):
    """The connection table. Defaults are those of the measurements published in 2022 (OVS 2.17.2 and 3.0.0)."""

    #: Entries at most (`dpctl/ct-set-maxconns`).
    max_connections: int = Field(5_000_000, ge=1)
    #: Timeout policy of zone 0, seconds; names of the CT_Timeout_Policy table, ovs-vswitchd.conf.db(5).
    timeouts: dict[str, int] = Field({
        "udp_first": 1,
        "udp_single": 1,
        "udp_multiple": 30,
        "tcp_syn_sent": 1,
        "tcp_syn_recv": 1,
        "tcp_fin_wait": 1,
        "tcp_time_wait": CLOSED_S,
        "tcp_close": 1,
        "tcp_established": 30,
    })  # fmt: skip


class OvsInstall(YamlModel):
    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: OvsPrefix
    #: true: set up the instance that runs on the host already (the system's), and put back what it had afterwards.
    #: false: start a private instance next to it, which ends with the run.
    manage: bool = False


class OvsDpdkConfig(YamlModel):
    """Open vSwitch with DPDK as the DUT."""

    type: Literal["ovs-dpdk"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself; or an entry of `hosts`.
    host: HostKey
    ovs: OvsInstall
    ports: Annotated[MemifPorts | VethPorts | PciPorts, Field(discriminator="kind")]
    #: Memory of DPDK, MiB.
    memory_mb: int = Field(ge=256, le=65536)
    #: `auto`: hugepages that are free, else ordinary pages; `never`: ordinary pages.
    hugepages: Literal["auto", "never"]

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == SANDBOX) == (self.ports.kind == "pci"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with memif or veth, or a lab's host with pci."
            )
        if self.ovs.manage and self.host == SANDBOX:
            raise ValueError("ovs.manage: true does not go with host: sandbox, which has an instance of its own.")
        return self
