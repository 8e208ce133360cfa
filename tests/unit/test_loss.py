"""How much a trial may lose: exact numbers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.measure.loss import HOPELESS, LARGEST_SHARE, UNLIKELY, few, hopeless, within

pytestmark = pytest.mark.unit

LIMIT = 0.0002


@pytest.mark.parametrize(
    ("of", "allowed"),
    [(99, 0), (100, 1), (500, 1), (1_000, 1), (1_100, 2), (4_336, 3), (10_000, 5), (20_000, 9), (24_999, 10)],
)
def test_of_few_as_many_may_be_lost_as_chance_explains(of: int, allowed: int) -> None:
    assert few(LIMIT, of) == allowed
    assert within(allowed, of, LIMIT)
    assert not within(allowed + 1, of, LIMIT)


def test_where_the_limit_allows_five_the_ratio_is_judged() -> None:
    assert few(LIMIT, 25_000) == 0
    assert within(5, 25_000, LIMIT)
    assert not within(6, 25_000, LIMIT)
    assert within(20, 100_000, LIMIT)
    assert not within(21, 100_000, LIMIT)


def test_one_lost_connection_of_4336_is_no_reason_to_fail() -> None:
    """0.02 % of a trial with long-lived connections is 0.87 of one."""
    assert within(1, 4_336, LIMIT)
    assert LIMIT < 1 / 4_336


def test_a_limit_of_nothing_allows_nothing() -> None:
    assert within(0, 10, 0.0)
    assert not within(1, 1_000_000, 0.0)


@pytest.mark.parametrize(("lost", "of"), [(0, 0), (1, 0), (1, 1), (1, 2), (2, 100)])
def test_all_or_much_of_next_to_nothing_is_lost(lost: int, of: int) -> None:
    assert not within(lost, of, LIMIT)


@settings(deadline=None)
@given(st.floats(1e-6, 0.04), st.integers(100, 100_000))
def test_the_number_is_the_largest_that_is_not_unlikely(limit: float, of: int) -> None:
    count, mean = few(limit, of), limit * of
    if mean >= 5:
        assert count == 0
        return

    def reaches(number: int) -> float:
        return 1 - sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(number))

    assert 1 <= count <= max(1, LARGEST_SHARE * of)
    assert count == 1 or reaches(count) > UNLIKELY
    assert reaches(count + 1) <= UNLIKELY + 1e-9 or count == int(LARGEST_SHARE * of)


@settings(deadline=None)
@given(st.floats(0, 0.5), st.integers(1, 10_000_000))
def test_a_trial_that_is_ended_early_could_not_have_become_good(limit: float, of: int) -> None:
    assert not within(math.floor(hopeless(limit, of)) + 1, of, limit) or hopeless(limit, of) >= of
    assert hopeless(limit, of) >= HOPELESS
