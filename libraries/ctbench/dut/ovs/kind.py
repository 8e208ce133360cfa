"""Open vSwitch with DPDK as a kind of DUT."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctbench.dut.base import Dut
from ctbench.dut.kind import NF_CONNTRACK_MAX, ConnectionTable, Surroundings
from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.ovs.dut import FOLDER, OvsDpdkDut
from ctbench.dut.ovs.packages import check_drivers, check_ovs
from ctbench.dut.ovs.ports import Devices, MemifDevices, PciDevices, VethDevices
from ctbench.dut.ovs.settings import OvsConntrackSettings, OvsInstallation
from ctbench.dut.port_config import PciPorts, VethPorts
from ctbench.hosts.base import Host


class OvsDpdkKind:
    """Implements `ctbench.dut.kind.DutKind`."""

    name = OvsDpdkDut.kind
    title = "OVS-DPDK"
    families = OvsDpdkDut.families
    tags = (OvsDpdkDut.kind,)
    bridges = True

    def require(self, config: OvsDpdkConfig) -> None:
        """See `DutKind.require`: a build of one's own is looked at when it is started."""
        if config.ovs.prefix == "distribution":
            check_ovs()
            check_drivers()

    def build(self, config: OvsDpdkConfig, around: Surroundings) -> Dut:
        """See `DutKind.build`."""
        prefix = config.ovs.prefix
        return OvsDpdkDut(
            around.host,
            around.machine,
            around.placement,
            installation=OvsInstallation() if prefix == "distribution" else OvsInstallation(prefix=prefix),
            devices=_devices(config, around.host),
            system=config.ovs.manage,
            log_folder=around.log_folder,
            memory_mb=config.memory_mb,
            hugepages=config.hugepages == "auto",
        )

    def table(self, config: OvsDpdkConfig, limit: Path = NF_CONNTRACK_MAX) -> ConnectionTable:
        """See `DutKind.table`."""
        ours = OvsConntrackSettings()
        closed, answered = ours.timeouts["tcp_time_wait"], ours.timeouts["udp_multiple"]
        remedy = " Shorter trials need fewer."
        return ConnectionTable("OVS' connection table", ours.max_connections, closed, answered, remedy)

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """See `DutKind.describe`."""
        if not facts.get("version"):
            return ""
        dpdk = f", DPDK {facts['dpdk_version']}" if whole and facts.get("dpdk_version") else ""
        return f"Open vSwitch {facts['version']}{dpdk}"


def _devices(config: OvsDpdkConfig, host: Host) -> Devices:
    ports = config.ports
    if isinstance(ports, PciPorts):
        return PciDevices([ports.client, ports.server, *ports.more])
    if isinstance(ports, VethPorts):
        return VethDevices(host, ports.ring_size)
    return MemifDevices(host, FOLDER, ports.ring_size)
