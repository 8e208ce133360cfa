"""What is installed on a host: whether it is complete, which OVS and DPDK it is, and what they cannot do."""

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs.settings import PACKAGES, OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host

#: Releases of DPDK 21.11 whose memif driver reads the statistics of rings that are not there, when a link has more of
#: them one way than the other, and takes OVS with it; https://bugs.dpdk.org/show_bug.cgi?id=734, fixed in 21.11.3.
CRASH_ON_UNEQUAL_RINGS = ("21.11.0", "21.11.1", "21.11.2")


def require_installation(host: Host, installation: OvsInstallation) -> None:
    """Raise `MissingResource` where a file of the installation is missing."""
    done = host.run(["ls", "-d", *installation.files], check=False)
    missing = [path for path in installation.files if path not in done.stdout.splitlines()]
    if missing:
        raise MissingResource(f"OVS-DPDK is not on {host.name}: {', '.join(missing)} not found. Install {PACKAGES}.")


def read_versions(host: Host, binary: str) -> dict[str, str]:
    """`version` of Open vSwitch and `dpdk_version`, `none` for a build without DPDK, of an ovs-vswitchd."""
    lines = host.run([binary, "--version"]).stdout.splitlines()
    dpdk = [line.split()[-1] for line in lines if line.startswith("DPDK ")]
    return {"version": lines[0].split()[-1], "dpdk_version": dpdk[0] if dpdk else "none"}


def refuse_unequal_rings(dpdk_version: str, topology: Topology) -> None:
    """Raise `MissingResource` for a topology whose memif links this DPDK does not survive: those whose receive queues
    are not as many as OVS' transmit queues."""
    transmit = transmit_queues(topology)
    if dpdk_version in CRASH_ON_UNEQUAL_RINGS and topology.rx_queues != transmit:
        raise MissingResource(
            f"DPDK {dpdk_version} crashes when a memif link has {topology.rx_queues} ring(s) one way and {transmit} the"
            f" other: {topology.cpus} PMD CPU(s) work with {transmit} RX queues there, and any topology with"
            " DPDK 21.11.3 or later."
        )


def transmit_queues(topology: Topology) -> int:
    """Queues that OVS transmits on, of each port: one for each PMD thread and one for its other threads."""
    return topology.cpus + 1
