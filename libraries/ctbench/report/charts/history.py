"""One test over several runs."""

from collections.abc import Sequence

from ctbench.base.units import parse_number
from ctbench.report import enough, labels
from ctbench.report.charts.model import Axis, Guide, LegendItem, Mark, Point, Series, XyChart
from ctbench.results.record import Record, Word

_MARKS: dict[Word, Mark] = {"met": "dot", "missed": "cross", "not measured": "ring"}
#: Runs that are each marked; of more, the marks would hide each other, and those that are met have none.
_MOST_MARKED = 60
_STYLES: dict[Word, str] = {"met": "run-met", "missed": "run-missed", "not measured": "run-unmeasured"}


def history_charts(tests: Sequence[Sequence[Record]]) -> list[XyChart]:
    """A chart for each test that was measured in several runs, its records oldest first."""
    return [_chart([record for record in test if record.measured]) for test in tests if _runs(test) > 1]


def _runs(test: Sequence[Record]) -> int:
    return len([record for record in test if record.measured])


def _chart(records: Sequence[Record]) -> XyChart:
    newest, unit = records[-1], records[-1].profile.kind
    rates = [record.measured.rate if record.measured else 0.0 for record in records]
    points = [Point(float(place), rate, _hint(record, rate)) for place, (record, rate) in
              enumerate(zip(records, rates, strict=True))]  # fmt: skip
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
    floor = newest.floors.cps if unit == "connections" else newest.floors.pps
    guides = [_floor_guide(floor, newest)] if floor else []
    change = f", {labels.margin((rates[-1] / rates[0] - 1) * 100)} against the first" if rates[0] else ""
    return XyChart(
        title=enough.name(newest.test),
        caption=f"{labels.plural(len(records), 'run')}; the newest has {labels.rate(rates[-1], unit)}{change}.",
        x=Axis("start of the test, UTC", words="label", labels=tuple(_label(record, many) for record in records)),
        y=Axis(f"{unit} per second"),
        legend=tuple(legend),
        series=(Series(tuple(points), "run-line", joined=True), *marked),
        guides=tuple(guides),
    )


def _floor_guide(floor: str, newest: Record) -> Guide:
    value = parse_number(floor.removeprefix(">=").strip())
    return Guide("y", value, f"floor {labels.rate(value, newest.profile.kind)}", "floor")


def _label(record: Record, many: bool) -> str:
    """Day and minute; of a year of runs, the year and the day."""
    return f"{record.started:%Y-%m-%d}" if many else f"{record.started:%m-%d %H:%M}"


def _hint(record: Record, rate: float) -> str:
    return f"{labels.moment(record.started)}: {labels.rate(rate, record.profile.kind)}, {record.verdict}"
