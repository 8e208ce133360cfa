"""What the software generator does with a packet profile, and what it says of lost, late and translated packets."""

import itertools
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_parts import kernel_parts
from packets import Packet, arp_request, checksums_are_right, internet_checksum, parse
from wire import Handler, Made, Tap, Wire, over_a_wire

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import IMIX, PacketProfile
from ctgen import Generator, clock, engine, plan
from ctgen import layout as lay
from ctgen.clock import mask_and_shift
from ctgen.engine import Run
from ctgen.memif import RingPlan, cable

#: Patient enough (see `unhurried`) for other tests next to them.
pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

ONE = PacketProfile(name="one", kind="packets", client_ips=10, server_ips=5)
BOTH = ONE.model_copy(update={"directions": "both", "flows": 7})
#: Packets per second, and seconds: few enough for a wire in Python.
LOAD, SECONDS = 400, 0.5


#: How long the generator waits where some never come, and where what comes does not count, seconds.
LESS_PATIENCE, NO_PATIENCE = 2.0, 0.1


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """The generator may be late: what is tested is whether things happen, not when."""
    with (
        patch.object(plan, "STREAM_SETTLE_S", 0.5),
        patch.object(plan, "LATE_LIMIT_S", 5.0),
        patch.object(clock, "LATEST_S", 5.0),
    ):
        yield


def run(handler: Handler, profile: PacketProfile = ONE, **how: float) -> Trial:
    return over_a_wire(handler, profile, LOAD, SECONDS, **how)  # type: ignore[arg-type]


def recorded(profile: PacketProfile, side: str = "client") -> list[bytes]:
    """Frames that went in at one side of a wire that loses nothing."""
    tap = Tap()
    assert run(tap, profile).loss_ratio == 0
    return [frame for _, frame, came_from in tap.frames if came_from == side]


SIX = PacketProfile(
    name="six", kind="packets", ip_version=6, client_ip="2001:2:0:16::1", server_ip="2001:2:0:48::1", client_ips=100,
    server_ips=10, flows=100, frame_bytes=82, directions="both",
)  # fmt: skip


@pytest.mark.parametrize("vlan", [0, 100])
@pytest.mark.parametrize("profile", [*(BOTH.model_copy(update={"frame_bytes": size}) for size in (64, 128, 1518)), SIX])
def test_a_frame_has_the_size_of_the_profile_without_its_fcs_its_vlan_tag_and_right_checksums(
    profile: PacketProfile, vlan: int
) -> None:
    tap, tag = Tap(), struct.pack("!HH", 0x8100, vlan) if vlan else b""
    trial = run(tap, profile.model_copy(update={"vlan": vlan}))
    assert trial.loss_ratio == 0 and trial.directions["server"].received > 0
    frames = [frame for _, frame, _ in tap.frames]
    assert {len(frame) for frame in frames} == {profile.frame_bytes - 4 + len(tag)}
    assert all(frame[12:].startswith(tag) for frame in frames)
    plain = [frame[:12] + frame[12 + len(tag) :] for frame in frames]
    assert all(checksums_are_right(frame) for frame in plain)
    assert len({(packet.source, packet.destination) for packet in map(parse, plain)}) >= profile.flows


def test_imix_sends_its_sizes_in_their_shares() -> None:
    sizes = Counter(len(frame) + 4 for frame in recorded(ONE.model_copy(update={"frame_bytes": "imix"})))
    rounds = sizes.total() // sum(share for _, share in IMIX)
    for size, share in IMIX:
        assert abs(sizes[size] - share * rounds) <= share


def test_flows_are_addresses_and_ports_each_sent_before_any_comes_again() -> None:
    frames = recorded(ONE.model_copy(update={"flows": 23}))
    sent = [(packet.source, packet.source_port, packet.destination) for packet in map(parse, frames)]
    assert len(set(sent)) == 23
    assert sent[:23] == sent[23:46]
    assert {packet.destination_port for packet in map(parse, frames)} == {ONE.udp_port}


def test_servers_are_silent_or_open_flows_of_their_own_without_waiting() -> None:
    assert recorded(ONE, side="server") == []
    tap, each = Tap(lambda _, side: side == "client"), BOTH.model_copy(update={"directions": "each"})
    assert run(tap, each, patience=LESS_PATIENCE).directions["server"].received == LOAD * SECONDS / 2
    assert {packet.destination_port for packet in tap.packets()} == {ONE.udp_port}


