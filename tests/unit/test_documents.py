"""README.md and docs/: a test runs every command that they give, or a list has the reason why not; every link leads to
a file of this checkout, and to a heading of it; the pages that are made from the code are up to date."""

import importlib.util
import re
from itertools import pairwise
from pathlib import Path

import document_commands
import documents
import pytest
from markdown_it import MarkdownIt
from robot.running import TestSuiteBuilder

COMMANDS = documents.everything()


def problems(commands: list[documents.Command]) -> list[str]:
    """Commands that no test runs."""
    found = []
    for command in commands:
        try:
            document_commands.typed(command)
        except LookupError as error:
            found.append(str(error))
    return found


def test_every_command_of_the_documents_is_run_or_has_a_reason() -> None:
    assert problems(COMMANDS) == []
    assert len(COMMANDS) > 30


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ build everything     # quickly\n```",
        "```sh\n# first\nbuild \\\n  everything\n```",
        "- a list\n\n  ```console\n  $ build everything\n  it is made\n  ```",
        "Text\n\n    $ build everything\n",
    ],
)
def test_a_command_that_no_test_runs_is_found_in_every_kind_of_block(block: str) -> None:
    (problem,) = problems(documents.read(f"# Title\n\n{block}\n", "MADE-UP.md"))
    assert problem.startswith("MADE-UP.md:")
    assert problem.endswith("no test runs this command: build everything")


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("```console\n$ ./run sla   # all\noutput\n$ ./run report\n```", ["./run sla", "./run report"]),
        ("```\n./run sla --include x\n```", ["./run sla --include x"]),
        ("Type `./run check\ndocs`, or `X=1 ./run sla -v A:b`.", ["./run check docs", "X=1 ./run sla -v A:b"]),
        ("| `./run doctor mylab` | a cell |", ["./run doctor mylab"]),
        ("`./run sla`, `./run` and `robot` are names, `-v TESTBED:x` is an option.", []),
        ("```yaml\n# ./run sla\nkey: value\n```", []),
    ],
)
def test_commands_are_told_from_output_comments_and_names(text: str, commands: list[str]) -> None:
    assert [command.text for command in documents.read(text, "MADE-UP.md")] == commands


def test_the_tests_that_readme_shows_exist() -> None:
    names = {test.name for test in TestSuiteBuilder().build(documents.ROOT / "suites").all_tests}
    shown = re.findall(r"^  (\S.*?)  .*  MET$", documents.README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) > 3
    assert all(any(name.startswith(row.removesuffix("...")) for name in names) for row in shown)


def test_the_reference_and_the_numbers_of_reports_are_what_the_code_and_the_page_say() -> None:
    found = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert found and found.loader
    reference = importlib.util.module_from_spec(found)
    found.loader.exec_module(reference)
    for file, text in {reference.PAGE: reference.page(), reference.NUMBERS: reference.explained()}.items():
        assert file.read_text(encoding="utf-8") == text, "run tools/reference.py (docs/reference.md)"


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


def test_readme_leads_to_every_document() -> None:
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
