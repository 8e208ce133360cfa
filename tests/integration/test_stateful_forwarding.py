"""What stateful forwarding means, seen on the wire at both ports of every DUT: one contract for all of them."""

from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest
from integration.test_ovs_veth import ovs
from packets import ACK, FIN, PSH, RST, SYN, Endpoint, Packet, parse, tcp, udp
from veth import Wire

from ctbench.dut.base import Dut, Ports
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
#: Other ports of the same hosts: no connection knows them.
STRANGER, BACK_DOOR = ("16.0.0.1", 2222), ("48.0.0.1", 4444)
#: Addresses that the shipped rulesets translate clients to: a pool, or the router's own.
CLIENTS_SEEN = {str(IPv4Address("198.19.0.0") + host) for host in range(1, 255)} | {"198.18.1.1"}
CLIENTS = [(f"16.0.{n}.1", 40000) for n in range(8)]

OPENING = [tcp(BACK_DOOR, STRANGER, SYN, 100), udp(BACK_DOOR, STRANGER, b"let me in")]
UNASKED = [
    tcp(BACK_DOOR, STRANGER, SYN | ACK, 100, 200),
    tcp(BACK_DOOR, STRANGER, PSH | ACK, 101, 201, b"unasked"),
    tcp(BACK_DOOR, STRANGER, FIN | ACK, 108, 201),
    tcp(BACK_DOOR, STRANGER, RST | ACK, 109, 202),
    udp(SERVER, STRANGER, b"unasked"),
]

#: A DUT, by its fixture and its datapath, with its shipped rulesets.
OVS, OVS_VETH, ROUTER = ("dut", "ovs-dpdk"), ("ovs", "ovs-dpdk"), ("router", "linux-router")
#: OVS that reads veth pairs through DPDK's af_packet.
__all__ = ["ovs"]


def rulesets(*kinds: str) -> list[str]:
    return [f"{family}-{kind}" for family in ("iptables", "nftables") for kind in kinds]


STATELESS = [(OVS, "forward"), (OVS_VETH, "forward"), (ROUTER, "forward"), (ROUTER, "iptables-notrack")]
TRACKING = [
    (OVS, "conntrack"),
    (OVS, "conntrack-normal"),
    (OVS_VETH, "conntrack"),
    *((ROUTER, name) for name in rulesets("stateful", "dnat")),
]
TRANSLATING = [(OVS, "nat"), (OVS_VETH, "nat"), *((ROUTER, name) for name in rulesets("snat", "masquerade"))]


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest) -> Iterator[tuple[Dut, Ports]]:
    """A DUT with a ruleset. One OVS at a time: its threads poll, and two would need the hugepages of both."""
    (fixture, datapath), ruleset = request.param
    dut = request.getfixturevalue(fixture)
    yield dut, dut.apply(Topology(datapath=datapath, ruleset=ruleset))
    if datapath == "ovs-dpdk":
        dut.restore()


@pytest.fixture
def both(subject: tuple[Dut, Ports]) -> Iterator[tuple[Dut, Wire]]:
    """The DUT, and the ends of its links."""
    subject[0].flush_state()
    wire = Wire(subject[1], CLIENT, SERVER)
    yield subject[0], wire
    wire.close()


def each(*groups: list[tuple[tuple[str, str], str]]) -> pytest.MarkDecorator:
    found = [(dut, ruleset) for group in groups for dut, ruleset in group]
    names = [f"{dut[0]}-{name}" for dut, name in found]
    return pytest.mark.parametrize("subject", found, indirect=True, ids=names, scope="module")


stateful = each(TRACKING, TRANSLATING)


@stateful
@pytest.mark.parametrize("frames", [OPENING, UNASKED], ids=["new connections", "replies without a connection"])
def test_what_no_client_asked_for_does_not_pass(both: tuple[Dut, Wire], frames: list[bytes]) -> None:
    dut, wire = both
    wire.open_connection()

    assert wire.let_server_send(*frames) == []
    assert dut.connections() == 1


@each(STATELESS)
def test_without_state_everything_passes_and_nothing_is_remembered(both: tuple[Dut, Wire]) -> None:
    dut, wire = both
    wire.open_connection()

    assert sorted(wire.let_server_send(*OPENING, *UNASKED), key=repr) == sorted(map(parse, OPENING + UNASKED), key=repr)
    assert dut.connections() == 0


@each(TRANSLATING)
def test_the_server_side_sees_translated_clients_and_these_see_the_server(both: tuple[Dut, Wire]) -> None:
    _, wire = both
    seen: dict[Endpoint, Packet] = {}
    for number, client in enumerate(CLIENTS):
        wire.client.send(tcp(client, SERVER, SYN, number))
        (opened,) = wire.server.packets_until(b"")
        assert (opened.flags, opened.seq) == (SYN, number)
        asked = seen[client] = wire.question(client)
        for packet in (opened, asked):
            assert packet.source in CLIENTS_SEEN and packet.source_port >= 1024
            assert (packet.destination, packet.destination_port) == SERVER
    assert len({(asked.source, asked.source_port) for asked in seen.values()}) == len(CLIENTS)

    for client, asked in seen.items():
        answer = wire.answer_to(asked)
        assert (answer.destination, answer.destination_port) == client
        assert (answer.source, answer.source_port) == SERVER
