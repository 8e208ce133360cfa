"""The floor is not called missed before it was tried, however the search above it ended."""

from ctbench.measure.campaign import Bisection
from ctbench.measure.search import search
from ctbench.measure.trial import Observation

from .simulated import seen


def test_a_dut_that_falls_off_after_its_first_trial_is_tried_at_the_floor() -> None:
    tried: list[float] = []

    def trial(load: float, duration_s: float) -> Observation:
        tried.append(load)
        return seen(load=load, duration=duration_s, loss=0.0 if len(tried) == 1 or load < 100e3 else 0.05)

    settings = Bisection(
        trial_duration="1s", middle="geometric", max_iterations=10, relative_width="15%", final_duration="2s"
    )
    found = search(trial, 5e3, 1.5e6, settings, hint=222.7e3, landmark=48.7e3)
    assert found.capacity == 48.7e3
