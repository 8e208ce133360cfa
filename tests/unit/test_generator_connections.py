"""What the software generator does on the wire, of IPv4 and IPv6, and what it says of lost, broken, translated and
foreign packets."""

import socket
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from packets import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    Packet,
    arp_request,
    checksums_are_right,
    internet_checksum,
    parse,
    pcap,
    rewrite,
    segment_of,
)
from wire import Handler, Tap, Wire, deaf, over_a_cable, over_a_wire

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, largest_frame
from ctgen import clock, plan
from ctgen.errors import GeneratorError

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

SHORT = ConnectionProfile(name="short", messages=1, client_ips=100, server_ips=10)
#: By default, connections per second, and seconds.
LOAD, SECONDS = 400, 0.25
#: How long the generator waits where some never come, seconds.
LESS_PATIENCE = 2.0
C, S = "client", "server"
#: IPv6.
WHO: dict[str, Any] = {"ip_version": 6, "client_ip": "2001:2:0:16::1", "server_ip": "2001:2:0:48::1", "client_ips": 100}
OPENS = [(C, SYN, 0), (S, SYN | ACK, 0)]
TALKS = [(C, PSH | ACK, 33), (S, PSH | ACK, 1001)]
CLOSES = [(C, FIN | ACK, 0), (S, FIN | ACK, 0), (C, ACK, 0)]
SERVER_CLOSES = [(S, FIN | ACK, 0), (C, FIN | ACK, 0), (S, ACK, 0)]
RESETS = [(C, RST | ACK, 0)]


def profile(**changes: object) -> ConnectionProfile:
    return ConnectionProfile(**{**SHORT.model_dump(), **changes})  # type: ignore[arg-type]


def run(handler: Handler, patience: float = 10.0, **changes: object) -> Trial:
    return over_a_wire(handler, profile(**changes), patience=patience)


def tapped(**changes: object) -> tuple[Trial, Tap]:
    """A trial in which nothing is lost."""
    tap = Tap()
    trial = run(tap, **changes)
    assert trial.completed == trial.attempted == trial.intended == pytest.approx(LOAD * SECONDS, abs=1)
    assert (trial.loss_ratio, trial.failed, trial.unexpected) == (0, {}, {})
    assert all(checksums_are_right(frame) for _, frame, _ in tap.frames)
    return trial, tap


@pytest.mark.parametrize(
    ("ended_by", "messages", "expected"),
    [
        (C, 1, [*OPENS, *TALKS, *CLOSES]),  # the seven packets of the published procedure
        (C, 3, [*OPENS, *TALKS, *TALKS, *TALKS, *CLOSES]),
        (C, 0, [*OPENS, *CLOSES]),
        (S, 1, [*OPENS, *TALKS, *SERVER_CLOSES]),
        (S, 3, [*OPENS, *TALKS, *TALKS, *TALKS, *SERVER_CLOSES]),
        (S, 0, [*OPENS, (C, ACK, 0), *SERVER_CLOSES]),
        ("reset", 3, [*OPENS, *TALKS, *TALKS, *TALKS, *RESETS]),
        ("reset", 0, [*OPENS, *RESETS]),
    ],
)
def test_a_connection_is_the_packets_of_its_profile_and_its_numbers_follow_what_was_sent(
    ended_by: str, messages: int, expected: list[tuple[str, int, int]]
) -> None:
    trial, tap = tapped(ended_by=ended_by, messages=messages, request_bytes=33, reply_bytes=1001)
    client, server = (len(tap.packets(side)) for side in (C, S))
    assert (trial.total_tx_packets, trial.total_rx_packets) == ({C: client, S: server}, {C: server, S: client})
    assert profile(ended_by=ended_by, messages=messages).packets_each == len(expected)
    for packets in tap.conversations().values():
        assert [(side, packet.flags, len(packet.payload)) for side, packet in packets] == expected
        following: dict[str, int] = {}
        for side, packet in packets:
            peer = S if side == C else C
            assert packet.seq == following.get(side, packet.seq)
            if packet.flags & ACK:
                # The server that closes sends its last reply and its end at once.
                assert packet.ack == following[peer] or (ended_by == S and packet.ack < following[peer])
            following[side] = (packet.seq + len(packet.payload) + bool(packet.flags & (SYN | FIN))) % 2**32


