"""What the software generator does on the wire, and what it says of lost, broken, translated and foreign packets."""

import subprocess
import time
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pytest
from packets import ACK, FIN, PSH, RST, SYN, Packet, checksums_are_right, parse, pcap, rewrite
from wire import Handler, Wire

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import plan

pytestmark = pytest.mark.usefixtures("compiled_generator")

SHORT = ConnectionProfile(name="short", messages=1, client_ips=100, server_ips=10)
#: Connections per second, and seconds: few enough for a wire in Python.
LOAD, SECONDS = 200, 0.5


#: How long the generator waits for a reply, seconds: a wire in Python may be kept off the CPU for a while.
PATIENCE, LESS_PATIENCE = 10.0, 0.75


def run(
    handler: Handler,
    profile: ConnectionProfile = SHORT,
    load: float = LOAD,
    queues: int = 1,
    patience: float = PATIENCE,
) -> Trial:
    with patch.object(plan, "REPLY_TIMEOUT_S", patience), Wire(handler, queues) as wire:
        return wire.generator.run_trial(profile, Rate(load), SECONDS)


def record(frames: list[tuple[float, bytes, str]]) -> Handler:
    def handler(frame: bytes, side: str) -> list[bytes]:
        frames.append((time.time(), frame, side))
        return [frame]

    return handler


def conversations(frames: list[tuple[float, bytes, str]]) -> dict[tuple[str, int], list[tuple[str, Packet]]]:
    """Packets of each connection, known by the client's address and port."""
    found = defaultdict(list)
    for _, frame, side in frames:
        packet = parse(frame)
        key = (packet.source, packet.source_port) if side == "client" else (packet.destination, packet.destination_port)
        found[key].append((side, packet))
    return found


def test_a_short_tcp_connection_is_the_seven_packets_of_the_published_procedure() -> None:
    frames: list[tuple[float, bytes, str]] = []
    run(record(frames))
    for packets in conversations(frames).values():
        assert [(side, packet.flags, len(packet.payload)) for side, packet in packets] == [
            ("client", SYN, 0),
            ("server", SYN | ACK, 0),
            ("client", PSH | ACK, 20),
            ("server", PSH | ACK, 20),
            ("client", FIN | ACK, 0),
            ("server", FIN | ACK, 0),
            ("client", ACK, 0),
        ]


def test_sequence_numbers_follow_what_was_sent() -> None:
    frames: list[tuple[float, bytes, str]] = []
    run(record(frames), SHORT.model_copy(update={"messages": 3, "request_bytes": 33, "reply_bytes": 1001}))
    for packets in conversations(frames).values():
        expected: dict[str, int] = {}
        for side, packet in packets:
            peer = "server" if side == "client" else "client"
            assert packet.seq == expected.get(side, packet.seq)
            if packet.flags & ACK:
                assert packet.ack == expected[peer]
            expected[side] = (packet.seq + len(packet.payload) + bool(packet.flags & (SYN | FIN))) % 2**32


def test_every_checksum_is_right_and_every_connection_completes() -> None:
    frames: list[tuple[float, bytes, str]] = []
    trial = run(record(frames), SHORT.model_copy(update={"udp_percent": 50.0, "request_bytes": 27, "reply_bytes": 600}))
    assert all(checksums_are_right(frame) for _, frame, _ in frames)
    assert trial.completed == trial.attempted == trial.intended == pytest.approx(LOAD * SECONDS, abs=1)
    assert trial.loss_ratio == 0
    assert not trial.failed
    assert not trial.unexpected


def test_the_udp_share_is_what_the_profile_says() -> None:
    frames: list[tuple[float, bytes, str]] = []
    run(record(frames), SHORT.model_copy(update={"udp_percent": 10.0}))
    found = conversations(frames)
    udp = [packets for packets in found.values() if packets[0][1].protocol == 17]
    assert len(udp) == pytest.approx(len(found) / 10, abs=1)
    assert all([side for side, _ in packets] == ["client", "server"] for packets in udp)


def test_a_server_that_waits_acknowledges_first_and_answers_later() -> None:
    frames: list[tuple[float, bytes, str]] = []
    wait = SHORT.model_copy(update={"messages": 2, "server_wait_ms": 40.0, "ack_before_reply": True})
    trial = run(record(frames), wait)
    assert trial.completed == trial.intended
    packets = next(iter(conversations(frames).values()))
    assert len(packets) == 3 * 2 + 5
    times = [when for when, frame, side in frames if parse(frame).payload and side == "server"]
    asked = [when for when, frame, side in frames if parse(frame).payload and side == "client"]
    assert min(times) - min(asked) >= 0.04


