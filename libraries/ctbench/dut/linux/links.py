"""A Linux DUT's two links, be they veth pairs or a lab's network cards, and what the kernel counts at them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from socket import socket
from typing import Any, Protocol

from ctbench.dut.iproute import IpRoute
from ctbench.dut.veth import GENERATOR
from ctbench.hosts.base import SocketKind

#: Counters of `ip -s link` that count lost packets.
LOSSES = ("errors", "dropped", "over_errors", "missed_errors", "fifo_errors", "carrier_errors")


@dataclass(frozen=True)
class InterfaceCounters:
    """What the kernel counted at one interface: packets, and lost ones by the name of their counter."""

    #: Number of the interface, another one when it was created again.
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
        """Names of the generator's ends in its namespace; empty where they are another machine's."""

    @property
    def open_socket(self) -> Callable[[SocketKind], socket] | None:
        """Opens a socket where the generator's ends are; None where they are another machine's."""

    def make(self, mtu: int, rx_queues: int, cpus: tuple[int, ...]) -> None:
        """Create the links again, or bring the cards to `rx_queues` queues served by `cpus`; they are down."""

    def up(self) -> None:
        """Bring both ends up; the generator has taken the DUT's interfaces by now."""

    def remove(self) -> None:
        """Remove what `make` made; cards get back what they had. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """For the record: kind of the links, and how the DUT's work is bound to CPUs."""


def read_counters(ip: IpRoute, links: Links) -> dict[str, InterfaceCounters]:
    """Counters of those interfaces of the links that are there."""
    here = ip.show("-s", "link", "show")
    there = ip.show("-s", "link", "show", namespace=GENERATOR, where_known=True) if any(links.peers) else []
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
