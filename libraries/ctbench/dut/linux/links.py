"""The DUT's two links: veth pairs whose other ends the software traffic generator has, or a lab's network cards."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from socket import socket
from typing import Any, Protocol

from ctbench.dut.linux.iproute import IpRoute
from ctbench.hosts.base import SocketKind

#: Ethernet addresses of the traffic generator's two ends.
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
#: Network namespace of the generator's ends, named by ip-netns(8).
GENERATOR = "generator"
#: Side -> the DUT's interface and the generator's end of a veth pair.
VETH = {"client": ("r0", "g0"), "server": ("r1", "g1")}
#: Frames that a receive queue holds at least.
LEAST_QUEUE = 64
#: Counters of `ip -s link` that count lost packets.
LOSSES = ("errors", "dropped", "over_errors", "missed_errors", "fifo_errors", "carrier_errors")


@dataclass(frozen=True)
class InterfaceCounters:
    """What the kernel counted at one interface: packets, and lost ones by the name of their counter."""

    #: Number of the interface, another one when it was made anew.
    index: int
    rx_packets: int
    tx_packets: int
    drops: Mapping[str, int]


class Links(Protocol):
    """The DUT's two interfaces, client side first, and what is at their other ends."""

    @property
    def interfaces(self) -> tuple[str, str]:
        """Names of the DUT's interfaces."""

    @property
    def peers(self) -> tuple[str, str]:
        """Names of the generator's ends in the namespace `GENERATOR`; empty where they are another machine's."""

    @property
    def open_socket(self) -> Callable[[SocketKind], socket] | None:
        """Opens a socket where the generator's ends are; None where they are another machine's."""

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """Make the links anew, or bring the cards to `rx_queues` queues served by `cpus`; they are down."""

    def up(self) -> None:
        """Bring both ends up; whoever holds the DUT's interfaces has taken them by now."""

    def remove(self) -> None:
        """Remove what `make` made; cards get back what they had. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """For the record: kind of the links, and how the DUT's work is bound to CPUs."""


class VethLinks:
    """Two veth pairs, made anew each time.

    No NAPI on them: the kernel then receives, forwards and delivers a frame on the CPU, and in the time, of the thread
    that sends it. That thread is the generator's, on a CPU of the DUT.
    """

    def __init__(self, ip: IpRoute) -> None:
        self._ip = ip
        self._cpus: tuple[int, ...] = ()

    @property
    def interfaces(self) -> tuple[str, str]:
        """See `Links.interfaces`."""
        return VETH["client"][0], VETH["server"][0]

    @property
    def peers(self) -> tuple[str, str]:
        """See `Links.peers`."""
        return VETH["client"][1], VETH["server"][1]

    @property
    def open_socket(self) -> Callable[[SocketKind], socket]:
        """See `Links.open_socket`."""
        return lambda kind: self._ip.host.open_socket(kind, GENERATOR)

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """See `Links.make`. A receive queue is a ring of the generator's; a pair has one queue for each thread that
        sends, as AF_XDP gives a transmit queue to one socket only."""
        self._cpus = cpus
        self.remove()
        self._ip.host.run(["ip", "netns", "add", GENERATOR])
        # The kernel is to send nothing of its own from the generator's ends, and to take nothing: their addresses are
        # others than those that frames go to.
        within = ["ip", "netns", "exec", GENERATOR]
        self._ip.host.run([*within, "sysctl", "-q", "-e", "-w", "net.ipv6.conf.default.disable_ipv6=1"])
        queues = f"mtu {mtu} numrxqueues {len(cpus)} numtxqueues {len(cpus)}"
        self._ip.batch(
            f"link add {name} {queues} type veth peer name {peer} {queues} netns {GENERATOR}"
            for name, peer in VETH.values()
        )
        # No offloads: a frame passes as it was written, and none is held back to be merged with the next.
        offloads = ["tso", "off", "gso", "off", "gro", "off"]
        for name, peer in VETH.values():
            self._ip.host.run(["ethtool", "-K", name, *offloads])
            self._ip.host.run([*within, "ethtool", "-K", peer, *offloads])

    def up(self) -> None:
        """See `Links.up`."""
        self._ip.batch(f"link set {name} up" for name in self.interfaces)
        self._ip.batch((f"link set {peer} arp off up" for peer in self.peers), GENERATOR)

    def remove(self) -> None:
        """See `Links.remove`."""
        self._ip.batch(f"link del {name}" for name in self.interfaces if self._ip.has(name))
        if any(namespace["name"] == GENERATOR for namespace in self._ip.show("netns")):
            self._ip.host.run(["ip", "netns", "del", GENERATOR])

    def facts(self) -> dict[str, Any]:
        """See `Links.facts`."""
        return {"kind": "veth", "cpus": list(self._cpus), "binding": f"link threads pinned to CPUs {list(self._cpus)}"}


def read_counters(ip: IpRoute, links: Links) -> dict[str, InterfaceCounters]:
    """Counters of those interfaces of the links that are there."""
    here = ip.show("-s", "link", "show")
    known = any(namespace["name"] == GENERATOR for namespace in ip.show("netns"))
    there = ip.show("-s", "link", "show", namespace=GENERATOR) if known and any(links.peers) else []
    wanted = {*links.interfaces, *links.peers}
    return {link["ifname"]: parse_counters(link) for link in [*here, *there] if link["ifname"] in wanted}


def describe(ip: IpRoute, names: Collection[str]) -> list[dict[str, Any]]:
    """What the record says of interfaces."""
    return [
        {
            "name": link["ifname"],
            "kind": link.get("linkinfo", {}).get("info_kind", "card"),
            "mtu": link["mtu"],
            "mac": link["address"],
            "rx_queues": link.get("num_rx_queues"),
            "tx_queues": link.get("num_tx_queues"),
        }
        for link in ip.show("-d", "link", "show")
        if link["ifname"] in names
    ]


def parse_counters(link: Mapping[str, Any]) -> InterfaceCounters:
    """Counters of one entry of `ip -json -s link show`."""
    statistics = link["stats64"]
    drops = {f"{way}_{name}": int(statistics[way].get(name, 0)) for way in ("rx", "tx") for name in LOSSES}
    return InterfaceCounters(link["ifindex"], statistics["rx"]["packets"], statistics["tx"]["packets"], drops)


def queue_size(frames: int, rx_queues: int) -> int:
    """Frames that each of `rx_queues` queues holds of the `frames` of its link: a power of two. The queues share what a
    link holds: a topology with more of them is not given more time to answer."""
    return max(LEAST_QUEUE, frames >> (rx_queues - 1).bit_length())
