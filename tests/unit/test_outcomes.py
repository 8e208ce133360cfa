"""Outcomes of several runs of pytest, and the one closing line for all of them."""

import json
from pathlib import Path

import pytest

from ctbench.cli.checks.outcomes import Outcomes, duration

pytestmark = pytest.mark.unit


def line(test: str, outcome: str, when: str = "call", root_too: bool = False) -> str:
    return json.dumps({"test": test, "when": when, "outcome": outcome, "root_too": root_too, "seconds": 0.1}) + "\n"


@pytest.fixture
def both(tmp_path: Path) -> Outcomes:
    """What an ordinary user saw, and root after that."""
    ordinary, root = tmp_path / "ordinary", tmp_path / "root"
    ordinary.write_text(
        line("a::passes", "passed", "setup")
        + line("a::passes", "passed")
        + line("a::passes", "passed", "teardown")
        + line("a::marked", "passed", root_too=True)
        + line("a::roots", "skipped", "setup")
        + line("a::nobodys", "skipped", "setup")
        + line("a::fails", "failed")
        + line("a::teardown", "passed")
        + line("a::teardown", "error", "teardown")
    )
    root.write_text(
        line("a::marked", "failed", root_too=True) + line("a::roots", "passed") + line("a::nobodys", "skipped", "setup")
    )
    outcomes = Outcomes()
    outcomes.read(ordinary, "")
    assert outcomes.for_root() == ["a::marked", "a::roots", "a::nobodys"]
    outcomes.read(root, "root")
    return outcomes


def test_a_test_counts_once_and_is_what_the_worst_user_saw(both: Outcomes) -> None:
    assert dict(both.counts()) == {"passed": 2, "failed": 2, "skipped": 1, "error": 1}
    assert both.closing_line(0, 1.5).strip("=") == " 2 failed, 2 passed, 1 skipped, 1 error in 1.50s "


def test_what_failed_is_named_with_the_user_who_saw_it(both: Outcomes) -> None:
    assert both.failures() == ["FAILED a::fails", "ERROR a::teardown", "FAILED a::marked (as root)"]


def test_only_tests_that_ran_are_counted_for_a_user(both: Outcomes) -> None:
    assert (both.ran_as(""), both.ran_as("root")) == (4, 2)


def test_what_is_no_test_is_an_error_of_the_closing_line(both: Outcomes) -> None:
    assert both.closing_line(2, 1).strip("=") == " 2 failed, 2 passed, 1 skipped, 3 errors in 1.00s "


def test_without_a_test_the_line_says_so() -> None:
    assert Outcomes().closing_line(0, 1).strip("=") == " no tests ran in 1.00s "
    assert Outcomes().closing_line(1, 1).strip("=") == " 1 error in 1.00s "


def test_a_file_that_ends_in_the_middle_of_a_line_keeps_what_is_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(line("a::passes", "passed") + '{"test": "a::')
    outcomes = Outcomes()
    outcomes.read(tmp_path / "file", "")
    assert dict(outcomes.counts()) == {"passed": 1}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.50s"), (78.25, "78.25s (0:01:18)"), (3661.5, "3661.50s (1:01:01)")]
)
def test_a_duration_is_written_as_pytest_does(seconds: float, text: str) -> None:
    assert duration(seconds) == text
