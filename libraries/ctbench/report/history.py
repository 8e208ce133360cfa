"""The history of the rows for other programs, a line for each run, row and metric: history.csv for spreadsheets, and
history.openmetrics for programs that draw and watch series, such as Prometheus and Grafana (OpenMetrics 1.0).

Numbers are not rounded. A change point is the first run of a new level, as on the page (`ctbench.report.trend`).
"""

from collections.abc import Sequence
from typing import Any

from ctbench.base.text import printable
from ctbench.report import method, trend
from ctbench.report.files import csv_of
from ctbench.report.runs import RunSet, named
from ctbench.results.metrics import AT_HALF, METRICS, PDR_OF, SERVED
from ctbench.results.record import Record
from ctbench.results.verdict import Code, word_of

#: Columns that tell series apart.
_SERIES = ("testbed", "suite", "test", "topology", "profile", "campaign", "metric", "unit")
COLUMNS = (
    "time_utc", "dut", *_SERIES, "value", "low", "high", "measured", "verdict", "change_point", "ticket", "run_id"
)  # fmt: skip
#: Families of history.openmetrics, each with what it is.
_FAMILIES = {
    "value": "What was measured.",
    "low": "The low end of the interval that it lies in.",
    "high": "The high end of the interval that it lies in.",
    "met": "Whether the SLA was met: 1, or 0 where it was missed.",
    "change_point": "1 for the first run of a new level, else 0.",
    "dut": "1; the label dut is the device under test.",
}

#: Those that a figure has which was measured, and what the verdict stands on where none was.
_MEASURED = ("value", "low", "high")
_UNMEASURED = (Code.GENERATOR, Code.INVALID, Code.FAULT, Code.NOTHING, Code.UNPROVED, Code.NO_SLOWER_SEEN)

Line = dict[str, Any]


def history(runs: RunSet) -> list[Line]:
    """Return the lines of all tests, the oldest run of each test first. A record has a line for the metric that was
    measured, and for each further metric that programs may follow."""
    lines = []
    for test in runs.by_test.values():
        records = [each.record for each in test]
        followed = trend.followed(records[-1]).name
        changed = {id(each.since) for each in trend.changes(records)}
        for record in records:
            lines += [_line(record, each, id(record) in changed and each == followed) for each in _metrics(record)]
    return lines


def _metrics(record: Record) -> list[str]:
    """Return the metric that was measured, and those found besides it: promised metrics, saturation rates, rates at the
    partial drop rate (PDR), and times at half of the held rate."""
    promised = [each.metric for each in record.thresholds if each.is_promise]
    others = (*promised, *SERVED, *(each.name for each in PDR_OF.values()), *AT_HALF)
    return [*dict.fromkeys((record.metric, *(name for name in others if name in record.figures)))]


def _line(record: Record, metric: str, is_change: bool) -> Line:
    figure = record.figures.get(metric)
    known = record.floor.accepted
    return {
        "time_utc": record.started,
        "dut": method.built_dut(record),
        **named(record),
        "metric": metric,
        "unit": METRICS[metric].unit.name,
        "value": figure.value if figure else None,
        "low": figure.low if figure else None,
        "high": figure.high if figure else None,
        # A closed loop has no figure where the generator was its limit, whatever became of the row.
        "measured": record.verdict_code not in _UNMEASURED or metric in SERVED,
        "verdict": _verdict(record, metric),
        "change_point": is_change,
        "ticket": known.ticket if known else "",
        "run_id": record.run_id,
    }


def _verdict(record: Record, metric: str) -> str:
    """Return the outcome of the row; for a further promise of the row, the verdict of that promise."""
    promised = record.threshold(metric) if metric != record.metric else None
    if promised is None:
        return record.outcome
    word = word_of(promised, record.verdict)
    accepted = word == "missed" and record.accepted and metric in record.accepted.covers
    return "missed, accepted" if accepted else word


def history_csv(lines: Sequence[Line]) -> str:
    """Return history.csv: a line for each run, row and metric, its time in the format of spreadsheets."""
    return csv_of(COLUMNS, (
        line | {
            "time_utc": f"{line['time_utc']:%Y-%m-%d %H:%M:%S}",
            **{name: "yes" if line[name] else "no" for name in ("measured", "change_point")},
        }
        for line in lines
    ))  # fmt: skip


def history_openmetrics(lines: Sequence[Line]) -> str:
    """Return history.openmetrics: gauges with the time of each run, a series for each row and metric. A family lists
    one series after another, the samples of each in the order of time."""
    said = []
    for family, about in _FAMILIES.items():
        samples = {
            (_labels(line, ("dut",) if family == "dut" else ()), line["time_utc"].timestamp()): number
            for line in lines
            if (number := _number(line, family)) is not None
        }
        name = f"conntrack_sla_{family}"
        said += [f"# TYPE {name} gauge", f"# HELP {name} {about}"]
        said += [f"{name}{{{labels}}} {number!r} {time:.3f}" for (labels, time), number in sorted(samples.items())]
    return "\n".join([*said, "# EOF", ""])


def _number(line: Line, family: str) -> float | None:
    """Return the sample that a line has in a family; None where it has none."""
    if family == "met":
        return {"met": 1.0, "missed": 0.0}.get(line["verdict"].partition(",")[0])
    if family in _MEASURED and not line["measured"]:
        return None
    value = 1 if family == "dut" else line[family]
    return None if value is None else float(value)


def _labels(line: Line, more: Sequence[str]) -> str:
    return ",".join(f'{name}="{_escaped(line[name])}"' for name in (*_SERIES, *more))


def _escaped(text: str) -> str:
    return printable(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
