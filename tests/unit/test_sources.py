"""docs/evidence/sources.csv: what each of the five documents has, with what measures it here, or why nothing does; and
seen.csv: what each of these rows showed."""

import csv
import re

import pytest
from documents import ROOT
from robot.running import TestSuiteBuilder

from ctbench.base.paths import SUITES

#: Why something is left out; what was measured without a difference says which figure.
REASONS = ("hardware", "licence", "not about connection tracking", "measured, no difference")
#: Folders whose files stand for what is measured.
MEASURING = ("suites", "variables", "resources", "results/reference", "test_lists")


def table(name: str) -> list[list[str]]:
    with (ROOT / "docs" / "evidence" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def mistake(state: str, where: str, why: str, tests: set[str]) -> str:
    """What is wrong with an item of a document; empty where nothing is."""
    if state in ("here", "changed"):
        lost = [name for name in where.split("; ") if name not in tests and not _measures(name)]
        return f"names what is not there: {lost}" if lost else "" if state == "here" or why else "says no difference"
    if state != "left out":
        return "is neither here, changed nor left out"
    if where not in REASONS or not why:
        return f"has no reason of {', '.join(REASONS)}"
    return "has no figure" if where.startswith("measured") and not re.search(r"\d", why) else ""


def _measures(file: str) -> bool:
    return file.startswith(MEASURING) and (ROOT / file).is_file()


def test_every_item_names_what_measures_it_or_a_reason_and_every_row_has_a_figure_or_was_skipped() -> None:
    tests = {test.name for test in TestSuiteBuilder().build(SUITES).all_tests}
    items = table("sources.csv")
    wrong = {item: why for _, item, *cells in items if (why := mistake(*cells, tests))}
    assert wrong == {}
    assert len(items) > 90
    seen = {
        row
        for _, row, figure, machine in table("seen.csv")
        if re.match(r"(skipped|not measured): \S", figure) or (re.search(r"\d", figure) and machine)
    }
    named = {name for _, _, state, where, _ in items if state != "left out" for name in where.split("; ")}
    assert (named & tests) - seen == set()


@pytest.mark.parametrize(
    ("state", "where", "why", "said"),
    [
        ("here", "A Row", "", ""),
        ("changed", "A Row; results/reference/linux-5.0/figure-01.json", "y", ""),
        ("left out", "hardware", "y", ""),
        ("here", "No Row", "", "No Row"),
        ("here", "results/reference/linux-5.0/figure-99.json", "", "figure-99"),
        ("here", "README.md", "", "README.md"),
        ("changed", "A Row", "", "no difference"),
        ("left out", "no time", "y", "no reason"),
        ("left out", "measured, no difference", "as fast as before", "no figure"),
        ("not yet", "", "", "neither"),
    ],
)
def test_an_item_that_says_less_is_found(state: str, where: str, why: str, said: str) -> None:
    found = mistake(state, where, why, {"A Row"})
    assert said in found if said else found == ""
