"""What a Linux router's shipped rulesets do to real packets, seen at both of its links."""

from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest
from packets import ACK, FIN, PSH, RST, SYN, Endpoint, Packet, parse, tcp, udp
from veth import Wire

from ctbench.dut.linux import LinuxRouterDut
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
#: Other ports of the same hosts: no connection knows them.
STRANGER, BACK_DOOR = ("16.0.0.1", 2222), ("48.0.0.1", 4444)
#: Addresses that the shipped rulesets translate to.
CLIENTS_SEEN = IPv4Address("198.19.0.1"), IPv4Address("198.19.0.254")
SERVERS_SEEN = IPv4Address("48.128.0.1"), IPv4Address("48.128.0.254")
ROUTER = "198.18.1.1"


@pytest.fixture
def wire(router: LinuxRouterDut, request: pytest.FixtureRequest) -> Iterator[Wire]:
    joined = Wire(router.apply(Topology(datapath="linux-router", ruleset=request.param)), CLIENT, SERVER)
    yield joined
    joined.close()


def rulesets(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("wire", names, indirect=True)


KINDS = ("stateful", "snat", "dnat", "masquerade")
stateful = rulesets(*(f"{family}-{kind}" for family in ("iptables", "nftables") for kind in KINDS))
stateless = rulesets("forward", "iptables-notrack")

OPENING = [tcp(BACK_DOOR, STRANGER, SYN, 100), udp(BACK_DOOR, STRANGER, b"let me in")]
UNASKED = [
    tcp(BACK_DOOR, STRANGER, SYN | ACK, 100, 200),
    tcp(BACK_DOOR, STRANGER, PSH | ACK, 101, 201, b"unasked"),
    tcp(BACK_DOOR, STRANGER, FIN | ACK, 108, 201),
    tcp(BACK_DOOR, STRANGER, RST | ACK, 109, 202),
    udp(SERVER, STRANGER, b"unasked"),
]


@stateful
def test_a_connection_from_the_server_side_is_refused(wire: Wire, router: LinuxRouterDut) -> None:
    wire.open_connection()

    assert wire.let_server_send(*OPENING) == []
    assert router.connections() == 1


@stateful
def test_a_reply_without_a_connection_is_dropped(wire: Wire, router: LinuxRouterDut) -> None:
    wire.open_connection()

    assert wire.let_server_send(*UNASKED) == []
    assert router.connections() == 1


@stateful
def test_a_segment_outside_of_the_window_is_dropped(wire: Wire) -> None:
    wire.open_connection()
    client, server = ("16.0.0.1", 40001), ("48.0.0.1", 8080)
    seen, asked = open_tcp(wire, client, server)

    within = tcp(asked, seen, PSH | ACK, 501, 101, b"within")
    beyond = tcp(asked, seen, PSH | ACK, 501 + 200_000, 101, b"beyond")
    arrived = wire.let_server_send(within, beyond)

    assert [packet.payload for packet in arrived] == [b"within"]
    assert (arrived[0].source, arrived[0].source_port) == server
    assert (arrived[0].destination, arrived[0].destination_port) == client


@stateful
def test_a_tcp_connection_begins_with_a_syn(wire: Wire, router: LinuxRouterDut) -> None:
    wire.client.send(tcp(STRANGER, BACK_DOOR, PSH | ACK, 101, 201, b"from the middle"))
    wire.open_connection()

    assert router.connections() == 1


@rulesets("iptables-snat", "nftables-snat", "iptables-masquerade", "nftables-masquerade")
def test_the_server_sees_translated_clients_and_the_clients_see_the_server(wire: Wire) -> None:
    clients = [(f"16.0.{n}.1", 40000) for n in range(8)]

    seen = {client: question(wire, client) for client in clients}

    sources = {(asked.source, asked.source_port) for asked in seen.values()}
    assert len(sources) == len(clients)
    for client, asked in seen.items():
        assert asked.source == ROUTER or CLIENTS_SEEN[0] <= IPv4Address(asked.source) <= CLIENTS_SEEN[1]
        assert (asked.destination, asked.destination_port) == SERVER
        answer = answer_to(wire, asked)
        assert (answer.source, answer.source_port) == SERVER
        assert (answer.destination, answer.destination_port) == client


@rulesets("iptables-snat", "nftables-snat")
def test_a_pool_is_used_and_masquerading_is_not_it(wire: Wire) -> None:
    sources = {question(wire, (f"16.0.{n}.1", 40000)).source for n in range(8)}

    assert len(sources) > 1 and ROUTER not in sources


@rulesets("iptables-masquerade", "nftables-masquerade")
def test_masquerading_shows_the_routers_one_address(wire: Wire) -> None:
    assert {question(wire, (f"16.0.{n}.1", 40000)).source for n in range(8)} == {ROUTER}


@rulesets("iptables-dnat", "nftables-dnat")
def test_the_clients_packets_reach_a_server_of_the_pool_and_its_answer_comes_from_the_address_asked(wire: Wire) -> None:
    clients = [(f"16.0.{n}.1", 40000) for n in range(8)]

    for client in clients:
        asked = question(wire, client)
        assert (asked.source, asked.source_port) == client
        assert SERVERS_SEEN[0] <= IPv4Address(asked.destination) <= SERVERS_SEEN[1]
        assert asked.destination_port == SERVER[1]
        answer = answer_to(wire, asked)
        assert (answer.source, answer.source_port) == SERVER
        assert (answer.destination, answer.destination_port) == client


@rulesets("iptables-stateful", "nftables-stateful")
def test_without_nat_addresses_stay_as_they_are(wire: Wire) -> None:
    asked = question(wire, CLIENT)

    assert (asked.source, asked.source_port) == CLIENT
    assert (asked.destination, asked.destination_port) == SERVER


@stateless
def test_without_state_everything_passes_and_nothing_is_remembered(wire: Wire, router: LinuxRouterDut) -> None:
    router.begin_trial()
    wire.open_connection()

    assert wire.let_server_send(*OPENING, *UNASKED) == list(map(parse, OPENING + UNASKED))
    assert router.connections() == 0
    assert set(router.snapshot()["conntrack_statistics"].values()) == {0}
    assert router.health() == []


@rulesets("iptables-stateful", "nftables-stateful")
def test_flushing_empties_the_connection_table(wire: Wire, router: LinuxRouterDut) -> None:
    for n in range(8):
        question(wire, (f"16.0.{n}.1", 40000))
    assert router.connections() == 8

    router.flush_state()

    assert router.connections() == 0


@rulesets("iptables-masquerade")
def test_what_was_counted_is_what_passed(wire: Wire, router: LinuxRouterDut) -> None:
    wire.open_connection()
    wire.let_server_send(*UNASKED)

    counters = router.counters()

    assert counters.rx_packets == {"client": 1, "server": len(UNASKED) + 1}
    assert counters.tx_packets == {"client": 1, "server": 1}
    assert counters.drops == {}


def question(wire: Wire, client: Endpoint) -> Packet:
    """What arrives at the server of a question of a client's."""
    payload = f"question of {client}".encode()
    wire.client.send(udp(client, SERVER, payload))
    return wire.server.packets_until(payload)[-1]


def answer_to(wire: Wire, asked: Packet) -> Packet:
    """What arrives at the client of the server's answer."""
    payload = f"answer to {asked.source}:{asked.source_port}".encode()
    source, target = (asked.destination, asked.destination_port), (asked.source, asked.source_port)
    wire.server.send(udp(source, target, payload))
    return wire.client.packets_until(payload)[-1]


def open_tcp(wire: Wire, client: Endpoint, server: Endpoint) -> tuple[Endpoint, Endpoint]:
    """Shake hands; the client and the server as the server's side sees them. Sequence numbers 101 and 501 are next."""
    wire.client.send(tcp(client, server, SYN, 100))
    opened = wire.server.packets_until(b"")[-1]
    assert opened.flags == SYN
    seen, asked = (opened.source, opened.source_port), (opened.destination, opened.destination_port)
    wire.server.send(tcp(asked, seen, SYN | ACK, 500, 101))
    wire.client.packets_until(b"")
    wire.client.send(tcp(client, server, ACK, 101, 501))
    wire.server.packets_until(b"")
    return seen, asked
