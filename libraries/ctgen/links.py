"""The links that join the generator's two ports to a DUT: memif sockets, network interfaces, or a cable instead."""

import itertools
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ctgen.memif import JoinedPort, MemifPort, RingPlan, buffer_bytes, cable, connect
from ctgen.packet_port import AF_XDP, LinkThreads, OpenSocket, PacketPort, SocketKind
from ctgen.wiring import Link, Wiring


class Cable(Link):
    """A cable: both ports are joined directly, without a DUT, to measure the generator's ceiling."""

    has_dut = False

    def wire(self) -> Wiring:
        queues, size = self.rx_queues, self.ring_size
        ends = cable(RingPlan(queues, queues, size, size, buffer_bytes(self.frame_bytes)))
        return Wiring(*ends, self, f"cable, {queues} rings of {size} per direction", most_threads=queues)


@dataclass(frozen=True, kw_only=True)
class Memif(Link):
    """A link over memif sockets, of which the DUT is the server: a pair of paths, client and server side, and further
    pairs where either side is a bond, or where there are several pairs of ports."""

    paths: tuple[tuple[str, str], ...]
    #: Threads of the DUT, of which each transmits on rings of its own.
    threads: int = 1

    def wire(self) -> Wiring:
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
        client, server = JoinedPort(ends[0]), JoinedPort(ends[1])
        return Wiring(client, server, self, f"memif, {links_per_side}{sizes}", most_threads=self.threads)


def open_socket(kind: SocketKind) -> socket.socket:
    """Open a socket in the network namespace of this process, which needs CAP_NET_RAW."""
    return socket.socket(AF_XDP if kind == "xdp" else socket.AF_PACKET, socket.SOCK_RAW, 0)


@dataclass(frozen=True, kw_only=True)
class Interfaces(Link):
    """A link over two network interfaces, or several pairs. A link thread on each of the DUT's CPUs carries their
    frames."""

    #: Client side and server side of each pair.
    names: tuple[tuple[str, str], ...]
    open_socket: OpenSocket = open_socket
    #: CPUs of the DUT on which frames are handed to it, receive queues shared evenly among them; empty: one, anywhere.
    cpus: tuple[int, ...] = ()

    def wire(self) -> Wiring:
        rings, threads = self.rings(), max(1, len(self.cpus))
        names = [*itertools.chain(*self.names)]
        with ExitStack() as made:
            ports = []
            for interface in names:
                ports.append(PacketPort(interface, self.open_socket, rings, self.cpus))
                made.callback(ports[-1].close)
            made.pop_all()  # all of them are there
        carried = LinkThreads([port.link_rings for port in ports], self.cpus)
        said = (
            f"{' and '.join(names)}, {rings.c2s} rings of {rings.c2s_size} towards the DUT, carried by "
            f"{threads} threads on CPUs {list(self.cpus) or 'any'} with {ports[0].sends_with}, {rings.s2c} rings of "
            f"{rings.s2c_size} back"
        )
        return Wiring(JoinedPort(ports[::2]), JoinedPort(ports[1::2]), self, said, carried, threads)
