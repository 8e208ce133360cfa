"""How often the comparison is wrong: the same build against itself, and one that is slower in one test.

A build is measured by searching a simulated DUT whose capacity differs from run to run by 2 % and from trial to trial
by 0.5 %; one trial in fifty is disturbed. All of it is seeded.
"""

import random

import pytest

from ctbench.compare.judge import compare
from ctbench.compare.side import Runs
from ctbench.measure.campaign import Mlr
from ctbench.measure.search import search

from .compared import TRUTH, record, side
from .simulated import SimulatedDut

pytestmark = pytest.mark.unit

NARROW = Mlr.model_validate({"trial_duration": "1s", "final_duration": "2s", "relative_width": "2%"})
TESTS, SAMPLES = 6, 6


def measured(dice: random.Random, factor: float) -> float:
    dut = SimulatedDut(TRUTH * factor * dice.gauss(1, 0.02), noise=0.005, disturbed=0.02, seed=dice.randrange(10**9))
    return search(dut, 5_000, 1_500_000, NARROW, hint=100_000, rough=True).capacity


def judgements(seed: int, factor: float) -> list[str]:
    dice = random.Random(seed)

    def one(name: str, slower: float) -> Runs:
        return side(
            name,
            [
                record([measured(dice, slower if test == 0 else 1.0)], f"{name}-{run}", test)
                for run in range(SAMPLES)
                for test in range(TESTS)
            ],
        )

    return [test.judgement for test in compare(one("old", 1.0), one("new", factor)).tests]


def test_the_same_build_compared_with_itself_is_never_said_to_regress() -> None:
    found_words = [word for seed in range(25) for word in judgements(seed, 1.0)]
    assert set(found_words) == {"no evidence"}


def test_a_build_that_loses_a_tenth_in_one_test_is_found_out_and_only_there() -> None:
    found_words = [judgements(1_000 + seed, 0.9) for seed in range(10)]
    assert sum(words[0] == "regressed" for words in found_words) >= 9
    assert {word for words in found_words for word in words[1:]} == {"no evidence"}
