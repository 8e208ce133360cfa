"""Connections that the server closes, that the client resets, and those that stay half open beside the load."""

from collections import defaultdict

import pytest
from packets import ACK, FIN, PSH, RST, SYN, Packet, checksums_are_right, parse
from pydantic import ValidationError
from wire import Handler, Wire, over_a_cable

from ctbench.sla.floor import packets_per_connection
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import plan

pytestmark = pytest.mark.usefixtures("compiled_generator")

SHORT = ConnectionProfile(name="short", client_ips=100, server_ips=10)
LOAD, SECONDS = 200, 0.5
C, S = "client", "server"
OPENS = [(C, SYN), (S, SYN | ACK)]
TALKS = [(C, PSH | ACK), (S, PSH | ACK)]


def profile(**changes: object) -> ConnectionProfile:
    return ConnectionProfile(**{**SHORT.model_dump(), **changes})  # type: ignore[arg-type]


def run(handler: Handler, of: ConnectionProfile, patience: float = 10.0) -> Trial:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", patience)
        with Wire(handler) as wire:
            return wire.generator.run_trial(of, Rate(LOAD), SECONDS)


def conversations(of: ConnectionProfile) -> tuple[Trial, list[list[tuple[str, Packet]]]]:
    found: dict[tuple[str, int], list[tuple[str, Packet]]] = defaultdict(list)

    def handler(frame: bytes, side: str) -> list[bytes]:
        assert checksums_are_right(frame)
        packet = parse(frame)
        who = (packet.source, packet.source_port) if side == C else (packet.destination, packet.destination_port)
        found[who].append((side, packet))
        return [frame]

    return run(handler, of), list(found.values())


@pytest.mark.parametrize(
    ("ended_by", "messages", "expected"),
    [
        ("server", 1, [*OPENS, *TALKS, (S, FIN | ACK), (C, FIN | ACK), (S, ACK)]),
        ("server", 3, [*OPENS, *TALKS, *TALKS, *TALKS, (S, FIN | ACK), (C, FIN | ACK), (S, ACK)]),
        ("server", 0, [*OPENS, (C, ACK), (S, FIN | ACK), (C, FIN | ACK), (S, ACK)]),
        ("reset", 1, [*OPENS, *TALKS, (C, RST | ACK)]),
        ("reset", 0, [*OPENS, (C, RST | ACK)]),
        ("client", 1, [*OPENS, *TALKS, (C, FIN | ACK), (S, FIN | ACK), (C, ACK)]),
    ],
)
def test_a_connection_ends_as_the_profile_says(ended_by: str, messages: int, expected: list[tuple[str, int]]) -> None:
    of = profile(ended_by=ended_by, messages=messages)
    trial, found = conversations(of)
    assert trial.completed == trial.intended > 0
    assert (trial.failed, trial.unexpected) == ({}, {})
    for packets in found:
        assert [(side, packet.flags) for side, packet in packets] == expected
    assert packets_per_connection(of) == len(expected)


@pytest.mark.parametrize("ended_by", ["server", "reset"])
def test_sequence_numbers_follow_what_was_sent(ended_by: str) -> None:
    _, found = conversations(profile(ended_by=ended_by, messages=2, request_bytes=33, reply_bytes=1001))
    for packets in found:
        following: dict[str, int] = {}
        for side, packet in packets:
            peer = S if side == C else C
            assert packet.seq == following.get(side, packet.seq)
            if packet.flags & ACK:
                assert packet.ack <= following[peer]
            following[side] = (packet.seq + len(packet.payload) + bool(packet.flags & (SYN | FIN))) % 2**32


