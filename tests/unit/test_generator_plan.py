"""From a profile and a load to the kernel function's parameters, and the arithmetic around them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import over_a_cable

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import clock, plan
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.memif import RingPlan

LONG = ConnectionProfile(name="long", messages=40, server_wait_ms=50.0)


def test_records_are_enough_for_a_dut_that_answers_nobody() -> None:
    assert plan.records_needed(ConnectionProfile(name="short"), Rate(100_000)) >= 100_000 * 3 * plan.REPLY_TIMEOUT_S
    assert plan.records_needed(LONG, Rate(10_000)) >= 10_000 * LONG.lifetime_s
    assert plan.records_needed(LONG, Rate(10_000_000)) == lay.MOST_RECORDS


def test_a_connection_that_lives_for_a_while_gets_a_ramp_up_and_a_drain_of_its_lifetime() -> None:
    for_a_while = LONG.model_copy(update={"messages": 20})
    assert plan.timing_of(for_a_while, Rate(1000), 1.0).ramp_up_s >= for_a_while.lifetime_s
    assert plan.timing_of(for_a_while, Rate(1000), 1.0).linger_s >= for_a_while.lifetime_s


def test_short_datagrams_are_padded_to_ethernets_least() -> None:
    profile = ConnectionProfile(name="tiny", udp_percent=100, request_bytes=1, reply_bytes=1)
    p = plan.parameters(profile, Rate(1000), plan.timing_of(profile, Rate(1000), 1), 1e9, salt=1)
    assert 42 + p[lay.UDP_REQUEST_BYTES] >= 60


def test_a_generator_without_records_is_limited_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "records_needed", lambda _profile, _load: 4)
    trial = over_a_cable(LONG.model_copy(update={"messages": 2}), Rate(1000), 0.2)
    assert "no free record" in trial.generator_limited
    assert trial.attempted < trial.intended
    assert trial.completed < trial.intended


def test_percentiles_are_upper_edges_of_bins() -> None:
    hertz = 64e6  # a unit is a microsecond
    times = np.zeros(clock.BINS, np.int64)
    times[10] = 99
    times[40 + 32] = 1  # the first bin whose width is two units
    assert clock.percentile(times, 0.5, hertz) == 11
    assert clock.percentile(times, 1.0, hertz) >= 72


@given(st.integers(0, (1 << 32) - 1))
def test_a_bin_is_at_most_three_percent_above_the_times_in_it(units: int) -> None:
    times = np.zeros(clock.BINS, np.int64)
    times[clock.bin_of.py_func(units)] = 1
    assert units < clock.percentile(times, 1.0, 64e6) <= units * 1.032 + 1


@pytest.mark.parametrize(
    ("frame_bytes", "rings", "frames"),
    [(64, 1, 16384), (64, 9, 16384), (1514, 8, 16384), (1514, 9, 8192), (9018, 2, 8192)],
)
def test_the_rings_that_it_receives_on_hold_its_own_pauses(frame_bytes: int, rings: int, frames: int) -> None:
    assert RingPlan.towards(1, rings, 2048, frame_bytes).s2c_size == frames
