"""The shipped rulesets do to real packets what they promise; packets are handed to OVS one by one (packet-out).

No generator is connected, so a packet that OVS outputs is counted as a failed transmission of that port: this is how
the tests see where it went.
"""

import re
import socket
import struct

import pytest

from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.ovs.control import BRIDGE
from ctbench.dut.topology import Topology

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 8080)
#: TCP flags.
SYN, ACK, SYN_ACK = 0x02, 0x10, 0x12

Endpoint = tuple[str, int]


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source: Endpoint, target: Endpoint, protocol: int, segment: bytes, checksum_at: int) -> bytes:
    """An Ethernet frame with correct checksums: conntrack verifies them."""
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    pseudo = addresses + struct.pack(">BBH", 0, protocol, len(segment))
    total = struct.pack(">H", checksum(pseudo + segment))
    segment = segment[:checksum_at] + total + segment[checksum_at + 2 :]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0, 64, protocol, 0) + addresses
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return bytes.fromhex("020000000002 020000000001 0800".replace(" ", "")) + head + segment


def tcp(source: Endpoint, target: Endpoint, flags: int, sequence: int, acknowledged: int = 0) -> bytes:
    segment = struct.pack(">HHIIBBHHH", source[1], target[1], sequence, acknowledged, 0x50, flags, 65535, 0, 0)
    return ipv4(source, target, 6, segment, 16)


def udp(source: Endpoint, target: Endpoint) -> bytes:
    return ipv4(source, target, 17, struct.pack(">HHHH", source[1], target[1], 12, 0) + b"data", 6)


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
        drops = self._dut.counters().drops
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

    assert switch.send(2, tcp(SERVER, client, SYN_ACK, 500, 101)) == ["client"]
    assert switch.send(1, tcp(CLIENT, SERVER, ACK, 101, 501)) == ["server"]
    assert switch.send(2, tcp(SERVER, client, ACK, 501, 101)) == ["client"]
    (entry,) = switch.connections()
    assert "state=ESTABLISHED" in entry
    assert 1 < int(re.findall(r"timeout=(\d+)", entry)[0]) <= 30  # tcp_established, as published


@stateful
def test_a_udp_exchange_passes(switch: Switch) -> None:
    assert switch.send(1, udp(CLIENT, SERVER)) == ["server"]
    (entry,) = switch.connections()
    seen = re.search(r"reply=\(src=48.0.0.1,dst=([\d.]+),sport=8080,dport=(\d+)\)", entry)
    assert seen
    assert switch.send(2, udp(SERVER, (seen[1], int(seen[2])))) == ["client"]


@stateful
def test_a_connection_from_the_server_side_is_refused(switch: Switch) -> None:
    assert switch.send(2, tcp(SERVER, CLIENT, SYN, 100)) == []
    assert switch.send(2, udp(SERVER, CLIENT)) == []
    assert switch.connections() == []


@stateful
def test_a_reply_without_a_connection_is_dropped(switch: Switch) -> None:
    assert switch.send(2, tcp(SERVER, CLIENT, SYN_ACK, 500, 101)) == []
    assert switch.connections() == []


@rulesets
def test_what_is_not_ip_is_dropped(switch: Switch) -> None:
    assert switch.send(1, ARP) == []
    assert switch.send(2, ARP) == []


@pytest.mark.parametrize("switch", ["forward"], indirect=True)
def test_without_conntrack_everything_passes_and_nothing_is_remembered(switch: Switch) -> None:
    assert switch.send(1, tcp(CLIENT, SERVER, SYN, 100)) == ["server"]
    assert switch.send(2, tcp(SERVER, CLIENT, SYN, 100)) == ["client"]
    assert switch.connections() == []


@pytest.mark.parametrize("switch", ["nat"], indirect=True)
def test_nat_shows_the_server_an_address_of_its_range(switch: Switch) -> None:
    for host in range(1, 9):
        switch.send(1, tcp((f"16.0.0.{host}", 40000), SERVER, SYN, 100))

    seen = re.findall(r"reply=\(src=48.0.0.1,dst=([\d.]+),sport=8080,dport=(\d+)\)", "\n".join(switch.connections()))
    assert len(seen) == len(set(seen)) == 8
    assert all(address.startswith("198.19.0.") and int(port) >= 1024 for address, port in seen)


@pytest.mark.parametrize("switch", ["conntrack"], indirect=True)
def test_flushing_empties_the_connection_table(switch: Switch, dut: OvsDpdkDut) -> None:
    for host in range(1, 9):
        switch.send(1, tcp((f"16.0.0.{host}", 40000), SERVER, SYN, 100))
    assert dut.connections() == 8

    dut.flush_state()

    assert dut.connections() == 0


@pytest.mark.parametrize("switch", ["forward"], indirect=True)
def test_lost_packets_are_named_in_the_health_of_a_trial(switch: Switch, dut: OvsDpdkDut) -> None:
    switch.send(1, udp(CLIENT, SERVER))
    dut.begin_trial()
    assert dut.health() == []

    switch.send(1, udp(CLIENT, SERVER))

    assert [(problem.severity, problem.text) for problem in dut.health()] == [
        (
            "disturbed",
            "the generator's receive rings were full: OVS lost 1 packets there (server.ovs_tx_failure_drops).",
        )
    ]
