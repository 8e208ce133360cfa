"""One test over several runs."""

from collections.abc import Sequence

from ctbench.report import enough, figures, labels
from ctbench.report.charts.model import Axis, Guide, LegendItem, Mark, Point, Series, XyChart
from ctbench.results.metrics import COSTS, RATE_OF, SATURATION_OF, Metric
from ctbench.results.record import Record, Word

_MARKS: dict[Word, Mark] = {"met": "dot", "missed": "cross", "not measured": "ring"}
#: Runs that are each marked; of more, the marks would hide each other, and those that are met have none.
_MOST_MARKED = 60
_STYLES: dict[Word, str] = {"met": "run-met", "missed": "run-missed", "not measured": "run-unmeasured"}


def history_charts(tests: Sequence[Sequence[Record]]) -> list[XyChart]:
    """A chart for each test that was measured in several runs, its records oldest first. Those of one test are of one
    metric."""
    measured = [[(record, record.result.value) for record in test if record.result] for test in tests]
    return [_chart(test) for test in measured if len(test) > 1]


def _chart(test: Sequence[tuple[Record, float]]) -> XyChart:
    records, values = [record for record, _ in test], [value for _, value in test]
    newest, metric = records[-1], figures.metric_of(records[-1])
    points = [Point(float(place), value, _hint(record, value)) for place, (record, value) in enumerate(test)]
    marked, legend = [], []
    many = len(records) > _MOST_MARKED
    for word, mark in _MARKS.items():
        if many and word == "met":
            continue
        some = tuple(point for point, record in zip(points, records, strict=True) if record.verdict == word)
        if some:
            marked.append(Series(some, _STYLES[word], mark=mark))
            legend.append(LegendItem(mark, _STYLES[word], word))
    legend = [LegendItem("line", "run-line", "each run; met where there is no mark"), *legend] if many else legend
    served, at_most = _served(records, metric)
    promised = newest.threshold(metric.name)
    guides = [Guide("y", promised.limit, f"floor {figures.limit(metric, promised.limit)}", "floor")] if promised else []
    return XyChart(
        title=enough.name(newest.test),
        caption=f"{labels.plural(len(records), 'run')}; the newest has {metric.format(values[-1])}"
        f"{_change(metric, values[-1], values[0])}.",
        x=_x(records, many),
        y=Axis(figures.name(metric)),
        legend=(*legend, *at_most),
        series=(Series(tuple(points), "run-line", joined=True), *served, *marked),
        guides=tuple(guides),
    )


def _x(records: Sequence[Record], many: bool) -> Axis:
    """When each was measured; of instructions, which are the same at any time, what they were counted of."""
    if records[-1].metric in COSTS:
        return Axis("what was counted", words="label", labels=tuple(map(_build, records)))
    return Axis("start of the test, UTC", words="label", labels=tuple(_label(record, many) for record in records))


def _build(record: Record) -> str:
    """The kernel, shortened, and Open vSwitch where it is no package: `6.1.0-56`, `6.1.0-56 ovs-3.3`."""
    dut = record.environment.dut
    kernel = "-".join(enough.name(str(dut.kernel)).split("-")[:2])
    prefix = str(dut.extra.get("ovs", "distribution"))
    return kernel if prefix == "distribution" else f"{kernel} {enough.name(prefix.rpartition('/')[2])}"


def _served(records: Sequence[Record], metric: Metric) -> tuple[list[Series], list[LegendItem]]:
    """The saturation rate of each run that has one, where the chart is of a rate of the same kind."""
    rate = SATURATION_OF[records[-1].profile.kind]
    if metric is not RATE_OF[records[-1].profile.kind]:
        return [], []
    points = tuple(
        Point(float(place), value, f"{labels.moment(record.started)}: {rate.format(value)} in a closed loop")
        for place, record in enumerate(records)
        if (value := figures.value_of(record, rate.name)) is not None
    )
    if not points:
        return [], []
    return [Series(points, "run-served", joined=True)], [
        LegendItem("line", "run-served", "saturation rate: served in a closed loop, no SLA figure")
    ]


def _change(metric: Metric, newest: float, first: float) -> str:
    """How far the newest value is from the first, and which direction is better where that is not plain."""
    difference = figures.difference_pct(newest, first)
    if difference is None:
        return ""
    direction = figures.direction(metric)
    return f", {labels.margin(difference)} against the first{f' ({direction})' if direction else ''}"


def _label(record: Record, many: bool) -> str:
    """Day and minute; of a year of runs, the year and the day."""
    return f"{record.started:%Y-%m-%d}" if many else f"{record.started:%m-%d %H:%M}"


def _hint(record: Record, value: float) -> str:
    return f"{labels.moment(record.started)}: {figures.metric_of(record).format(value)}, {record.verdict}"
