"""Backlogs instead of a closed loop: what a DUT is shown at once, which time of it counts, and what is lost of it."""

import ctypes
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from unittest.mock import patch

import pytest
from packets import parse
from wire import Handler, Made, Tap, Wire

from ctbench.measure import duet
from ctbench.traffic.generator import Slice
from ctbench.traffic.profiles import PacketProfile
from ctgen import Cable, Generator, plan
from ctgen import generator as software
from ctgen.memif import RingPlan, cable

#: A wire in Python may be kept off the CPU (see `unhurried`).
pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

FLOWS = PacketProfile(name="flows", kind="packets", client_ips=10, server_ips=5, flows=100)
BOTH = FLOWS.model_copy(update={"directions": "both"})
SLICE_S = 0.05
#: Frames of a backlog, and of a burst that the wire takes.
RING, BURST = 256, 64
#: Slices at most until there is one that says what is looked for.
MANY = 40


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """What is tested is whether things happen, not when."""
    with (
        patch.multiple(plan, SILENCE_S=10.0, LOST_AFTER_S=5.0),
        patch.object(software, "WARM_UP_S", 2 * software.SETTLE_S),
    ):
        yield


def served(wire: Wire, profile: PacketProfile, turn: Callable[[object], None] = lambda _side: None) -> Slice:
    """A slice of backlogs over the wire."""
    if "other" not in wire.generator._wirings:
        wire.generator.connect(Cable(), "other")
    (found,) = wire.generator.run_slices((profile, profile), ("tested",), SLICE_S, turn, backlogs=True)
    return found


def one_that_counts(handler: Handler, profile: PacketProfile = FLOWS) -> Slice:
    """A slice in which this machine did not keep the generator from looking when the wire began and ended."""
    with Wire(handler, ring_size=RING) as wire:
        return next(found for _ in range(MANY) if not duet.spoilt(found := served(wire, profile)))


def test_a_backlog_is_shown_at_once_and_has_the_flows_in_their_order() -> None:
    left: list[int] = []
    flows: list[tuple[str, int]] = []

    def note(frame: bytes, _side: str) -> list[bytes]:
        ring = wire.ports["client"].rx[0]
        left.append((ctypes.c_uint16.from_address(ring.produced).value - ring.index) & 0xFFFF)
        flows.append((parse(frame).source, parse(frame).source_port))
        return [frame]

    with Wire(note, ring_size=RING) as wire:
        assert served(wire, FLOWS).lost == 0
    bursts = [RING - taken for taken in range(BURST, RING + 1, BURST)]
    assert left[: 2 * RING] == [each for each in bursts for _ in range(BURST)] * 2
    assert len(set(flows)) == FLOWS.flows
    assert all(one == other for one, other in zip(flows, flows[FLOWS.flows :], strict=False))


def test_only_the_time_counts_in_which_the_dut_works_and_no_burst_that_began_before() -> None:
    slow_s = 0.0002

    def slow(frame: bytes, _side: str) -> list[bytes]:
        time.sleep(slow_s)
        return [frame]

    found = one_that_counts(slow)
    assert found.completed > 0 and found.completed % BURST == 0
    assert found.lost == 0 and found.waited == 0
    # A wire may be slower than that, and is never faster.
    assert found.rate < 1 / slow_s


def test_what_a_dut_drops_is_lost_and_is_not_what_it_served() -> None:
    every_fourth = itertools.cycle([False, False, False, True])
    with patch.object(plan, "LOST_AFTER_S", 0.5):
        tap = Tap(lambda _packet, _side: next(every_fourth))
        with Wire(tap, ring_size=RING) as wire:
            found = served(wire, FLOWS)
    assert found.lost > 0
    assert found.completed <= 3 * found.lost


def test_servers_answer_whom_they_have_seen() -> None:
    tap = Tap()
    with Wire(tap, ring_size=RING) as wire:
        assert served(wire, BOTH).lost == 0
    seen = {packet.source for packet in tap.packets("client")}
    assert {packet.destination for packet in tap.packets("server")} == seen
    assert len(tap.packets("server")) > RING


def test_frames_are_as_many_as_fit_a_ring_on_which_all_may_come_out() -> None:
    small = RingPlan(c2s=4, s2c=2, c2s_size=2048, s2c_size=1024)
    (client, _), (server, _) = cable(small), cable(small)
    with closing(Made(client_end=client, server_end=server, threads=1).wire()) as wiring:
        assert wiring.ring_frames == 8192
        assert wiring.backlog == 1024


def test_a_dut_that_takes_nothing_has_stood_still() -> None:
    rings = RingPlan(1, 1)
    (client, at_client), (server, at_server) = cable(rings), cable(rings)
    with closing(Generator()) as generator, patch.object(plan, "SILENCE_S", 0.05):
        generator.connect(Made(client_end=client, server_end=server, threads=1))
        generator.connect(Cable(), "other")
        (found,) = generator.run_slices((FLOWS, FLOWS), ("tested",), SLICE_S, lambda _: None, backlogs=True)
    assert (found.completed, found.lost) == (0, 0)
    assert found.seconds >= 0.05 and not duet.spoilt(found)
    for port in (at_client, at_server):
        port.close()


def test_another_way_to_serve_begins_again() -> None:
    turns: list[object] = []
    with Wire(ring_size=RING) as wire:
        served(wire, FLOWS, turns.append)
        served(wire, FLOWS, turns.append)
        wire.generator.run_slices((FLOWS, FLOWS), ("tested",), SLICE_S, turns.append)
        served(wire, FLOWS, turns.append)
    assert len(turns) == 2 + 1 + 2 + 2
