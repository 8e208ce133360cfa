"""How long a search that has not begun will probably take: about as many trials as it then makes."""

from typing import Any

import pytest

from ctbench.measure.campaign import Bisection, GateSettings, LoadRange, Mlr
from ctbench.measure.expected import expected
from ctbench.measure.search import search

from .simulated import SimulatedDut

pytestmark = pytest.mark.unit

SPAN = LoadRange.model_validate({"min": "5k", "max": "1.5M"})
BISECTION = {"trial_duration": "1s", "final_duration": "2s", "max_iterations": 10, "relative_width": "10%"}
MLR = {"trial_duration": "1s", "final_duration": "5s", "relative_width": "10%"}


@pytest.mark.parametrize("capacity", [60_000.0, 250_000.0, 900_000.0])
@pytest.mark.parametrize("settings", [Bisection.model_validate(BISECTION), Mlr.model_validate(MLR)], ids=["bi", "mlr"])
def test_a_search_makes_about_as_many_trials_as_were_expected(settings: Any, capacity: float) -> None:
    found = search(SimulatedDut(capacity), SPAN.min, SPAN.max, settings, hint=50_000.0)
    assert len(found.steps) / 2 <= expected(settings, SPAN).trials <= len(found.steps) * 2


def test_a_gate_is_two_trials_and_what_each_takes_beside_its_traffic() -> None:
    settings = GateSettings.model_validate({"trial_duration": "3s", "headroom": "1%"})
    assert expected(settings, SPAN).seconds(0.5) == 7.0
