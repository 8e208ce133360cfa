"""What a Linux router's shipped rulesets do to real packets, besides what every DUT does (test_stateful_forwarding)."""

from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest
from integration.test_stateful_forwarding import BACK_DOOR, CLIENT, SERVER, STRANGER
from packets import ACK, PSH, SYN, Endpoint, tcp
from veth import Wire

from ctbench.dut.base import Ports
from ctbench.dut.linux import LinuxRouterDut
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

#: Addresses that the shipped rulesets translate to.
SERVERS_SEEN = IPv4Address("48.128.0.1"), IPv4Address("48.128.0.254")
ROUTER = "198.18.1.1"


@pytest.fixture(scope="module")
def ports(router: LinuxRouterDut, request: pytest.FixtureRequest) -> Ports:
    """Of the router with a ruleset."""
    return router.apply(Topology(datapath="linux-router", ruleset=request.param))


@pytest.fixture
def wire(router: LinuxRouterDut, ports: Ports) -> Iterator[Wire]:
    router.flush_state()
    joined = Wire(ports, CLIENT, SERVER)
    yield joined
    joined.close()


def rulesets(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("ports", names, indirect=True, scope="module")


KINDS = ("stateful", "snat", "dnat", "masquerade")
stateful = rulesets(*(f"{family}-{kind}" for family in ("iptables", "nftables") for kind in KINDS))


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
def test_clients_share_a_pool_of_addresses_or_the_routers_one(wire: Wire, request: pytest.FixtureRequest) -> None:
    sources = {wire.question((f"16.0.{n}.1", 40000)).source for n in range(8)}

    if "masquerade" in request.node.name:
        assert sources == {ROUTER}
    else:
        assert len(sources) > 1 and ROUTER not in sources


@rulesets("iptables-dnat", "nftables-dnat")
def test_the_clients_packets_reach_a_server_of_the_pool_and_its_answer_comes_from_the_address_asked(wire: Wire) -> None:
    clients = [(f"16.0.{n}.1", 40000) for n in range(8)]

    for client in clients:
        asked = wire.question(client)
        assert (asked.source, asked.source_port) == client
        assert SERVERS_SEEN[0] <= IPv4Address(asked.destination) <= SERVERS_SEEN[1]
        assert asked.destination_port == SERVER[1]
        answer = wire.answer_to(asked)
        assert (answer.source, answer.source_port) == SERVER
        assert (answer.destination, answer.destination_port) == client


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