def test_a_vlan_tag_is_asked_for_when_a_frame_comes_out() -> None:
    tagged = ONE.model_copy(update={"vlan": 100})
    assert run(lambda frame, _: [frame[:12] + frame[16:]], tagged, patience=NO_PATIENCE).completed == 0


def test_a_lossless_wire_delivers_every_packet_that_was_due() -> None:
    trial = run(lambda frame, _: [frame], BOTH)
    assert trial.unit == "packets"
    assert trial.loss_ratio == 0
    assert trial.intended == LOAD * SECONDS
    assert {side: seen.received for side, seen in trial.directions.items()} == {"client": 100, "server": 100}
    assert all(seen.latency_us and seen.latency_us.p50 <= seen.latency_us.max for seen in trial.directions.values())
    assert trial.total_rx_packets["server"] == trial.total_tx_packets["client"]


def test_loss_is_counted_in_the_direction_in_which_it_happened() -> None:
    ten = iter(range(10))

    def lost(packet: Packet, side: str) -> bool:
        counted = packet.payload[7] & 0x80
        return side == "server" and counted != 0 and next(ten, None) is not None

    trial = run(Tap(lost), BOTH, patience=LESS_PATIENCE)
    assert trial.directions["client"].loss_ratio == 0
    assert trial.directions["server"].received == trial.directions["server"].intended - 10
    assert trial.loss_ratio == 10 / trial.intended


def test_what_comes_twice_counts_once_and_makes_good_for_no_other() -> None:
    ways = itertools.cycle([0, 2])
    trial = run(lambda frame, _side: next(ways) * [frame], patience=LESS_PATIENCE)
    assert trial.completed == trial.intended / 2
    assert trial.unexpected == {"doubled": trial.total_rx_packets["server"] / 2}
    assert trial.directions["client"].reordered == 0
    assert trial.bps == pytest.approx(trial.pps * (ONE.frame_bytes - 4) * 8)  # type: ignore[operator]
    assert sum(trial.rx_packets.values()) / trial.counted_s == pytest.approx(2 * trial.pps, rel=0.01)


def test_numbers_that_begin_again_are_no_disorder() -> None:
    prepare, first = engine.prepare, 0x7FFFFFFF - 250

    def begun(*of: Any, **how: Any) -> Run:
        made = prepare(*of, **how)
        made.s.sequence[lay.CLIENT], made.counts.highest_sequence[lay.CLIENT] = first, 0x80000000 | (first - 1)
        return made

    with patch.object(engine, "prepare", begun):
        trial = run(lambda frame, _side: [frame])
    assert trial.total_tx_packets["client"] > 250
    assert (trial.completed, trial.directions["client"].reordered) == (trial.intended, 0)


def test_what_a_dut_never_delivered_is_not_answered_and_counts_as_lost_both_ways() -> None:
    trial = run(lambda frame, side: [], BOTH, patience=LESS_PATIENCE)
    assert trial.loss_ratio == 1
    assert trial.total_tx_packets["server"] == 0
    assert trial.directions["server"].latency_us is None
    assert trial.generator_limited == ""


def test_what_overtakes_is_counted_and_what_is_damaged_is_lost() -> None:
    held: list[bytes] = []

    def swap(frame: bytes, _: str) -> list[bytes]:
        held.append(frame)
        return [] if len(held) % 2 else [held.pop(), held.pop()]

    # 100 pairs at most; the ramp's own pairs do not count.
    trial = run(swap, patience=LESS_PATIENCE)  # one packet may be held for ever
    assert 90 <= trial.directions["client"].reordered <= 100

    def damage(frame: bytes, _: str) -> list[bytes]:
        return [frame[:-1] + bytes([frame[-1] ^ 1])]

    trial = run(damage, patience=NO_PATIENCE)
    assert trial.completed == 0
    assert trial.failed["bad_checksum"] == trial.total_rx_packets["server"]


def test_frames_of_an_earlier_trial_and_foreign_ones_do_not_count() -> None:
    kept: list[bytes] = []

    def handler(frame: bytes, _: str) -> list[bytes]:
        kept.append(frame)
        return [kept[0], b"\xff" * 60, frame]  # a trial ends with the last frame that belongs to it

    with Wire(handler) as wire:
        wire.generator.run_trial(ONE, Rate(LOAD), SECONDS)
        trial = wire.generator.run_trial(ONE, Rate(LOAD), SECONDS)
    assert trial.completed == trial.intended
    sent = trial.total_tx_packets["client"]
    assert trial.unexpected == {"unknown_packet": sent, "foreign": sent}