@pytest.mark.parametrize("share", [10.0, 50.0])
def test_the_udp_share_is_what_the_profile_says(share: float) -> None:
    _, tap = tapped(udp_percent=share, request_bytes=27, reply_bytes=600)
    found = tap.conversations()
    udp = [packets for packets in found.values() if packets[0][1].protocol == 17]
    assert len(udp) == pytest.approx(len(found) * share / 100, abs=1)
    assert all([side for side, _ in packets] == [C, S] for packets in udp)


@pytest.mark.parametrize(("messages", "sides"), [(2, [C, C, S, S]), (3, [C, C, S, S, C, S])])
def test_requests_at_once_go_out_before_the_first_reply_and_the_others_one_by_one(
    messages: int, sides: list[str]
) -> None:
    trial, tap = tapped(udp_percent=100, messages=messages, at_once=2)
    assert trial.latency_us == {}, "a connection has one time, and two requests are on their way"
    found = [[side for side, _ in packets] for packets in tap.conversations().values()]
    # A wire in Python takes frames of one side after those of the other.
    assert all(sorted(each) == sorted(sides) and each[:2] == [C, C] for each in found)
    assert sides in found


def test_a_connection_of_which_one_of_two_requests_is_lost_fails() -> None:
    seen: set[tuple[str, int]] = set()

    def second(packet: Packet, side: str) -> bool:
        client = packet.source, packet.source_port
        again = side == C and client in seen
        seen.add(client)
        return again

    trial = run(Tap(second), LESS_PATIENCE, udp_percent=100, messages=2, at_once=2)
    assert trial.completed == 0 and set(trial.failed) == {"no_reply"}


def test_a_server_that_waits_acknowledges_first_and_answers_later() -> None:
    for _ in range(3):  # the relay of a busy machine may note late when the request came
        _, tap = tapped(messages=2, server_wait_ms=40.0, ack_before_reply=True)
        assert len(next(iter(tap.conversations().values()))) == 3 * 2 + 5
        with_data = {end: [at for at, frame, by in tap.frames if by == end and parse(frame).payload] for end in (C, S)}
        waited = min(with_data[S]) - min(with_data[C])
        if waited >= 0.04:
            break
    assert waited >= 0.04


def test_client_ports_are_random_over_the_whole_range_and_never_come_twice() -> None:
    _, tap = tapped()
    clients = list(tap.conversations())
    assert len(set(clients)) == len(clients) == len([1 for packet in tap.packets() if packet.flags == SYN])
    ports = [port for _, port in clients]
    assert min(ports) < 8000
    assert max(ports) > 58000
    assert ports != sorted(ports)
    assert len({ip for ip, _ in clients}) > 50


def test_sequential_ports_count_up() -> None:
    _, tap = tapped(port_order="sequential", client_ips=1)
    ports = [packet.source_port for packet in tap.packets(C) if packet.flags == SYN]
    assert ports == list(range(ports[0], ports[0] + len(ports)))


def test_three_of_four_connections_are_short() -> None:
    _, tap = tapped(messages=5, short_percent=75, short_messages=2)
    requests = Counter((packet.source, packet.source_port) for packet in tap.packets(C) if len(packet.payload) == 20)
    found = Counter(requests.values())
    assert set(found) == {2, 5}
    assert found[2] == pytest.approx(3 * found[5], abs=3)


