"""Trials on the real TRex over veth: a cable, and a Linux router that loses what it is told to lose.

Needs TREX_HOME, the folder of t-rex-64; no root, no NIC, no hugepages. What becomes of losses, resets, black holes and
of a TRex that is too slow is asked of recordings of a real one (tests/unit/test_trex_astf.py, test_trex_stl_flows.py).
"""

import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from integration.trex_server import needs_trex, trex_config
from packets import checksums_are_right, parse

from ctbench.base.network import own_macs
from ctbench.dut.base import Ports
from ctbench.dut.cable import CABLE, VethCable
from ctbench.dut.veth import GENERATOR, within_generator
from ctbench.hosts.sandbox import Sandbox
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import PacketProfile, Profile, load_profile
from ctbench.traffic.trex.astf import timed_spec
from ctbench.traffic.trex.client import TrexWorker, find_client
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.server import StartedServer
from ctbench.traffic.trex.source import TrexPort

#: Connections and packets per second: few enough for a busy machine, whose pauses the rings have to bridge.
FEW, FEW_PACKETS = 500.0, 2000.0
#: Flows at most, where the profile has more: at this rate each is sent before anything counts.
FEW_FLOWS = 500
#: Connection profiles of variables/profiles with packets per connection from client and from server. TRex' TCP opens
#: with SYN, SYN-ACK and closes with FINs that ride on what is acknowledged: 2n + 5 packets for n messages.
CONNECTIONS = {
    "tcp-no-data": (4, 3), "http-600": (4, 3), "http-800": (4, 3), "udp-800": (1, 1), "short-lived": (3.97, 2.98),
    "short-lived-reset": (3.98, 2), "short-lived-server-closes": (4.97, 3.98), "short-lived-ipv6": (3.97, 2.98),
    "dns": (2, 2),
}  # fmt: skip
PACKETS = (
    "udp-64-1flow", "udp-64-10k", "udp-64-10k-both", "udp-64-10k-vlan", "udp-64-1m",
    "udp-128-10k", "udp-256-10k", "udp-512-10k", "udp-1024-10k", "udp-1280-10k", "udp-1518-10k",
    "udp-9018", "udp-imix-10k",
)  # fmt: skip
#: Addresses that the shipped profiles have.
SHIPPED = {"client_ip": "16.0.0.0", "client_ips": 256, "server_ip": "48.0.0.0", "server_ips": 256}
#: Constants of linux/if_packet.h and asm-generic/socket.h which Python has no names for.
SOL_PACKET, PACKET_AUXDATA, OUTGOING, VLAN_VALID = 263, 8, 4, 0x10


class Lab:
    """TRex on the generator's ends of a sandbox's links."""

    def __init__(self, host: Sandbox, ports: Ports, logs: Path) -> None:
        self.host, self.logs = host, logs
        client, server = own_macs(0)
        macs = ports.macs[0] if ports.macs else (server, client)
        config = trex_config(
            client=TrexPort(interface=ports.links[0][0], mac=client, dest_mac=macs[0]),
            server_port=TrexPort(interface=ports.links[0][1], mac=server, dest_mac=macs[1]),
        )
        self.server = StartedServer(host, config, "127.0.0.1", logs, within_generator())

    @cached_property
    def generator(self) -> TrexTrafficGenerator:
        """Made when it is needed first; a test without TRex ends there."""
        return TrexTrafficGenerator(self.server, self.worker())

    def close(self) -> None:
        if "generator" in vars(self):
            self.generator.close()

    def worker(self) -> TrexWorker:
        """A client of the server that nobody has connected yet."""
        return TrexWorker(self.host, find_client(needs_trex()), self.logs / "client.log", within_generator())

    def trial(self, profile: Profile, load: float = FEW) -> Trial:
        return self.generator.run_trial(profile, Rate(load), 1.0)


