"""Which Open vSwitch is measured, and how its connection table is set up."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from ctbench.dut.base import CLOSED_S
from ctbench.dut.topology import Topology

#: Where Debian and Ubuntu put the DPDK build (package openvswitch-switch-dpdk).
DISTRIBUTION_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
#: What Debian and Ubuntu users install when a binary is missing.
PACKAGES = (
    "openvswitch-switch-dpdk, and librte-net-memif* (for veth: librte-net-af-packet*) with librte-mempool-ring* of the"
    " same DPDK"
)


class OvsInstallation(BaseModel):
    """Where the binaries are: the distribution's, or a build of one's own (`./configure --prefix=/opt/x`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: What `make install` was given; tools and database schema are found below it.
    prefix: str = "/usr"
    #: The daemon under test; empty: `<prefix>/sbin/ovs-vswitchd`, for /usr the distribution's DPDK build.
    vswitchd: str = ""

    @classmethod
    def at(cls, prefix: str) -> "OvsInstallation":
        """What `ovs.prefix` of a testbed file names: `distribution`, or the prefix of a build."""
        return cls() if prefix == "distribution" else cls(prefix=prefix)

    @property
    def vswitchd_path(self) -> str:
        """The daemon under test."""
        if self.vswitchd:
            return self.vswitchd
        return DISTRIBUTION_VSWITCHD if self.prefix == "/usr" else f"{self.prefix}/sbin/ovs-vswitchd"

    @property
    def ovsdb_server(self) -> str:
        """The configuration database's server, ovsdb-server(1)."""
        return f"{self.prefix}/sbin/ovsdb-server"

    @property
    def database_schema(self) -> str:
        """Schema of the configuration database, ovs-vswitchd.conf.db(5)."""
        return f"{self.prefix}/share/openvswitch/vswitch.ovsschema"

    @property
    def state_prefix(self) -> str:
        """What stands before /var and /etc in the paths of one that was started as usual: nothing for a
        distribution's, whose prefix is /usr."""
        return "" if self.prefix == "/usr" else self.prefix

    def tool(self, name: str) -> str:
        """One of ovs-vsctl, ovs-ofctl, ovs-appctl, ovsdb-tool."""
        return f"{self.prefix}/bin/{name}"

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that must be there."""
        tools = (self.tool(name) for name in ("ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool"))
        return (self.vswitchd_path, self.ovsdb_server, self.database_schema, *tools)


class OvsConntrackSettings(BaseModel):
    """The connection table. Defaults are those of the measurements published in 2022 (OVS 2.17.2 and 3.0.0)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Entries at most (`dpctl/ct-set-maxconns`).
    max_connections: int = Field(5_000_000, ge=1)
    #: Timeout policy of zone 0, seconds; names of the CT_Timeout_Policy table, ovs-vswitchd.conf.db(5).
    timeouts: dict[str, int] = {
        "udp_first": 1,
        "udp_single": 1,
        "udp_multiple": 30,
        "tcp_syn_sent": 1,
        "tcp_syn_recv": 1,
        "tcp_fin_wait": 1,
        "tcp_time_wait": CLOSED_S,
        "tcp_close": 1,
        "tcp_established": 30,
    }

    def of(self, topology: Topology) -> Self:
        """These, with what a topology asks of the table."""
        own: dict[str, object] = {}
        if topology.timeout_s is not None:
            own["timeouts"] = dict.fromkeys(self.timeouts, topology.timeout_s)
        if topology.max_connections is not None:
            own["max_connections"] = topology.max_connections
        return self.model_copy(update=own)
