"""How long the control plane took beside a load, test by test: the median, and the longest."""

from collections.abc import Sequence

from ctbench.report import enough, figures
from ctbench.report.charts.model import LegendItem, Share, ShareChart
from ctbench.results.evidence import ControlRecord
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record

_LEGEND = (
    LegendItem("bar", "measured", "median, as a share of the longest median"),
    LegendItem("line", "floor", "longest time that is promised, where it is not beyond the chart"),
)


def control_charts(records: Sequence[Record]) -> list[ShareChart]:
    """A chart for each metric of a time that several tests have."""
    groups: dict[str, list[tuple[Record, ControlRecord]]] = {}
    for record in records:
        for each in record.evidence.control:
            groups.setdefault(each.metric, []).append((record, each))
    return [_chart(name, group) for name, group in groups.items() if len(group) > 1]


def _chart(name: str, group: Sequence[tuple[Record, ControlRecord]]) -> ShareChart:
    metric, ordered = METRICS[name], sorted(group, key=lambda pair: pair[1].median)[-enough.BARS :]
    longest = ordered[-1]
    whole = longest[1].median or 1.0
    shares = tuple(
        Share(
            label=enough.name(record.test),
            share=each.median / whole,
            text=f"{metric.format(each.median)} · at most {metric.format(each.most)}",
            hint=f"{each.number} times; {figures.floor(record) or 'nothing promised'}",
            style="measured unsure" if record.verdict == "not measured" else "measured",
            floor=_floor(record, name, whole),
        )
        for record, each in ordered
    )
    return ShareChart(
        title=metric.title.capitalize(),
        caption=f"{enough.name(longest[0].test)} takes longest: {metric.format(whole)} in the median.",
        legend=_LEGEND if any(share.floor for share in shares) else _LEGEND[:1],
        shares=shares,
    )


def _floor(record: Record, name: str, whole: float) -> float | None:
    promised = record.threshold(name)
    return promised.limit / whole if promised and promised.limit <= whole else None
