"""The doctor's table as text: a row per finding, what fixes it below."""

import textwrap
from collections.abc import Iterable, Sequence

from ctbench.doctor.examine import Section
from ctbench.hosts.examination.finding import Finding, State

WIDTH = 120
#: Where the third column begins.
INDENT = 25
MARKS: dict[State, str] = {"ok": "✓", "bad": "✗", "unknown": "–"}  # noqa: RUF001
#: For a terminal that cannot show those.
PLAIN_MARKS: dict[State, str] = {"ok": "+", "bad": "X", "unknown": "-"}
COLOURS: dict[State, str] = {"ok": "\x1b[32m", "bad": "\x1b[31m", "unknown": ""}
RESET = "\x1b[0m"


def section_text(section: Section, *, marks: dict[State, str] = MARKS, colour: bool = False) -> str:
    """A host's heading and its rows."""
    return "\n".join([section.title, *(_row(finding, marks, colour) for finding in section.findings)])


def closing_line(sections: Iterable[Section], marks: dict[State, str] = MARKS) -> str:
    """How many of each, and what follows from it."""
    findings = [finding for section in sections for finding in section.findings]
    counts = {state: sum(finding.state == state for finding in findings) for state in MARKS}
    numbers = ", ".join(f"{counts[state]} {marks[state]}" for state in MARKS)
    if counts["bad"]:
        return f"{numbers}: fix what is {marks['bad']}, then look again."
    return f"{numbers}: nothing is in the way of a run."


def is_well(sections: Sequence[Section]) -> bool:
    """Whether nothing has to be fixed."""
    return not any(finding.state == "bad" for section in sections for finding in section.findings)


def _row(finding: Finding, marks: dict[State, str], colour: bool) -> str:
    shown = marks[finding.state]
    mark = f"{COLOURS[finding.state]}{shown}{RESET}" if colour and COLOURS[finding.state] else shown
    indent = " " * INDENT
    lines = textwrap.wrap(" ".join(finding.found.split()), WIDTH - INDENT, break_long_words=False) or [""]
    head = f"  {mark}  {finding.what:<{INDENT - 5}}"
    rows = [f"{head}{lines[0]}", *(f"{indent}{line}" for line in lines[1:])]
    # Never wrapped: it is there to be copied.
    return "\n".join([*rows, f"{indent}> {finding.remedy}"] if finding.remedy else rows)
