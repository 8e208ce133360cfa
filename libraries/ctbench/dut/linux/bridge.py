"""A Linux bridge as device under test: two ports, with VLAN filtering, bonds or VLAN devices where asked for."""

from ctbench.base.network import VLAN_ID
from ctbench.dut.base import Ports, differing
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.links import stack, wait_until_up
from ctbench.dut.topology import PortSetup, Topology
from ctbench.hosts.machine import Placement

#: The bridge with the two ports; a name of our own, as in links.py.
BRIDGE = "ctbr0"
#: Nothing but learning and forwarding: no spanning tree, no listening phase, no multicast groups.
PLAIN = ("stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")


class LinuxBridgeDut(LinuxDut):
    """Ports that are plain links with a VLAN are filtered by the bridge itself."""

    kind = "linux-bridge"
    families = ("linux",)

    def _configure(self, topology: Topology, placement: Placement) -> Ports:
        filtering = topology.ports == "vlan"
        below: PortSetup = "plain" if filtering else topology.ports
        self._devices = devices = stack(self._ip, below, self._links.interfaces, topology.mtu)
        self._ip.add(BRIDGE, "bridge", "bridge", *PLAIN)
        if filtering:  # frames of no VLAN, or of one that a port is not in, do not pass
            need = "VLAN filtering in the kernel's bridge (CONFIG_BRIDGE_VLAN_FILTERING)"
            self._ip.require(["ip", "link", "set", BRIDGE, "type", "bridge", "vlan_filtering", "1"], need)
            self._ip.batch([f"link set {BRIDGE} type bridge vlan_default_pvid 0"])
        self._ip.batch(f"link set {device} master {BRIDGE}" for device in devices)
        for device in devices if filtering else ():
            self._host.run(["bridge", "vlan", "add", "dev", device, "vid", str(VLAN_ID)])
        self._ip.batch([f"link set {BRIDGE} mtu {topology.mtu} up"])
        self._links.up()
        wait_until_up(self._ip, self._links.interfaces, devices)
        return self._ports(topology, placement)

    def _unconfigure(self) -> None:
        self._ip.batch([f"link del {BRIDGE}"] if self._ip.has(BRIDGE) else [])

    def _differences(self) -> list[str]:
        masters = {f"bridge of {link['ifname']}": link.get("master") for link in self._ip.show("link", "show")}
        asked = {f"bridge of {device}": BRIDGE for device in self._devices}
        return super()._differences() + differing(asked, masters)

    def _tops(self) -> tuple[str, ...]:
        return (*self._devices, BRIDGE)
