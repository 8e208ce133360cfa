"""The Linux kernel as device under test: a router with the rules of iptables or nftables, or none, and a bridge with
VLAN filtering, bonds or VLAN devices where asked for."""

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address, ip_interface
from typing import Any

from ctbench.base.errors import MissingResource
from ctbench.base.network import MOST_PORT_PAIRS, VLAN_ID
from ctbench.dut.base import Ports, Problem, differing
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.links import below, bring_up, stack
from ctbench.dut.linux.netfilter import (
    NETFILTER,
    TABLE_SETTINGS,
    Rules,
    few_buckets,
    flowtable_settings,
    host_settings,
    namespace_settings,
    read_rules,
)
from ctbench.dut.topology import PortSetup, Topology
from ctbench.dut.veth import IpRoute
from ctbench.hosts.machine import Placement

#: Version of IP -> side -> the router's address, the generator's next to it, and the network behind that, of the first
#: pair of ports. RFC 2544 (appendix C.2.2) and RFC 5180 (section 8) reserve them for benchmarks; the networks of IPv4
#: are those of TRex's profiles.
NETWORKS = {
    4: {
        "client": ("198.18.0.1/30", "198.18.0.2", "16.0.0.0/8"),
        "server": ("198.18.1.1/30", "198.18.1.2", "48.0.0.0/8"),
    },
    6: {
        "client": ("2001:2:0:1::1/64", "2001:2:0:1::2", "2001:2:0:16::/64"),
        "server": ("2001:2:0:2::1/64", "2001:2:0:2::2", "2001:2:0:48::/64"),
    },
}
#: Version of IP -> what a further pair of ports adds to the router's address and the generator's, to the network behind
#: that, as the generator does (16.1.0.0), and how long that one's prefix is: longer than the first pair's, so it is
#: looked for first.
_FURTHER = {4: (2 << 8, 1 << 16, 16), 6: (2 << 64, 1 << 16, 112)}


def networks(version: int, pairs: int) -> list[tuple[str, str, str]]:
    """Return address, neighbour and network of each device of a router with so many pairs of ports, client side
    first."""
    found = list(NETWORKS[version].values())
    near, far, prefix = _FURTHER[version]
    for pair in range(1, pairs):
        for address, neighbour, network in NETWORKS[version].values():
            own, behind = ip_interface(address), ip_interface(network)
            found.append((
                f"{own.ip + pair * near}/{own.network.prefixlen}",
                f"{ip_address(neighbour) + pair * near}",
                f"{behind.ip + pair * far}/{prefix}",
            ))  # fmt: skip
    return found


#: The bridge with the two ports; a name of our own, as in links.py.
BRIDGE = "ctbr0"
#: Nothing but learning and forwarding: no spanning tree, no listening phase, no multicast groups.
PLAIN = ("stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")


