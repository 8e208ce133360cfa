"""README.md and docs/: a test runs every command that they give, or a list has the reason why not; every link leads to
a file of this checkout, and to a heading of it; the pages that are made from the code are up to date. And
docs/evidence/sources.csv: what each of the five documents has, with what measures it here, or why nothing does, and
seen.csv: what each of these rows showed."""

import csv
import re
from itertools import pairwise
from pathlib import Path

import document_commands
import documents
import pytest
from markdown_it import MarkdownIt
from robot.running import TestSuiteBuilder

from ctbench.base.paths import SUITES
from tools import reference

ROOT = documents.ROOT
COMMANDS = documents.everything()


def test_every_command_of_the_documents_is_run_or_has_a_reason() -> None:
    for command in COMMANDS:
        document_commands.typed(command)
    assert len(COMMANDS) > 30


def test_the_tests_that_readme_shows_exist() -> None:
    names = {test.name for test in TestSuiteBuilder().build(documents.ROOT / "suites").all_tests}
    shown = re.findall(r"^  (\S.*?)  .*  MET$", documents.README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) >= 3
    assert all(any(name.startswith(row.removesuffix("...")) for name in names) for row in shown)


def test_the_reference_and_the_numbers_of_reports_are_what_the_code_and_the_page_say() -> None:
    for file, text in {reference.PAGE: reference.page(), reference.NUMBERS: reference.explained()}.items():
        assert file.read_text(encoding="utf-8") == text, "run tools/reference.py (docs/reference.md)"


#: All texts with links between them; results/ has a README of its own, and git ignores what else is there.
TEXTS = (*documents.DOCUMENTS, ROOT / "results" / "README.md")


def links(text: str) -> list[str]:
    """Where the links and images of a text lead to, in their order."""
    inline = [child for token in MarkdownIt("commonmark").parse(text) for child in token.children or ()]
    found = [child.attrGet("href") or child.attrGet("src") for child in inline if child.type in ("link_open", "image")]
    return [str(target) for target in found]


def anchors(text: str) -> set[str]:
    """The anchors of a text's headings, as GitHub and GitLab make them."""
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(text: str, folder: Path) -> list[str]:
    """The relative links of a text that lead nowhere when they are followed from its folder."""
    found = []
    for target in links(text):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve()
        if not file.exists() or not file.is_relative_to(ROOT):
            found.append(f"{target}: no such file")
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8") if path else text):
            found.append(f"{target}: no such heading")
    return found


@pytest.mark.parametrize("document", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    assert broken(document.read_text(encoding="utf-8"), document.parent) == []


def test_readme_leads_to_every_document() -> None:
    reached, ahead = {documents.README}, [documents.README]
    while ahead:
        document = ahead.pop()
        found = {document.parent / link.partition("#")[0] for link in links(document.read_text(encoding="utf-8"))}
        new = {path.resolve() for path in found if path.suffix == ".md" and path.exists()} - reached
        reached |= new
        ahead += new
    assert set(documents.DOCUMENTS) <= reached


#: Why something is left out; what was measured without a difference says which figure.
REASONS = ("hardware", "licence", "not about connection tracking", "measured, no difference")
#: Folders whose files stand for what is measured.
MEASURING = ("suites", "variables", "resources", "test_lists")


def table(name: str) -> list[list[str]]:
    with (ROOT / "docs" / "evidence" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def mistake(state: str, where: str, why: str, tests: set[str]) -> str:
    """What is wrong with an item of a document; empty where nothing is."""
    if state in ("here", "changed"):
        files = {name for name in where.split("; ") if name.startswith(MEASURING) and (ROOT / name).is_file()}
        lost = set(where.split("; ")) - tests - files
        return f"names what is not there: {lost}" if lost else "" if state == "here" or why else "says no difference"
    if state != "left out":
        return "is neither here, changed nor left out"
    if where not in REASONS or not why:
        return f"has no reason of {', '.join(REASONS)}"
    return "has no figure" if where.startswith("measured") and not re.search(r"\d", why) else ""


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
