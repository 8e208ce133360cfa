"""A test runs every command that README.md and docs/ give, or a list has the reason why not."""

from collections.abc import Sequence

import document_commands
import documents
import pytest
from document_outputs import FORMS
from documents import Shown
from robot.running import TestSuiteBuilder

COMMANDS, SHOWN = documents.everything()


def made_up(text: str) -> tuple[list[str], Sequence[Shown]]:
    commands, shown = documents.read(text, "MADE-UP.md")
    return [command.text for command in commands], shown


def test_every_command_of_the_documents_is_run_or_has_a_reason_and_every_reason_a_command() -> None:
    assert document_commands.problems(COMMANDS, SHOWN) == []
    assert len(COMMANDS) > 30


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ make everything     # quickly\n```",
        "```sh\n# first\nmake \\\n  everything\n```",
        "- a list\n\n  ```console\n  $ make everything\n  it is made\n  ```",
        "Text\n\n    $ make everything\n",
    ],
)
def test_a_command_that_no_test_runs_is_found_in_every_kind_of_block(block: str) -> None:
    commands, shown = documents.read(f"# Title\n\n{block}\n", "MADE-UP.md")
    (problem,) = document_commands.problems([*COMMANDS, *commands], [*SHOWN, *shown])
    assert problem.startswith("MADE-UP.md:")
    assert problem.endswith("no test runs this command: make everything")


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
    assert made_up(text)[0] == commands


def test_a_block_that_no_test_compares_is_found_unless_it_is_a_drawing() -> None:
    _, shown = made_up("```\n┌──┐\n└──┘\n```\n\n```\nverdict: fine\n```\n")
    (problem,) = document_commands.problems(COMMANDS, [*SHOWN, *shown])
    assert problem == "MADE-UP.md:6: no test compares what is shown here"


def test_a_reason_without_a_command_is_found() -> None:
    left = [command for command in COMMANDS if command.text != "./run tests"]
    assert document_commands.problems(left, SHOWN) == ["./run tests: is in no document"]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.place)
def test_an_output_in_the_documents_is_of_its_form(shown: Shown) -> None:
    name = document_commands.output_of(shown)
    assert name is not None
    assert FORMS[name](shown.text)


def test_the_tests_that_an_output_in_the_documents_names_exist() -> None:
    names = {test.name for test in TestSuiteBuilder().build(documents.ROOT / "suites").all_tests}
    table = next(shown.text for shown in SHOWN if document_commands.output_of(shown) == "table")
    rows = [line.strip().partition("  ")[0] for line in table.splitlines() if line.endswith("  MET")]
    assert len(rows) > 10
    assert all(any(name.startswith(row.removesuffix("...")) for name in names) for row in rows)