class LinuxRouterDut(LinuxDut):
    """A router between two networks for benchmarks, one on each side, for each pair of ports."""

    kind = "linux-router"
    families = ("linux", "iptables", "ip6tables", "nftables")
    _rules: Rules | None = None
    #: Of IP: 4 or 6.
    _version = 4

    def _configure(self, topology: Topology, placement: Placement) -> Ports:
        self._devices = devices = stack(self._ip, topology.ports, self._links.interfaces, topology.mtu)
        ruleset = self._ruleset_of(topology)
        self._version = 6 if ruleset.ip_version == 6 else 4
        if ruleset.translates == "destination" and len(devices) > 2:
            raise MissingResource(
                f"Ruleset {ruleset.name} translates to servers of one pair of ports, and this testbed has "
                f"{len(devices) // 2}."
            )
        self._rules = read_rules(ruleset, devices)
        # Rules first: with them come the settings of conntrack, and no packet passes before they are there.
        self._netfilter.load(self._rules)
        if self._outlives_run:
            self._netfilter.remember()
        if self._version == 6:
            self._keep_default_routes()
        self._set_sysctls(forwarding_sysctls(self._version, below(topology.ports, self._links.interfaces)))
        self._set_sysctls(interface_sysctls(self._version, devices))
        if self._rules:
            self._set_conntrack(topology, accounts=ruleset.accounts)
        sides = networks(self._version, len(devices) // 2)
        quietly = " nodad" if self._version == 6 else ""
        self._ip.batch(
            f"address add {address} dev {device}{quietly}"
            for (address, _, _), device in zip(sides, devices, strict=True)
        )
        bring_up(self._ip, self._links, devices)
        for (_, neighbour, network), device, mac in zip(sides, devices, self._macs, strict=True):
            self._ip.batch([
                f"neighbour replace {neighbour} lladdr {mac} dev {device} nud permanent",
                f"route replace {network} via {neighbour} dev {device}",
            ])  # fmt: skip
        macs = [self._ip.show("link", "show", "dev", device)[0]["address"] for device in devices]
        hops = [neighbour for _, neighbour, _ in sides]
        return replace(
            self._ports(topology, placement),
            macs=tuple(zip(macs[::2], macs[1::2], strict=True)),
            next_hops=tuple(zip(hops[::2], hops[1::2], strict=True)),
        )

    def _keep_default_routes(self) -> None:
        """Let interfaces that learn routes from router advertisements do so on a router too. The kernel removes learned
        default routes as it becomes a router, with which a lab's host would be out of reach (rt6_purge_dflt_routers of
        net/ipv6/route.c)."""
        names = [f"net/ipv6/conf/{link['ifname']}/accept_ra" for link in self._ip.show("link", "show")]
        found = self._sysctls.read([_ALL_IPV6, *names])
        if found.pop(_ALL_IPV6, "") == "0":  # a router learns none
            self._sysctls.set({name: "2" for name, value in found.items() if value == "1"})

    def _set_conntrack(self, topology: Topology, *, accounts: bool) -> None:
        settings = TABLE_SETTINGS.of(topology)
        found = self._sysctls.set(host_settings(settings))
        limit = next((value for name, value in found.items() if name.endswith("_max")), "unknown")
        if topology.max_connections is not None and limit != str(topology.max_connections):
            raise MissingResource(
                f"A connection table of {topology.max_connections} entries is asked for, and nf_conntrack_max is "
                f"{limit}: a sandbox cannot change it, it is its host's."
            )
        self._set_sysctls(namespace_settings(settings, self._conntrack, accounts=accounts))
        self._set_sysctls(flowtable_settings(settings), where_known=True)

    def _unconfigure(self) -> None:
        remove_addresses(self._ip)

    def _differences(self) -> list[str]:
        found = super()._differences()
        rules = self._netfilter.differences(self._rules)
        if rules:
            found.append(f"rules: `-` asked, `+` found: {'; '.join(rules)}")
        sides = zip(networks(self._version, len(self._devices) // 2), self._devices, strict=True)
        asked = {f"route to {network}": device for (_, _, network), device in sides}
        routes = self._ip.show(f"-{self._version}", "route", "show")
        return found + differing(asked, {f"route to {route['dst']}": route.get("dev") for route in routes})

    def _state_problems(self) -> list[Problem]:
        ruleset = self._ruleset_of(self._applied[0]) if self._applied else None
        entries = self._table.count()
        if ruleset and entries and not ruleset.tracks:
            text = f"{entries} connections are tracked, and with ruleset {ruleset.name} none should be."
            return [Problem("fatal", text, code="tracked")]
        return []

    def _own_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"rules": self._netfilter.listing(self._rules)}
        if self._rules:
            shared = host_settings(TABLE_SETTINGS.of(self._applied[0]) if self._applied else TABLE_SETTINGS)
            found = self._sysctls.read(shared)
            entries, buckets = (int(found.get(f"{NETFILTER}/nf_conntrack_{name}", 0)) for name in ("max", "buckets"))
            few = few_buckets(entries, buckets)
            facts["conntrack_limits"] = {"asked": shared, "found": found, **({"few_buckets": few} if few else {})}
        return facts


_ALL_IPV6 = "net/ipv6/conf/all/forwarding"


def remove_addresses(ip: IpRoute) -> None:
    """Remove the router's own addresses from every device that has one, a lab's cards included, and with them
    neighbours and routes: those of a killed run too."""
    sides = [side for version in NETWORKS for side in networks(version, MOST_PORT_PAIRS)]
    addresses = [address.partition("/")[0] for address, _, _ in sides]
    for link in ip.show("address", "show"):
        for found in link["addr_info"]:
            if found["local"] in addresses:
                ip.batch([f"address del {found['local']}/{found['prefixlen']} dev {link['ifname']}"])


def forwarding_sysctls(version: int, untagged: Iterable[str]) -> dict[str, str]:
    """Return the settings that make a router. The first one sets those of all devices, and of IPv4 whether redirects
    are accepted (inet_forward_change of net/ipv4/devinet.c), so the others come after it, also when they are restored.
    A device below a VLAN device (`untagged`) does not forward frames without a tag."""
    first = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/accept_redirects": "0"}
    if version == 6:
        first = {_ALL_IPV6: "1"}
    return first | {f"net/ipv{version}/conf/{device}/forwarding": "0" for device in untagged}


def interface_sysctls(version: int, devices: tuple[str, ...]) -> dict[str, str]:
    """Return the settings that let a device forward every packet. IPv4: no check of sources and no redirects, for "all"
    too. IPv6: the device has only the address that it is given: no generated one, no duplicate address detection, no
    router advertisements."""
    own = {"rp_filter": "0", "send_redirects": "0"}
    if version == 6:
        own = {"disable_ipv6": "0", "addr_gen_mode": "1", "accept_dad": "0", "accept_ra": "0"}
    names = devices if version == 6 else ("all", *devices)
    return {f"net/ipv{version}/conf/{name}/{setting}": value for name in names for setting, value in own.items()}


class LinuxBridgeDut(LinuxDut):
    """A bridge. It filters VLANs itself where its ports are plain links with a VLAN."""

    kind = "linux-bridge"
    families = ("linux",)
    learns = True

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
        bring_up(self._ip, self._links, devices)
        return self._ports(topology, placement)

    def _unconfigure(self) -> None:
        self._ip.batch([f"link del {BRIDGE}"] if self._ip.has(BRIDGE) else [])
        remove_addresses(self._ip)  # of a router's run that was killed: a card with an address is refused

    def _differences(self) -> list[str]:
        masters = {f"bridge of {link['ifname']}": link.get("master") for link in self._ip.show("link", "show")}
        asked = {f"bridge of {device}": BRIDGE for device in self._devices}
        return super()._differences() + differing(asked, masters)

    def _tops(self) -> tuple[str, ...]:
        return (*self._devices, BRIDGE)