@pytest.mark.parametrize(
    ("ended_by", "losses"),
    [
        (C, [(C, SYN, "no_syn_ack"), (S, SYN | ACK, "no_syn_ack"), (C, PSH | ACK, "no_reply"),
             (S, PSH | ACK, "no_reply"), (C, FIN | ACK, "no_fin"), (S, FIN | ACK, "no_fin"), (C, ACK, "no_last_ack")]),
        (S, [(S, FIN | ACK, "no_fin"), (C, FIN | ACK, "no_last_ack"), (S, ACK, "no_last_ack")]),
        ("reset", [(C, RST | ACK, "no_last_ack")]),
    ],
)  # fmt: skip
def test_a_lost_packet_fails_its_connection_with_the_cause(ended_by: str, losses: list[tuple[str, int, str]]) -> None:
    """A connection loses one of these packets, by its port, or none."""
    cases = [*losses, ("", 0, "")]

    def lost(packet: Packet, side: str) -> bool:
        port = packet.source_port if side == C else packet.destination_port
        return cases[port % len(cases)][:2] == (side, packet.flags)

    trial = run(tap := Tap(lost), patience=LESS_PATIENCE, ended_by=ended_by)
    opened = [packet.source_port for packet in tap.packets(C) if packet.flags == SYN]
    causes = Counter(cases[port % len(cases)][2] for port in opened[-trial.attempted :])  # those that count began last
    assert set(causes) == {cause for *_, cause in cases}
    assert trial.completed == causes.pop("") == trial.intended - sum(trial.failed.values())
    assert trial.failed == causes
    assert trial.loss_ratio == pytest.approx(sum(causes.values()) / trial.intended)


@pytest.mark.parametrize(("ended_by", "side", "flags"), [(C, S, SYN | ACK), ("reset", C, PSH | ACK)])
def test_a_reset_before_its_time_is_a_failure(ended_by: str, side: str, flags: int) -> None:
    def refuse(frame: bytes, came_from: str) -> list[bytes]:
        early = came_from == side and parse(frame).flags == flags
        return [rewrite(frame, flags=RST | ACK)] if early else [frame]

    trial = run(refuse, ended_by=ended_by)
    assert trial.failed == {"reset": trial.intended}


@pytest.mark.parametrize(
    ("changes", "places"),
    # Time to live, which IPv6 does not sum up, or an address; sequence number, payload.
    [({}, [22, 41, 75]), (WHO, [34, 59, 90])],
    ids=["IPv4", "IPv6"],
)
def test_a_broken_packet_is_a_bad_checksum(changes: dict[str, Any], places: list[int]) -> None:
    def corrupt(frame: bytes, side: str) -> list[bytes]:
        packet = parse(frame)
        if side == C or not packet.payload:
            return [frame]
        broken = bytearray(frame)
        broken[places[packet.destination_port % 3]] ^= 0x10
        return [bytes(broken)]

    trial = run(corrupt, **changes)
    assert trial.failed == {"bad_checksum": trial.intended}
    assert trial.completed == 0


DISCOVERY = b"\xff" * 6 + b"\x02" * 6 + b"\x88\xcc" + bytes(46)


@pytest.mark.parametrize("strange", [DISCOVERY, arp_request("16.0.200.1")], ids=["LLDP", "ARP for another"])
def test_frames_that_neither_end_sent_do_not_make_up_for_lost_ones(strange: bytes) -> None:
    lost = 0

    def lose(frame: bytes, side: str) -> list[bytes]:
        nonlocal lost
        is_lost = side == C and parse(frame).flags == SYN and parse(frame).source_port % 4 == 0
        lost += is_lost
        return [strange] if is_lost else [strange, frame]

    trial = run(lose, patience=LESS_PATIENCE)
    assert trial.packets_lost == lost > 0
    assert trial.unexpected["foreign"] == sum(trial.total_tx_packets.values())


def test_what_is_for_somebody_else_is_counted_and_does_no_harm() -> None:
    twice = run(lambda frame, _: [frame, frame])
    assert twice.completed == twice.intended and sum(twice.unexpected.values()) > 0

    def misdirect(frame: bytes, side: str) -> list[bytes]:
        if side == S and parse(frame).flags == SYN | ACK:
            return [rewrite(frame, destination="16.0.200.1")]
        return [frame]

    trial = run(misdirect, patience=LESS_PATIENCE)
    assert trial.failed == {"no_syn_ack": trial.intended}
    assert trial.unexpected["misdirected"] >= trial.intended


def test_a_full_ring_is_the_duts_miss_and_never_slows_the_offer() -> None:
    patient = patch.object(clock, "LATEST_S", 1.0)  # in which no such wire takes a ring full
    with patch.object(plan, "REPLY_TIMEOUT_S", 0.75), patient, Wire(deaf) as wire:
        wire.generator.run_trial(SHORT, Rate(20_000), SECONDS)  # touches the memory of the rings for the first time
        trial = wire.generator.run_trial(SHORT, Rate(20_000), SECONDS)
    assert trial.attempted == trial.intended == pytest.approx(20_000 * SECONDS, abs=1)
    assert trial.total_dut_missed > 0
    assert trial.completed == 0
    assert trial.failed == {"no_syn_ack": trial.intended}


