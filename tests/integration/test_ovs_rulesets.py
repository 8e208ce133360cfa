"""What the rulesets of OVS do besides what test_stateful_forwarding shows; packets are handed to OVS.

No generator is connected, so a packet that OVS outputs is counted as a failed transmission of that port: this is how
the tests see where it went.
"""

import re

import pytest
from dut_counters import counted
from packets import ACK, SYN, tcp, udp

from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.ovs.control import BRIDGE
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 8080)
ARP = bytes.fromhex("ffffffffffff 020000000001 0806 0001080006040001".replace(" ", "")) + bytes(38)


class Switch:
    """The DUT as these tests use it: a packet goes in, and where it went comes out."""

    def __init__(self, dut: OvsDpdkDut) -> None:
        self._dut = dut

    def send(self, port: int, frame: bytes) -> list[str]:
        """Sides at which the packet came out."""
        before = self._sent()
        packet = f"in_port={port},packet={frame.hex()},actions=table"
        self._dut.control.ofctl("packet-out", BRIDGE, packet)
        return [side for side, count in self._sent().items() if count > before[side]]

    def connections(self) -> list[str]:
        return self._dut.control.appctl("dpctl/dump-conntrack", "-s").splitlines()

    def _sent(self) -> dict[str, int]:
        drops = counted(self._dut).drops
        return {side: drops.get(f"{side}.ovs_tx_failure_drops", 0) for side in ("client", "server")}


@pytest.fixture
def switch(dut: OvsDpdkDut, request: pytest.FixtureRequest) -> Switch:
    dut.apply(Topology(ruleset=request.param))
    dut.flush_state()
    return Switch(dut)


stateful = pytest.mark.parametrize("switch", ["conntrack", "conntrack-normal", "nat"], indirect=True)
rulesets = pytest.mark.parametrize("switch", ["forward", "conntrack", "conntrack-normal", "nat"], indirect=True)


@stateful
def test_a_client_opens_a_connection_and_the_server_answers(switch: Switch) -> None:
    assert switch.send(1, tcp(CLIENT, SERVER, SYN, 100)) == ["server"]
    (entry,) = switch.connections()
    seen = re.search(r"reply=\(src=48.0.0.1,dst=([\d.]+),sport=8080,dport=(\d+)\)", entry)
    assert seen
    client = (seen[1], int(seen[2]))  # as the server sees it: another one with NAT
    assert int(re.findall(r"timeout=(\d+)", entry)[0]) <= 1  # tcp_syn_sent, as published

    assert switch.send(2, tcp(SERVER, client, SYN | ACK, 500, 101)) == ["client"]
    assert switch.send(1, tcp(CLIENT, SERVER, ACK, 101, 501)) == ["server"]
    assert switch.send(2, tcp(SERVER, client, ACK, 501, 101)) == ["client"]
    (entry,) = switch.connections()
    assert "state=ESTABLISHED" in entry
    assert 1 < int(re.findall(r"timeout=(\d+)", entry)[0]) <= 30  # tcp_established, as published


@rulesets
def test_what_is_not_ip_is_dropped(switch: Switch) -> None:
    assert switch.send(1, ARP) == []
    assert switch.send(2, ARP) == []


@pytest.mark.parametrize("switch", ["forward"], indirect=True)
def test_lost_packets_are_named_in_the_health_of_a_trial(switch: Switch, dut: OvsDpdkDut) -> None:
    switch.send(1, udp(CLIENT, SERVER, b"data"))
    dut.begin_trial()
    assert dut.health() == []

    switch.send(1, udp(CLIENT, SERVER, b"data"))

    (problem,) = dut.health()
    assert (problem.severity, problem.code) == ("disturbed", "generator-rings-full")
    assert "1 packets there (server.ovs_tx_failure_drops)" in problem.text
