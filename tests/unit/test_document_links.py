"""Every link between the documents leads somewhere: to a file of this checkout, and to a heading of it."""

import re
from itertools import pairwise
from pathlib import Path

import documents
import pytest
from markdown_it import MarkdownIt

ROOT = documents.ROOT
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


def test_readme_leads_to_every_document_directly_or_over_another_one() -> None:
    reached, ahead = {documents.README}, [documents.README]
    while ahead:
        document = ahead.pop()
        found = {document.parent / link.partition("#")[0] for link in links(document.read_text(encoding="utf-8"))}
        new = {path.resolve() for path in found if path.suffix == ".md" and path.exists()} - reached
        reached |= new
        ahead += new
    assert set(documents.DOCUMENTS) <= reached


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](docs/nowhere.md)", "docs/nowhere.md: no such file"),
        ("![a](docs/nowhere.png)", "docs/nowhere.png: no such file"),
        ("[a](docs/adding.md#nothing)", "docs/adding.md#nothing: no such heading"),
        ("# Title\n\n[a](#tittle)", "#tittle: no such heading"),
        ("[a](../../outside.md)", "../../outside.md: no such file"),
        ("[a](docs/adding.md#a-promise) [b](#the-title) [c](https://example.org/x#y)\n\n## The `title`", ""),
    ],
)
def test_a_link_that_leads_nowhere_is_found(text: str, problem: str) -> None:
    assert broken(text, ROOT) == ([problem] if problem else [])


def test_readme_fits_two_screens() -> None:
    assert len(documents.README.read_text(encoding="utf-8").splitlines()) <= 110


@pytest.mark.parametrize("document", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_line_that_is_no_row_of_a_table_has_at_most_120_columns(document: Path) -> None:
    lines = document.read_text(encoding="utf-8").splitlines()
    long = [line for line in lines if len(line) > 120 and not line.startswith("|") and not re.match(r"\$ ", line)]
    assert long == []
