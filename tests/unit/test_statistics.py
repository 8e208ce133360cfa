"""The statistics of few samples, held against counting by hand and against their definitions."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.results.statistics import holm, least_p, needed_samples, p_smaller, spread

pytestmark = pytest.mark.unit

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


def test_equal_samples_are_no_evidence_of_anything() -> None:
    assert p_smaller([5.0] * 6, [5.0] * 6) == 1


def test_one_outlier_weighs_no_more_than_any_other_sample() -> None:
    base = [100.0, 101, 102, 103, 104]
    assert p_smaller(base, [99.0, 98, 97, 96, 95]) == p_smaller(base, [99.0, 98, 97, 96, 5])


def test_five_samples_are_the_least_for_one_test_and_more_tests_need_more() -> None:
    assert [needed_samples(0.01 / tests) for tests in (1, 2, 3, 9, 60)] == [5, 5, 6, 6, 8]


def test_holms_correction_is_that_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_correction_keeps_false_alarms_rare_among_many_tests() -> None:
    dice, alarms = random.Random(7), 0
    for _ in range(400):
        ps = [p_smaller([dice.gauss(0, 1) for _ in range(8)], [dice.gauss(0, 1) for _ in range(8)]) for _ in range(20)]
        alarms += min(holm(ps)) < 0.05
    assert alarms <= 0.05 * 400 + 3 * (0.05 * 0.95 * 400) ** 0.5


def test_the_spread_is_the_range_by_the_median() -> None:
    assert spread([95.0, 100.0, 110.0]) == pytest.approx(0.15)
    assert spread([42.0]) == 0
    assert spread([]) is None
    assert spread([0.0, 0.0, 5.0]) is None
