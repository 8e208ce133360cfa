"""Trials with packets on the real TRex over veth: a cable, and a Linux router that loses what it is told to lose.

Needs TREX_HOME, the folder of t-rex-64; no root, no NIC, no hugepages.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from integration.test_trex_astf import Lab, forwarding, new_sandbox, routed
from packets import checksums_are_right, parse

from ctbench.dut.cable import CABLE, VethCable
from ctbench.dut.veth import GENERATOR, VETH
from ctbench.traffic.profiles import PacketProfile, load_profile
from ctbench.traffic.trex.stl import run_trial

#: Fixtures: a router between TRex' ports, and what it loses.
__all__ = ["forwarding", "routed"]

#: Packets per second: few enough for a busy machine, whose pauses the rings have to bridge.
FEW = 2000.0
#: Flows at most, where the profile has more: at this rate each is sent before anything counts.
FEW_FLOWS = 500
#: Constants of linux/if_packet.h and asm-generic/socket.h which Python has no names for.
SOL_PACKET, PACKET_AUXDATA, OUTGOING, VLAN_VALID = 263, 8, 4, 0x10

PROFILES = (
    "udp-64-1flow", "udp-64-10k", "udp-64-10k-both", "udp-64-10k-vlan", "udp-64-1m",
    "udp-128-10k", "udp-256-10k", "udp-512-10k", "udp-1024-10k", "udp-1280-10k", "udp-1518-10k",
    "udp-9018", "udp-imix-10k",
)  # fmt: skip


@pytest.fixture(scope="module")
def cable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """TRex with a veth pair as a cable between its ports, which takes the largest frames."""
    with new_sandbox() as host:
        ports = VethCable(host).apply(CABLE.model_copy(update={"mtu": 9000}))
        lab = Lab(host, ports, tmp_path_factory.mktemp("trex"))
        with closing(lab):
            yield lab


def shipped(name: str, flows: int = FEW_FLOWS) -> PacketProfile:
    """A profile of variables/profiles, with fewer flows."""
    profile = load_profile(name)
    assert isinstance(profile, PacketProfile)
    return profile.model_copy(update={"flows": min(flows, profile.flows)})


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


@pytest.mark.parametrize("name", PROFILES)
def test_every_packet_of_a_profile_comes_through_a_cable(cable: Lab, name: str) -> None:
    profile = shipped(name)
    trial = cable.trial(profile, FEW)

    assert trial.completed == trial.attempted == trial.intended == pytest.approx(FEW, abs=4)
    assert trial.unexpected == {}
    ways = 2 if profile.directions == "both" else 1
    assert list(trial.directions) == ["client", "server"][:ways]
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
    profile = PacketProfile(name="mine", kind="packets", **{"flows": 300, **shipped_addresses(), **more})
    with listening(cable, VETH["server"][1]) as frames:
        trial = cable.trial(profile, FEW)
    tag = 4 if profile.vlan else 0
    assert {len(frame) for frame in frames} == {profile.frame_bytes - 4 + tag}
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


def shipped_addresses() -> dict[str, Any]:
    """Those that the shipped profiles have."""
    return {"client_ip": "16.0.0.0", "client_ips": 256, "server_ip": "48.0.0.0", "server_ips": 256}


def test_a_router_that_loses_packets_of_one_direction_is_found_out(
    routed: Lab, forwarding: Callable[[str], None]
) -> None:
    forwarding('iifname "r1" numgen inc mod 50 == 0 drop')
    trial = routed.trial(shipped("udp-64-10k-both"), FEW)

    assert trial.directions["client"].loss_ratio == 0
    assert trial.directions["server"].loss_ratio == pytest.approx(0.02, abs=0.003)
    assert trial.generator_limited == ""


def test_servers_answer_what_a_stateful_firewall_has_seen(routed: Lab, forwarding: Callable[[str], None]) -> None:
    """It lets nothing pass from the servers' side that no client has begun."""
    forwarding('iifname "r1" ct state != established drop')
    trial = routed.trial(shipped("udp-64-10k-both"), FEW)

    assert trial.directions["server"].loss_ratio == trial.directions["client"].loss_ratio == 0


def test_a_router_that_drops_all_has_no_latency(routed: Lab, forwarding: Callable[[str], None]) -> None:
    forwarding("drop")
    trial = routed.trial(shipped("udp-64-10k"), FEW)

    assert trial.attempted == trial.intended
    assert trial.completed == 0
    assert trial.loss_ratio == 1
    assert trial.directions["client"].latency_us is None
    assert trial.generator_limited == ""


def test_packets_that_were_marked_otherwise_on_their_way_are_not_called_lost(
    routed: Lab, forwarding: Callable[[str], None]
) -> None:
    """TRex recognises its packets by their IPv4 identification."""
    forwarding("ip id set 7")
    trial = routed.trial(shipped("udp-64-10k"), FEW)

    assert trial.unexpected["unrecognised"] > 0.8 * trial.attempted
    assert "did not recognise" in trial.generator_limited


def test_more_than_trex_can_send_is_said_to_be_its_limit(cable: Lab) -> None:
    trial = cable.trial(shipped("udp-64-10k"), 50_000_000)

    assert trial.completed <= trial.attempted < trial.intended
    assert trial.generator_limited.startswith("TRex sent only")


def test_a_trial_that_was_broken_off_does_not_disturb_the_next(cable: Lab) -> None:
    """Its streams are ended, its packets belong to no group any more."""

    def impatient(_seconds: float) -> None:
        raise KeyboardInterrupt

    cable.trial(shipped("udp-64-10k"), FEW)  # the server runs now
    worker = cable.generator._worker
    with pytest.raises(KeyboardInterrupt):
        run_trial(worker, shipped("udp-64-10k"), FEW, 30, impatient)
    trial = cable.trial(shipped("udp-64-10k"), FEW)
    assert trial.completed == trial.attempted
    assert trial.unexpected == {}
