"""The sign-flip test and its interval, compared with going through every choice of signs, and with each other."""

import itertools
import math
import random
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.results.statistics import (
    MOST_SAMPLES,
    hodges_lehmann,
    least_sign_flip_p,
    needed_signs,
    sign_flip_interval,
    sign_flip_p,
    to_be_seen,
)

pytestmark = pytest.mark.unit

#: Whole numbers, so that sums are exact and ties are many.
SAMPLES = st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=9)


def counted(samples: list[float]) -> float:
    sums = [sum(s * x for s, x in zip(signs, samples, strict=True)) for signs in itertools.product((1, -1), repeat=len(samples))]  # fmt: skip  # noqa: E501
    return mean(abs(each) >= abs(sum(samples)) for each in sums)


@settings(max_examples=150, deadline=None)
@given(SAMPLES)
def test_every_choice_of_signs_is_counted(samples: list[float]) -> None:
    assert sign_flip_p(samples) == pytest.approx(counted(samples), abs=1e-12)


def test_darwins_plants_are_those_of_fishers_book() -> None:
    """The Design of Experiments (1935), section 21: 863 of 2^15 sums are below, 2 x 863 / 2^15 = 5.267 %."""
    heights = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sign_flip_p([float(each) for each in heights]) == pytest.approx(2 * 863 / 2**15)


@pytest.mark.parametrize("starts", range(5, 13))
def test_the_exact_rate_of_false_alarms_is_never_above_the_level(starts: int) -> None:
    """By enumeration: samples of these sizes are as likely to have any signs where nothing differs."""
    dice = random.Random(starts)
    sizes = [abs(dice.gauss(0, 0.02)) for _ in range(starts)]
    ps = [
        sign_flip_p([s * x for s, x in zip(signs, sizes, strict=True)])
        for signs in itertools.product((1, -1), repeat=starts)
    ]
    for level in (0.01, 0.05):
        rate = mean(p < level for p in ps)
        assert rate <= level
        # Too few for any p below the level: never an alarm; else some, or the test would find nothing.
        assert (rate > 0) == (least_sign_flip_p(starts) < level)


def test_eight_starts_are_the_least_for_one_test_and_more_tests_need_more() -> None:
    assert [needed_signs(0.01 / tests) for tests in (1, 2, 5, 20, 35, 60)] == [8, 9, 10, 12, 13, 14]
    for tests in range(1, 100):
        needed = needed_signs(0.01 / tests)
        assert least_sign_flip_p(needed) * tests < 0.01 <= least_sign_flip_p(needed - 1) * tests


def test_of_eight_starts_the_interval_is_from_the_least_to_the_most() -> None:
    samples = [0.01, 0.05, -0.02, 0.03, 0.0, 0.07, 0.02, 0.04]
    assert sign_flip_interval(samples, 0.99) == pytest.approx((-0.02, 0.07))
    assert sign_flip_interval(samples[:7], 0.99) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=8, max_size=11, unique=True))
def test_the_interval_has_every_shift_that_the_test_does_not_reject(samples: list[float]) -> None:
    interval = sign_flip_interval(samples, 0.99)
    assert interval is not None
    low, high = interval
    width = max(high - low, 1e-6)
    for shift in (low + width / 50, (low + high) / 2, high - width / 50):
        if low < shift < high:
            assert sign_flip_p([each - shift for each in samples]) >= 0.0099
    for shift in (low - width / 50, high + width / 50):
        assert sign_flip_p([each - shift for each in samples]) < 0.01


def test_one_wild_start_moves_the_middle_little() -> None:
    assert hodges_lehmann([0.0, 0.01, 0.02, 0.03]) == pytest.approx(0.015)
    assert abs(hodges_lehmann([0.0, 0.01, 0.02, 0.03, 5.0]) - 0.015) < 0.02


def test_what_can_be_seen_is_seen_nine_times_of_ten() -> None:
    shift, dice = to_be_seen(9, 0.99), random.Random(11)
    seen = [sign_flip_p([dice.gauss(shift, 1) for _ in range(9)]) < 0.01 for _ in range(600)]
    assert mean(seen) == pytest.approx(0.9, abs=0.04)
    assert to_be_seen(7, 0.99) == math.inf
    assert to_be_seen(8, 0.99) > to_be_seen(10, 0.99) > to_be_seen(20, 0.99)


@pytest.mark.parametrize("number", [0, MOST_SAMPLES + 1])
def test_none_or_too_many_samples_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="cannot be counted"):
        sign_flip_p([1.0] * number)
