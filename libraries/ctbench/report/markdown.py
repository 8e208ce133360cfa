"""report.md: the verdict and the table, for a merge request."""

from collections.abc import Sequence

from ctbench.report.page import Page, Row

_SIGNS = {"met": "✅", "missed": "❌", "unmeasured": "⚠️", "skipped": "\u2796"}


def report_md(page: Page) -> str:
    """The first part of the page as GitHub, GitLab and Gerrit render it."""
    lines = [f"## {_SIGNS[page.tone]} {page.sentence}", "", *page.details, ""]
    lines += [" · ".join(f"**{count.number}** {count.word}" for count in page.counts), ""]
    lines += [f"- {fact.name}: {'; '.join(_cell(value) for value in fact.values)}" for fact in page.facts]
    if page.problems:
        lines += ["", "### Missed or not measured", ""]
        lines += [f"- **{_cell(row.test)}** ({row.verdict}): {_cell(row.reason)}" for row in page.problems]
    if page.without_record:
        lines += ["", "### Without a figure", ""]
        lines += [f"- {len(some.tests)} {some.outcome}: {_cell(some.reason)}" for some in page.without_record]
    if page.unreadable:
        lines += ["", "### Files that are no records", "", *(f"- {_cell(reason)}" for reason in page.unreadable)]
    for group in page.groups:
        lines += ["", f"### {_cell(group.name)}", "", *_table(group.rows, compared=bool(page.reference))]
    if page.reference:
        lines += ["", page.reference]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row], *, compared: bool) -> list[str]:
    names = ["", "Test", "Topology", "Profile", "Floor", "Measured", "Margin", "Spread"]
    names += ["Against reference"] if compared else []
    lines = [_line(names), _line(["---"] * 4 + ["---:"] * (len(names) - 4))]
    for row in rows:
        cells = [_SIGNS[row.tone], row.test, f"`{row.topology}`", row.profile, row.floor, f"**{row.measured}**",
                 row.margin, row.spread]  # fmt: skip
        lines.append(_line(cells + ([row.against] if compared else [])))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """One line, without what Markdown or a table would take for its own."""
    flat = " ".join(text.split())
    return flat.replace("|", "\\|").replace("<", "&lt;")
