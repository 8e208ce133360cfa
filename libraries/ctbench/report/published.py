"""The published tables with a line of this run in each, as the 2022 article compares two releases."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctbench.dut import registry
from ctbench.report import facts, labels
from ctbench.report.page import Link, PublishedRow, PublishedTable
from ctbench.report.reference import References, against, of_published, profiles
from ctbench.report.rows import href
from ctbench.results.metrics import METRICS
from ctbench.results.published import Published
from ctbench.results.store import Stored

NOTE = (
    "The published figures are from other hardware: they say what others saw, and promise nothing about this machine. "
    "Difference is that of connections per second against the line above it, as in the article; against this run, "
    "where the campaign substituted a profile with shorter connections, that of packets per second."
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


def _table(some: Sequence[Published], newest: Sequence[Stored], output: Path) -> PublishedTable:
    one = some[0]
    made = one.topology
    cpus = labels.cpus_and_queues(made.cpus or 0, made.rx_queues or 0)
    title = f"{one.source.place.capitalize()}: {registry.ruleset_title(made.ruleset).lower()}, {cpus}, {one.profile}"
    ordered = sorted(some, key=lambda figure: figure.source.dut)
    rows = [
        _row(figure.source.dut, figure.figures, labels.margin(figure.difference_pct), ours=False) for figure in ordered
    ]
    own = [_own_row(each, ordered[-1], output) for each in newest if _is_of(each, one)]
    none = _row("this run: no figure", {}, labels.DASH, ours=True)
    return PublishedTable(title, (*rows, *(own or [none])))


def _is_of(each: Stored, figure: Published) -> bool:
    """Whether a record is of the topology and profile of a figure, or of a profile that substitutes it."""
    record = each.record
    return record.topology.key == figure.key and figure.profile in profiles(record) and bool(record.figures)


def _own_row(each: Stored, last: Published, output: Path) -> PublishedRow:
    record = each.record
    compared = against(record, of_published(last))
    short = "" if record.profile.name == last.profile else f", {record.profile.name}"
    doubt = ", not measured" if record.verdict == "not measured" else ""
    by = f" ({compared.metric.title})" if compared and short else ""
    return _row(
        name=f"this run: {facts.dut(record)}{short}{doubt}",
        found={name: figure.value for name, figure in record.figures.items()},
        difference=f"{labels.margin(compared.difference_pct)}{by}" if compared else labels.DASH,
        ours=True,
        record=Link("record", href(each.path, output)),
    )


def _row(
    name: str, found: Mapping[str, float], difference: str, *, ours: bool, record: Link | None = None
) -> PublishedRow:
    """A line with the figures that the tables have; a dash for those that are not known."""

    def cell(metric: str) -> str:
        return METRICS[metric].format(found[metric]) if metric in found else labels.DASH

    return PublishedRow(
        name=name,
        cps=cell("cps"),
        active=cell("active_connections"),
        throughput=cell("bps"),
        pps=cell("pps"),
        difference=difference,
        ours=ours,
        record=record,
    )
