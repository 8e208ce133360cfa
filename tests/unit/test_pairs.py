"""The statistic of pairs: order, one log ratio per round, and an interval that errs as seldom as it says."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.measure import pairs
from ctbench.traffic.generator import Side, Slice

pytestmark = pytest.mark.unit

LOGS = st.lists(st.floats(-0.5, 0.5), min_size=12, max_size=24)


def part(side: Side, completed: int = 1000, **more: float) -> Slice:
    return Slice(side=side, seconds=0.04, completed=completed, **more)  # type: ignore[arg-type]


def both(tested: int = 1000, other: int = 1000) -> list[Slice]:
    return [part("tested", tested), part("other", other)]


def test_the_order_is_that_of_thue_and_morse_wherever_it_goes_on() -> None:
    order = pairs.turns(0, 16)
    assert "".join(side[0] for side in order[:16]) == "tootottoottotoot"
    assert pairs.turns(3, 13) == order[6:]
    assert all(each.count("tested") == 1 for each in pairs.rounds_of(order))  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [0, 1, 2])
def test_no_drift_favours_a_side_over_sixteen_rounds(power: int) -> None:
    order = pairs.turns(0, 16)
    sums = {side: sum(at**power for at, each in enumerate(order) if each == side) for side in ("tested", "other")}
    assert sums["tested"] == sums["other"]


@pytest.mark.parametrize("bend", [0.0, 1e-6])
def test_a_drift_makes_an_interval_wider_and_moves_nothing(bend: float) -> None:
    """The second slice of a round is the faster one: as often that of the one side as of the other."""
    speed = [1 + 0.001 * at + bend * at * at for at in range(2 * pairs.LOOKS[0])]
    slices = [part(side, round(1e6 * now)) for side, now in zip(pairs.turns(0, pairs.LOOKS[0]), speed, strict=True)]
    logs = [pairs.log_ratio(parts) for parts in pairs.rounds_of(slices)]
    found = pairs.estimate([log for log in logs if log is not None])
    assert found and found.value == pytest.approx(1, abs=1e-4)
    assert found.low < 1 < found.high


def test_a_round_has_the_ratio_of_its_sides_whichever_comes_first() -> None:
    assert pairs.log_ratio(both(1030, 1000)) == pytest.approx(math.log(1.03))
    assert pairs.log_ratio(both(1030, 1000)[::-1]) == pytest.approx(math.log(1.03))


@pytest.mark.parametrize(
    ("bad", "counts"),
    [
        (part("tested", 0), False),
        (part("tested", pause_ms=14.0), False),
        (part("tested", pause_ms=13.0), True),
        (part("tested", 1), True),
    ],
)
def test_a_round_in_which_the_generator_stood_still_or_nothing_came_through_is_dropped(
    bad: Slice, counts: bool
) -> None:
    assert (pairs.log_ratio([bad, *both()[1:]]) is not None) is counts


@pytest.mark.parametrize("count", [4, 10, 11, 12])
def test_the_interval_is_wilcoxons_by_counting_every_set_of_ranks(count: int) -> None:
    ranks = range(1, count + 1)
    sums = [sum(chosen) for size in range(count + 1) for chosen in combinations(ranks, size)]
    error = 0.01 / 4
    outside = [limit for limit in range(60) if sum(total <= limit for total in sums) / 2**count <= error / 2]
    assert pairs._outside(count, error) == (outside[-1] if outside else None)


@pytest.mark.parametrize(
    ("count", "error", "critical"),
    [(25, 0.05, 89), (25, 0.01, 68), (50, 0.05, 434), (50, 0.01, 373), (100, 0.05, 1955), (100, 0.01, 1779)],
)
def test_the_interval_is_that_of_the_published_tables(count: int, error: float, critical: int) -> None:
    """Critical values of the signed-rank test, two-sided."""
    assert pairs._outside(count, error) == critical


@pytest.mark.parametrize(("count", "critical"), [(24, 47), (48, 298), (96, 1508), (192, 6943)])
def test_the_looks_have_what_counting_in_whole_numbers_finds(count: int, critical: int) -> None:
    """Counted once with integers of any length, in which nothing is rounded."""
    assert pairs._outside(count, pairs.ERROR / 4) == critical


@given(LOGS)
def test_the_estimate_lies_in_its_interval_and_turns_round_with_its_sides(logs: list[float]) -> None:
    found, turned = pairs.estimate(logs), pairs.estimate([-each for each in logs])
    assert found and turned
    assert found.low <= found.value <= found.high
    assert (turned.value, turned.low, turned.high) == pytest.approx((1 / found.value, 1 / found.high, 1 / found.low))


@given(LOGS, st.floats(-0.3, 0.3))
def test_a_factor_on_every_round_is_a_factor_on_the_estimate(logs: list[float], by: float) -> None:
    found, scaled = pairs.estimate(logs), pairs.estimate([each + by for each in logs])
    assert found and scaled
    factor = math.exp(by)
    expected = found.value * factor, found.low * factor, found.high * factor
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(expected)


@pytest.mark.parametrize("spoilt", [-3.0, 3.0])
def test_one_round_that_something_disturbed_does_not_move_the_estimate_and_of_24_not_its_interval(
    spoilt: float,
) -> None:
    logs = [0.002 * (number % 12 - 6) for number in range(24)]
    for count, farthest in ((12, math.inf), (24, 0.01)):
        calm, found = pairs.estimate(logs[:count]), pairs.estimate([*logs[: count - 1], spoilt])
        assert calm and found
        assert found.value == pytest.approx(calm.value, abs=0.003)
        # Of twelve it only makes the interval wider, on its side: the next look decides.
        assert found.low <= 1 <= found.high
        assert max(calm.low - found.low, found.high - calm.high) < farthest


def test_too_few_rounds_have_no_interval() -> None:
    assert pairs.estimate([0.0] * 9) is None
    assert pairs.estimate([0.0] * 10) is not None


def wrong_shares(scatter: str, runs: int, looks: tuple[int, ...] = pairs.LOOKS[:2]) -> float:
    """Share of the runs in which a ratio of exactly 1 was called larger or smaller at any of the looks."""
    chance, wrong = random.Random(7), 0
    for _ in range(runs):
        logs: list[float] = []
        for look in looks:
            while len(logs) < look:
                value = chance.gauss(0, 0.03)
                # A round in ten falls into another state of the machine.
                logs.append(value * 8 if scatter == "heavy" and chance.random() < 0.1 else value)
            found = pairs.estimate(logs)
            assert found
            if not found.low <= 1 <= found.high:
                wrong += 1
                break
    return wrong / runs


@pytest.mark.parametrize("scatter", ["even", "heavy"])
def test_the_interval_errs_no_more_often_than_it_says_however_often_it_is_looked_at(scatter: str) -> None:
    assert wrong_shares(scatter, 600) <= 2 * pairs.ERROR / 4 * 2  # two looks of four, and chance


def test_the_interval_would_err_where_each_look_took_the_whole_error() -> None:
    """The proof that the test before can fail."""
    chance, wrong = random.Random(7), 0
    for _ in range(300):
        found = pairs.estimate([chance.gauss(0, 0.03) for _ in range(24)], error=0.2)
        wrong += not (found and found.low <= 1 <= found.high)
    assert wrong / 300 == pytest.approx(0.2, abs=0.06)


def test_the_interval_of_blocks_is_students() -> None:
    found = pairs.estimate_of_blocks([0.01, 0.03, 0.02])
    assert found is not None
    reach = 14.089 * 0.01 / math.sqrt(3)
    assert (found.value, found.rounds) == (pytest.approx(math.exp(0.02)), 3)
    assert (found.low, found.high) == (pytest.approx(math.exp(0.02 - reach)), pytest.approx(math.exp(0.02 + reach)))
    assert pairs.estimate_of_blocks([0.01, 0.02]) is None