def test_connections_without_data_open_and_close() -> None:
    frames: list[tuple[float, bytes, str]] = []
    trial = run(record(frames), SHORT.model_copy(update={"messages": 0}))
    assert trial.completed == trial.intended
    assert {len(packets) for packets in conversations(frames).values()} == {5}


def test_client_ports_are_random_over_the_whole_range_and_never_come_twice() -> None:
    frames: list[tuple[float, bytes, str]] = []
    run(record(frames))
    clients = list(conversations(frames))
    assert len(set(clients)) == len(clients) == len([1 for _, f, _ in frames if parse(f).flags == SYN])
    ports = [port for _, port in clients]
    assert min(ports) < 8000
    assert max(ports) > 58000
    assert ports != sorted(ports)
    assert len({ip for ip, _ in clients}) > 50


def test_sequential_ports_count_up() -> None:
    frames: list[tuple[float, bytes, str]] = []
    run(record(frames), SHORT.model_copy(update={"port_order": "sequential", "client_ips": 1}))
    ports = [parse(frame).source_port for _, frame, side in frames if side == "client" and parse(frame).flags == SYN]
    assert ports == list(range(ports[0], ports[0] + len(ports)))


def test_both_directions_of_a_connection_use_the_same_queue_and_all_queues_are_used() -> None:
    trial = run(lambda frame, _: [frame], queues=8)
    assert trial.completed == trial.intended


def test_it_works_through_source_address_translation() -> None:
    ports: dict[int, tuple[str, int]] = {}
    numbers: dict[tuple[str, int], int] = {}

    def translate(frame: bytes, side: str) -> list[bytes]:
        packet = parse(frame)
        if side == "client":
            who = (packet.source, packet.source_port)
            number = numbers.setdefault(who, 20000 + len(numbers))
            ports[number] = who
            return [rewrite(frame, source="10.9.8.7", source_port=number)]
        back = ports[packet.destination_port]
        return [rewrite(frame, destination=back[0], destination_port=back[1])]

    trial = run(translate, SHORT.model_copy(update={"udp_percent": 20.0}))
    assert trial.completed == trial.intended
    assert not trial.unexpected


@pytest.mark.parametrize(
    ("side", "flags", "cause"),
    [
        ("client", SYN, "no_syn_ack"),
        ("server", SYN | ACK, "no_syn_ack"),
        ("client", PSH | ACK, "no_reply"),
        ("server", PSH | ACK, "no_reply"),
        ("client", FIN | ACK, "no_fin"),
        ("server", FIN | ACK, "no_fin"),
        ("client", ACK, "no_last_ack"),
    ],
)
def test_a_lost_packet_fails_its_connection_and_names_the_cause(side: str, flags: int, cause: str) -> None:
    def lossy(frame: bytes, came_from: str) -> list[bytes]:
        packet = parse(frame)
        port = packet.source_port if came_from == "client" else packet.destination_port
        return [] if came_from == side and packet.flags == flags and port % 4 == 0 else [frame]

    trial = run(lossy, patience=LESS_PATIENCE)
    assert set(trial.failed) == {cause}
    assert 0 < trial.failed[cause] < trial.intended
    assert trial.completed + trial.failed[cause] == trial.intended
    assert trial.loss_ratio == pytest.approx(trial.failed[cause] / trial.intended)


def test_a_lost_datagram_is_a_missing_reply() -> None:
    only_udp = SHORT.model_copy(update={"udp_percent": 100.0})
    trial = run(lambda frame, side: [frame] if side == "client" else [], only_udp, patience=LESS_PATIENCE)
    assert trial.failed == {"no_reply": trial.intended}
    assert trial.completed == trial.established == 0


def test_a_reset_is_counted_as_such() -> None:
    def refuse(frame: bytes, side: str) -> list[bytes]:
        return [rewrite(frame, flags=RST | ACK)] if side == "server" and parse(frame).flags == SYN | ACK else [frame]

    trial = run(refuse)
    assert trial.failed == {"reset": trial.intended}


