"""The one-sided tolerance factor: that of the tables, and that it holds what it promises."""

import random
from statistics import NormalDist, mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.results.tolerance import tolerance_factor

pytestmark = pytest.mark.unit


#: Natrella, Experimental Statistics (NBS Handbook 91, 1963), table A-7: content 95 %, confidence 95 %.
@pytest.mark.parametrize(
    ("samples", "factor"),
    [(3, 7.655), (4, 5.145), (5, 4.202), (6, 3.707), (7, 3.399), (8, 3.188), (9, 3.031), (10, 2.911), (12, 2.736),
     (15, 2.566), (20, 2.396), (30, 2.220), (50, 2.065)],
)  # fmt: skip
def test_the_factors_are_those_of_the_handbook(samples: int, factor: float) -> None:
    assert tolerance_factor(samples) == pytest.approx(factor, abs=0.0021)


def test_another_content_and_confidence_are_those_of_the_handbook_too() -> None:
    assert tolerance_factor(10, 0.99, 0.95) == pytest.approx(3.981, abs=0.002)
    assert tolerance_factor(10, 0.90, 0.99) == pytest.approx(3.048, abs=0.003)  # and its example in section 7.2.6.3
    assert tolerance_factor(43, 0.90, 0.99) == pytest.approx(1.8752, abs=0.002)


@given(st.integers(3, 60))
def test_more_samples_need_a_smaller_factor_that_stays_above_the_quantile(samples: int) -> None:
    assert NormalDist().inv_cdf(0.95) < tolerance_factor(samples + 1) < tolerance_factor(samples)


def test_the_bound_is_below_nineteen_of_twenty_in_nineteen_cases_of_twenty() -> None:
    dice, k, cases = random.Random(5), tolerance_factor(6), 4000
    kept = []
    for _ in range(cases):
        seen = [dice.gauss(0, 1) for _ in range(6)]
        kept.append(NormalDist().cdf(mean(seen) - k * stdev(seen)) <= 0.05)
    assert mean(kept) == pytest.approx(0.95, abs=0.012)


def test_one_sample_does_not_scatter() -> None:
    with pytest.raises(ValueError, match="one sample"):
        tolerance_factor(1)
