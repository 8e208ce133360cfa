"""What others published of a test, beside what was measured of it. It is from other hardware: it says what others saw,
and promises nothing about this machine."""

from dataclasses import dataclass

from ctbench.report import figures
from ctbench.results.metrics import Metric
from ctbench.results.record import Record


@dataclass(frozen=True)
class Published:
    """The figure that an SLA file has next to a floor, and how much larger that of a record is."""

    #: For example `Open vSwitch 3.0.0, 2022, table 4`.
    label: str
    metric: Metric
    theirs: float
    difference_pct: float


def published_of(record: Record) -> Published | None:
    """What was published of a record's metric; None where its SLA has no such figure, or the record has none."""
    known, metric = record.floor.reference, figures.metric_of(record)
    ours, theirs = record.values.get(metric.name), known.figures.get(metric.name) if known else None
    difference = None if ours is None or theirs is None else figures.difference_pct(ours, theirs)
    if known is None or theirs is None or difference is None:
        return None
    return Published(known.label, metric, theirs, difference)