def test_a_link_that_breaks_is_an_error_that_names_it() -> None:
    with Wire() as wire:
        wire.ports[S]._control.close()  # the memory stays: the relay still looks at it
        with pytest.raises(GeneratorError, match="closed the memif link"):
            wire.generator.run_trial(SHORT, Rate(LOAD), 0.1)


@pytest.mark.parametrize("ended_by", [S, "reset"])
def test_held_connections_stay_open_and_a_closed_loop_goes_round(ended_by: str) -> None:
    of = profile(ended_by=ended_by, messages=3, udp_percent=10)
    held, loop = over_a_cable(of, Hold(2000, 50_000), 0.0), over_a_cable(of, Saturation(64), 0.1)
    assert (held.completed, held.failed) == (2000, {})
    assert loop.completed > 64 and loop.failed == {}


_CLIENTS = {f"16.0.0.{number}" for number in range(1, 101)}


def test_half_open_connections_are_counted_apart_and_their_drops_are_no_loss() -> None:
    trial, tap = tapped(half_open_per_s=400)
    # Others may have the CPU: what is held back for longer than `clock.SLACK_S` is not made good.
    assert 0 < trial.half_open["sent"] <= 400 * SECONDS + 40
    with patch.object(clock, "SLACK_S", SECONDS):
        made_good = over_a_cable(profile(half_open_per_s=400), Rate(LOAD), SECONDS)
    assert made_good.half_open["sent"] == pytest.approx(400 * SECONDS, abs=40)
    # A wire in Python may have many of them when it is begun or ended to count, a cable one.
    flood = over_a_cable(profile(half_open_per_s=400), Rate(LOAD), SECONDS).half_open
    assert flood["passed"] == pytest.approx(flood["sent"], abs=2)
    assert flood["answered"] == pytest.approx(flood["sent"], abs=2)
    assert flood["missed"] == trial.half_open["missed"] == 0
    # The clients behind those of the load; nobody answers what they are answered.
    strangers = [packet for packet in tap.packets(C) if packet.source not in _CLIENTS]
    assert {packet.flags for packet in strangers} == {SYN}
    by_client = {(packet.source, packet.source_port): packet for packet in strangers}
    assert len(by_client) == len(strangers)
    answers = [packet for packet in tap.packets(S) if packet.destination not in _CLIENTS]
    assert {packet.flags for packet in answers} == {SYN | ACK}
    assert all(by_client[each.destination, each.destination_port].seq + 1 == each.ack for each in answers)
    assert trial.total_tx_packets[C] == len(tap.packets(C)) - len(strangers)
    assert trial.total_rx_packets[C] == len(tap.packets(S)) - len(answers)
    # Those that a DUT drops are no loss of the load.
    trial = run(Tap(lambda packet, side: side == C and packet.source not in _CLIENTS), half_open_per_s=400)
    assert trial.completed == trial.attempted > 0
    assert trial.packets_lost == 0
    assert trial.half_open["sent"] > 0 and trial.half_open["passed"] == trial.half_open["answered"] == 0


@pytest.mark.skipif(not Path("/usr/bin/tshark").exists(), reason="tshark is not installed")
@pytest.mark.parametrize("changes", [{}, WHO], ids=["IPv4", "IPv6"])
def test_tshark_finds_nothing_malformed_out_of_order_or_out_of_window(tmp_path: Path, changes: dict[str, Any]) -> None:
    frames: list[tuple[float, bytes]] = []

    def keep(frame: bytes, _side: str) -> list[bytes]:
        frames.append((time.time(), frame))
        return [frame]

    mixed = {"messages": 4, "udp_percent": 20.0, "request_bytes": 100, "reply_bytes": 1400, "server_wait_ms": 5.0}
    trial = run(keep, **mixed, **changes)
    assert trial.completed == trial.intended
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(pcap(frames))
    options = [part for each in ("ip", "tcp", "udp") for part in ("-o", f"{each}.check_checksum:TRUE")]
    options += ["--disable-protocol", "mdns", "--disable-protocol", "http"]  # their ports, not their messages
    bad_checksum = " || ".join(f"{protocol}.checksum.status == 0" for protocol in ("ip", "tcp", "udp"))

    def found(what: str) -> str:
        command = ["tshark", "-r", str(capture), *options, "-Y", what]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert found(f"_ws.malformed || tcp.analysis.flags || {bad_checksum}") == ""
    assert len(found("tcp || udp").splitlines()) == len(frames)


