"""The ports of a DUT as wiring of the software traffic generator. What it imports comes with the compiler numba."""

import contextlib
import os
from pathlib import Path

from ctbench.base.errors import GeneratorError
from ctbench.dut.base import Ports
from ctbench.traffic.generator import Side
from ctbench.traffic.software.memif import MemifPort, RingPlan, bonded_port, connect
from ctbench.traffic.software.packet_port import LinkThreads, PacketPort
from ctbench.traffic.software.wiring import Wiring


def memif_wiring(ports: Ports, frame_bytes: int) -> tuple[Wiring, str]:
    """Connected to the DUT's two memif sockets, and to those of further links where either side is a bond; and what to
    call it."""
    rings = RingPlan.towards(ports.rx_queues, ports.tx_queues, ports.ring_size, frame_bytes)
    ends: tuple[list[MemifPort], list[MemifPort]] = ([], [])
    with contextlib.ExitStack() as made:
        for pair in [(ports.client, ports.server), *ports.more]:
            for links, path in zip(ends, pair, strict=True):
                links.append(connect(Path(path), rings))
                made.callback(links[-1].close)
        made.pop_all()  # all of them are there
    links_per_side = f"{1 + len(ports.more)} links per side, " if ports.more else ""
    sizes = f"{rings.c2s} rings of {rings.c2s_size} towards the DUT, {rings.s2c} of {rings.s2c_size} back"
    return Wiring(bonded_port(ends[0]), bonded_port(ends[1])), f"memif, {links_per_side}{sizes}"


def interface_wiring(ports: Ports, frame_bytes: int, side: Side) -> tuple[Wiring, str]:
    """On two network interfaces, whose frames are carried by a thread on each of the DUT's CPUs: in a pair, threads of
    the side that has its turn."""
    assert ports.open_socket
    rings = RingPlan.towards(ports.rx_queues, ports.tx_queues, ports.ring_size, frame_bytes)
    # A fanout group is known by its number in a network namespace: two for each side.
    threads, group = max(1, len(ports.cpus)), (os.getpid() * 4 + (2 if side == "other" else 0)) & 0xFFFF
    client = PacketPort(ports.client, ports.open_socket, rings, threads=threads, fanout_group=group)
    try:
        server = PacketPort(ports.server, ports.open_socket, rings, threads=threads, fanout_group=group + 1)
    except GeneratorError:
        client.close()
        raise
    link = LinkThreads([client.link_rings, server.link_rings], ports.cpus)
    wiring = Wiring(
        client, server, ports.client_mac, ports.server_mac, ports.client_next_hop, ports.server_next_hop, link
    )
    return wiring, (
        f"{ports.client} and {ports.server}, {rings.c2s} rings of {rings.c2s_size} towards the DUT, carried by "
        f"{threads} threads on CPUs {list(ports.cpus) or 'any'} with {client.sends_with}, {rings.s2c} rings of "
        f"{rings.s2c_size} back"
    )
