"""Several pairs of ports of the software generator: each has its links, its addresses and an equal share of the load,
and its losses are counted apart."""

from collections import Counter

import pytest
from packets import parse
from wire import Tap, Wire

from ctbench.base.network import MOST_PORT_PAIRS, own_macs
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen import MOST_PAIRS, Ends, plan

SHORT = ConnectionProfile(name="short", client_ips=2, client_port_min=1024, client_port_max=1055, server_ips=1)
FLOWS = PacketProfile(name="flows", kind="packets", flows=3, server_ips=1, client_ips=3, directions="both")
TWO = tuple(Ends(own_macs(pair)) for pair in range(2))


def over(profile: Profile, tap: Tap, queues: int = 2, threads: int = 1) -> tuple[Trial, dict[tuple[str, int], int]]:
    """A trial over a wire with two pairs of ports, and the frames that went in by side and queue."""
    with Wire(tap, queues, threads=threads, ends=TWO) as wire:
        return wire.generator.run_trial(profile, Rate(400), 0.25), dict(wire.seen_on)


def pair_of(address: str) -> int:
    return int(address.split(".")[1])


@pytest.mark.parametrize("profile", [SHORT, FLOWS], ids=lambda profile: profile.kind)
@pytest.mark.parametrize(("queues", "threads"), [(2, 1), (4, 1), (4, 2)])
def test_each_pair_has_its_addresses_its_links_and_half_of_the_load(
    profile: Profile, queues: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience in ("REPLY_TIMEOUT_S", "STREAM_LINGER_S"):  # a wire in Python may be kept off the CPU
        monkeypatch.setattr(plan, patience, 10.0)
    trial, on = over(profile, tap := Tap(), queues, threads)
    first, second = trial.port_pairs
    assert trial.completed == trial.attempted == first.attempted + second.attempted
    assert (first.lost, second.lost) == (0, 0)
    if threads == 1:  # of two, one may have been kept off the CPU
        assert abs(first.attempted - second.attempted) <= 4
    ways = Counter(
        (side, *(frame[at : at + 6].hex(":") for at in (0, 6)), packet.source, packet.destination)
        for (_, frame, side) in tap.frames
        for packet in [parse(frame)]
    )
    for side, to, own, source, destination in ways:
        pair = pair_of(source)
        macs = own_macs(pair)
        assert (own, to) == (macs if side == "client" else macs[::-1])
        assert (pair_of(destination), {source.split(".")[0], destination.split(".")[0]}) == (pair, {"16", "48"})
    # Rings take turns.
    assert all(on["client", queue] for queue in range(queues))


def test_flows_of_packets_are_those_of_each_pair() -> None:
    over(FLOWS, tap := Tap())
    known = {(packet.source, packet.source_port) for packet in tap.packets("client")}
    assert known == {(f"16.{pair}.0.{host}", 1024) for pair in (0, 1) for host in (1, 2, 3)}


@pytest.mark.parametrize("profile", [SHORT, FLOWS], ids=lambda profile: profile.kind)
def test_what_one_pair_loses_is_lost_by_that_pair(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut one passes nothing from its clients."""
    for patience in ("REPLY_TIMEOUT_S", "STREAM_LINGER_S"):
        monkeypatch.setattr(plan, patience, 0.4)
    trial, _ = over(profile, Tap(lambda packet, _side: packet.source.startswith("16.1.")))
    first, second = trial.port_pairs
    assert second.completed == 0 and first.completed > 0
    assert trial.attempted - trial.completed == first.lost + second.lost


def test_a_closed_loop_and_one_pair_of_ports_tell_nothing_of_pairs() -> None:
    with Wire(Tap(), 2, ends=TWO) as wire:
        assert wire.generator.run_trial(SHORT, Saturation(8), 0.1).port_pairs == []
    with Wire(Tap()) as wire:
        assert wire.generator.run_trial(SHORT, Rate(400), 0.1).port_pairs == []


def test_an_address_is_answered_for_by_the_pair_that_it_lies_behind() -> None:
    """A request that comes on another pair's link is left alone."""
    asked = bytes.fromhex("ffffffffffff0200000000cc080600010800060400010200000000ccc6120001000000000000")
    for behind in (0, 1):
        heard: list[bytes] = []

        def relay(frame: bytes, side: str, behind: int = behind, heard: list[bytes] = heard) -> list[bytes]:
            if frame[12:14] == b"\x08\x06":
                heard.append(frame)
                return []
            request = asked + bytes([16, behind, 0, 1]) + bytes(18)
            return [frame, request] if side == "server" else [frame]

        with Wire(relay, 2, ends=TWO) as wire:
            wire.generator.run_trial(SHORT, Rate(400), 0.1)
        assert {frame[6:12].hex(":") for frame in heard} == {own_macs(behind)[0]}


def test_generator_and_suite_know_as_many_pairs() -> None:
    assert MOST_PORT_PAIRS == MOST_PAIRS
