"""report.md: the verdict and the table, for a merge request. What others wrote in it is escaped."""

from collections.abc import Sequence

from ctbench.base.markdown_text import code, escaped
from ctbench.report.page import Page, Row

_SIGNS = {"met": "✅", "missed": "❌", "unmeasured": "⚠️", "skipped": "\u2796"}


def report_md(page: Page) -> str:
    """The first part of the page as GitHub, GitLab and Gerrit render it."""
    lines = [f"## {_SIGNS[page.tone]} {escaped(page.sentence)}", "", *map(escaped, page.details), ""]
    lines += [" · ".join(f"**{count.number}** {count.word}" for count in page.counts), ""]
    lines += [f"- {fact.name}: {'; '.join(escaped(value) for value in fact.values)}" for fact in page.facts]
    if page.problems:
        lines += ["", "### Missed or not measured", ""]
        lines += [f"- **{escaped(row.test)}** ({row.verdict}): {escaped(row.reason)}" for row in page.problems]
        lines += [f"- {page.more_problems}"] if page.more_problems else []
    if page.without_record:
        lines += ["", "### Without a figure", ""]
        lines += [f"- {some.number} {some.outcome}: {escaped(some.reason)}" for some in page.without_record]
    if page.unreadable:
        lines += ["", "### Files that are no records", "", *(f"- {escaped(reason)}" for reason in page.unreadable)]
    if page.suites:
        lines += ["", "### Suites", "", *_suites(page)]
    for group in page.groups:
        lines += ["", f"### {escaped(group.name)}", "", *_table(group.rows, compared=bool(page.reference))]
    if page.reference:
        lines += ["", escaped(page.reference)]
    return "\n".join(lines) + "\n"


def _suites(page: Page) -> list[str]:
    lines = [_line(["Suite", "Tests", "Met", "Missed", "Not measured"]), _line(["---", *["---:"] * 4])]
    lines += [_line([escaped(suite.name), *suite.counts]) for suite in page.suites]
    return [*lines, *(["", page.more_suites] if page.more_suites else [])]


def _table(rows: Sequence[Row], *, compared: bool) -> list[str]:
    names = ["", "Test", "Topology", "Profile", "Floor", "Measured", "Margin", "Spread"]
    names += ["Against reference"] if compared else []
    lines = [_line(names), _line(["---"] * 4 + ["---:"] * (len(names) - 4))]
    for row in rows:
        cells = [_SIGNS[row.tone], escaped(row.test), code(row.topology), escaped(row.profile), _floor(row),
                 f"**{row.measured}**{_of(row)}", row.margin, row.spread]  # fmt: skip
        lines.append(_line(cells + ([row.against] if compared else [])))
    return lines


def _floor(row: Row) -> str:
    return f"{row.floor} ({escaped(row.kind)})" if row.kind else row.floor


def _of(row: Row) -> str:
    of = f" {escaped(row.measured_of)}" if row.measured_of else ""
    return f"{of}; {escaped(row.compared)}" if row.compared else of


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
