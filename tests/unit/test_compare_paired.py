"""The judgement of starts of two builds: what it says, and how often it is wrong."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from pages import read_page

from ctbench.compare import text
from ctbench.compare.page import comparison_html
from ctbench.compare.starts import judge_starts, needed_starts, shows
from ctbench.results.comparison import ComparedTest, Comparison

from .paired import around, measured

NAMES = {"base": "distribution", "candidate": "/opt/ovs-3.3"}
#: What the base against itself showed.
QUIET = around(1, 5, 0.01, 9)


def judged(ratios: Sequence[float | None], same: Sequence[float | None] = QUIET, least: float = 0.02) -> Comparison:
    return judge_starts(NAMES, measured({0: same}, same=True), measured({0: ratios}), least_difference=least)


def only_test(comparison: Comparison) -> ComparedTest:
    (test,) = comparison.tests
    return test


SLOWER = around(0.95, 8, 0.005)


@pytest.mark.parametrize(
    ("ratios", "judgement", "said"),
    [
        (SLOWER, "regressed", " of 8 starts: with no difference between the builds that is seen with p = 0.0078."),
        (around(1.05, 8, 0.005), "improved", "+4.8 %, 99 % interval +4.3 % to +5.5 %, of 8 starts: with no difference"),
        ([None, *SLOWER], "regressed", " of 8 starts: "),
        ([*SLOWER[:7], 1.01], "no evidence", " is ruled out."),
        (
            [0.99, 1.02, 1.01, 0.995, 1.0, 1.005, 0.98, 1.01],
            "no evidence",
            " a loss of more than 2.00 % is ruled out.",
        ),
        (around(0.985, 8, 0.002), "no evidence", "there is a difference, and it is within 2.00 %."),
        (around(0.5, 7, 0.001), "not measurable", "7 starts cannot show p < 0.01 among 1 test: 8 are needed."),
        ([None] * 8, "not measurable", "No start measured it; the last one says: the generator stood still."),
    ],
)
def test_starts_of_both_builds_are_judged_with_a_reason(ratios: list[float | None], judgement: str, said: str) -> None:
    found = judged(ratios)
    assert (found.judgement, only_test(found).judgement) == (judgement, judgement)
    assert said in only_test(found).reason
    starts = only_test(found).starts
    assert starts is not None and (starts.ratio is None) == (only_test(found).difference_pct is None) == (
        not any(ratios)
    )
    assert judgement in comparison_html(found, Path("/x")) and judgement in text.console(found).lower()


def test_a_start_is_a_sample_and_the_interval_is_of_their_middle() -> None:
    test = only_test(judged(SLOWER))
    assert test.difference_pct == pytest.approx(-5, abs=0.7)
    assert test.p_regressed == test.p_improved == test.p_regressed_corrected == 2 / 2**8
    assert test.starts is not None
    assert test.starts.low is not None and test.starts.high is not None and test.starts.ratio is not None
    assert min(test.starts.ratios) == pytest.approx(test.starts.low)
    assert test.starts.low < test.starts.ratio < test.starts.high < 1
    missing = only_test(judged([None, *SLOWER])).starts
    assert missing is not None and missing.ratios == pytest.approx(test.starts.ratios)
    # One that is sure and small is a regression where the user says so.
    assert only_test(judged(around(0.985, 8, 0.002), least=0.01)).judgement == "regressed"


def test_many_tests_need_more_starts_and_one_that_is_worse_is_found_among_them() -> None:
    def many(starts: int) -> Comparison:
        ratios = {test: around(0.94 if test == 3 else 1, starts, 0.005, test) for test in range(10)}
        return judge_starts(NAMES, [], measured(ratios))

    assert needed_starts(10) == 11
    assert {test.judgement for test in many(10).tests} == {"not measurable"}
    words = {test.test: test.judgement for test in many(11).tests}
    (few,) = judge_starts(NAMES, [], measured({3: around(0.94, 8, 0.005, 3), 4: [1.0] * 8}), only=["test 3"]).tests
    assert words.pop("Test 3") == few.judgement == "regressed", "of fewer tests, fewer starts will do"
    assert set(words.values()) == {"no evidence"}


def test_the_builds_changed_roles_and_the_ratio_is_always_candidate_to_base() -> None:
    pairs = measured({0: [0.9] * 8})
    raw = [each.stored[0].record.figures["of_build"].value for each in pairs]
    assert raw[:2] == [pytest.approx(0.9), pytest.approx(1 / 0.9)]
    (test,) = judge_starts(NAMES, [], pairs).tests
    assert test.starts is not None
    assert test.starts.ratios == pytest.approx([0.9] * 8)


def test_what_favours_the_build_that_is_set_up_first_is_no_difference_of_the_builds() -> None:
    """The one that comes first is 3 % faster in every start: the roles change, so nothing is found."""
    test = only_test(judged([1.03 if number % 2 else 1 / 1.03 for number in range(8)]))
    assert (test.judgement, test.difference_pct) == ("no evidence", pytest.approx(0, abs=0.01))


def test_two_rows_that_measure_the_same_are_one_sample_of_a_start() -> None:
    pairs = [replace(each, stored=[*each.stored] * 2) for each in measured({0: around(0.95, 8, 0.005)})]
    (test,) = judge_starts(NAMES, [], pairs).tests
    assert test.starts is not None and len(test.starts.ratios) == 8


def test_the_base_against_itself_says_what_the_machine_can_show() -> None:
    loud, quiet = only_test(judged(around(1, 8, 0.02), around(1, 5, 0.02))), only_test(judged(around(1, 8, 0.02)))
    assert loud.starts and quiet.starts and loud.starts.shows and quiet.starts.shows
    assert loud.starts.shows > quiet.starts.shows >= 0.02
    unknown = judge_starts(NAMES, [], measured({0: [1.0] * 8}))
    assert unknown.tests[0].starts and unknown.tests[0].starts.shows is None
    assert "what this machine can show is not known" in unknown.notes[0]
    # No machine shows less than what counts as a difference.
    assert shows([0.0, 0.0], 8, 1, 0.02) == 0.02
    assert shows([0.01, -0.01, 0.02], 7, 1, 0.02) is None
    assert shows([0.01], 8, 1, 0.02) is None


@pytest.mark.parametrize("luck", [0.01, 0.02, 0.05])
def test_the_same_build_is_never_said_to_differ_more_often_than_one_time_in_a_hundred(luck: float) -> None:
    words = [only_test(judged(around(1, 8, luck, seed))).judgement for seed in range(60)]
    assert mean(word != "no evidence" for word in words) <= 0.01 + 3 * (0.01 * 0.99 / 60) ** 0.5


def test_a_regression_of_5_percent_is_found_where_starts_differ_by_2_and_one_of_10_where_they_differ_by_4() -> None:
    for factor, luck in ((0.95, 0.02), (0.90, 0.04)):
        words = [only_test(judged(around(factor, 8, luck, seed))).judgement for seed in range(60)]
        assert mean(word == "regressed" for word in words) >= 0.9
        assert "improved" not in words


def test_what_the_machine_can_show_is_found_nine_times_of_ten() -> None:
    dice = random.Random(2)
    size = shows([dice.gauss(0, 0.02) for _ in range(2000)], 8, 1, 0.0)
    assert size is not None
    words = [only_test(judged(around(1 - size, 8, 0.02, seed))).judgement for seed in range(60)]
    assert mean(word == "regressed" for word in words) == pytest.approx(0.9, abs=0.1)


def test_the_console_has_the_interval_and_every_line_fits() -> None:
    shown = text.console(judged(around(0.95, 8, 0.005)))
    assert "99 % interval" in shown and "can show" in shown and "REGRESSED" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("Test 0")]
    assert " to -4." in row and "0.0078" in row
    assert max(map(len, shown.splitlines())) <= 120
    assert "7 are needed" not in shown
    assert "8 are needed." in text.console(judged(around(0.95, 7, 0.005)))


def test_the_page_has_starts_interval_and_what_the_machine_can_show() -> None:
    found = judge_starts(
        NAMES,
        measured({0: QUIET, 1: QUIET}, same=True),
        measured({0: around(1, 9, 0.005, 1), 1: around(0.9, 9, 0.005)}),
    )
    page = read_page(comparison_html(found, Path("/base/compared")))
    rows = page.by_id("tests").all("tr", "test")
    assert [row.one("th").own_text for row in rows] == ["Test 1", "Test 0"]  # the worst news first
    cells = {cell.attributes["data-name"]: cell.text for cell in rows[0].all("td")}
    assert cells["Judgement"] == "▼ regressed"
    assert cells["99 % interval"].startswith("\u22121")
    assert cells["p"] == "0.0078"
    assert cells["Can show"].endswith("base against itself: 5 starts record 1 2 3 4 5")
    assert "9 starts, \u2212" in cells["Starts"]
    assert len(rows[0].all("circle")) == 14
    assert "sign-flip" in page.by_id("method").text
    said = text.markdown(found)
    assert "| difference | 99 % interval | p | can show | starts | judgement |" in said and "sign-flip" in said


def test_what_differs_besides_the_build_is_named() -> None:
    pairs = measured({0: [1.0] * 8})
    (stored,) = pairs[3].stored
    where = stored.record.environment
    other = where.model_copy(update={"machine": where.machine.model_copy(update={"kernel": "6.9"})})
    moved = replace(stored, record=stored.record.model_copy(update={"environment": other}))
    (said,) = judge_starts(NAMES, [], [*pairs[:3], replace(pairs[3], stored=[moved]), *pairs[4:]]).differences
    assert 'kernel ("6.1" and "6.9")' in said
