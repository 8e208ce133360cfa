"""The published tables with a line of this run in each, as the 2022 article sets two releases beside each other."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.units import format_bits, format_count
from ctbench.dut import registry
from ctbench.report import facts, labels
from ctbench.report.page import Link, PublishedRow, PublishedTable
from ctbench.report.reference import Figure, References, against
from ctbench.report.rows import href
from ctbench.results.published import Published
from ctbench.results.store import Stored

NOTE = (
    "The published figures are from other hardware: they say what others saw, and promise nothing about this machine. "
    "Difference is that of connections per second against the line above it, as in the article; against this run, "
    "where the campaign shortened the connections, that of packets per second."
)
_ROW = "  {:<46} {:>12} {:>9} {:>14} {:>12} {:>19}"
_COLUMNS = ("", "connections", "active", "throughput", "packets/s", "difference")


def published_tables(newest: Sequence[Stored], references: References, output: Path) -> tuple[PublishedTable, ...]:
    """A table for each published topology and profile, in the order of their source. A topology that this run did not
    measure says so."""
    tables: dict[tuple[str, str, int], list[Published]] = {}
    for figure in references.published:
        if figure.key:
            tables.setdefault((figure.key, figure.profile, figure.number), []).append(figure)
    ordered = sorted(tables.items(), key=lambda item: item[0][2])
    return tuple(_table(figures, newest, output) for _, figures in ordered)


def as_text(tables: Sequence[PublishedTable]) -> str:
    """The tables that this run has a line in, for a console of 120 columns, and below them what the others were."""
    shown = [table for table in tables if any(row.record for row in table.rows)]
    lines: list[str] = []
    for table in shown:
        lines += [table.title, *(_ROW.format(*names) for names in (_COLUMNS, *map(_cells, table.rows))), ""]
    others = len(tables) - len(shown)
    if others:
        lines += [f"{others} published tables are of topologies that this run has no figure for.", ""]
    return "\n".join([*lines, *textwrap.wrap(NOTE, 120)])


def _cells(row: PublishedRow) -> tuple[str, ...]:
    return row.name, row.cps, row.active, row.throughput, row.pps, row.difference


def _table(figures: Sequence[Published], newest: Sequence[Stored], output: Path) -> PublishedTable:
    one = figures[0]
    made = one.topology
    cpus = labels.cpus_and_queues(made.cpus or 0, made.rx_queues or 0)
    title = f"{one.source.place.capitalize()}: {registry.ruleset_title(made.ruleset).lower()}, {cpus}, {one.profile}"
    rows = [_published_row(figure) for figure in sorted(figures, key=lambda figure: figure.source.dut)]
    last = sorted(figures, key=lambda figure: figure.source.dut)[-1]
    own = [each for each in newest if _is_of(each, one)]
    rows += [_own_row(each, last, output) for each in own]
    if not own:
        rows.append(
            PublishedRow(
                "this run: no figure", labels.DASH, labels.DASH, labels.DASH, labels.DASH, labels.DASH, ours=True
            )
        )
    return PublishedTable(title, tuple(rows))


def _is_of(each: Stored, figure: Published) -> bool:
    """Whether a record is of the topology and profile of a figure, or of a profile that was shortened from it."""
    record = each.record
    names = [record.profile.name]
    names += [record.profile.derived_from] if record.profile.kind == "connections" else []
    return record.topology.key == figure.key and figure.profile in names and record.measured is not None


def _published_row(figure: Published) -> PublishedRow:
    found = figure.measured
    return PublishedRow(
        name=figure.source.dut,
        cps=labels.rate(found.rate, "connections") if found.unit == "connections" else labels.DASH,
        active=format_count(found.active_connections) if found.active_connections is not None else labels.DASH,
        throughput=format_bits(found.bps) if found.bps is not None else labels.DASH,
        pps=f"{format_count(found.pps)} pps" if found.pps is not None else labels.DASH,
        difference=labels.margin(figure.difference_pct),
        ours=False,
    )


def _own_row(each: Stored, last: Published, output: Path) -> PublishedRow:
    record, found = each.record, each.record.measured
    assert found is not None
    theirs = last.measured
    cps = theirs.rate if theirs.unit == "connections" else None
    compared = against(record, Figure(last.label, last.profile, cps, theirs.pps))
    short = "" if record.profile.name == last.profile else f", {record.profile.name}"
    doubt = ", not measured" if record.verdict == "not measured" else ""
    return PublishedRow(
        name=f"this run: {facts.dut(record)}{short}{doubt}",
        cps=labels.rate(found.rate, "connections") if found.unit == "connections" else labels.DASH,
        active=format_count(found.active_connections),
        throughput=format_bits(found.bps),
        pps=f"{format_count(found.pps)} pps",
        difference=f"{labels.margin(compared.difference_pct)}{' (packets)' if short else ''}"
        if compared
        else labels.DASH,
        ours=True,
        record=Link("record", href(each.path, output)),
    )
