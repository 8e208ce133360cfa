"""The doctor's rows of Open vSwitch: installed, with DPDK and its drivers, and what runs on the host already."""

from collections.abc import Iterator

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.ovs.installation import read_versions, require_installation
from ctbench.dut.ovs.packages import PMD_LIBRARIES
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.facts import Examined
from ctbench.hosts.examination.finding import Finding, bad, ok, unknown
from ctbench.hosts.examination.remedy import install

#: DPDK driver that each kind of port needs, besides mempool_ring.
DRIVERS = {"memif": "librte_net_memif", "veth": "librte_net_af_packet"}
MEMPOOL = "librte_mempool_ring"


def examine(config: OvsDpdkConfig, site: Examined) -> Iterator[Finding]:
    """All about Open vSwitch as a DUT on this host."""
    installation = OvsInstallation.at(config.ovs.prefix)
    try:
        require_installation(site.host, installation)
    except MissingResource as error:
        yield bad("Open vSwitch", str(error).rstrip("."), _remedy(site, config))
        return
    versions = read_versions(site.host, installation.vswitchd_path)
    shown = f"{versions['version']}, DPDK {versions['dpdk_version']} ({installation.vswitchd_path})"
    if versions["dpdk_version"] == "none":
        yield bad(
            "Open vSwitch", f"{shown}: built without DPDK", "configure it with --with-dpdk=static, see the article"
        )
        return
    yield ok("Open vSwitch", shown)
    yield _drivers(site, config)
    if config.host != SANDBOX:
        yield _running(site, config)


def _drivers(site: Examined, config: OvsDpdkConfig) -> Finding:
    needed = [MEMPOOL] + ([DRIVERS[config.ports.kind]] if config.ports.kind in DRIVERS else [])
    if config.ovs.prefix != "distribution":
        return unknown("DPDK drivers", f"{', '.join(needed)}: a build of one's own has them linked in, or next to it")
    folders = site.host.run(["find", "/usr/lib", "/usr/lib64", "-type", "d", "-path", "*/dpdk/pmds-*"], check=False)
    for folder in folders.stdout.split():
        files = site.host.run(["ls", folder], check=False).stdout
        if all(f"{driver}.so" in files for driver in needed):
            return ok("DPDK drivers", f"{', '.join(needed)} in {folder}")
    packages = [PMD_LIBRARIES.get(driver, driver.replace("_", "-") + "*") for driver in needed]
    return bad("DPDK drivers", f"{' and '.join(needed)} are not all there", install(site.facts, packages))


def _running(site: Examined, config: OvsDpdkConfig) -> Finding:
    running = "ovs-vswitchd" in site.host.run(["pgrep", "-l", "ovs-vswitchd"], check=False).stdout
    if config.ovs.manage:
        if running:
            return ok("running OVS", "the host's, which the run sets up and puts back (ovs.manage)")
        own = f"{config.ovs.prefix}/share/openvswitch/scripts/ovs-ctl start"
        start = "systemctl start openvswitch" if config.ovs.prefix == "distribution" else own
        return bad("running OVS", "none, and ovs.manage asks for the host's", start)
    if running:
        return unknown("running OVS", "the host's runs next to ours: its PMD threads, if any, take CPUs and cards")
    return ok("running OVS", "none: nothing is in the way of ours")


def _remedy(site: Examined, config: OvsDpdkConfig) -> str:
    if config.ovs.prefix != "distribution":
        return "make install of a build with that --prefix, or set ovs.prefix in the testbed file"
    if site.ssh is None:
        return "./run setup"
    return install(site.facts, ["openvswitch-switch-dpdk"])
