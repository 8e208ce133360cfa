"""docs/sources.md: what each of the five documents has, with what measures it here, or the reason why nothing does."""

import re

import pytest
from documents import ROOT
from robot.running import TestSuiteBuilder

from ctbench.base.paths import SUITES

PAGE = ROOT / "docs" / "sources.md"
EVIDENCE = ROOT / "docs" / "evidence" / "sources.md"
#: Why something is left out; what was measured without a difference says which figure.
REASONS = ("hardware", "licence", "not about connection tracking", "measured, no difference")
#: Folders whose files stand for what is measured.
MEASURING = ("suites", "variables", "resources", "results/reference", "test_lists")


def rows(text: str) -> list[list[str]]:
    """The cells of every row of the tables about a document."""
    lines = [line for line in text.partition("\n## ")[2].splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells for cells in found if cells[0] not in ("in the document", "row") and set(cells[0]) != {"-"}]


def mistake(cells: list[str], tests: set[str]) -> str:
    """What is wrong with a row; empty where nothing is."""
    if len(cells) != 4:
        return "has not four cells"
    _, state, where, why = cells
    if state in ("here", "changed"):
        named, files = re.findall(r'"([^"]+)"', where), re.findall("`([^`]+)`", where)
        lost = [name for name in named if name not in tests]
        lost += [file for file in files if not (file.startswith(MEASURING) and (ROOT / file).is_file())]
        left = re.sub(r'"[^"]+"|`[^`]+`|[ ,]', "", where)
        if lost or left or not named + files:
            return f"names what is not there: {lost or left or 'nothing'}"
        return "does not say what was changed" if state == "changed" and not why else ""
    if state == "left out":
        if where not in REASONS or not why:
            return f"has no reason of {', '.join(REASONS)}"
        return "has no figure" if where.startswith("measured") and not re.search(r"\d", why) else ""
    return "is neither here, changed nor left out"


def test_every_row_names_what_measures_it_or_a_reason() -> None:
    tests = {test.name for test in TestSuiteBuilder().build(SUITES).all_tests}
    found = rows(PAGE.read_text(encoding="utf-8"))
    wrong = {cells[0]: why for cells in found if (why := mistake(cells, tests))}
    assert wrong == {}
    assert len(found) > 90


def without_evidence(said: str, seen: str) -> list[str]:
    """Rows of suites that a page says stand for a document, but that have neither a figure nor a reason in `seen`."""
    has = {
        name
        for name, figure, machine, more in (cells for cells in rows(seen) if len(cells) == 4)
        if re.match(r"(skipped|not measured): \S", figure) or (re.search(r"\d", figure) and machine and more)
    }
    return sorted({name for cells in rows(said) for name in re.findall(r'"([^"]+)"', cells[2])} - has)


def test_every_row_of_a_suite_has_a_figure_or_says_why_it_was_skipped() -> None:
    assert without_evidence(PAGE.read_text(encoding="utf-8"), EVIDENCE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("evidence", "found"),
    [
        ("| A Row | 1.2 M packets/s | Xeon | [page](x.md) |", []),
        ("| A Row | skipped: 3 CPUs | | |", []),
        ("| A Row | skipped: | | |", ["A Row"]),
        ("| A Row | as fast as before | Xeon | [page](x.md) |", ["A Row"]),
        ("| A Row | 1.2 M packets/s | | |", ["A Row"]),
        ("| No Row | 1.2 M packets/s | Xeon | [page](x.md) |", ["A Row"]),
    ],
)
def test_a_row_without_a_figure_is_found(evidence: str, found: list[str]) -> None:
    head = "# Page\n\n## Document\n\n"
    assert without_evidence(f'{head}| x | here | "A Row" | |\n', f"{head}{evidence}\n") == found


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('| x | here | "A Row" | |', ""),
        ("| x | changed | `results/reference/linux-5.0/figure-01.json` | y |", ""),
        ("| x | left out | hardware | y |", ""),
        ('| x | here | "No Row" | |', "No Row"),
        ("| x | here | `results/reference/linux-5.0/figure-99.json` | |", "figure-99"),
        ("| x | here | `README.md` | |", "README.md"),
        ("| x | here | somewhere | |", "somewhere"),
        ("| x | here | | |", "nothing"),
        ('| x | changed | "A Row" | |', "changed"),
        ("| x | left out | no time | y |", "no reason"),
        ("| x | left out | hardware | |", "no reason"),
        ("| x | left out | measured, no difference | as fast as before |", "no figure"),
        ("| x | not yet | not yet | |", "neither"),
    ],
)
def test_a_row_that_says_less_is_found(row: str, said: str) -> None:
    (cells,) = rows(f"# Page\n\n## Document\n\n| in the document | | where | why |\n|---|---|---|---|\n{row}\n")
    found = mistake(cells, {"A Row"})
    assert said in found if said else found == ""
