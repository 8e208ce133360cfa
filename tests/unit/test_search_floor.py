"""The floor is not called missed before it was tried, however the search above it ended."""

from ctbench.measure.campaign import Bisection
from ctbench.measure.search import search
from ctbench.measure.trial import Observation

from .simulated import seen

SETTINGS = Bisection(
    trial_duration="1s", middle="geometric", max_iterations=10, relative_width="15%", final_duration="2s"
)
FLOOR = 48.7e3


def test_a_dut_that_falls_off_after_its_first_trial_is_tried_at_the_floor() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        return seen(load=load, duration=duration_s, loss=0.0 if len(tried) == 1 or load < 100e3 else 0.05)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=222.7e3, landmark=FLOOR)
    assert found.capacity == FLOOR


def test_one_disturbed_trial_at_the_floor_is_no_reason_to_call_it_missed() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        disturbed = load == FLOOR and tried.count(FLOOR) == 1
        holds = len(tried) == 1 or (load < 100e3 and not disturbed)
        return seen(load=load, duration=duration_s, loss=0.0 if holds else 0.05)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=222.7e3, landmark=FLOOR)
    assert found.capacity == FLOOR
    assert tried.count(FLOOR) == 2


def test_a_disturbed_trial_below_the_floor_is_no_reason_to_call_it_missed() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        disturbed = 40e3 < load < FLOOR and sum(40e3 < each < FLOOR for each in tried) == 1
        return seen(load=load, duration=duration_s, loss=0.05 if disturbed or load > 60e3 else 0.0)

    found = search(trial, 5e3, 1.5e6, SETTINGS, hint=38e3, landmark=FLOOR)
    assert FLOOR <= found.capacity <= 60e3