@pytest.mark.parametrize("place", [22, 41, 75], ids=["time to live", "sequence number", "payload"])
def test_a_broken_packet_is_a_bad_checksum(place: int) -> None:
    def corrupt(frame: bytes, side: str) -> list[bytes]:
        if side == "client" or not parse(frame).payload:
            return [frame]
        broken = bytearray(frame)
        broken[place] ^= 0x10
        return [bytes(broken)]

    trial = run(corrupt)
    assert trial.failed == {"bad_checksum": trial.intended}
    assert trial.completed == 0


def test_a_frame_of_somebody_else_is_counted_and_harms_nobody() -> None:
    discovery = b"\xff" * 6 + b"\x02" * 6 + b"\x88\xcc" + bytes(46)

    def chatty(frame: bytes, _side: str) -> list[bytes]:
        return [discovery, frame]

    trial = run(chatty)
    assert trial.completed == trial.intended
    assert trial.unexpected["foreign"] > 0


def test_a_frame_for_another_address_does_not_count_for_the_connection_it_names() -> None:
    def misdirect(frame: bytes, side: str) -> list[bytes]:
        if side == "server" and parse(frame).flags == SYN | ACK:
            return [rewrite(frame, destination="16.0.200.1")]
        return [frame]

    trial = run(misdirect, patience=LESS_PATIENCE)
    assert trial.failed == {"no_syn_ack": trial.intended}
    assert trial.unexpected["misdirected"] >= trial.intended


def test_a_packet_that_comes_twice_counts_once() -> None:
    trial = run(lambda frame, _: [frame, frame])
    assert trial.completed == trial.intended
    assert sum(trial.unexpected.values()) > 0


def test_a_full_ring_is_the_duts_miss_and_never_slows_the_offer() -> None:
    def deaf(_frame: bytes, _side: str) -> list[bytes]:
        time.sleep(0.002)
        return []

    trial = run(deaf, load=20_000, patience=LESS_PATIENCE)
    assert trial.attempted == trial.intended == pytest.approx(20_000 * SECONDS, abs=1)
    assert trial.total_dut_missed > 0
    assert trial.completed == 0
    assert trial.failed == {"no_syn_ack": trial.intended}


def test_counts_of_packets_are_those_of_the_wire() -> None:
    with patch.object(plan, "REPLY_TIMEOUT_S", PATIENCE), Wire() as wire:
        trial = wire.generator.run_trial(SHORT, Rate(LOAD), SECONDS)
        assert trial.total_tx_packets == wire.seen
        assert trial.total_rx_packets == {"client": wire.seen["server"], "server": wire.seen["client"]}


def test_a_link_that_breaks_is_an_error_that_names_it() -> None:
    from ctbench.base.errors import GeneratorError

    with Wire() as wire:
        wire._ports["server"]._control.close()  # the memory stays: the relay still looks at it
        with pytest.raises(GeneratorError, match="closed the memif link"):
            wire.generator.run_trial(SHORT, Rate(LOAD), 0.1)


@pytest.mark.skipif(not Path("/usr/bin/tshark").exists(), reason="tshark is not installed")
def test_tshark_finds_nothing_malformed_out_of_order_or_out_of_window(tmp_path: Path) -> None:
    frames: list[tuple[float, bytes, str]] = []
    mixed = SHORT.model_copy(
        update={"messages": 4, "udp_percent": 20.0, "request_bytes": 100, "reply_bytes": 1448, "server_wait_ms": 5.0}
    )
    trial = run(record(frames), mixed)
    assert trial.completed == trial.intended
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(pcap([(when, frame) for when, frame, _ in frames]))
    checks = [f"{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
    bad_checksum = " || ".join(f"{protocol}.checksum.status == 0" for protocol in ("ip", "tcp", "udp"))
    doubtful = f"_ws.malformed || tcp.analysis.flags || {bad_checksum}"
    command = ["tshark", "-r", str(capture), *(part for check in checks for part in ("-o", check)), "-Y", doubtful]
    command += ["--disable-protocol", "mdns", "--disable-protocol", "http"]  # their ports, not their messages
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    everything = subprocess.run(
        ["tshark", "-r", str(capture), "-Y", "tcp || udp"], capture_output=True, text=True, check=True, timeout=60
    )
    assert len(everything.stdout.splitlines()) == len(frames)
