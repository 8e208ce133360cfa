"""Quantiles by the nearest rank, and the interval of a median by the binomial distribution."""

import random

import pytest

from ctbench.results.quantiles import median_interval, quantile

pytestmark = pytest.mark.unit


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile([3.0], 0.99) == 3.0


@pytest.mark.parametrize("count", range(1, 8))
def test_few_values_have_no_interval_but_their_range(count: int) -> None:
    values = [float(value) for value in range(count)]
    assert median_interval(values) == (0, count - 1)


@pytest.mark.parametrize(("count", "cut"), [(8, 0), (10, 0), (12, 1), (20, 3), (50, 15), (100, 36)])
def test_the_interval_leaves_out_what_the_binomial_distribution_allows(count: int, cut: int) -> None:
    # Tables of the 99 % interval of a median, for example in Conover, Practical Nonparametric Statistics.
    values = [float(value) for value in range(count)]
    assert median_interval(values) == (cut, count - 1 - cut)


def test_the_median_is_within_as_often_as_promised() -> None:
    dice = random.Random(1)
    misses = 0
    for _ in range(4000):
        low, high = median_interval([dice.expovariate(1.0) for _ in range(15)])
        misses += not low <= 0.6931 <= high
    assert misses / 4000 <= 0.01


def test_nothing_has_neither() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
    with pytest.raises(ValueError, match="no values"):
        median_interval([])
