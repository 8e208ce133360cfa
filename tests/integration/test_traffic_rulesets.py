"""What the shipped rulesets let through and what they drop, seen on the wire at both ports of the real OVS-DPDK."""

import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from packets import ACK, FIN, PSH, RST, SYN, Endpoint, Packet, checksums_are_right, parse, tcp, udp
from wire import put, take

from ctbench.dut.base import Ports
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.traffic.software.memif import MemifPort, RingPlan, connect

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
#: Other ports of the same hosts: no connection knows them.
STRANGER, BACK_DOOR = ("16.0.0.1", 2222), ("48.0.0.1", 4444)
#: Addresses that nat.flows translates to.
TRANSLATED = IPv4Address("198.19.0.1"), IPv4Address("198.19.0.254")
#: Seconds within which OVS passes a packet on; it only matters when a test fails.
PATIENCE_S = 10.0


class Link:
    """The other ends of the DUT's two ports, worked by hand."""

    def __init__(self, ports: Ports) -> None:
        plan = RingPlan(ports.rx_queues, ports.tx_queues, ports.ring_size, ports.ring_size)
        self.client = connect(Path(ports.client), plan)
        self.server = connect(Path(ports.server), plan)
        #: The client as the server sees it, once there is a connection.
        self.client_seen: Endpoint = CLIENT

    def open_connection(self) -> None:
        """The client asks, the server is asked."""
        put(self.client.tx[0], udp(CLIENT, SERVER, b"question"))
        asked = self.packets_until(self.server, b"question")[-1]
        self.client_seen = (asked.source, asked.source_port)

    def let_server_send(self, *frames: bytes) -> list[Packet]:
        """What arrives at the client of frames that the server sends.

        Two answers of a known connection follow them. When the second is there, what came before it has arrived or
        never will: OVS takes a queue's packets in their order, though it may pass those of one batch on in another.
        """
        for frame in frames:
            put(self.server.tx[0], frame)
        arrived = []
        for answer in (b"answer 1", b"answer 2"):
            put(self.server.tx[0], udp(SERVER, self.client_seen, answer))
            arrived += self.packets_until(self.client, answer)
        return [packet for packet in arrived if not packet.payload.startswith(b"answer")]

    def packets_until(self, port: MemifPort, payload: bytes) -> list[Packet]:
        """Packets that arrive at a port, up to the one with this payload."""
        arrived: list[Packet] = []
        deadline = time.monotonic() + PATIENCE_S
        while not any(packet.payload == payload for packet in arrived):
            assert time.monotonic() < deadline, f"{payload!r} has not arrived, only {arrived}"
            for ring in port.rx:
                for frame in take(ring):
                    assert checksums_are_right(frame)
                    arrived.append(parse(frame))
        return arrived

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def link(dut: OvsDpdkDut, request: pytest.FixtureRequest) -> Iterator[Link]:
    ports = dut.apply(Topology(ruleset=request.param))
    dut.flush_state()
    joined = Link(ports)
    yield joined
    joined.close()


stateful = pytest.mark.parametrize("link", ["conntrack", "conntrack-normal", "nat"], indirect=True)
translating = pytest.mark.parametrize("link", ["nat"], indirect=True)
stateless = pytest.mark.parametrize("link", ["forward"], indirect=True)

OPENING = [tcp(BACK_DOOR, STRANGER, SYN, 100), udp(BACK_DOOR, STRANGER, b"let me in")]
UNASKED = [
    tcp(BACK_DOOR, STRANGER, SYN | ACK, 100, 200),
    tcp(BACK_DOOR, STRANGER, PSH | ACK, 101, 201, b"unasked"),
    tcp(BACK_DOOR, STRANGER, FIN | ACK, 108, 201),
    tcp(BACK_DOOR, STRANGER, RST | ACK, 109, 202),
    udp(SERVER, STRANGER, b"unasked"),
]


@stateful
def test_a_connection_from_the_server_side_is_refused(link: Link, dut: OvsDpdkDut) -> None:
    link.open_connection()

    assert link.let_server_send(*OPENING) == []
    assert dut.connections() == 1


@stateful
def test_a_reply_without_a_connection_is_dropped(link: Link, dut: OvsDpdkDut) -> None:
    link.open_connection()

    assert link.let_server_send(*UNASKED) == []
    assert dut.connections() == 1


@stateless
def test_without_conntrack_all_of_them_pass(link: Link, dut: OvsDpdkDut) -> None:
    link.open_connection()

    assert sorted(link.let_server_send(*OPENING, *UNASKED), key=repr) == sorted(map(parse, OPENING + UNASKED), key=repr)
    assert dut.connections() == 0


@translating
def test_the_server_side_sees_translated_addresses_and_the_client_its_own(link: Link) -> None:
    clients = [(f"16.0.{n}.1", 40000) for n in range(8)]
    seen: dict[Endpoint, Endpoint] = {}
    for number, client in enumerate(clients):
        put(link.client.tx[0], tcp(client, SERVER, SYN, number))
        (opened,) = link.packets_until(link.server, b"")
        put(link.client.tx[0], udp(client, SERVER, b"question"))
        (asked,) = link.packets_until(link.server, b"question")
        assert (opened.flags, opened.seq) == (SYN, number)
        for packet in (opened, asked):
            assert TRANSLATED[0] <= IPv4Address(packet.source) <= TRANSLATED[1]
            assert packet.source_port >= 1024
            assert (packet.destination, packet.destination_port) == SERVER
        seen[client] = (asked.source, asked.source_port)
    assert len(set(seen.values())) == len(clients)

    for client, translated in seen.items():
        put(link.server.tx[0], udp(SERVER, translated, b"answer"))
        (answer,) = link.packets_until(link.client, b"answer")
        assert (answer.destination, answer.destination_port) == client
        assert (answer.source, answer.source_port) == SERVER


def test_a_packet_of_these_tests_is_read_as_it_was_built() -> None:
    frame = tcp(CLIENT, SERVER, PSH | ACK, 7, 9, b"data")

    assert checksums_are_right(frame)
    assert parse(frame) == Packet(CLIENT[0], SERVER[0], 6, CLIENT[1], SERVER[1], b"data", 7, 9, PSH | ACK)
