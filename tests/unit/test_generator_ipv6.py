"""What the software generator does on the wire with a profile of IPv6."""

import socket
import struct

import pytest
from packets import internet_checksum
from pydantic import ValidationError
from wire import over_a_wire

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, largest_frame

pytestmark = pytest.mark.usefixtures("compiled_generator")

WHO = {"ip_version": 6, "client_ip": "2001:2:0:16::1", "server_ip": "2001:2:0:48::1", "client_ips": 100}
CONNECTIONS = ConnectionProfile(name="six", **WHO, server_ips=10, udp_percent=50, request_bytes=27, reply_bytes=600)
PACKETS = PacketProfile(name="six", kind="packets", **WHO, server_ips=10, flows=100, frame_bytes=82, directions="both")
LOAD, SECONDS = 200, 0.5
#: Offsets: IPv6 header, what is behind it.
IP, L4 = 14, 54


def recorded(profile: Profile) -> tuple[Trial, list[tuple[bytes, str]]]:
    frames: list[tuple[bytes, str]] = []

    def handler(frame: bytes, side: str) -> list[bytes]:
        frames.append((frame, side))
        return [frame]

    return over_a_wire(handler, profile), frames


def addresses(frame: bytes, at: int = IP) -> tuple[str, str]:
    source, destination = frame[at + 8 : at + 24], frame[at + 24 : at + 40]
    return socket.inet_ntop(socket.AF_INET6, source), socket.inet_ntop(socket.AF_INET6, destination)


def checksum_is_right(frame: bytes) -> bool:
    """RFC 8200, section 8.1."""
    (length,), following = struct.unpack_from("!H", frame, IP + 4), frame[IP + 6]
    segment = frame[L4 : L4 + length]
    pseudo = frame[IP + 8 : L4] + struct.pack("!IHBB", length, 0, 0, following)
    return internet_checksum(pseudo + segment) == 0


def test_headers_are_those_of_ipv6_with_addresses_that_differ_in_their_end() -> None:
    trial, frames = recorded(CONNECTIONS)
    assert trial.completed == trial.attempted == trial.intended == pytest.approx(LOAD * SECONDS, abs=1)
    assert (trial.failed, trial.unexpected) == ({}, {})
    assert {frame[12:14] for frame, _ in frames} == {b"\x86\xdd"}
    assert {(frame[IP] >> 4, frame[IP + 7]) for frame, _ in frames} == {(6, 64)}  # version, hop limit
    assert {frame[IP + 6] for frame, _ in frames} == {6, 17}
    assert all(checksum_is_right(frame) for frame, _ in frames)
    asked = [addresses(frame) for frame, side in frames if side == "client"]
    assert {client for client, _ in asked} <= {f"2001:2:0:16::{number:x}" for number in range(1, 101)}
    assert {server for _, server in asked} == {f"2001:2:0:48::{number:x}" for number in range(1, 11)}


@pytest.mark.parametrize("vlan", [0, 100])
def test_a_stream_has_frames_of_the_size_of_its_profile(vlan: int) -> None:
    trial, frames = recorded(PACKETS.model_copy(update={"vlan": vlan}))
    assert trial.loss_ratio == 0 and trial.directions["server"].received > 0
    assert {len(frame) for frame, _ in frames} == {82 - 4 + (4 if vlan else 0)}
    plain = [frame[:12] + frame[16:] if vlan else frame for frame, _ in frames]
    assert all(checksum_is_right(frame) for frame in plain)
    assert len({addresses(frame) for frame in plain}) >= 100


@pytest.mark.parametrize("place", [IP + 20, L4 + 5, 70])
def test_a_broken_packet_does_not_count(place: int) -> None:
    """Address, segment and payload: IPv6 has no checksum of its own header."""

    def corrupt(frame: bytes, side: str) -> list[bytes]:
        return [frame[:place] + bytes([frame[place] ^ 1]) + frame[place + 1 :]] if side == "server" else [frame]

    trial = over_a_wire(corrupt, CONNECTIONS, patience=0.3)
    assert trial.completed == 0 and trial.intended > 0


def test_a_packet_of_another_prefix_is_somebody_elses() -> None:
    def elsewhere(frame: bytes, side: str) -> list[bytes]:
        return [frame, frame[: IP + 12] + b"\xab" + frame[IP + 13 :]]

    trial = over_a_wire(elsewhere, CONNECTIONS)
    assert trial.completed == trial.intended
    assert trial.unexpected["foreign"] > 0


def solicitation(target: str, asker: str = "2001:2:0:2::1") -> bytes:
    source, wanted = (socket.inet_pton(socket.AF_INET6, address) for address in (asker, target))
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + wanted[13:]
    mac = bytes.fromhex("020000000101")
    body = struct.pack("!BBHI16sBB6s", 135, 0, 0, 0, wanted, 1, 1, mac)
    pseudo = source + group + struct.pack("!IHBB", len(body), 0, 0, 58)
    body = body[:2] + struct.pack("!H", internet_checksum(pseudo + body)) + body[4:]
    header = struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + source + group
    return b"\x33\x33\xff" + wanted[13:] + mac + b"\x86\xdd" + header + body


@pytest.mark.parametrize(
    ("target", "asker", "answers"),
    [
        ("2001:2:0:48::3", "2001:2:0:2::1", True),
        ("2001:2:0:48::c8", "2001:2:0:2::1", False),  # beyond the ten servers
        ("2001:2:0:16::3", "2001:2:0:2::1", False),  # a client
        ("2001:2:0:48::3", "::", False),  # somebody who wants the address (duplicate address detection)
    ],
)
@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=["connections", "packets"])
def test_a_port_answers_solicitations_of_the_addresses_behind_it(
    target: str, asker: str, answers: bool, profile: Profile
) -> None:
    replies: list[bytes] = []

    def handler(frame: bytes, side: str) -> list[bytes]:
        if frame[IP + 6] == 58:
            replies.append(frame)
            return []
        return [frame, solicitation(target, asker)] if side == "client" else [frame]

    trial = over_a_wire(handler, profile)
    assert (trial.loss_ratio, trial.unexpected) == (0, {})
    assert bool(replies) == answers
    for reply in replies:
        kind, flags, found, option, units, mac = struct.unpack_from("!BxxxI16sBB6s", reply, L4)
        assert (kind, flags, option, units) == (136, 0x60000000, 2, 1)
        assert (socket.inet_ntop(socket.AF_INET6, found), mac.hex()) == (target, "020000000002")
        assert addresses(reply) == (target, asker)
        assert (reply[:12].hex(), reply[IP + 7]) == ("020000000101020000000002", 255)
        assert checksum_is_right(reply)


@pytest.mark.parametrize("size", [64, 81, "imix"])
def test_a_frame_too_small_for_what_is_counted_is_refused(size: int | str) -> None:
    with pytest.raises(ValidationError, match="Expected 82"):
        PacketProfile(name="small", kind="packets", **WHO, frame_bytes=size)  # type: ignore[arg-type]


def test_the_largest_frame_has_the_longer_header() -> None:
    four = ConnectionProfile(name="four", reply_bytes=1448)
    assert largest_frame(CONNECTIONS.model_copy(update={"reply_bytes": 1448})) == largest_frame(four) + 20
