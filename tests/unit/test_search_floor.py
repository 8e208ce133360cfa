"""The floor is not called missed before it was tried, however the search above it ended."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.measure.campaign import Bisection
from ctbench.measure.observation import Observation
from ctbench.measure.search import search

from .searching import HI, LO, PUBLISHED, WIDTH, how
from .simulated import SimulatedDut, seen

SETTINGS = Bisection(
    trial_duration="1s", middle="geometric", max_iterations=10, relative_width="15%", final_duration="2s"
)
FLOOR = 48.7e3


def test_a_dut_that_falls_off_after_its_first_trial_is_tried_at_the_floor() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        return seen(load=load, duration=duration_s, loss=0.0 if len(tried) == 1 or load < 100e3 else 0.05)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=222.7e3, floor_load=FLOOR)
    assert found.capacity == FLOOR


def test_one_disturbed_trial_at_the_floor_is_no_reason_to_call_it_missed() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        disturbed = load == FLOOR and tried.count(FLOOR) == 1
        holds = len(tried) == 1 or (load < 100e3 and not disturbed)
        return seen(load=load, duration=duration_s, loss=0.0 if holds else 0.05)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=222.7e3, floor_load=FLOOR)
    assert found.capacity == FLOOR
    assert tried.count(FLOOR) == 2


def test_a_disturbed_trial_below_the_floor_is_no_reason_to_call_it_missed() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        disturbed = 40e3 < load < FLOOR and sum(40e3 < each < FLOOR for each in tried) == 1
        return seen(load=load, duration=duration_s, loss=0.05 if disturbed or load > 60e3 else 0.0)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=38e3, floor_load=FLOOR)
    assert FLOOR <= found.capacity <= 60e3


@settings(max_examples=60, deadline=None)
@given(st.floats(min_value=LO * 1.5, max_value=HI / 1.5), st.floats(min_value=0.95, max_value=0.999))
def test_a_floor_just_below_the_capacity_is_never_left_between_the_bounds(truth: float, share: float) -> None:
    floor = truth * share
    result = search(SimulatedDut(truth), LO, HI, how(relative_width="20%"), floor_load=floor)
    assert result.capacity >= floor


def test_a_floor_above_the_capacity_is_not_reached_by_being_tried() -> None:
    result = search(SimulatedDut(50_000.0), LO, HI, how(relative_width="20%"), floor_load=55_000.0)
    assert result.capacity <= 50_000 * 1.0003
    assert result.upper is not None
    assert result.upper <= 55_000


def test_the_published_procedure_takes_no_notice_of_the_floor() -> None:
    dut = SimulatedDut(50_000.0)
    search(dut, LO, HI, PUBLISHED, floor_load=49_999.0)
    assert 49_999.0 not in dut.loads


def test_a_floor_that_one_disturbed_trial_failed_gets_a_second_chance() -> None:
    floor, truth = 40_000.0, 50_000.0
    disturbed: list[float] = []

    def once(load: float, duration: float) -> Observation:
        first = load == floor and not disturbed
        if first:
            disturbed.append(load)
        return seen(load=load, duration=duration, loss=0.5 if load > truth or first else 0.0)

    result = search(once, LO, HI, how(recheck=False), hint=floor, floor_load=floor)
    assert disturbed
    assert truth / (1 + WIDTH) <= result.capacity <= truth


def test_a_floor_that_fails_twice_is_missed() -> None:
    dut = SimulatedDut(39_000.0)
    result = search(dut, LO, HI, how(recheck=False), hint=40_000.0, floor_load=40_000.0)
    assert dut.loads.count(40_000.0) == 2
    assert result.capacity < 40_000


def test_a_search_that_begins_at_the_floor_leaves_it_in_large_steps() -> None:
    dut = SimulatedDut(200_000)
    search(dut, LO, HI, how(), hint=100_000, floor_load=100_000)
    assert dut.loads[:3] == [100_000, 150_000, 337_500]
    near = SimulatedDut(200_000)
    search(near, LO, HI, how(), hint=100_000, floor_load=50_000)
    assert near.loads[1] == pytest.approx(110_000)
