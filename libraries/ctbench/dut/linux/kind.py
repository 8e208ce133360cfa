"""The Linux kernel as two kinds of DUT: a router and a bridge."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctbench.base.yaml_files import YamlModel
from ctbench.dut.base import Dut
from ctbench.dut.kind import NF_CONNTRACK_MAX, Ability, Builds, ConnectionTable, Surroundings
from ctbench.dut.linux import doctor
from ctbench.dut.linux.bridge import LinuxBridgeDut
from ctbench.dut.linux.config import LinuxConfig
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.router import LinuxRouterDut
from ctbench.dut.linux.settings import LinuxConntrackSettings
from ctbench.dut.port_config import VethPorts
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.facts import Examined
from ctbench.hosts.examination.finding import Finding


@dataclass(frozen=True)
class LinuxKind:
    """Implements `ctbench.dut.kind.DutKind`."""

    new: type[LinuxDut]
    title: str
    tags: tuple[str, ...]
    bridges: bool
    settings: type[YamlModel] = LinuxConfig
    abilities: frozenset[Ability] = frozenset({"connections", "dump"})
    builds: Builds | None = None
    #: The kernel forwards where its interrupts are.
    polls: bool = False

    @property
    def name(self) -> str:
        """See `DutKind.name`."""
        return self.new.kind

    @property
    def families(self) -> tuple[str, ...]:
        """See `DutKind.families`."""
        return self.new.families

    def require(self, config: LinuxConfig) -> None:
        """See `DutKind.require`: what the kernel lacks, it says when it is set up."""

    def build(self, config: LinuxConfig, around: Surroundings) -> Dut:
        """See `DutKind.build`."""
        host, machine, placement, ports = around.host, around.machine, around.placement, config.ports
        if isinstance(ports, VethPorts):
            return self.new(host, machine, placement, frames=ports.ring_size, steer=not around.generator_carries)
        client, server = around.generator_macs()
        interfaces = (ports.client, ports.server)
        return self.new(host, machine, placement, interfaces=interfaces, client_mac=client, server_mac=server)

    def table(self, config: LinuxConfig, limit: Path = NF_CONNTRACK_MAX) -> ConnectionTable | None:
        """See `DutKind.table`: a sandbox shares this machine's limit; elsewhere we are root and set it."""
        ours = LinuxConntrackSettings()
        entries, remedy = ours.max_connections, " Shorter trials need fewer."
        if config.host == SANDBOX:
            remedy = " An administrator makes it larger: sysctl net.netfilter.nf_conntrack_max={entries}"
            try:
                entries = int(limit.read_text())
            except (OSError, ValueError):
                return None
        closed, answered = ours.timeouts["tcp_timeout_time_wait"], ours.timeouts["udp_timeout_stream"]
        of_host = config.host == SANDBOX
        return ConnectionTable("The kernel's connection table", entries, closed, answered, remedy, of_host=of_host)

    def hugepages_mb(self, config: LinuxConfig) -> int:
        """See `DutKind.hugepages_mb`."""
        return 0

    def examine(self, config: LinuxConfig, on: Examined) -> Iterator[Finding]:
        """See `DutKind.examine`."""
        return doctor.examine(config, on)

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        """See `DutKind.describe`."""
        if not facts.get("kernel"):
            return ""
        tools = [f"{tool} {facts[tool]}" for tool in ("iptables", "nftables") if whole and facts.get(tool)]
        return ", ".join([f"Linux {facts['kernel']}", *tools])


ROUTER = LinuxKind(LinuxRouterDut, "Linux router", ("linux", "router"), bridges=False)
BRIDGE = LinuxKind(LinuxBridgeDut, "Linux bridge", ("linux", "bridge"), bridges=True)
