"""A closed loop: bounded, lossless by itself, never stuck, and from its first moment in the middle of things; two DUTs
served in turn: who has its turn, what waits meanwhile, and what of it is forgotten."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
from kernel_parts import kernel_parts
from packets import ACK, FIN, PSH, SYN, parse
from wire import Handler, Tap, Wire, over_a_cable, over_a_wire, software_connector, watching

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import Ports
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Placement
from ctbench.traffic.generator import Side, Trial
from ctbench.traffic.loads import Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile, load_profile
from ctgen import Cable, Generator, GeneratorError, clock, engine, plan
from ctgen import generator as software
from ctgen import layout as lay
from ctgen.clock import cycles_per_second
from ctgen.engine import Run

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

SHORT = ConnectionProfile(name="short", client_ips=100, server_ips=10)
LONG = SHORT.model_copy(update={"messages": 8, "server_wait_ms": 10_000.0, "ack_before_reply": True})
PACKETS = PacketProfile(name="packets", kind="packets", client_ips=10, server_ips=5)
BOTH = PACKETS.model_copy(update={"directions": "both", "flows": 7})
FEW = 24
SECONDS = 0.4


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """A wire in Python may be kept off the CPU: what is tested is whether things happen, not when."""
    with (
        patch.multiple(plan, LOOP_TIMEOUT_S=10.0, LOOP_SETTLE_S=0.1, LOOP_LINGER_S=0.1, HUSH_S=0.5),
        patch.object(clock, "LATEST_S", 5.0),
        patch.multiple(plan, SILENCE_S=10.0, STREAM_LOOP_SETTLE_S=0.1, STREAM_LINGER_S=5.0, LOST_AFTER_S=5.0),
    ):
        yield


def run(handler: Handler, profile: Profile, under_way: int = FEW) -> Trial:
    with Wire(handler) as wire:
        return wire.generator.run_trial(profile, Saturation(under_way), SECONDS)


def test_no_more_connections_are_open_at_once_than_asked_for_and_each_that_ends_begins_the_next() -> None:
    tap = Tap()
    trial = run(tap, SHORT)
    opened: set[int] = set()
    most, ended = 0, 0
    for packet in tap.packets("client"):
        if packet.flags == SYN:
            opened.add(packet.source_port)
        elif packet.flags == ACK and packet.source_port in opened:
            opened.remove(packet.source_port)
            ended += 1
        most = max(most, len(opened))
    assert most <= FEW
    assert trial.under_way == FEW
    assert trial.active_max <= FEW
    assert ended > FEW
    assert trial.intended == trial.attempted == trial.completed > 0
    assert trial.completed == sum(trial.timeline_completed)
    assert not trial.failed
    assert not trial.unexpected


def run_until(enough: Callable[[Run], bool], handler: Handler, profile: Profile, under_way: int = FEW) -> Trial:
    """A trial that ends when, of what counts, `enough` has happened: a machine that is busy may need a minute."""

    def watch(run: Run) -> None:
        run.s.stop = int(run.s.counted_from > 0 and enough(run))

    with watching(watch), Wire(handler) as wire:
        return wire.generator.run_trial(profile, Saturation(under_way), 60.0)


def test_what_is_lost_is_written_off_and_the_loop_goes_on() -> None:
    def enough(run: Run) -> bool:
        failed = run.counts.all_failed - run.marks[0].all_failed
        return bool(failed > 0 and run.counts.tx_packets[lay.CLIENT] >= 2 * FEW)

    with patch.object(plan, "LOOP_TIMEOUT_S", 0.05):
        trial = run_until(enough, Tap(lambda packet, _: packet.flags == SYN), SHORT)
    assert trial.completed == 0
    assert trial.failed["no_syn_ack"] == trial.intended
    assert trial.active_max <= FEW


def test_a_syn_of_a_connection_that_was_written_off_does_not_open_the_next_one() -> None:
    """A DUT that stood still passes on what its rings hold, old SYNs first, when the generator has begun others."""
    syns: list[bytes] = []

    def late(frame: bytes, side: str) -> list[bytes]:
        if side != "client" or parse(frame).flags != SYN:
            return [frame]
        syns.append(frame)
        return [] if len(syns) == 1 else [syns[0], frame] if len(syns) == 2 else [frame]

    with patch.object(plan, "LOOP_TIMEOUT_S", 0.3):
        trial = run_until(lambda run: bool(run.counts.all_completed > 3), late, SHORT, 1)
    assert len({parse(each).source_port for each in syns[:2]}) == 2
    assert trial.unexpected["misdirected"] == 1
    assert sum(trial.failed.values()) <= 1, "the second connection did not wait for its timeout as well"


def test_a_dut_that_stands_still_is_given_no_more_than_the_loop_holds() -> None:
    trial = run(lambda _frame, _side: [], SHORT)
    assert trial.total_tx_packets["client"] == FEW
    assert (trial.intended, trial.completed, trial.load) == (0, 0, 0)


def test_the_servers_of_a_loop_do_not_wait_and_its_first_connections_are_in_the_middle_of_their_lives() -> None:
    tap = Tap()
    trial = run(tap, LONG)
    assert trial.completed > 0
    sent = Counter(packet.flags for packet in tap.packets("server"))
    assert sent[ACK] == pytest.approx(sent[PSH | ACK], abs=FEW)
    asked = [[packet.flags for side, packet in each if side == "client"] for each in tap.conversations().values()]
    ended = [flags.count(PSH | ACK) for flags in asked if FIN | ACK in flags]
    assert len(set(ended)) > 2
    assert trial.packets_lost == 0  # although connections are open in the end
    assert max(ended) <= LONG.messages


@pytest.mark.parametrize("profile", [load_profile("long-lived"), load_profile("udp-64-1m")], ids=lambda p: p.name)
def test_a_loop_takes_no_longer_for_long_lives_or_many_flows(profile: Profile) -> None:
    with patch.object(plan, "STREAM_LINGER_S", 0.2):
        timing = plan.timing_of(profile, Saturation(2048), 0.5)
    assert timing.ramp_up_s <= 1
    assert timing.linger_s <= 0.2


@pytest.mark.parametrize("profile", [SHORT, PACKETS], ids=["connections", "packets"])
def test_a_loop_never_overflows_rings_and_the_slowest_part_says_so(profile: Profile) -> None:
    trial = over_a_cable(profile, Saturation(2048), 0.1, ring_size=64)
    assert trial.under_way == 32
    assert trial.total_dut_missed == 0
    assert trial.loss_ratio == 0
    assert "waited for the generator itself" in trial.generator_limited  # which is the slowest part


def test_packets_are_conserved_both_ways_and_stop_at_a_dut_that_stands_still() -> None:
    trial = run(lambda frame, _: [frame], BOTH)
    assert trial.intended == trial.attempted == trial.completed > FEW
    assert all(seen.received == seen.intended > 0 for seen in trial.directions.values())
    assert max(trial.timeline_active) <= FEW
    with patch.object(plan, "STREAM_LINGER_S", 0.2):
        assert run(lambda _frame, _side: [], PACKETS).total_tx_packets == {"client": FEW, "server": 0}


def test_what_comes_twice_was_served_once() -> None:
    trial = run(lambda frame, _: [frame, frame], PACKETS)
    assert trial.completed == trial.intended > FEW
    assert max(trial.timeline_active) <= FEW
    assert trial.unexpected["doubled"] >= trial.completed


def test_packets_go_on_when_silence_lasts_and_when_some_are_lost() -> None:
    every_second = itertools.cycle([False, True])

    def enough(run: Run) -> bool:
        gone = run.counts.tx_packets[lay.CLIENT] - run.counts.rx_packets[lay.SERVER]
        return bool(gone >= 2 * FEW and run.counts.intended[lay.CLIENT] > 2 * FEW)

    with patch.multiple(plan, SILENCE_S=0.05, LOST_AFTER_S=0.02):
        silent = run_until(enough, lambda _frame, _side: [], PACKETS)
        lossy = run_until(enough, Tap(lambda _packet, _side: next(every_second)), PACKETS)
    assert silent.loss_ratio == 1
    assert 0 < lossy.loss_ratio < 1


def lags(profile: PacketProfile, lost: int = -1) -> list[int]:
    """By how many packets of the clients each server's first answer to a flow came after that flow's first packet.
    `lost`: a flow of which no packet reaches its server."""
    first: dict[tuple[str, int], int] = {}
    found: list[int] = []
    sent = 0

    def note(frame: bytes, side: str) -> list[bytes]:
        nonlocal sent
        packet = parse(frame)
        if side == "client":
            sent += 1
            key = packet.source, packet.source_port
            if first.setdefault(key, sent) == lost + 1 or sent > profile.flows:
                return []
        elif (came := first.pop((packet.destination, packet.destination_port), None)) is not None:
            found.append(sent - came)
        return [frame]

    run_until(lambda run: bool(run.counts.tx_packets[lay.CLIENT] > profile.flows), note, profile, 8)
    return found


def test_servers_of_a_closed_loop_answer_a_flow_when_it_has_come_and_not_a_pass_later() -> None:
    flows = BOTH.model_copy(update={"flows": 500})
    found = lags(flows)
    assert len(found) > 400
    assert max(found) <= 3 * 8
    # One that never comes holds nobody up for long.
    found = lags(flows, lost=100)
    assert len(found) > 400
    assert max(found) <= 6 * 8


def test_a_long_lived_trial_starts_with_its_steady_population_opened_as_a_dut_can() -> None:
    profile = SHORT.model_copy(update={"messages": 24, "server_wait_ms": 50.0})
    timing = plan.timing_of(profile, Rate(100), 1.0)
    assert plan.population_of(profile, Rate(100)) == 120
    assert timing.ramp_up_s + timing.linger_s < profile.lifetime_s * 1.1
    trial = over_a_cable(profile, Rate(100), 0.2)
    assert trial.completed == trial.intended == trial.attempted
    assert min(trial.timeline_active) > 60
    assert trial.packets_lost == 0
    profile = load_profile("long-lived")
    assert plan.timing_of(profile, Rate(40_000), 1.0).ramp_up_s >= 1_000_000 / plan.OPENED_PER_S


def test_failures_of_a_warm_trial_are_taken_from_what_was_intended() -> None:
    profile = SHORT.model_copy(update={"messages": 24, "server_wait_ms": 50.0})
    lossy = Tap(lambda packet, side: side == "server" and bool(packet.payload) and packet.destination_port % 16 == 0)
    trial = over_a_wire(lossy, profile, 100, patience=0.3)
    assert 0 < sum(trial.failed.values()) < trial.intended
    assert trial.completed == trial.attempted - sum(trial.failed.values())


@pytest.mark.parametrize(("progress", "counts_it"), [(99, False), (100, True), (149, True), (150, False)])
def test_failures_count_by_when_they_happened_however_the_clock_wraps(progress: int, counts_it: bool) -> None:
    of = lay.Run()
    for offset in (0, 0xFFFFFFFF - 120):
        of.counts, of.state.failures_for = lay.Counters(), 50
        of.state.failures_from = (100 + offset) & 0xFFFFFFFF
        failing = lay.Connection(progress=(progress + offset) & 0xFFFFFFFF)
        kernel_parts().fail_for_want_of_a_reply(of, failing)
        assert of.counts.all_failed == 1
        assert engine.failed_of(of.counts) == ({"no_reply": 1} if counts_it else {})


LONGER = SHORT.model_copy(update={"name": "long", "messages": 500, "server_wait_ms": 50.0})
STREAM = PacketProfile(name="packets", kind="packets", client_ips=10, directions="both")
ABBA: tuple[Side, ...] = ("tested", "other", "other", "tested")
SLICE_S = 0.03
PORTS = Ports("cable", (), 1, 1)
HERE = Placement((0,), (0,), (0,))


@pytest.fixture
def generator() -> Iterator[Generator]:
    """Wired to two cables."""
    connector = software_connector()
    connector.connect(PORTS, LocalHost(), HERE, 1514)
    connector.connect(PORTS, LocalHost(), HERE, 1514, "other")
    # On a busy machine a slice may take long by the wall clock.
    with (
        patch.multiple(plan, LOOP_TIMEOUT_S=10.0, LOOP_SETTLE_S=0.05),
        patch.multiple(plan, SILENCE_S=10.0, LOST_AFTER_S=5.0, STREAM_LOOP_SETTLE_S=0.05),
        patch.object(software, "WARM_UP_S", 0.05),
    ):
        yield connector.generator
    connector.close()


@pytest.mark.parametrize("profile", [SHORT, LONGER, STREAM], ids=lambda profile: profile.name)
def test_each_side_is_served_when_it_has_its_turn(generator: Generator, profile: Profile) -> None:
    turns: list[Side] = []
    slices = generator.run_slices((profile, profile), ABBA, SLICE_S, turns.append)
    assert [each.side for each in slices] == list(ABBA)
    assert turns == ["tested", "other", *ABBA]
    assert all(each.completed > 0 and each.lost == 0 for each in slices)
    assert all(each.rate == each.completed / each.seconds for each in slices)


def test_connections_that_outlast_a_slice_are_counted_by_their_packets(generator: Generator) -> None:
    lasting = LONGER.model_copy(update={"messages": 40, "server_wait_ms": 50.0, "ack_before_reply": True})
    for profile, by_packets in ((lasting, True), (SHORT, False)):
        last = generator.run_slices((profile, profile), ABBA, SLICE_S, lambda _side: None)[-1]
        counted = generator._loops[last.side].summed().counted()
        packets = sum(counted.rx_packets) / profile.packets_each
        assert last.completed == (round(packets) if by_packets else counted.all_completed) > 0


def test_a_side_goes_on_with_what_was_under_way_whatever_the_other_took(generator: Generator) -> None:
    generator.run_slices((LONGER, LONGER), ABBA, SLICE_S, lambda _side: None)
    run = generator._loops["tested"]
    open_then, begun_then, away_then = (int(getattr(run.s, place)) for place in ("active", "begun", "away"))
    under_way = run.p.under_way
    assert under_way / 2 < open_then <= under_way

    turns: list[Side] = []

    def turn(side: Side) -> None:
        turns.append(side)
        time.sleep(0.1)

    slices = generator.run_slices((LONGER, LONGER), ABBA, SLICE_S, turn)
    assert turns == list(ABBA)  # no warm-up any more
    assert generator._loops["tested"] is run
    assert not any(each.lost for each in slices)
    assert under_way / 2 < run.s.active <= under_way
    assert run.s.begun >= begun_then
    assert run.s.away - away_then > 0.3 * cycles_per_second()


def test_another_profile_a_trial_and_a_flush_begin_again(generator: Generator) -> None:
    turns: list[Side] = []
    generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, turns.append)
    generator.run_slices((STREAM, STREAM), ABBA, SLICE_S, turns.append)
    generator.forget()
    generator.run_slices((STREAM, STREAM), ABBA, SLICE_S, turns.append)
    generator.run_trial(SHORT, Rate(100), 0.05)
    generator.run_slices((STREAM, STREAM), ABBA, SLICE_S, turns.append)
    assert turns == 4 * ["tested", "other", *ABBA]


def test_a_trial_of_a_pair_is_the_tested_sides(generator: Generator) -> None:
    other = generator._wirings["other"]
    before = bytes(other.client.tx)
    trial = generator.run_trial(SHORT, Rate(500), 0.1)
    assert trial.total_tx_packets["client"] > 0
    assert bytes(other.client.tx) == before
    assert generator.snapshot()["other_wiring"] == generator.snapshot()["wiring"]


def test_a_turn_that_fails_leaves_the_generator_usable(generator: Generator) -> None:
    def refuse(side: Side) -> None:
        raise TestbedError(f"the {side} DUT does not wake up")

    with pytest.raises(TestbedError, match="the tested DUT does not wake up"):
        generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, refuse)
    assert len(generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, lambda _side: None)) == len(ABBA)


def test_a_slice_in_which_nothing_would_be_left_to_count_is_refused(generator: Generator) -> None:
    with pytest.raises(ValueError, match="25 ms"):
        generator.run_slices((SHORT, SHORT), ABBA, 0.02, lambda _side: None)


def test_slices_need_two_sides_and_the_tested_one_is_connected_first() -> None:
    generator = Generator()
    with pytest.raises(GeneratorError, match="after the tested one"):
        generator.connect(Cable(), "other")
    generator.connect(Cable())
    with pytest.raises(GeneratorError, match="not connected to a pair"):
        generator.run_slices((SHORT, SHORT), ABBA, SLICE_S, lambda _side: None)
    generator.connect(Cable(), "other")
    generator.close()
    with pytest.raises(GeneratorError, match="not connected to a DUT"):
        generator.run_trial(SHORT, Rate(1), 0.1)


def test_a_trial_is_offered_to_the_side_that_was_named_last_and_to_the_first_one_of_a_new_pair() -> None:
    generator = Generator()
    generator.connect(Cable())
    generator.connect(Cable(), "other")
    generator.offer_to("other")
    generator.close("tested")
    assert generator.run_trial(SHORT, Rate(100), 0.1).completed
    generator.connect(Cable())
    assert generator.run_trial(SHORT, Rate(100), 0.1).completed
    generator.close()


def test_a_pair_of_which_one_cannot_be_reached_is_let_go_of() -> None:
    connector = software_connector()
    connector.connect(PORTS, LocalHost(), HERE, 1514)
    cards = Ports("pci", (("0000:18:00.2", "0000:18:00.3"),), 1, 2)
    with pytest.raises(MissingResource, match="network cards"):
        connector.connect(cards, LocalHost(), HERE, 1514, "other")
    assert connector.facts()["wiring"] == "not connected"
