"""Rulesets that bridge, seen on the wire at both sides of the real OVS-DPDK: VLANs, bonds, and large frames."""

import itertools
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packets import udp
from real_duts import counted
from wire import put, take

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import PortSetup, Topology
from ctgen.memif import RingPlan, connect

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = "16.0.0.1", "48.0.0.1"
#: Buffers in which OVS finds room for an IP packet of 9000 bytes in one piece.
BUFFER_BYTES = 9216
#: Seconds within which OVS passes a frame on; it only matters when a test fails.
PATIENCE_S = 10.0


def datagram(source: str, destination: str, payload: bytes = b"data", vlan: int | None = None) -> bytes:
    """A UDP frame, with a VLAN tag where one is given. Each address has a MAC address of its own."""
    frame = udp((source, 1000), (destination, 2000), payload)
    return frame if vlan is None else frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:]


class Ends:
    """The generator's ends of the links, worked by hand: `client` and `server`, and with bonds two of each."""

    def __init__(self, dut: OvsDpdkDut, topology: Topology, vlan: int | None) -> None:
        self._vlan = vlan
        ports = dut.apply(topology)
        plan = RingPlan(ports.rx_queues, ports.tx_queues, 256, 256, BUFFER_BYTES)
        sockets = itertools.chain(*ports.links)
        names = ("client", "server", "client 2", "server 2")
        self._ports = {name: connect(Path(socket), plan) for name, socket in zip(names, sockets, strict=False)}
        dut.begin_trial()

    def send(self, end: str, *frames: bytes) -> list[tuple[str, bytes]]:
        """What comes out of frames that are put on one end, and where.

        Two frames that pass follow them. When the second is there, what came before it has come out or never will: OVS
        takes a queue's frames in their order, though it may pass those of one batch on in another."""
        for frame in frames:
            put(self._ports[end].tx[0], frame)
        arrived: list[tuple[str, bytes]] = []
        for payload in (b"the end", b"really"):
            last = datagram("16.0.255.1", "48.0.255.1", payload, self._vlan)
            put(self._ports[end].tx[0], last)
            arrived += self._frames_until(last)
        return arrived

    def close(self) -> None:
        for port in self._ports.values():
            port.close()

    def _frames_until(self, last: bytes) -> list[tuple[str, bytes]]:
        arrived: list[tuple[str, bytes]] = []
        deadline = time.monotonic() + PATIENCE_S
        while not any(frame == last for _, frame in arrived):
            assert time.monotonic() < deadline, f"{last!r} has not come out, only {arrived}"
            arrived += [(end, frame) for end, port in self._ports.items() for row in port.rx for frame in take(row)]
        return [(end, frame) for end, frame in arrived if frame != last]


#: Applies a topology and takes the links' other ends in hand; frames with the tag of `vlan` pass.
Join = Callable[..., Ends]


@pytest.fixture
def join(dut: OvsDpdkDut) -> Iterator[Join]:
    joined: list[Ends] = []

    def let_go() -> None:
        while joined:
            joined.pop().close()

    def apply(ports: PortSetup = "plain", vlan: int | None = None, mtu: int = 1500, ruleset: str = "normal") -> Ends:
        let_go()
        joined.append(Ends(dut, Topology(ruleset=ruleset, ports=ports, mtu=mtu), vlan))
        return joined[-1]

    yield apply
    let_go()


@pytest.mark.parametrize(("ports", "vlan"), [("plain", None), ("vlan", 100)])
def test_normal_bridges_frames_both_ways_as_they_are_and_tracks_no_connection(
    join: Join, dut: OvsDpdkDut, ports: PortSetup, vlan: int | None
) -> None:
    ends = join(ports, vlan=vlan)
    there, back = datagram(CLIENT, SERVER, vlan=vlan), datagram(SERVER, CLIENT, vlan=vlan)

    assert ends.send("client", there) == [("server", there)]
    assert ends.send("server", back) == [("client", back)]
    assert dut.connections() == 0


@pytest.mark.parametrize(("ports", "ruleset", "vlan"), [("plain", "forward", None), ("vlan", "normal", 100)])
def test_ip_packets_of_9000_bytes_pass_in_one_piece(
    join: Join, ports: PortSetup, ruleset: str, vlan: int | None
) -> None:
    ends = join(ports, vlan=vlan, mtu=9000, ruleset=ruleset)
    large = bytes(range(256)) * 36
    frame = datagram(CLIENT, SERVER, large[: 9000 - 28], vlan)  # 28: headers of IPv4 and UDP

    assert len(frame) == 9014 + (4 if vlan else 0)
    assert ends.send("client", frame) == [("server", frame)]


def test_a_frame_that_is_too_large_is_dropped_and_counted(join: Join, dut: OvsDpdkDut) -> None:
    ends = join(ruleset="forward")

    assert ends.send("client", datagram(CLIENT, SERVER, bytes(1501))) == []
    assert counted(dut).drops == {"server.ovs_tx_mtu_exceeded_drops": 1}


@pytest.mark.parametrize(("ports", "vlan"), [("bond", None), ("bond-vlan", 100)])
def test_a_bond_takes_frames_from_both_links_and_spreads_sources_over_both(
    join: Join, ports: PortSetup, vlan: int | None
) -> None:
    ends = join(ports, vlan=vlan)
    frames = [datagram(f"16.0.0.{host}", SERVER, vlan=vlan) for host in range(1, 17)]

    first = ends.send("client", *frames[:8])
    second = ends.send("client 2", *frames[8:])

    assert sorted(frame for _, frame in first + second) == sorted(frames)  # each once
    assert {end for end, _ in first + second} == {"server", "server 2"}


def test_a_bond_whose_links_nobody_has_joined_is_not_ready(dut: OvsDpdkDut, monkeypatch: pytest.MonkeyPatch) -> None:
    dut.apply(Topology(ruleset="normal", ports="bond"))
    monkeypatch.setattr("ctbench.dut.ovs.dut.SETTLE_TIMEOUT_S", 0.1)

    with pytest.raises(TestbedError, match=r"Links of bonds are down: port0, port1, port2, port3\."):
        dut.begin_trial()