CONNECTIONS = ConnectionProfile(name="six", **WHO, server_ips=10, udp_percent=50, request_bytes=27, reply_bytes=600)
PACKETS = PacketProfile(name="six", kind="packets", **WHO, server_ips=10, flows=100, frame_bytes=82, directions="both")


def test_headers_are_those_of_ipv6_with_addresses_that_differ_in_their_end() -> None:
    _, tap = tapped(**CONNECTIONS.model_dump())
    frames = [frame for _, frame, _ in tap.frames]
    assert {frame[12:14] for frame in frames} == {b"\x86\xdd"}
    assert {(frame[14] >> 4, frame[21]) for frame in frames} == {(6, 64)}  # version, hop limit
    assert {packet.protocol for packet in tap.packets()} == {6, 17}
    assert {packet.source for packet in tap.packets(C)} <= {f"2001:2:0:16::{number:x}" for number in range(1, 101)}
    assert {packet.destination for packet in tap.packets(C)} == {f"2001:2:0:48::{number:x}" for number in range(1, 11)}


def solicitation(target: str, asker: str) -> bytes:
    source, wanted = (socket.inet_pton(socket.AF_INET6, address) for address in (asker, target))
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + wanted[13:]
    mac = bytes.fromhex("020000000101")
    body = struct.pack("!BBHI16sBB6s", 135, 0, 0, 0, wanted, 1, 1, mac)
    pseudo = source + group + struct.pack("!IHBB", len(body), 0, 0, 58)
    body = body[:2] + struct.pack("!H", internet_checksum(pseudo + body)) + body[4:]
    header = struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + source + group
    return b"\x33\x33\xff" + wanted[13:] + mac + b"\x86\xdd" + header + body


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=["connections", "packets"])
def test_a_port_answers_for_the_addresses_behind_it_and_for_no_others(profile: Profile) -> None:
    target, asker = "2001:2:0:48::3", "2001:2:0:2::1"
    asked = [
        solicitation(target, asker),
        solicitation("2001:2:0:48::c8", asker),  # beyond the ten servers
        solicitation("2001:2:0:16::3", asker),  # a client
        solicitation(target, "::"),  # somebody who wants the address (duplicate address detection)
    ]
    sent: Counter[bytes] = Counter()
    replies: list[bytes] = []

    def handler(frame: bytes, side: str) -> list[bytes]:
        if segment_of(frame)[2] == 58:
            replies.append(frame)
            return []
        if side == "client":
            sent.update(asked)
        return [frame, *asked] if side == "client" else [frame]

    trial = over_a_wire(handler, profile)
    assert trial.loss_ratio == 0 and trial.unexpected.keys() == {"foreign"}
    assert 0 < len(replies) <= sent[asked[0]]
    for reply in replies:
        addresses, segment, _ = segment_of(reply)
        kind, flags, found, option, units, mac = struct.unpack_from("!BxxxI16sBB6s", segment)
        assert (kind, flags, option, units) == (136, 0x60000000, 2, 1)
        assert (socket.inet_ntop(socket.AF_INET6, found), mac.hex()) == (target, "020000000002")
        assert addresses == b"".join(socket.inet_pton(socket.AF_INET6, address) for address in (target, asker))
        assert (reply[:12].hex(), reply[21]) == ("020000000101020000000002", 255)
        assert checksums_are_right(reply)


def test_the_largest_frame_has_the_longer_header() -> None:
    four = ConnectionProfile(name="four", reply_bytes=1448)
    assert largest_frame(CONNECTIONS.model_copy(update={"reply_bytes": 1448})) == largest_frame(four) + 20
