"""What passes a router and a bridge that stand on VLAN devices and bonds, seen at both of their links."""

import struct
from collections.abc import Iterator

import pytest
from packets import udp
from real_duts import counted
from veth import PACKET_OUTGOING, PATIENCE_S, End, Wire

from ctbench.base.errors import MissingResource
from ctbench.dut.linux import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.topology import PortSetup, Topology

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
#: The VLAN that the topologies know.
OURS = 100
#: packet(7): the kernel takes a frame's tag out and passes it beside, in a struct tpacket_auxdata.
SOL_PACKET, PACKET_AUXDATA = 263, 8
AUXDATA = struct.Struct("=IIIHHHH")
VLAN_VALID = 16
IPV4_HEADERS = 42


class Watched:
    """An end of a link that tells the VLAN of what arrives."""

    def __init__(self, end: End) -> None:
        self._end = end
        end._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        end._socket.settimeout(PATIENCE_S)

    def send(self, frame: bytes, vlan: int) -> None:
        """Send a frame with a tag, or without one where `vlan` is 0."""
        tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
        self._end.send(frame[:12] + tag + frame[12:])

    def arrivals_until(self, payload: bytes) -> list[tuple[int, bytes]]:
        """VLAN, 0 for none, and payload of the IPv4 packets that arrive, up to the one with this payload."""
        arrived: list[tuple[int, bytes]] = []
        while not arrived or arrived[-1][1] != payload:
            frame, ancillary, _, address = self._end._socket.recvmsg(65536, 64)
            if address[2] == PACKET_OUTGOING or frame[12:14] != b"\x08\0":
                continue
            status, *_, tci, _ = AUXDATA.unpack(ancillary[0][2])
            size = struct.unpack_from("!H", frame, 16)[0]
            arrived.append((tci & 0xFFF if status & VLAN_VALID else 0, frame[IPV4_HEADERS : 14 + size]))
        return arrived


@pytest.fixture(params=["linux-router", "linux-bridge"])
def dut(request: pytest.FixtureRequest) -> LinuxRouterDut | LinuxBridgeDut:
    """A router, then a bridge."""
    chosen: LinuxRouterDut | LinuxBridgeDut = request.getfixturevalue(request.param.removeprefix("linux-"))
    return chosen


@pytest.fixture
def ends(dut: LinuxRouterDut | LinuxBridgeDut, ports: PortSetup, mtu: int) -> Iterator[tuple[Watched, Watched]]:
    """The client's and the server's; skips where the kernel lacks the devices, if the sentence names the module."""
    try:
        wire = Wire(dut.apply(Topology(datapath=dut.kind, ruleset="forward", ports=ports, mtu=mtu)), CLIENT, SERVER)
    except MissingResource as error:
        assert any(module in str(error) for module in ("bonding", "8021q", "CONFIG_BRIDGE_VLAN_FILTERING"))
        pytest.skip(str(error))
    dut.begin_trial()
    yield Watched(wire.client), Watched(wire.server)
    wire.close()


@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize(("ports", "vlan"), [("plain", 0), ("vlan", OURS), ("bond", 0), ("bond-vlan", OURS)])
def test_frames_pass_both_ways_with_the_tag_that_they_came_with(
    dut: LinuxRouterDut | LinuxBridgeDut, ends: tuple[Watched, Watched], vlan: int, mtu: int
) -> None:
    client, server = ends
    question, answer = b"question".ljust(mtu - 28), b"answer".ljust(mtu - 28)

    client.send(udp(CLIENT, SERVER, question), vlan)
    asked = server.arrivals_until(question)
    server.send(udp(SERVER, CLIENT, answer), vlan)

    assert asked == [(vlan, question)]
    assert client.arrivals_until(answer) == [(vlan, answer)]
    assert counted(dut).rx_packets == counted(dut).tx_packets == {"client": 1, "server": 1}
    assert dut.health() == []