@pytest.fixture(scope="module")
def cable(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """TRex with a veth pair as a cable between its ports, which takes the largest frames."""
    ports = VethCable(sandbox).apply(CABLE.model_copy(update={"mtu": 9000}))
    with closing(Lab(sandbox, ports, tmp_path_factory.mktemp("trex"))) as lab:
        yield lab


def shipped(name: str) -> Profile:
    """A profile of variables/profiles, with fewer flows."""
    profile = load_profile(name)
    if isinstance(profile, PacketProfile):
        return profile.model_copy(update={"flows": min(FEW_FLOWS, profile.flows)})
    return profile


@contextmanager
def listening(lab: Lab, end: str) -> Iterator[list[bytes]]:
    """Frames that reach the generator's end of a link, as they were on the wire."""
    frames: list[bytes] = []
    over = threading.Event()
    with lab.host.open_socket("packet", GENERATOR) as tap:
        tap.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        tap.bind((end, 3))  # ETH_P_ALL
        tap.settimeout(0.1)

        def listen() -> None:
            while not over.is_set():
                try:
                    frame, told, _, address = tap.recvmsg(10_000, 256)
                except TimeoutError:
                    continue
                if address[2] != OUTGOING:
                    frames.append(_with_tag(frame, told))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield frames
        finally:
            over.set()
            thread.join()


def _with_tag(frame: bytes, told: list[tuple[int, int, bytes]]) -> bytes:
    """The kernel takes a VLAN tag out of the frame and tells it apart."""
    for _, kind, data in told:
        if kind == PACKET_AUXDATA:
            status, *_, tag, protocol = struct.unpack("<IIIHHHH", data)
            if status & VLAN_VALID:
                return frame[:12] + struct.pack("!HH", protocol, tag) + frame[12:]
    return frame


@pytest.mark.parametrize("name", [*CONNECTIONS, "long-lived-short"])
def test_every_connection_of_a_profile_completes_over_a_cable_with_its_packets(cable: Lab, name: str) -> None:
    trial = cable.trial(shipped(name), FEW if name in CONNECTIONS else FEW / 5)

    assert trial.completed == trial.attempted > 0
    assert trial.failed == trial.unexpected == {}
    assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"]
    assert trial.total_tx_packets["server"] == trial.total_rx_packets["client"]
    for side, count in zip(("client", "server"), CONNECTIONS.get(name, ()), strict=False):
        assert trial.tx_packets[side] / trial.attempted == pytest.approx(count, rel=0.03)


def test_messages_that_are_timed_take_many_ways_through_the_dut(cable: Lab) -> None:
    """So that each of its receive queues has some."""
    profile, load = shipped("http-600"), 4 * FEW
    (timed,) = timed_spec(profile, load)["templates"]
    with listening(cable, "g1") as frames:
        trial = cable.trial(profile, load)
    of_udp = [parse(frame) for frame in frames if frame[23] == socket.IPPROTO_UDP]
    messages = [packet for packet in of_udp if packet.destination_port == timed["port"]]
    assert len({packet.source for packet in messages}) == timed["limit"] == 20
    assert len({packet.destination for packet in messages}) > 1
    assert trial.udp_latency and trial.udp_latency.round_trip_us
    assert trial.completed == trial.attempted


def test_more_than_trex_can_do_is_said_to_be_its_limit_and_does_not_reach_the_next_trial(cable: Lab) -> None:
    trial = cable.trial(shipped("short-lived"), 2_000_000)
    assert trial.attempted < trial.intended
    assert trial.generator_limited.startswith("TRex began only")

    trial = cable.trial(shipped("short-lived"))
    assert trial.completed == trial.attempted < 2 * FEW


@pytest.mark.parametrize(("name", "load"), [("http-600", FEW), ("udp-64-10k", FEW_PACKETS)])
def test_ctrl_c_ends_the_traffic_at_once_and_does_not_disturb_the_next_trial(
    cable: Lab, name: str, load: float
) -> None:
    cable.trial(shipped(name), load)
    timer = threading.Timer(1.5, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cable.generator.run_trial(shipped(name), Rate(load), 30)
    timer.join()

    def sent() -> str:
        return cable.host.run([*within_generator(), "cat", "/sys/class/net/g0/statistics/tx_packets"]).stdout

    before = sent()
    time.sleep(0.5)
    assert sent() == before
    trial = cable.trial(shipped(name), load)
    assert trial.completed == trial.attempted
    assert trial.unexpected == {}


@pytest.mark.parametrize("name", PACKETS)
def test_every_packet_of_a_profile_comes_through_a_cable(cable: Lab, name: str) -> None:
    trial = cable.trial(shipped(name), FEW_PACKETS)

    assert trial.completed == trial.attempted == trial.intended == pytest.approx(FEW_PACKETS, abs=4)
    assert trial.unexpected == {}
    assert list(trial.directions) == (["client", "server"] if name.endswith("-both") else ["client"])
    assert all(way.latency_us and way.reordered == 0 for way in trial.directions.values())
    assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"vlan": 100, "frame_bytes": 128},
        {"flow_order": "random"},
        {"client_ip": "16.0.0.77", "client_ips": 30, "server_ip": "192.168.255.254", "server_ips": 7},
    ],
    ids=["counters", "vlan", "random", "addresses that are no bits"],
)
def test_every_flow_is_on_the_wire_with_right_checksums(cable: Lab, more: dict[str, Any]) -> None:
    profile = PacketProfile(name="mine", kind="packets", **{"flows": 300, **SHIPPED, **more})
    with listening(cable, "g1") as frames:
        trial = cable.trial(profile, FEW_PACKETS)
    tag = 4 if profile.vlan else 0
    assert {len(frame) for frame in frames} == {profile.largest_frame_bytes - 4 + tag}
    if profile.vlan:
        assert {frame[12:16] for frame in frames} == {struct.pack("!HH", 0x8100, profile.vlan)}
    frames = [frame[:12] + frame[12 + tag :] for frame in frames]
    timed = [frame for frame in frames if frame[40:42] == bytes(2)]
    load = [frame for frame in frames if frame[40:42] != bytes(2)]
    assert 0 < len(timed) <= 0.1 * trial.attempted
    assert len(load) == trial.total_tx_packets["client"] - len(timed)
    assert all(checksums_are_right(frame) for frame in load)
    flows = {(packet.source, packet.source_port, packet.destination) for packet in map(parse, load)}
    assert len(flows) == profile.flows
