"""A Linux router as device under test: forwards between two links, with the rules of iptables or nftables, or none."""

from dataclasses import replace
from typing import Any

from ctbench.dut.base import Ports, Problem
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.netfilter import Rules, read_rules
from ctbench.dut.linux.upper_devices import below, stack, wait_until_up
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement

#: Side -> the router's address, the generator's next to it (RFC 2544 appendix C.2.2 reserves them for benchmarks), and
#: the network behind that: the one of TRex's profiles.
NETWORKS = {
    "client": ("198.18.0.1", "198.18.0.2", "16.0.0.0/8"),
    "server": ("198.18.1.1", "198.18.1.2", "48.0.0.0/8"),
}


class LinuxRouterDut(LinuxDut):
    """Implements `ctbench.dut.base.Dut`."""

    kind = "linux-router"
    families = ("linux", "iptables", "nftables")
    _rules: Rules | None = None
    _devices: tuple[str, str] = ("", "")

    def _configure(self, topology: Topology, placement: Placement) -> Ports:
        self._devices = devices = stack(self._ip, topology.ports, self._links.interfaces, topology.mtu)
        self._rules = read_rules(self._ruleset_of(topology), devices)
        # Rules first: with them come the settings of conntrack, and no packet passes before they are there.
        self._netfilter.load(self._rules)
        # ip_forward sets the others, so it comes first; what is below a VLAN device takes no frames without a tag.
        untagged = {f"net/ipv4/conf/{device}/forwarding": "0" for device in below(topology.ports, devices)}
        self._set_sysctls({"net/ipv4/ip_forward": "1", **untagged})
        self._set_sysctls(interface_sysctls(devices))
        if self._rules:
            self._set_conntrack()
        self._ip.batch(
            f"address add {address}/30 dev {device}"
            for (address, _, _), device in zip(NETWORKS.values(), devices, strict=True)
        )
        self._links.up()
        wait_until_up(self._ip, self._links.interfaces, devices)
        for (_, neighbour, network), device, mac in zip(NETWORKS.values(), devices, self._macs, strict=True):
            self._ip.batch([
                f"neighbour replace {neighbour} lladdr {mac} dev {device} nud permanent",
                f"route replace {network} via {neighbour} dev {device}",
            ])  # fmt: skip
        client, server = (self._ip.show("link", "show", "dev", device)[0]["address"] for device in devices)
        return replace(
            self._ports(topology, placement), client_mac=client, server_mac=server,
            client_next_hop=NETWORKS["client"][1], server_next_hop=NETWORKS["server"][1],
        )  # fmt: skip

    def _set_conntrack(self) -> None:
        settings = self._conntrack
        self._sysctls.set(settings.shared)
        self._set_sysctls(settings.writable)

    def _unconfigure(self) -> None:
        """Addresses, and with them neighbours and routes, go with the devices, or from a lab's cards."""
        addresses = [address for address, _, _ in NETWORKS.values()]
        for link in self._ip.show("address", "show"):
            for found in link["addr_info"]:
                if found["local"] in addresses:
                    self._ip.batch([f"address del {found['local']}/{found['prefixlen']} dev {link['ifname']}"])

    def _differences(self) -> list[str]:
        found = super()._differences()
        rules = self._netfilter.differences(self._rules)
        if rules:
            found.append(f"rules: `-` asked, `+` found: {'; '.join(rules)}")
        routes = {route["dst"]: route.get("dev") for route in self._ip.show("route", "show")}
        for (_, _, network), device in zip(NETWORKS.values(), self._devices, strict=True):
            if routes.get(network) != device:
                found.append(f"route to {network}: asked {device}, found {routes.get(network)}")
        return found

    def _state_problems(self) -> list[Problem]:
        ruleset = self._ruleset_of(self._applied[0]) if self._applied else None
        entries = self._table.count()
        if ruleset and entries and not ruleset.tracks:
            text = f"{entries} connections are tracked, and with ruleset {ruleset.name} none should be."
            return [Problem("fatal", text)]
        return []

    def _tops(self) -> tuple[str, ...]:
        return self._devices

    def _own_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"rules": self._netfilter.listing(self._rules)}
        if self._rules:
            shared = self._conntrack.shared
            facts["conntrack_limits"] = {"asked": shared, "found": self._sysctls.read(shared)}
        return facts


def interface_sysctls(devices: tuple[str, str]) -> dict[str, str]:
    """Settings that let a device forward whatever comes: no check of sources, no redirects."""
    values = {"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/all/send_redirects": "0"}
    for device in devices:
        values |= {f"net/ipv4/conf/{device}/rp_filter": "0", f"net/ipv4/conf/{device}/send_redirects": "0"}
    return values
