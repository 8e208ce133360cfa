"""The statistics of few samples, held against counting by hand and against their definitions."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.results.statistics import (
    holm,
    least_p,
    median_interval,
    needed_samples,
    p_smaller,
    prediction_bounds,
    quantile,
    spread,
    tolerance_factor,
)

VALUES = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=6)


def counted(base: list[float], candidate: list[float]) -> float:
    """The same probability by going through every choice, with ranks from their definition."""
    together = [*base, *candidate]
    ranks = [
        sum(other < value for other in together) + (sum(other == value for other in together) + 1) / 2
        for value in together
    ]
    sums = [sum(choice) for choice in itertools.combinations(ranks, len(candidate))]
    return sum(total <= sum(ranks[len(base) :]) for total in sums) / len(sums)


@settings(max_examples=150, deadline=None)
@given(VALUES, VALUES)
def test_the_permutation_test_counts_every_choice(base: list[float], candidate: list[float]) -> None:
    assert p_smaller(base, candidate) == pytest.approx(counted(base, candidate), abs=1e-12)


@pytest.mark.parametrize(("samples", "p"), [(3, 0.05), (4, 1 / 70), (5, 1 / 252)])
def test_the_smallest_p_of_few_samples_is_that_of_the_literature(samples: int, p: float) -> None:
    slow, fast = [float(value) for value in range(samples)], [float(value) for value in range(10, 10 + samples)]
    assert p_smaller(fast, slow) == pytest.approx(p)
    assert least_p(samples, samples) == pytest.approx(p)
    assert p_smaller(slow, fast) == 1


def test_five_samples_are_the_least_for_one_test_and_more_tests_need_more() -> None:
    assert [needed_samples(0.01 / tests) for tests in (1, 2, 3, 9, 60)] == [5, 5, 6, 6, 8]


def test_too_few_samples_are_refused() -> None:
    for refused in (lambda: quantile([], 0.5), lambda: median_interval([]), lambda: tolerance_factor(1)):
        with pytest.raises(ValueError, match=r"no values|one sample"):
            refused()


def test_holms_correction_is_that_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_spread_is_the_range_by_the_median() -> None:
    assert spread([95.0, 100.0, 110.0]) == pytest.approx(0.15)
    assert spread([42.0]) == 0
    assert spread([]) is None
    assert spread([0.0, 0.0, 5.0]) is None


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile([3.0], 0.99) == 3.0


@pytest.mark.parametrize(("count", "cut"), [(1, 0), (7, 0), (8, 0), (10, 0), (12, 1), (20, 3), (50, 15), (100, 36)])
def test_the_interval_leaves_out_what_the_binomial_distribution_allows(count: int, cut: int) -> None:
    # Tables of the 99 % interval of a median, for example in Conover, Practical Nonparametric Statistics.
    values = [float(value) for value in range(count)]
    assert median_interval(values) == (cut, count - 1 - cut)


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


def test_a_prediction_bound_is_that_of_students_t_with_the_scatter_that_all_rows_have_in_common() -> None:
    # One row: t(2) = 6.965 of the tables, mean - t s sqrt(1 + 1/3) of the logarithms -0.1, 0, 0.1.
    row = [math.exp(value) for value in (-0.1, 0.0, 0.1)]
    (alone,) = prediction_bounds([row])
    assert math.log(alone) == pytest.approx(-6.965 * 0.1 * math.sqrt(4 / 3), abs=0.001)
    # With a second one, at twice the level, there are twice the degrees of freedom: t(4) = 3.747.
    bounds = prediction_bounds([row, [2 * value for value in row]])
    assert [math.log(each) for each in bounds] == pytest.approx([-0.4327, math.log(2) - 0.4327], abs=0.001)
