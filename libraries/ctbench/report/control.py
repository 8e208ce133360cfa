"""The table of the control plane: what it did beside a load, how often, how long it took, what the load lost."""

from collections.abc import Sequence

from ctbench.base.units import format_count
from ctbench.report import enough, figures, labels
from ctbench.report.page import ControlRow, Row
from ctbench.results.evidence import ControlRecord
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: How long the load waited meanwhile, by what is known of it.
_WAITED = ("connect_time_meanwhile", "latency_meanwhile")


def control_rows(newest: Sequence[Stored], rows: Sequence[Row]) -> list[ControlRow]:
    """A line for everything that was done, in the order of the tests."""
    return [
        _line(each.record, done, row)
        for each, row in zip(newest, rows, strict=True)
        for done in each.record.evidence.control
    ]


def _line(record: Record, done: ControlRecord, row: Row) -> ControlRow:
    metric = METRICS[done.metric]
    times = (done.mean, done.sd, done.median, done.p99, done.most)
    return ControlRow(
        row=row,
        what=f"{metric.title}, {format_count(done.size)} {enough.name(done.sizes)}{_remark(done)}",
        number=labels.thousands(done.number),
        times=tuple(metric.format(value) for value in times),
        lost=_figure(record, "loss_meanwhile"),
        waited=next((found for name in _WAITED if (found := _figure(record, name)) != labels.DASH), labels.DASH),
    )


def _remark(done: ControlRecord) -> str:
    return f"; {enough.name(done.remark)}" if done.remark else ""


def _figure(record: Record, name: str) -> str:
    value = figures.value_of(record, name)
    return labels.DASH if value is None else METRICS[name].format(value)
