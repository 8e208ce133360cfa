"""The table of results: one row for each test, by suite."""

from collections.abc import Sequence
from pathlib import Path

from ctbench.report import figures, labels
from ctbench.report.labels import LIMITS
from ctbench.report.page import Cell, Column, Group, Line, Link, Row, Table, Tone
from ctbench.report.reference import References, against
from ctbench.report.runs import href
from ctbench.results.record import Record
from ctbench.results.store import Stored

_TONES: dict[str, Tone] = {"met": "met", "missed": "missed", "not measured": "unmeasured"}
_COLUMNS = (
    Column("Test", right=False),
    Column("Verdict", right=False),
    Column("Floor"),
    Column("Measured", strong=True),
    Column("Margin"),
    Column("Spread"),
    Column("Against reference"),
    Column("Record", right=False),
)
#: Stands between a suite and the one below it: a single angle quotation mark.
_INTO = " \u203a "


def make_rows(newest: Sequence[Stored], output: Path, references: References) -> list[Row]:
    """A row for each record, in their order. The run is named where there are several."""
    several = len({each.record.run_id for each in newest}) > 1
    names = suite_names([each.record.suite for each in newest])
    return [
        _row(number, each, output, references, several, names[each.record.suite])
        for number, each in enumerate(newest, 1)
    ]


def results_table(rows: Sequence[Row], *, compared: bool) -> Table:
    """The rows that the page shows, by suite, suites in the order in which they ran; `compared` where something is
    compared with."""
    columns = [column for column in _COLUMNS if compared or column.name != "Against reference"]
    groups: dict[str, list[Line]] = {}
    for row in rows[: LIMITS.results]:
        capture = [Cell(row.capture.text, row.capture.href)] if row.capture else []
        cells = (
            Cell(row.test, notes=(Cell(row.profile, code=row.topology),)),
            Cell(row.verdict, sign=row.sign, tone=row.tone),
            row.floor,
            row.measured,
            row.margin,
            row.spread,
            *([row.against] if compared else []),
            Cell(row.record.text, row.record.href, notes=(*capture, *row.took)),
        )
        groups.setdefault(row.record.about, []).append(Line(cells, f"test {row.tone}", row.anchor))
    return Table(tuple(columns), tuple(Group(name, tuple(lines)) for name, lines in groups.items()), "results")


def _notes(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in texts if text)


def suite_names(suites: Sequence[str]) -> dict[str, str]:
    """The long names of suites as a page shows them: without what all begin with, an arrow between the other parts."""
    parts = {suite: suite.split(".") for suite in suites}
    starts = list(zip(*(names[:-1] for names in parts.values()), strict=False))
    shared = next((number for number, some in enumerate(starts) if len(set(some)) > 1), len(starts))
    return {suite: labels.name(_INTO.join(names[shared:])) for suite, names in parts.items()}


def _row(number: int, each: Stored, output: Path, references: References, several: bool, suite: str) -> Row:
    record = each.record
    shown, (spread, spread_of) = figures.deciding(record), figures.spread(record)
    return Row(
        anchor=f"test-{number}" if number <= LIMITS.results else "",
        test=labels.name(record.test),
        topology=labels.name(record.topology.key),
        profile=labels.name(record.profile.name),
        verdict=record.verdict,
        sign=labels.SIGNS[record.verdict],
        tone=_TONES[record.verdict],
        floor=Cell(figures.floor(record) or labels.DASH, notes=_notes(figures.kind(shown) if shown else "")),
        measured=Cell(
            figures.measured(record) or labels.DASH,
            notes=_notes(
                figures.measured_of(record), figures.relation(record) if shown and shown.kind == "absolute" else ""
            ),
        ),
        margin=Cell(labels.margin(record.margin_pct), margin_pct=record.margin_pct),
        spread=Cell(
            spread or labels.DASH,
            # The first of these lines is never broken, so it is there where it is empty too.
            notes=(Cell(spread_of), *_notes(labels.thrown_away(each.thrown_away, each.trials))),
        ),
        against=_against(record, references),
        reason=_reason(record),
        record=Link("record", href(each.path, output), suite),
        capture=_capture(each, output),
        took=_notes(labels.length(record.wall_s), f"{record.started:%m-%d %H:%M}" if several else ""),
    )


def _against(record: Record, references: References) -> Cell:
    compared = against(record, references.find(record))
    if compared is None:
        return Cell(labels.DASH)
    known = (
        f"{compared.metric.format(compared.theirs)}, {compared.figure.label}",
        "other hardware" if compared.other_hardware else "same CPU model",
        figures.direction(compared.metric),
    )
    return Cell(labels.margin(compared.difference_pct), notes=_notes("; ".join(filter(None, known))))


def _capture(each: Stored, output: Path) -> Link | None:
    """What the DUT said of its failure, where it is still there."""
    folder = each.path.parent.parent / each.record.capture if each.record.capture else None
    return Link("what the DUT said", href(folder, output) + "/") if folder and folder.is_dir() else None


def _reason(record: Record) -> str:
    """The verdict's reason as a sentence of its own."""
    reason = labels.sentence(record.verdict_reason.strip())
    # Keys of topologies keep their spelling.
    first = reason if "/" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
    return f"{first.rstrip('.')}." if reason else ""
