"""A floor that its trials do not decide is not measured, although some of these trials broke a condition."""

import pytest

from ctbench.measure.observation import Observation
from ctbench.measure.sequential import Known, SequentialTest
from ctbench.sla.verdict import judge

from .simulated import made_up_floor, outcome_of, seen

FLOOR = made_up_floor(">= 100k", pps=None)


@pytest.mark.parametrize(("outcomes", "word"), [("gggg", "met"), ("bbbb", "missed"), ("gbgbgbggb", "not measured")])
def test_what_some_trials_lost_is_no_reason_where_all_together_decide_nothing(outcomes: str, word: str) -> None:
    script = iter(outcomes)

    def trial(load: float, duration: float) -> Observation:
        return seen(load=load, duration=duration, loss=0.05 * (next(script) == "b"))

    result = SequentialTest(trial, 101_000, 1.0, Known()).run()
    assert next(script, None) is None
    assert judge(outcome_of(result), FLOOR).word == word
