"""How the generator's two ports are joined to a DUT: through memif sockets, network interfaces, or with each other."""

import socket
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ctgen.memif import BondedPort, MemifPort, RingPlan, buffer_bytes, cable, connect
from ctgen.packet_port import AF_XDP, LinkThreads, OpenSocket, PacketPort, SocketKind
from ctgen.wiring import MACS, Wiring


@dataclass(frozen=True, kw_only=True)
class Link(ABC):
    """Where the ports lead to."""

    #: Rings of a port towards the DUT: its receive queues.
    rx_queues: int = 1
    #: Rings that the DUT transmits on, all of which are polled.
    tx_queues: int = 1
    #: Entries of a ring towards the DUT.
    ring_size: int = 2048
    #: Bytes of the largest frame, without FCS.
    frame_bytes: int = 1514
    #: Ethernet addresses of the ports, client side first.
    macs: tuple[str, str] = MACS

    @abstractmethod
    def wire(self) -> tuple[Wiring, str]:
        """Join the ports, and say what they are joined to. Raises `GeneratorError` where that fails."""

    def rings(self) -> RingPlan:
        """The rings of a port."""
        return RingPlan.towards(self.rx_queues, self.tx_queues, self.ring_size, self.frame_bytes)


class Cable(Link):
    """Both ports joined directly, without a DUT: for the generator's ceiling."""

    def wire(self) -> tuple[Wiring, str]:
        queues, size = self.rx_queues, self.ring_size
        ends = cable(RingPlan(queues, queues, size, size, buffer_bytes(self.frame_bytes)))
        wiring = Wiring(*ends, macs=self.macs, most_threads=queues)
        return wiring, f"cable, {queues} rings of {size} per direction"


@dataclass(frozen=True, kw_only=True)
class Memif(Link):
    """Paths of a DUT's memif sockets, of which it is the server: a pair of client and server side, and further pairs
    where either side is a bond."""

    paths: tuple[tuple[str, str], ...]
    #: Threads of the DUT, of which each transmits on rings of its own.
    threads: int = 1

    def wire(self) -> tuple[Wiring, str]:
        rings = self.rings()
        ends: tuple[list[MemifPort], list[MemifPort]] = ([], [])
        with ExitStack() as made:
            for pair in self.paths:
                for links, path in zip(ends, pair, strict=True):
                    links.append(connect(Path(path), rings))
                    made.callback(links[-1].close)
            made.pop_all()  # all of them are there
        links_per_side = f"{len(self.paths)} links per side, " if len(self.paths) > 1 else ""
        sizes = f"{rings.c2s} rings of {rings.c2s_size} towards the DUT, {rings.s2c} of {rings.s2c_size} back"
        wiring = Wiring(BondedPort(ends[0]), BondedPort(ends[1]), self.macs, most_threads=self.threads)
        return wiring, f"memif, {links_per_side}{sizes}"


def open_socket(kind: SocketKind) -> socket.socket:
    """A socket in the network namespace of this process, which needs CAP_NET_RAW."""
    return socket.socket(AF_XDP if kind == "xdp" else socket.AF_PACKET, socket.SOCK_RAW, 0)


@dataclass(frozen=True, kw_only=True)
class Interfaces(Link):
    """Two network interfaces, whose frames are carried by a thread on each of the DUT's CPUs."""

    client: str
    server: str
    open_socket: OpenSocket = open_socket
    #: CPUs of the DUT on which frames are handed to it, receive queues shared evenly among them; empty: one, anywhere.
    cpus: tuple[int, ...] = ()
    #: Ethernet addresses that the ports' frames go to; empty: to the other port.
    gateway_macs: tuple[str, str] = ("", "")
    #: Addresses for which the ports answer ARP besides those of the profile.
    next_hops: tuple[str, str] = ("", "")

    def wire(self) -> tuple[Wiring, str]:
        rings, threads = self.rings(), max(1, len(self.cpus))
        with ExitStack() as made:
            ports = []
            for interface in (self.client, self.server):
                ports.append(PacketPort(interface, self.open_socket, rings, threads=threads))
                made.callback(ports[-1].close)
            made.pop_all()  # both are there
        client, server = ports
        carried = LinkThreads([client.link_rings, server.link_rings], self.cpus)
        wiring = Wiring(client, server, self.macs, *self.gateway_macs, *self.next_hops, carried, most_threads=threads)
        return wiring, (
            f"{self.client} and {self.server}, {rings.c2s} rings of {rings.c2s_size} towards the DUT, carried by "
            f"{threads} threads on CPUs {list(self.cpus) or 'any'} with {client.sends_with}, {rings.s2c} rings of "
            f"{rings.s2c_size} back"
        )
