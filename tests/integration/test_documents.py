"""README.md and docs/ are typed in, in a fresh clone with a .venv of its own: what measures nothing."""

import re
import shutil

import document_commands
import documents
import pytest
from documents import Command
from integration.clone import Clone, clone

__all__ = ["clone"]
pytestmark = pytest.mark.beside_others
COMMANDS = documents.everything()
#: By what is typed, each once, in the order in which a reader meets them: what one leaves, a later one may need.
ONCE = {document_commands.typed(each): each for each in [*COMMANDS, *(each for each in COMMANDS if each.output)]}
RUNNABLE = [each for typed, each in ONCE.items() if typed and each.text not in document_commands.MEASURED]


@pytest.fixture(scope="module", autouse=True)
def calibrated(clone: Clone) -> None:
    """The files that ./run calibrate would have written for the reader (test_documents_measured.py), and the suite of
    docs/own-suites.md where the page has it."""
    for name in ("mine", "mylab"):
        clone.copy("sla", clone.folder / "variables" / "sla" / "local.yaml", name)
    shutil.copytree(clone.folder / "tests" / "data" / "own_suites" / "elsewhere", clone.home / "firewall")


@pytest.mark.parametrize("command", RUNNABLE, ids=lambda command: f"{command.place}: {command.text}")
def test_a_command_of_the_documents_works(clone: Clone, command: Command) -> None:
    said = clone.follow(command)
    if command.output:
        _is_like(command.output, said)
    if copied := re.fullmatch(r"cp (variables/testbeds/\S+) variables/testbeds/(\S+)\.yaml", command.text):
        # "then edit the copy", says the page.
        clone.copy("testbeds", clone.folder / copied[1], copied[2])


def _is_like(shown: str, real: str) -> None:
    """A command printed what a document shows, in that order; `...` stands for any lines."""
    known = _words(real)
    for part in shown.strip().split("\n...\n"):
        begin, wanted = known.find(_words(part)), _words(part)
        assert begin >= 0, f"{part}\nis not in\n{real}"
        known = known[begin + len(wanted) :]


def _words(text: str) -> str:
    """A text without its spaces, and without how a resolver words that there is no such host."""
    return " ".join(re.sub(r"\((Name or service not known|Temporary failure in name resolution)\)", "", text).split())
