"""Open vSwitch with DPDK as a kind of DUT, and the doctor's rows of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from ctbench.base.errors import CtbenchError, MissingResource
from ctbench.dut.base import Dut
from ctbench.dut.kind import Ability, ConnectionTable, DutKind, PciPorts, Surroundings, VethPorts
from ctbench.dut.ovs.dpdk import Devices, MemifDevices, PciDevices, VethDevices
from ctbench.dut.ovs.dut import FOLDER, OvsDpdkDut
from ctbench.dut.ovs.settings import (
    BUILDS,
    PMD_LIBRARIES,
    OvsConntrackSettings,
    OvsDpdkConfig,
    OvsInstallation,
    check_drivers,
    check_ovs,
    read_versions,
    require_installation,
)
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import PCI, Examined, Finding, bad, install, ok, unknown


class OvsDpdkKind(DutKind):
    """An instance of the run's own, in a sandbox or on a host."""

    name = OvsDpdkDut.kind
    title = "OVS-DPDK"
    settings = OvsDpdkConfig
    abilities: frozenset[Ability] = frozenset(
        {"connections", "table limit", "control plane", "dump", "samples", "upcalls"}
    )
    builds = BUILDS
    polls = True
    families = OvsDpdkDut.families
    tags = ("ovs", OvsDpdkDut.kind)
    bridges = True

    def require(self, config: OvsDpdkConfig) -> None:
        if config.ovs.prefix == "distribution":
            check_ovs()
            check_drivers()
            return
        try:
            BUILDS.check(LocalHost(), config.ovs.prefix, config.ports.kind)
        except CtbenchError as error:
            raise type(error)(f"ovs.prefix: {config.ovs.prefix}: {error}") from None

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
        ours = OvsConntrackSettings()
        closed, answered = ours.timeouts["tcp_time_wait"], ours.timeouts["udp_multiple"]
        remedy = " Shorter trials need fewer."
        return ConnectionTable("OVS' connection table", ours.max_connections, closed, answered, remedy)

    def hugepages_mb(self, config: OvsDpdkConfig) -> int:
        """In sandboxes two stand side by side, and both have them or none does."""
        at_once = 2 if config.host == SANDBOX else 1
        return at_once * config.memory_mb if config.hugepages == "auto" else 0

    def examine(self, config: OvsDpdkConfig, on: Examined) -> Iterator[Finding]:
        installation = OvsInstallation.at(config.ovs.prefix)
        try:
            require_installation(on.host, installation)
        except MissingResource as error:
            yield bad("Open vSwitch", str(error).rstrip("."), _remedy(on, config))
            return
        versions = read_versions(on.host, installation.vswitchd_path)
        shown = f"{versions['version']}, DPDK {versions['dpdk_version']} ({installation.vswitchd_path})"
        if versions["dpdk_version"] == "none":
            remedy = "configure it with --with-dpdk=static, see the article"
            yield bad("Open vSwitch", f"{shown}: built without DPDK", remedy)
            return
        yield ok("Open vSwitch", shown)
        yield _drivers(on, config)
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
        return PciDevices([ports.client, ports.server, *ports.more])
    if isinstance(ports, VethPorts):
        return VethDevices(host, ports.ring_size)
    return MemifDevices(host, FOLDER, ports.ring_size)


#: DPDK driver that each kind of port needs, besides mempool_ring.
DRIVERS = {"memif": "librte_net_memif", "veth": "librte_net_af_packet", "pci": "librte_bus_pci"}
MEMPOOL = "librte_mempool_ring"
#: And that of a card, by its vendor's PCI number, where all cards of a vendor have one.
CARD_DRIVERS = {
    "0x1af4": "librte_net_virtio", "0x15ad": "librte_net_vmxnet3", "0x15b3": "librte_net_mlx5",
    "0x14e4": "librte_net_bnxt", "0x1d0f": "librte_net_ena",
}  # fmt: skip
#: Debian's package of all drivers of cards, and of the bus.
CARDS_PACKAGE = "librte-meta-net"


def _drivers(site: Examined, config: OvsDpdkConfig) -> Finding:
    needed = [MEMPOOL, DRIVERS[config.ports.kind]]
    if isinstance(config.ports, PciPorts):
        vendors = [site.facts.files.get(f"{PCI}/{address}/vendor", "") for _, address in config.ports.cards]
        needed += sorted({CARD_DRIVERS[vendor] for vendor in vendors if vendor in CARD_DRIVERS})
    if config.ovs.prefix != "distribution":
        return unknown("DPDK drivers", f"{', '.join(needed)}: a build of one's own has them linked in, or next to it")
    folders = site.host.run(["find", "/usr/lib", "/usr/lib64", "-type", "d", "-path", "*/dpdk/pmds-*"], check=False)
    for folder in folders.stdout.split():
        files = site.host.run(["ls", folder], check=False).stdout
        if all(f"{driver}.so" in files for driver in needed):
            return ok("DPDK drivers", f"{', '.join(needed)} in {folder}")
    by_name = needed[:1] if config.ports.kind == "pci" else needed
    packages = [PMD_LIBRARIES.get(driver, driver.replace("_", "-") + "*") for driver in by_name]
    packages += [CARDS_PACKAGE] if config.ports.kind == "pci" else []
    return bad("DPDK drivers", f"{' and '.join(needed)} are not all there", install(site.facts, packages))


def _running(site: Examined) -> Finding:
    what = "running OVS"
    if site.host.run(["pgrep", "-l", "ovs-vswitchd"], check=False).stdout:
        return unknown(what, "the host's runs next to ours: its PMD threads, if any, take CPUs and cards")
    return ok(what, "none: nothing is in the way of ours")


def _remedy(site: Examined, config: OvsDpdkConfig) -> str:
    if config.ovs.prefix != "distribution":
        return "make install of a build with that --prefix, or set ovs.prefix in the testbed file"
    if site.ssh is None:
        return "./run setup"
    return install(site.facts, ["openvswitch-switch-dpdk"])
