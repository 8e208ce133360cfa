"""What a Linux router's shipped rulesets do to real packets, besides what every DUT does (test_stateful_forwarding)."""

from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest
from integration.test_stateful_forwarding import BACK_DOOR, CLIENT, SERVER, STRANGER
from packets import ACK, PSH, tcp
from veth import Wire

from ctbench.dut.base import Ports
from ctbench.dut.linux.forwarding import LinuxRouterDut
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
