"""A trial that is lost ends early, and counts what was due until then."""

import time

import numpy as np
import pytest
from wire import Wire

from ctbench.traffic.loads import Idle, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctbench.traffic.software import kernel, plan, schedule
from ctbench.traffic.software import layout as lay

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("compiled_generator")]

CONNECTIONS = ConnectionProfile(name="short", client_ips=10, server_ips=5)
PACKETS = PacketProfile(name="stream", kind="packets", client_ips=10, server_ips=5)
SECONDS = 5.0


@pytest.mark.parametrize(
    ("lost", "most", "now", "due"),
    [
        (101, 100, 500, True),
        (100, 100, 500, False),
        (101, 100, 99, False),
        (101, 100, 900, False),
        (101, 0, 500, False),
    ],
)
def test_it_is_due_where_too_much_is_lost_and_something_is_saved(lost: int, most: int, now: int, due: bool) -> None:
    assert bool(schedule.ends_early.py_func(lost, most, now, 100, 900)) is due


def test_no_connection_is_counted_twice() -> None:
    counts = np.zeros(lay.COUNTERS, np.int64)
    counts[lay.FAILED], counts[lay.FAILED + lay.CAUSE_RESET] = 7, 5
    counts[lay.COUNTED_MISSED], counts[lay.DUT_MISSED] = 11, 1_000
    assert kernel._lost.py_func(counts) == 12
    counts[lay.COUNTED_MISSED] = 13
    assert kernel._lost.py_func(counts) == 13


def test_without_a_limit_there_is_none() -> None:
    assert [plan.most_lost_of(load) for load in (Rate(5), Rate(5, 0.2), Rate(5, 7.9), Idle())] == [0, 1, 7, 0]


def deaf(_frame: bytes, _side: str) -> list[bytes]:
    time.sleep(0.002)
    return []


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_a_trial_of_a_dut_that_takes_nothing_ends_early(profile: Profile) -> None:
    """Its ring is full before the sustain phase begins: all that comes then is missed."""
    with Wire(deaf) as wire:
        trial = wire.generator.run_trial(profile, Rate(20_000, most_lost=500), SECONDS)
    assert trial.ended_after_s is not None
    assert schedule.EARLIEST_S <= trial.ended_after_s + 1e-6 < SECONDS  # a rounded reading of the clock
    assert (trial.duration_s, trial.loss_ratio) == (SECONDS, 1.0)
    assert 0 < trial.attempted == trial.intended <= 20_000 * trial.ended_after_s + 1


@pytest.mark.parametrize("profile", [CONNECTIONS, PACKETS], ids=lambda profile: profile.kind)
def test_one_that_may_lose_that_much_goes_to_its_end(profile: Profile) -> None:
    with Wire(deaf) as wire:
        trial = wire.generator.run_trial(profile, Rate(5_000, most_lost=100_000), 0.4)
    assert (trial.ended_after_s, trial.loss_ratio) == (None, 1.0)