@pytest.mark.parametrize(
    ("ended_by", "side", "flags", "cause"),
    [
        ("server", S, FIN | ACK, "no_fin"),
        ("server", C, FIN | ACK, "no_last_ack"),
        ("server", S, ACK, "no_last_ack"),
        ("reset", C, RST | ACK, "no_last_ack"),
    ],
)
def test_a_lost_packet_fails_its_connection(ended_by: str, side: str, flags: int, cause: str) -> None:
    def lossy(frame: bytes, came_from: str) -> list[bytes]:
        return [] if (came_from, parse(frame).flags) == (side, flags) else [frame]

    trial = run(lossy, profile(ended_by=ended_by), patience=0.4)
    assert trial.completed == 0
    assert trial.failed == {cause: trial.intended}


def test_a_reset_before_its_time_is_a_failure_all_the_same() -> None:
    from packets import rewrite

    def refuse(frame: bytes, side: str) -> list[bytes]:
        early = side == C and parse(frame).flags == PSH | ACK
        return [rewrite(frame, flags=RST | ACK)] if early else [frame]

    trial = run(refuse, profile(ended_by="reset"), patience=0.4)
    assert trial.failed == {"reset": trial.intended}


@pytest.mark.parametrize("ended_by", ["server", "reset"])
def test_held_connections_stay_open_and_a_closed_loop_goes_round(ended_by: str) -> None:
    of = profile(ended_by=ended_by, messages=3, udp_percent=10)
    held, loop = over_a_cable(of, Hold(2000, 50_000), 0.0), over_a_cable(of, Saturation(64), 0.1)
    assert (held.completed, held.failed) == (2000, {})
    assert loop.completed > 1000 and loop.failed == {}


def test_half_open_connections_are_counted_apart_and_harm_nobody() -> None:
    seen: dict[str, list[Packet]] = {C: [], S: []}

    def handler(frame: bytes, side: str) -> list[bytes]:
        assert checksums_are_right(frame)
        seen[side].append(parse(frame))
        return [frame]

    trial = run(handler, profile(half_open_per_s=400))
    assert trial.completed == trial.intended > 0
    assert (trial.failed, trial.unexpected) == ({}, {})
    flood = trial.half_open
    assert flood["sent"] == pytest.approx(400 * SECONDS, abs=40)
    assert flood["missed"] == 0 and flood["passed"] >= flood["sent"] - 5 and flood["answered"] >= flood["sent"] - 10
    # The clients behind those of the load; nobody answers what they are answered.
    strangers = [packet for packet in seen[C] if packet.source not in _CLIENTS]
    assert {packet.flags for packet in strangers} == {SYN}
    assert len({(packet.source, packet.source_port) for packet in strangers}) == len(strangers)
    answers = [packet for packet in seen[S] if packet.destination not in _CLIENTS]
    assert {packet.flags for packet in answers} == {SYN | ACK}
    by_client = {(packet.source, packet.source_port): packet for packet in strangers}
    for answer in answers:
        assert answer.ack == by_client[answer.destination, answer.destination_port].seq + 1
    assert trial.total_tx_packets[C] == len(seen[C]) - len(strangers)
    assert trial.total_rx_packets[C] == len(seen[S]) - len(answers)


_CLIENTS = {f"16.0.0.{number}" for number in range(1, 101)}


def test_half_open_connections_that_a_dut_drops_are_no_loss_of_the_load() -> None:
    def drop(frame: bytes, side: str) -> list[bytes]:
        return [] if parse(frame).source not in _CLIENTS and side == C else [frame]

    trial = run(drop, profile(half_open_per_s=400))
    assert trial.completed == trial.intended
    assert trial.packets_lost == 0
    assert trial.half_open["sent"] > 0 and trial.half_open["passed"] == trial.half_open["answered"] == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ended_by": "server", "udp_percent": 100}, "is about TCP"),
        ({"half_open_per_s": 10, "server_ip": "16.0.0.150"}, "which reach into those of the servers"),
        ({"half_open_per_s": 10, "client_ip": "223.255.255.100"}, "reach into 224.0.0.0/3"),
        ({"half_open_per_s": -1}, "greater than or equal to 0"),
        ({"ended_by": "nobody"}, "Input should be"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        profile(**changes)