def test_a_port_answers_arp_for_the_addresses_behind_it_and_for_no_others() -> None:
    asked = [arp_request(target) for target in ("48.0.0.3", "48.0.0.200", "16.0.0.1")]
    replies: list[bytes] = []

    def handler(frame: bytes, side: str) -> list[bytes]:
        if frame[12:14] == b"\x08\x06":
            replies.append(frame)
            return []
        return [frame, *asked]

    trial = run(handler)
    assert trial.loss_ratio == 0
    assert trial.unexpected.keys() == {"foreign"} and replies
    for reply in replies:
        operation, mac, address, asker_mac, asker = struct.unpack_from("!H6s4s6s4s", reply, 20)
        assert (operation, mac, address) == (2, bytes.fromhex("020000000002"), bytes([48, 0, 0, 3]))
        assert (asker_mac, asker) == (bytes.fromhex("020000000101"), bytes([198, 18, 0, 1]))
        assert reply[:12] == asker_mac + mac


@given(st.integers(1, 3000), st.integers(0, 1 << 20))
def test_the_random_order_holds_every_number_once(count: int, start: int) -> None:
    mask, shift = mask_and_shift(count)
    state, seen = start & mask, []
    for _ in range(mask + 1):
        state = kernel_parts().next_state(state, mask)
        number = kernel_parts().scrambled(state, mask, shift)
        if number < count:
            seen.append(number)
    assert sorted(seen) == list(range(count))


def test_frames_that_the_dut_has_not_taken_when_the_trial_is_over_are_told() -> None:
    """It may send them later, when they are not taken: the generator has not lost them."""
    (client, at_client), (server, at_server) = cable(RingPlan(1, 1, 256, 256)), cable(RingPlan(1, 1, 256, 256))
    with (
        closing(at_client),
        closing(at_server),
        closing(Generator()) as generator,
        patch.object(plan, "STREAM_LINGER_S", 0.05),
    ):
        generator.connect(Made(client_end=client, server_end=server, threads=1))
        trial = generator.run_trial(ONE, Rate(LOAD), 0.1)
    assert trial.total_untaken == trial.total_tx_packets["client"] > 0
    assert run(Tap()).total_untaken == 0


FRAGMENTS = ONE.model_copy(update={"frame_bytes": 1518, "fragments": 3})


def fragment_of(frame: bytes) -> tuple[int, int, bool]:
    """ID of its datagram, offset in it, and whether more follow."""
    number, fragment = struct.unpack_from("!HH", frame, 18)
    return number, 8 * (fragment & 0x1FFF), bool(fragment & 0x2000)


def test_a_datagram_goes_out_in_fragments_that_make_one_with_a_length_that_is_right() -> None:
    frames = recorded(FRAGMENTS)
    assert {len(frame) for frame in frames} == {1514}
    assert all(internet_checksum(frame[14:34]) == 0 for frame in frames)
    datagrams = [frames[first : first + 3] for first in range(0, len(frames), 3)]
    for number, datagram in enumerate(datagrams):
        found = [fragment_of(frame) for frame in datagram]
        assert found == [(number, 0, True), (number, 1480, True), (number, 2960, False)]
        length, checksum = struct.unpack_from("!HH", datagram[0], 38)
        assert (length, checksum) == (sum(len(frame) - 34 for frame in datagram), 0)


def test_a_datagram_has_come_when_its_last_fragment_has_and_servers_answer_in_fragments() -> None:
    trial = run(lambda frame, _: [frame], BOTH.model_copy(update={"frame_bytes": 1518, "fragments": 3}))
    assert trial.loss_ratio == 0
    sent = sum(trial.total_tx_packets.values())
    assert sent == sum(trial.total_rx_packets.values()) and sent % 3 == 0
    assert trial.completed == pytest.approx(LOAD * SECONDS, abs=2)
    # One that puts fragments together lets none of them pass where one is missing, and another one the last.
    lost = run(lambda frame, _: [frame] if fragment_of(frame)[2] else [], FRAGMENTS, patience=NO_PATIENCE)
    assert lost.completed == 0
