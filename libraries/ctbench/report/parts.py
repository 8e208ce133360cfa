"""The rows of a run with thousands of tests, on pages of their own; the first page has a line for each suite."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ctbench.report import enough, labels
from ctbench.report.page import Group, Part, Row, Suite, Tone

#: Names of the pages' files, the first one is 1.
FILE = "report-tests-{}.html"


def split(groups: Sequence[Group]) -> tuple[Part, ...]:
    """The groups on pages of so many rows; none where they fit on one."""
    total = sum(len(group.rows) for group in groups)
    if total <= enough.ROWS:
        return ()
    parts: list[list[Group]] = [[]]
    room = enough.ROWS
    for group in groups:
        rest = group.rows
        while rest:
            if not room:
                parts.append([])
                room = enough.ROWS
            file = FILE.format(len(parts))
            placed = tuple(replace(row, page=file) for row in rest[:room])
            parts[-1].append(Group(group.name, placed))
            rest, room = rest[room:], room - len(placed)
    return tuple(Part(FILE.format(number), _title(number, total), tuple(some)) for number, some in enumerate(parts, 1))


def suites(parts: Sequence[Part]) -> tuple[Suite, ...]:
    """A line for each suite, as many as a page shows."""
    rows: dict[str, list[Row]] = {}
    for group in (group for part in parts for group in part.groups):
        rows.setdefault(group.name, []).extend(group.rows)
    return tuple(_suite(name, some) for name, some in list(rows.items())[: enough.SUITES])


def by_anchor(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows in the order in which the tests ran; on the pages they are grouped by suite."""
    yield from sorted(rows, key=lambda row: int(row.anchor.rpartition("-")[2]))


def _title(number: int, total: int) -> str:
    first = (number - 1) * enough.ROWS + 1
    return f"Tests {labels.thousands(first)} to {labels.thousands(min(total, first + enough.ROWS - 1))}"


def _suite(name: str, rows: Sequence[Row]) -> Suite:
    tones: tuple[Tone, ...] = ("met", "missed", "unmeasured")
    number = {tone: sum(row.tone == tone for row in rows) for tone in tones}
    worst: Tone = "missed" if number["missed"] else "unmeasured" if number["unmeasured"] else "met"
    counts = (len(rows), *number.values())
    return Suite(name, tuple(labels.thousands(count) for count in counts), worst, rows[0].href)
