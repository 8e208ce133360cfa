"""The table of mobile traffic: what was reached while so many connections were open, and how long a message took."""

from collections.abc import Iterable
from dataclasses import dataclass

from ctbench.report import figures, labels
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.traffic.profiles import ConnectionProfile

#: The columns, by metric.
COLUMNS = {
    "cps": "New connections",
    "active_connections": "Open at once",
    "pps": "Packets",
    "bps": "Throughput",
    "cycles_per_packet": "Cycles per packet",
    "latency_p50": "Latency (median)",
    "latency_p99": "Latency (p99)",
    "latency_jitter": "Jitter",
}


@dataclass(frozen=True)
class MobileLine:
    """The figures of a test, one of each of `COLUMNS`."""

    test: str
    #: To its row.
    href: str
    cells: tuple[str, ...]


def mobile_lines(found: Iterable[tuple[Record, str, str]]) -> list[MobileLine]:
    """A line for each test whose profile says how many connections are open at once, and that has a figure. `found`:
    records with their names and links to their rows."""
    return [
        MobileLine(test, href, tuple(_cell(record, name) for name in COLUMNS))
        for record, test, href in found
        if isinstance(record.profile, ConnectionProfile) and record.profile.open_at_once and record.figures
    ]


def _cell(record: Record, name: str) -> str:
    value = figures.value_of(record, name)
    if value is None:
        return labels.DASH
    metric = METRICS[name]
    return figures.found(record, metric, value) if metric is figures.metric_of(record) else metric.format(value)
