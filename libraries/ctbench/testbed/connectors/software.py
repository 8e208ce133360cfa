"""How the software traffic generator is connected to a DUT."""

import contextlib
import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from ctbench.base.errors import CtbenchError, GeneratorError, MissingResource
from ctbench.dut.base import Dut, Ports
from ctbench.dut.cable import Cable
from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL
from ctbench.hosts.machine import Placement
from ctbench.testbed.connectors.connector import Connector
from ctbench.traffic.generator import Side
from ctbench.traffic.software.generator import SoftwareTrafficGenerator
from ctbench.traffic.software.memif import BondedPort, MemifPort, RingPlan, connect
from ctbench.traffic.software.packet_port import LinkThreads, PacketPort
from ctbench.traffic.software.wiring import Wiring


class SoftwareConnector(Connector):
    """The software traffic generator, in this process."""

    pairs = True

    @cached_property
    def generator(self) -> SoftwareTrafficGenerator:
        return SoftwareTrafficGenerator(self._placement().generator)

    def cable(self) -> tuple[Dut, Host]:
        """It makes both ends by itself."""
        return Cable(), self._hosts.host(LOCAL)

    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        """`host` does not matter, the ports come with paths and sockets of this machine."""
        self._connect(ports, placement, frame_bytes, "tested")

    def connect_pair(self, tested: Ports, other: Ports, placement: Placement, frame_bytes: int) -> None:
        self._connect(tested, placement, frame_bytes, "tested")
        try:
            self._connect(other, placement, frame_bytes, "other")
        except CtbenchError:
            self.generator.disconnect()
            raise

    def _connect(self, ports: Ports, placement: Placement, frame_bytes: int, side: Side) -> None:
        self.generator.cpus = placement.generator or self.generator.cpus
        if ports.kind == "cable":
            self.generator.connect_cable(ports.rx_queues, ports.ring_size, frame_bytes, side)
            return
        if ports.kind == "memif":
            self.generator.connect(lambda: memif_wiring(ports, frame_bytes, len(placement.pmd)), side)
            return
        if ports.open_socket is None:
            ports = self._over_cards(ports)
        shared = set(ports.cpus) & set(placement.generator)
        if shared and not placement.oversubscribed:
            raise MissingResource(
                "Over veth the software traffic generator hands frames to Open vSwitch in a thread that polls, and no "
                "CPU is left for it: a CPU more is needed, or ports of kind memif."
            )
        self.generator.connect(lambda: interface_wiring(ports, frame_bytes, side), side)

    def _over_cards(self, ports: Ports) -> Ports:
        """How the generator reaches network cards: over the interfaces of this machine that lead to them."""
        ends = getattr(self._testbed.generator, "interfaces", None)
        if ends is None:
            raise MissingResource(
                f"Testbed {self._testbed.name} has network cards as ports; the software traffic generator reaches them "
                "over generator.interfaces, which the testbed file does not name."
            )
        opened = self._hosts.host(LOCAL).open_socket
        return replace(ports, kind="interface", client=ends.client, server=ends.server, cpus=(), open_socket=opened)

    def disconnect(self) -> None:
        self.generator.disconnect()

    def close(self) -> None:
        self.generator.close()


def memif_wiring(ports: Ports, frame_bytes: int, pmd_threads: int = 1) -> tuple[Wiring, str]:
    """Connected to the DUT's two memif sockets, and to those of further links where either side is a bond; and what to
    call it. `pmd_threads`: the DUT's, of which each transmits on rings of its own."""
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
    return Wiring(BondedPort(ends[0]), BondedPort(ends[1]), most_threads=pmd_threads), f"memif, {links_per_side}{sizes}"


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
        client, server, ports.client_mac, ports.server_mac, ports.client_next_hop, ports.server_next_hop, link,
        most_threads=threads,
    )  # fmt: skip
    return wiring, (
        f"{ports.client} and {ports.server}, {rings.c2s} rings of {rings.c2s_size} towards the DUT, carried by "
        f"{threads} threads on CPUs {list(ports.cpus) or 'any'} with {client.sends_with}, {rings.s2c} rings of "
        f"{rings.s2c_size} back"
    )
