"""The connection table on the page: how many connections were held, by topology, and entries over time."""

from collections.abc import Sequence
from dataclasses import replace

from ctbench.base.units import format_count
from ctbench.dut import registry
from ctbench.report import enough, figures
from ctbench.report.charts.model import Chart, LegendItem, Share, ShareChart
from ctbench.report.charts.timeline import series_charts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record, RecordError
from ctbench.results.store import Stored, read_whole

_HELD = METRICS["held_connections"]
_LEGEND = (LegendItem("bar", "measured", "open at once, and each answered"),)


def table_charts(newest: Sequence[Stored]) -> list[Chart]:
    """Connections held, by topology; and of each test that watched the table over time, its entries."""
    held = [each.record for each in newest if each.record.metric == _HELD.name and each.record.result]
    watched = [each for each in newest if METRICS[each.record.metric].of_table and each.record.metric != _HELD.name]
    charts: list[Chart] = [_held(held)] if held else []
    for each in watched[: enough.CHARTS]:
        charts += _over_time(each)
    return charts


def _held(records: Sequence[Record]) -> ShareChart:
    """A bar for each test, with the DUT's own last count and what an entry takes."""
    ordered = sorted(records, key=_value)
    most = _value(ordered[-1]) or 1.0
    shares = tuple(
        Share(
            label=f"{registry.title(record.topology.datapath)}, {registry.what_it_does(record.topology)}",
            share=_value(record) / most,
            text=_text(record),
            hint=f"{enough.name(record.test)}: {_counted(record)}",
            style="measured",
        )
        for record in ordered[-enough.BARS :]
    )
    return ShareChart(
        title=_HELD.title.capitalize(),
        caption=f"At most {format_count(most)}. The DUT's own count is the generator's where nothing else is said.",
        legend=_LEGEND,
        shares=shares,
    )


def _text(record: Record) -> str:
    size = figures.value_of(record, "table_entry_bytes")
    return format_count(_value(record)) + (
        "" if size is None else f" · {METRICS['table_entry_bytes'].format(size)} each"
    )


def _counted(record: Record) -> str:
    """What the DUT said at the moments of the test."""
    counts = [f"{each.moment} {each.found}" for each in record.evidence.table]
    return f"entries of the DUT: {', '.join(counts)}" if counts else "not counted by the DUT"


def _over_time(each: Stored) -> list[Chart]:
    """None where the file has gone, or has changed, since the page was begun."""
    try:
        record = read_whole(each.path)
    except (RecordError, FileNotFoundError):
        return []
    name = f"{registry.title(record.topology.datapath)}, {registry.what_it_does(record.topology)}"
    return [replace(chart, title=f"{chart.title}: {name}") for chart in series_charts(record)]


def _value(record: Record) -> float:
    return record.result.value if record.result else 0.0
