"""Open vSwitch with DPDK as a kind of DUT, and the doctor's rows of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.dut.base import Dut
from ctbench.dut.kind import Ability, ConnectionTable, DutKind, PciPorts, Surroundings
from ctbench.dut.ovs.dpdk import Devices, MemifDevices, PciDevices, VethDevices
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.fit import DRIVERS, missing_drivers, program_of, require_fit, require_programs
from ctbench.dut.ovs.instance import FOLDER
from ctbench.dut.ovs.packages import Packages, unpack
from ctbench.dut.ovs.settings import TABLE, OvsDpdkConfig, OvsInstallation
from ctbench.dut.topology import OPTIONS
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import PCI, Examined, Finding, bad, install, ok, unknown


class OvsDpdkKind(DutKind):
    """OVS-DPDK as a private instance, in a sandbox or on a host."""

    name = OvsDpdkDut.kind
    title = "OVS-DPDK"
    settings = OvsDpdkConfig
    abilities: frozenset[Ability] = frozenset({
        "connections", "table limit", "control plane", "dump", "removal", "samples", "upcalls", "restart", "fragments",
        "timeouts",
    })  # fmt: skip
    builds = "ovs"
    polls = True
    options = frozenset(OPTIONS)
    families = OvsDpdkDut.families
    tags = ("ovs", OvsDpdkDut.kind)
    bridges = True

    def require(self, config: OvsDpdkConfig) -> None:
        try:
            self.check_build(LocalHost(), config.ovs.prefix, config.ports.kind)
        except CtbenchError as error:
            raise type(error)(f"ovs.prefix: {config.ovs.prefix}: {error}") from None

    def program(self, config: OvsDpdkConfig, host: Host) -> str:
        installation = OvsInstallation.at(config.ovs.prefix)
        with installation.shown(host) as there:
            return program_of(there, installation)

    def unpack(self, given: Path) -> Path:
        return unpack(given)

    def is_packaged(self, prefix: str) -> bool:
        return Packages.read(prefix) is not None

    def check_build(self, host: Host, prefix: str, ports: str) -> None:
        if prefix != "distribution" and host.run(["test", "-d", prefix], check=False).exit_status != 0:
            raise ConfigError(
                f"there is no such folder on {host.name}.\n  Expected what the build was configured with (--prefix) "
                "and installed to, or a folder of packages (.deb, .rpm)."
            )
        installation = OvsInstallation.at(prefix)
        with installation.shown(host) as there:
            require_fit(there, installation, DRIVERS[ports])

    def build(self, config: OvsDpdkConfig, around: Surroundings) -> Dut:
        return OvsDpdkDut(
            around.host,
            around.machine,
            around.placement,
            installation=OvsInstallation.at(config.ovs.prefix),
            devices=_devices(config, around.host),
            log_folder=around.log_folder,
            memory_mb=config.memory_mb,
            hugepages=config.hugepages == "auto",
            options=config.ovs.options,
            dpdk_extra=config.ovs.dpdk_extra,
        )

    def table(self, config: OvsDpdkConfig) -> ConnectionTable:
        closed, answered = TABLE.timeouts["tcp_time_wait"], TABLE.timeouts["udp_multiple"]
        remedy = " Shorter trials need fewer."
        return ConnectionTable("OVS' connection table", TABLE.max_connections, closed, answered, remedy)

    def hugepages_mb(self, config: OvsDpdkConfig) -> int:
        """Return the MiB of hugepages. In sandboxes two DUTs stand side by side: both have hugepages or neither."""
        at_once = 2 if config.host == SANDBOX else 1
        return at_once * config.memory_mb if config.hugepages == "auto" else 0

    def examine(self, config: OvsDpdkConfig, on: Examined) -> Iterator[Finding]:
        installation = OvsInstallation.at(config.ovs.prefix)
        try:
            versions = require_programs(on.host, installation)
            shown = f"{versions['version']}, DPDK {versions['dpdk_version']} ({installation.vswitchd_path})"
            yield ok("Open vSwitch", shown)
            yield _drivers(on, config, installation)
        except MissingResource as error:
            packaged = config.ovs.prefix == "distribution" and on.ssh is not None
            remedy = install(on.facts, ["openvswitch-switch-dpdk"]) if packaged else installation.remedy
            yield bad("Open vSwitch", str(error).removesuffix(f": {installation.remedy}."), remedy)
            return
        if config.host != SANDBOX:
            yield _running(on)

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        if not facts.get("version"):
            return ""
        packages = facts.get("packages")
        packaged = f" ({packages[0]})" if packages else ""
        dpdk = f", DPDK {facts['dpdk_version']}" if whole and facts.get("dpdk_version") else ""
        return f"Open vSwitch {facts['version']}{packaged}{dpdk}"


def _devices(config: OvsDpdkConfig, host: Host) -> Devices:
    ports = config.ports
    if isinstance(ports, PciPorts):
        return PciDevices([address for _, address in ports.cards], pairs=ports.pairs)
    if ports.kind == "veth":
        return VethDevices(host, ports.ring_size, pairs=ports.pairs)
    return MemifDevices(host, FOLDER, ports.ring_size, pairs=ports.pairs)


#: The driver of a card, by its vendor's PCI number, where all cards of a vendor have one.
CARD_DRIVERS = {
    "0x1af4": "librte_net_virtio", "0x15ad": "librte_net_vmxnet3", "0x15b3": "librte_net_mlx5",
    "0x14e4": "librte_net_bnxt", "0x1d0f": "librte_net_ena",
}  # fmt: skip
#: Debian's package of all drivers of cards, and of the bus.
CARDS_PACKAGE = "librte-meta-net"


def _drivers(site: Examined, config: OvsDpdkConfig, installation: OvsInstallation) -> Finding:
    needed = list(DRIVERS[config.ports.kind])
    if isinstance(config.ports, PciPorts):
        vendors = [site.facts.files.get(f"{PCI}/{address}/vendor", "") for _, address in config.ports.cards]
        needed += sorted({CARD_DRIVERS[vendor] for vendor in vendors if vendor in CARD_DRIVERS})
    what, (where, missing) = "DPDK drivers", missing_drivers(site.host, installation, needed)
    if not missing and where == installation.vswitchd_path and config.ports.kind == "pci":
        return unknown(what, f"{', '.join(needed)}: which cards those that are linked in are for is not known")
    if not missing:
        return ok(what, f"{', '.join(needed)} in {where}")
    packages = [
        f"{driver.replace('_', '-')}*" if driver in ("librte_mempool_ring", "librte_net_memif") else CARDS_PACKAGE
        for driver in missing
    ]
    remedy = install(site.facts, packages) if config.ovs.prefix == "distribution" else installation.remedy
    return bad(what, f"{' and '.join(missing)} are not in {where}", remedy)


def _running(site: Examined) -> Finding:
    what = "running OVS"
    if site.host.run(["pgrep", "-l", "ovs-vswitchd"], check=False).stdout:
        return unknown(what, "the host's runs next to ours: its PMD threads, if any, take CPUs and cards")
    return ok(what, "none: nothing is in the way of ours")
