"""Connections that are held: what goes over the wire, what counts as open, and when no more are begun."""

import pytest
from packets import ACK, PSH, RST, SYN, Endpoint, Packet, parse, rewrite
from wire import Tap, Wire

from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import SoftwareGeneratorConfig
from ctgen import Cable, Generator
from ctgen import hold as holding
from ctgen import layout as lay
from ctgen.errors import GeneratorError, Unavailable
from ctgen.layout import RECORD_BYTES
from ctgen.memif import MemifPort, cable

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

TCP = ConnectionProfile(name="held", client_ips=100, server_ips=10)
UDP = TCP.model_copy(update={"udp_percent": 100.0})


def refusing(allowed: int) -> Tap:
    """A DUT whose table holds so many TCP connections: what opens another one is dropped."""
    known: set[Endpoint] = set()

    def refused(packet: Packet, side: str) -> bool:
        if side == "client" and packet.flags == SYN and len(known) < allowed:
            known.add((packet.source, packet.source_port))
        return side == "client" and packet.flags == SYN and (packet.source, packet.source_port) not in known

    return Tap(refused)


def test_a_connection_is_opened_held_and_asked_once_and_never_closed() -> None:
    tap = Tap()
    with Wire(tap) as wire:
        trial = wire.generator.run_trial(TCP, Hold(1, 1000), 0.0)
    (packets,) = tap.conversations().values()
    assert [(side, packet.flags, len(packet.payload)) for side, packet in packets] == [
        ("client", SYN, 0),
        ("server", SYN | ACK, 0),
        ("client", ACK, 0),
        ("client", PSH | ACK, 20),
        ("server", PSH | ACK, 20),
        ("client", ACK, 0),
    ]
    assert (trial.intended, trial.established, trial.completed, trial.active_max) == (1, 1, 1, 1)


@pytest.mark.parametrize("profile", [TCP, UDP], ids=["tcp", "udp"])
def test_what_is_open_stays_so_and_more_may_be_opened_and_all_asked_again(profile: ConnectionProfile) -> None:
    with Wire() as wire, wire.generator.hold(profile, Hold(300, 5000)) as held:
        first = held.open(200)
        assert (first.begun, first.established, first.refused, held.held()) == (200, 200, 0, 200)
        assert first.first_s is not None and first.last_s is not None and first.first_s <= first.last_s
        assert held.ask().answered == 200
        assert held.open(100).established == 100
        again = held.ask()
        assert (again.asked, again.answered, again.lost, held.held()) == (300, 300, 0, 300)
        with pytest.raises(GeneratorError, match="No more than 300"):
            held.open(1)


def test_where_many_are_refused_no_more_are_begun_and_the_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(refusing(50)) as wire, wire.generator.hold(TCP, Hold(80, 5000)) as held:
        opened = held.open(80)
        assert (opened.begun, opened.established, opened.refused, opened.gave_up) == (80, 50, 30, False)
        assert held.ask().answered == 50
        trial = held.trial()
    assert trial.failed == {"no_syn_ack": 30} and trial.completed == 50
    monkeypatch.setattr(holding, "GIVE_UP", 20)
    monkeypatch.setattr(holding, "WINDOW", 10)
    with Wire(refusing(50)) as wire, wire.generator.hold(TCP, Hold(500, 5000)) as held:
        opened = held.open(500)
    assert opened.gave_up and opened.established == 50
    assert 70 <= opened.begun <= 90


def test_a_reply_that_is_lost_is_a_connection_that_is_not_held() -> None:
    losing = Tap(lambda packet, side: side == "server" and bool(packet.payload) and packet.destination_port % 2 == 1)
    with Wire(losing) as wire, wire.generator.hold(TCP, Hold(100, 5000)) as held:
        held.open(100)
        answered = held.ask()
        assert answered.asked == 100 and 0 < answered.answered < 100
        assert held.held() == answered.answered and held.trial().failed == {"no_reply": answered.lost}


def test_an_answer_counts_for_the_question_that_it_answers() -> None:
    """One that comes late would make up for another that is lost."""
    held_back: list[bytes] = []
    asked_first = True

    def late(frame: bytes, side: str) -> list[bytes]:
        if side == "client" or not parse(frame).payload:
            return [frame]
        if asked_first and len(held_back) < 4:
            held_back.append(frame)
            return []
        now_come = [] if asked_first else [held_back.pop() for _ in range(len(held_back))]
        return [*now_come, frame]

    with Wire(late) as wire, wire.generator.hold(TCP, Hold(10, 5000)) as held:
        held.open(10)
        assert held.ask().lost == 4
        asked_first = False
        again = held.ask()
        assert again.asked >= 6 and again.lost == 0 and held.held() == 10


def test_where_resets_come_first_and_nothing_later_no_more_are_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that a reset freed is not taken again: the oldest connection that waits is known by its place."""
    monkeypatch.setattr(holding, "GIVE_UP", 20)
    monkeypatch.setattr(holding, "WINDOW", 10)
    allowed, opening = 100, 0

    def resets(frame: bytes, side: str) -> list[bytes]:
        nonlocal opening
        opening += side == "client"
        return [rewrite(frame, flags=RST | ACK)] if side == "server" else [frame] if opening <= allowed else []

    with Wire(resets) as wire, wire.generator.hold(TCP, Hold(500, 5000)) as held:
        opened, trial = held.open(500), held.trial()
    assert opened.gave_up and opened.established == 0 and allowed + 20 <= opened.begun <= allowed + 40
    assert trial.failed == {"reset": allowed, "no_syn_ack": opened.begun - allowed}


def test_sixteen_million_fit_64_bytes_each_and_their_memory_is_said() -> None:
    assert lay.MOST_RECORDS == 16 << 20 and RECORD_BYTES == 64
    assert SoftwareGeneratorConfig(type="software").bytes_held * lay.MOST_RECORDS == 1 << 30
    generator = Generator()
    generator.connect(Cable())
    many = TCP.model_copy(update={"client_ips": 65536})
    with pytest.raises(Unavailable, match="16777217 connections are to be held"):
        generator.run_trial(many, Hold(lay.MOST_RECORDS + 1, 1e5), 0.0)
    # Packets cannot be held.
    with pytest.raises(Unavailable, match="of packets"):
        generator.run_trial(PacketProfile(name="packets", kind="packets"), Hold(1, 1), 0.0)


def test_what_is_open_stays_so_when_the_dut_was_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire() as wire, wire.generator.hold(TCP, Hold(300, 5000)) as held:
        held.open(200)
        before = dict(wire.ports)  # which the relay may still look at
        sides = iter(before)

        def again(_link: MemifPort) -> MemifPort:
            near, wire.ports[next(sides)] = cable(wire.rings)
            return near

        monkeypatch.setattr(MemifPort, "connect_again", again)
        held.reconnect()
        assert held.open(100).established == 100 and wire.generator.threads == 1
        assert held.ask().answered == 300
