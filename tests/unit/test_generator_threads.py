"""Several threads of the software generator: each has connections, flows and rings of its own, and a ring from the DUT
follows the frames that come on it."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets import SYN, parse
from wire import LATEST_S, Tap, Wire, watching

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen import clock, engine, plan
from ctgen import layout as lay

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

SHORT = ConnectionProfile(name="short", client_ips=2, client_port_min=1024, client_port_max=1055)
FLOWS = PacketProfile(name="flows", kind="packets", flows=48, directions="both")
#: A wire in Python may have the CPU for long.
PATIENT = {"REPLY_TIMEOUT_S": 10.0, "STREAM_LINGER_S": 10.0, "LOOP_TIMEOUT_S": 10.0}


@dataclass(frozen=True)
class Seen:
    """A trial over a wire, and the rings' threads after it by side."""

    trial: Trial
    pollers: tuple[list[int], list[int]]
    run: engine.Run


def over(
    profile: Profile, load: Load, queues: int, threads: int, tap: Tap, comes_out: Callable[[int], int] = lambda q: q,
    seconds: float = 0.3, **times: float,
) -> Seen:  # fmt: skip
    """`times`: of `plan`."""
    runs: list[engine.Run] = []
    with (
        patch.object(clock, "LATEST_S", LATEST_S),
        patch.multiple(plan, **(PATIENT | times)),
        Wire(tap, queues, threads=threads, comes_out=comes_out) as wire,
        watching(runs.append),
    ):
        trial = wire.generator.run_trial(profile, load, seconds)
        client, server = wire.generator._wirings["tested"].pollers
        return Seen(trial, ([*client], [*server]), runs[0])


#: How rings of the wire's other end follow from its queues, and whether two threads' frames share one of them.
WAYS = {
    "straight": (lambda queue: queue, False),
    "crossed": (lambda queue: 3 - queue, False),
    "two by two": (lambda queue: queue % 2, False),
    "mixed": (lambda queue: queue // 2, True),
    "all on one": (lambda queue: 2, True),
}


@pytest.mark.parametrize("profile", [SHORT, FLOWS], ids=lambda profile: profile.name)
@pytest.mark.parametrize("way", WAYS)
def test_whichever_ring_a_dut_answers_on_nothing_is_lost_and_a_ring_ends_with_its_thread(
    way: str, profile: Profile
) -> None:
    comes_out, mixed = WAYS[way]
    tap = Tap()
    seen = over(profile, Rate(400), 4, 2, tap, comes_out)
    assert len(seen.run.parts) == 2
    trial = seen.trial
    assert trial.completed == trial.attempted > 0
    assert not trial.failed and not trial.unexpected and not trial.dut_missed
    if not mixed:
        used = {comes_out(queue): queue % 2 for queue in range(4)}
        assert all(pollers[ring] == thread for pollers in seen.pollers for ring, thread in used.items())


@pytest.mark.parametrize("order", ["sequential", "random"])
def test_all_clients_come_once_before_any_comes_again(order: str) -> None:
    tap = Tap()
    profile = SHORT.model_copy(update={"port_order": order})
    over(profile, Rate(400), 2, 2, tap)
    syns = [parse(frame) for _, frame, side in tap.frames if side == "client"]
    clients = [(packet.source, packet.source_port) for packet in syns if packet.flags == SYN]
    assert len(set(clients)) == profile.client_endpoints
    # The threads are not in step: a client of one may come again before the last of another one, but not before as many
    # have come as one of them has.
    first = clients[: profile.client_endpoints // 2]
    assert len(set(first)) == len(first)


def test_a_closed_loop_and_half_open_connections_are_shared_out() -> None:
    loop = over(SHORT, Saturation(16), 2, 2, Tap())
    assert [part.parameters.under_way for part in loop.run.parts] == [8, 8]
    assert loop.trial.under_way == 16 and loop.trial.completed and not loop.trial.failed and not loop.trial.unexpected
    half = over(SHORT.model_copy(update={"half_open_per_s": 300}), Rate(200), 2, 2, Tap())
    told = half.trial.half_open
    assert told["sent"] > 0 and not half.trial.failed and not half.trial.unexpected
    assert all(part.counts.half_sent for part in half.run.parts)


def test_a_load_that_is_lost_ends_all_threads_early_with_one_count() -> None:
    deaf = Tap(lambda _, side: side == "server")
    seen = over(SHORT, Rate(400, most_lost=10), 2, 2, deaf, seconds=5.0, REPLY_TIMEOUT_S=0.05)
    ends = [part.state.ended_after for part in seen.run.parts]
    assert all(ends)
    assert seen.trial.ended_after_s is not None and sum(seen.trial.failed.values()) > 10


@given(count=st.integers(0, 10**6), threads=st.sampled_from([1, 2, 4, 8]))
def test_what_is_shared_out_is_all_of_it(count: int, threads: int) -> None:
    assert sum(plan.part_of(count, thread, threads) for thread in range(threads)) == count


@pytest.mark.parametrize(
    ("most", "queues", "tuples", "under_way", "threads"),
    [
        (1, 8, 1000, 0, 1),
        (2, 8, 1000, 0, 2),
        (7, 8, 1000, 0, 4),
        (16, 16, 1000, 0, 8),
        (8, 6, 1000, 0, 2),  # rings are shared out evenly
        (8, 1, 1000, 0, 1),
        (8, 8, 3, 0, 2),  # each has something of all
        (8, 8, 1000, 1, 1),
    ],
)
def test_as_many_threads_as_have_rings_and_work(
    most: int, queues: int, tuples: int, under_way: int, threads: int
) -> None:
    p = lay.Parameters(queues=queues, tuples=tuples, under_way=under_way)
    assert plan.threads_for(p, most) == threads


def test_of_several_threads_the_longest_counts_and_the_rest_is_added() -> None:
    parts = (lay.Run(), lay.Run())
    for number, part in enumerate(parts, 1):
        part.counts.tx_packets[:] = (10 * number, number)
        part.counts.setup_max, part.counts.longest[:2] = 100 * number, (7, number)
        part.state.late_max, part.state.late_count, part.state.points = number, number, number
        part.histograms[0][5] = number
    points = tuple((lay.Point * 2)(*(lay.Point(active=number) for number in (1, 2))) for _ in parts)
    whole = engine.Run(lambda _: None, parts, points, ()).summed()
    assert tuple(whole.counts.tx_packets) == (30, 3)
    assert (whole.counts.setup_max, tuple(whole.counts.longest[:2])) == (200, (7, 2))
    assert (whole.s.late_max, whole.s.late_count, whole.s.points) == (2, 3, 1)
    assert whole.times[0][5] == 3 and whole.noted()[0].active == 2
    assert ctypes.sizeof(lay.Crew) % 64 == 0
