"""Open vSwitch with DPDK as a kind of DUT."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctbench.dut.base import Dut
from ctbench.dut.kind import NF_CONNTRACK_MAX, Ability, ConnectionTable, Surroundings
from ctbench.dut.ovs import doctor
from ctbench.dut.ovs.builds import OvsBuilds
from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.ovs.dut import FOLDER, OvsDpdkDut
from ctbench.dut.ovs.packages import check_drivers, check_ovs
from ctbench.dut.ovs.ports import Devices, MemifDevices, PciDevices, VethDevices
from ctbench.dut.ovs.settings import OvsConntrackSettings, OvsInstallation
from ctbench.dut.port_config import PciPorts, VethPorts
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.facts import Examined
from ctbench.hosts.examination.finding import Finding


class OvsDpdkKind:
    """Implements `ctbench.dut.kind.DutKind`."""

    name = OvsDpdkDut.kind
    title = "OVS-DPDK"
    settings = OvsDpdkConfig
    abilities: frozenset[Ability] = frozenset(
        {"connections", "table limit", "control plane", "dump", "samples", "upcalls"}
    )
    builds = OvsBuilds()
    polls = True
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
        return OvsDpdkDut(
            around.host,
            around.machine,
            around.placement,
            installation=OvsInstallation.at(config.ovs.prefix),
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

    def hugepages_mb(self, config: OvsDpdkConfig) -> int:
        """See `DutKind.hugepages_mb`: in sandboxes two stand side by side, and both have them or none does."""
        at_once = 2 if config.host == SANDBOX else 1
        return at_once * config.memory_mb if config.hugepages == "auto" else 0

    def examine(self, config: OvsDpdkConfig, on: Examined) -> Iterator[Finding]:
        """See `DutKind.examine`."""
        return doctor.examine(config, on)

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
