"""The first screen: one sentence with counts, and never green where something is not known."""

from pathlib import Path

import pytest

from ctbench.report.headline import Tally, counts, details, sentence
from ctbench.results.store import Stored

from .simulated import made_up_record

pytestmark = pytest.mark.unit


def tally(met: int = 0, missed: int = 0, not_measured: int = 0, *others: int) -> Tally:
    skipped, failed, unreadable = (*others, 0, 0, 0)[:3]
    return Tally(met, missed, not_measured, skipped, failed, unreadable)


@pytest.mark.parametrize(
    ("found", "said", "tone"),
    [
        (tally(59), "All 59 SLAs that were measured are met.", "met"),
        (tally(1), "The SLA that was measured is met.", "met"),
        (tally(56, 2, 1), "2 of 59 SLAs are missed; 56 are met, 1 could not be measured.", "missed"),
        (tally(1, 1), "1 of 2 SLAs is missed; 1 is met.", "missed"),
        (tally(0, 1, 1), "1 of 2 SLAs is missed; 1 could not be measured.", "missed"),
        (tally(0, 1), "The only SLA is missed.", "missed"),
        (tally(0, 3), "3 of 3 SLAs are missed.", "missed"),
        (tally(4, 0, 6), "No SLA is missed, but 6 of 10 SLAs could not be measured; 4 are met.", "unmeasured"),
        (tally(0, 0, 2), "None of 2 SLAs could be measured.", "unmeasured"),
        (tally(0, 0, 1), "The only SLA could not be measured.", "unmeasured"),
        (tally(), "Nothing was measured.", "unmeasured"),
        (tally(0, 0, 0, 25), "Nothing was measured.", "unmeasured"),
        (tally(1234), "All 1\u202f234 SLAs that were measured are met.", "met"),
    ],
)
def test_the_verdict_is_one_sentence(found: Tally, said: str, tone: str) -> None:
    assert (sentence(found), found.tone) == (said, tone)


def test_skipped_tests_leave_a_verdict_green_and_are_counted() -> None:
    found = tally(59, 0, 0, 25)
    assert found.tone == "met"
    assert "25 tests were skipped: this testbed lacks what they need, as told below." in details(found, [])
    assert [(count.number, count.word) for count in counts(found)][-1] == (25, "skipped")


@pytest.mark.parametrize("found", [tally(59, 0, 0, 0, 1), tally(59, 0, 0, 0, 0, 1)])
def test_a_failed_test_or_a_file_that_cannot_be_read_is_never_green(found: Tally) -> None:
    assert found.tone == "unmeasured"
    assert len(details(found, [])) == 1


def test_the_test_nearest_to_its_floor_is_named() -> None:
    near = made_up_record(test="Near", margin_pct=0.9, suite="All.Conntrack")
    said = details(tally(2), [Stored(Path("x"), each) for each in (made_up_record(margin_pct=690.0), near)])
    assert said[1:] == ("Of those met, the nearest to its floor is “Near” (Conntrack) (+0.90 %).",)


def test_the_three_verdicts_are_always_counted_the_others_where_there_are_any() -> None:
    assert [count.word for count in counts(tally(1))] == ["met", "missed", "not measured"]
