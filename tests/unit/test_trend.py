"""Where the figure of a test changed over its runs, and that noise alone is no change."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctbench.report import trend
from ctbench.report.charts.lines import history_charts
from ctbench.results.environment import CampaignFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate

from .counted import counted_record
from .simulated import found, made_up_record

NIGHT = datetime(2026, 10, 30, 20, tzinfo=UTC)


def series(runs: int, scatter: float, seed: int, *, slower_from: int = 1000, slower: float = 0.12) -> list[float]:
    """Figures of so many runs that scatter (standard deviation of their logarithms), slower from one of them on."""
    dice = random.Random(seed)
    return [
        100_000 * math.exp(dice.gauss(0, scatter)) * (1 - slower * (number >= slower_from)) for number in range(runs)
    ]


def share_found(runs: int, scatter: float, **step: Any) -> float:
    """In how many of 300 series something is found; of those with a step, it within one run of where it is."""
    hits = 0
    for seed in range(300):
        begins = [level.first for level in trend.levels(series(runs, scatter, seed, **step))[1:]]
        hits += any(abs(each - step["slower_from"]) <= 1 for each in begins) if step else bool(begins)
    return hits / 300


@pytest.mark.parametrize(("scatter", "most"), [(0.005, 0.0), (0.02, 0.01), (0.05, 0.01), (0.08, 0.03)])
@pytest.mark.parametrize("runs", [6, 10, 20])
def test_noise_alone_is_a_change_in_one_of_a_hundred_series_at_most(runs: int, scatter: float, most: float) -> None:
    assert share_found(runs, scatter) <= most


@pytest.mark.parametrize(
    ("before", "after", "scatter", "slower", "least"),
    [
        (5, 3, 0.005, 0.05, 0.95),
        (5, 3, 0.02, 0.12, 0.7),
        (10, 3, 0.02, 0.12, 0.95),
        (10, 5, 0.02, 0.12, 0.99),
        (10, 5, 0.05, 0.25, 0.95),
    ],
)
def test_a_step_is_found_where_it_is(before: int, after: int, scatter: float, slower: float, least: float) -> None:
    assert share_found(before + after, scatter, slower_from=before, slower=slower) >= least


def ratchet(seed: int, runs_each: int = 1) -> list[float]:
    """Ten releases, each 1 % slower than the one before, whose runs scatter by 0.3 %."""
    steady = series(10 * runs_each, 0.003, seed)
    return [rate * 0.99 ** (number // runs_each) for number, rate in enumerate(steady)]


@pytest.mark.parametrize("runs_each", [1, 2, 5])
def test_ten_releases_each_1_percent_slower_are_found_as_what_they_lost_together(runs_each: int) -> None:
    found = [trend.in_small_steps(ratchet(seed, runs_each)) for seed in range(200)]
    ends = [both for both in found if both]
    assert len(ends) >= 198
    assert all(before.first == 0 and after.last == 10 * runs_each - 1 for before, after in ends)
    assert all(0.9 < after.average / before.average < 0.93 for before, after in ends)
    assert all(3 <= after.first / runs_each <= 5 for _, after in ends)  # where it is more than 3 %


@pytest.mark.parametrize(("runs", "scatter"), [(10, 0.003), (30, 0.003), (6, 0.02), (20, 0.02), (10, 0.05)])
def test_like_runs_are_no_small_steps(runs: int, scatter: float) -> None:
    found = [trend.in_small_steps(series(runs, scatter, seed)) for seed in range(200)]
    assert sum(each is not None for each in found) <= 4


@pytest.mark.parametrize(("slower", "scatter"), [(0.028, 0.003), (0.12, 0.003), (0.12, 0.02), (0.25, 0.05)])
def test_one_step_is_no_small_steps(slower: float, scatter: float) -> None:
    found = [trend.in_small_steps(series(20, scatter, seed, slower_from=10, slower=slower)) for seed in range(50)]
    assert sum(each is not None for each in found) <= 1


def nights(rates: Sequence[float], *, test: str = "SNAT, 1 CPU", campaign: str = "mlr", **changes: Any) -> list[Record]:
    return [
        made_up_record(
            found(rate),
            test=test,
            started=NIGHT + timedelta(days=number),
            campaign=CampaignFacts(name="night", search=campaign),
            **changes,
        )
        for number, rate in enumerate(rates)
    ]


FALLS = [100_000, 101_000, 99_000, 100_500, 88_000, 88_500, 87_500]


def test_the_page_says_in_one_line_what_changed_with_which_run_the_worst_first() -> None:
    rises = [rate * 1.3 if number > 2 else rate for number, rate in enumerate([100_000.0] * 6)]
    falls = nights(FALLS)
    assert (
        trend.sentence([falls])
        == "CPS of SNAT, 1 CPU fell by 12 % with the run of 2026-11-03 20:00 UTC: see the history."
    )
    said = trend.sentence([nights(rises, test="A"), falls, *(nights(FALLS, test=each) for each in "BCD")])
    assert said.startswith("CPS of SNAT, 1 CPU fell by") and said.endswith("; 2 more tests: see the history.")
    assert trend.sentence([nights(rises, test="A"), falls]).split("; ")[1].startswith("CPS of A rose by 30 %")
    assert trend.sentence([nights([100_000.0] * 6), nights([100_000])]) == ""


def test_what_became_worse_in_small_steps_is_said_since_the_run_that_it_began_with() -> None:
    falls = nights(ratchet(0, 2))
    since = "since the run of 2026-10-30 20:00 UTC, in small steps"
    assert trend.sentence([falls]) == f"CPS of SNAT, 1 CPU fell by 9 % {since}: see the history."
    (change,) = trend.changes(falls)
    assert change.is_worse and change.since.started == NIGHT + timedelta(days=change.after.first)
    (chart,) = history_charts([falls])
    (line,) = [each.points for each in chart.series if each.style == "run-level"]
    assert [point.x for point in line] == [0.0, 19.0] and line[1].y < 0.93 * line[0].y
    assert chart.caption.endswith(f"; fell by 9 % {since}.")
    # After a step they are counted from there.
    both = nights([*(120_000 + 10 * number for number in range(6)), *ratchet(0, 2)])
    assert [(round(each.ratio, 2), bool(each.anchor)) for each in trend.changes(both)][1:] == [(-0.09, True)]


def test_what_was_0_before_has_changed_by_no_share() -> None:
    before, after = trend.levels([0.0, 0.0, 5.0, 5.0])
    change = trend.Change(METRICS["memory_kept"], before, after, nights([1.0])[0])
    assert change.words.startswith(f"rose from 0 to {METRICS['memory_kept'].format(5.0)} with the run of")
    assert change.is_worse


def test_one_run_alone_is_no_change_neither_in_between_nor_at_the_end() -> None:
    assert trend.changes(nights([100_000, 101_000, 99_000, 60_000, 100_500, 99_500])) == []
    assert trend.changes(nights([100_000, 101_000, 99_000, 100_500, 60_000])) == []


def test_steps_too_small_to_be_said_are_one_level() -> None:
    (level,) = trend.levels([100_000, 100_010, 99_990, 98_000, 98_010, 97_990])
    assert (level.first, level.last, level.runs) == (0, 5, 6) and level.average == pytest.approx(99_000)
    assert trend.levels([0.0, 0.0]) == [] and trend.levels([]) == []


def test_runs_whose_figure_is_not_the_dut_s_are_left_out() -> None:
    runs = nights(FALLS)
    for number in (4, 5, 6):
        runs[number] = runs[number].model_copy(update={"limited_by": "generator"})
    assert trend.changes(runs) == []
    assert trend.changes(nights(FALLS[:4]) + [each.model_copy(update={"verdict": "not measured"})
                                             for each in nights(FALLS)[4:]]) == []  # fmt: skip


def test_a_search_that_ends_at_one_of_a_few_loads_has_no_trend() -> None:
    ends = [
        Estimate(rate, "connections/s", rate, high) for rate, high in [(44_000, 65_000)] * 3 + [(30_000, 44_000)] * 3
    ]
    runs = [
        each.model_copy(update={"metric": "sustained_cps", "figures": {"sustained_cps": figure}})
        for each, figure in zip(nights([1.0] * 6), ends, strict=True)
    ]
    assert trend.changes(runs) == []


def test_of_shares_of_a_closed_loop_its_rate_is_what_changes() -> None:
    served = [
        each.model_copy(update={"figures": each.figures | {"saturation_cps": Estimate(rate, "connections/s")}})
        for each, rate in zip(nights([90_000] * 7, campaign="saturation"), FALLS, strict=True)
    ]
    (change,) = trend.changes(served)
    assert change.metric.name == "saturation_cps" and change.is_worse


def test_of_instructions_a_smaller_step_is_said_and_more_is_worse() -> None:
    counted = [counted_record("forward", [each]) for each in (1400, 1400, 1400, 1412, 1412)]
    (change,) = trend.changes(counted)
    assert change.is_worse and change.ratio == pytest.approx(12 / 1400)


def test_the_history_draws_the_levels_and_says_the_change() -> None:
    (chart,) = history_charts([nights(FALLS)])
    levels = [each for each in chart.series if each.style == "run-level"]
    assert [[(point.x, round(point.y)) for point in each.points] for each in levels] == [
        [(0.0, 100_125), (3.0, 100_125)], [(4.0, 88_000), (6.0, 88_000)],
    ]  # fmt: skip
    assert chart.caption.endswith("; fell by 12 % with the run of 2026-11-03 20:00 UTC.")
    (steady,) = history_charts([nights([100_000] * 5)])
    assert not [each for each in steady.series if each.style == "run-level"]
