"""A figure that is not a rate, and better when it is lower: every page says so, and none has it the wrong way round;
figures from elsewhere: what was published, labelled as other hardware, and other runs."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pages import read_page, rows_of

from ctbench.dut.topology import Topology
from ctbench.report import console, figures
from ctbench.report.charts.bars import rate_charts
from ctbench.report.charts.lines import history_charts
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.report.write import write_reports
from ctbench.results.evidence import Evidence
from ctbench.results.floor import Reference, Threshold
from ctbench.results.metrics import METRICS, SECONDS, Metric
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate

from .simulated import found, made_up_floor, made_up_record, run_of

#: A metric that no procedure measures. It has the name of another one: the schema of records has a list of the names.
DRAIN = Metric("latency_max", "time to drain the table", SECONDS, "lower", "promise")
LIMIT = 5.0


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with this metric."""
    monkeypatch.setitem(METRICS, DRAIN.name, DRAIN)


def drained(seconds: float | None, **changes: Any) -> Record:
    """The record of a test that found out how long a table takes to drain, by no trial."""
    known = {} if seconds is None else {DRAIN.name: Estimate(value=seconds, unit="s", low=seconds, high=seconds * 1.05)}
    margin = None if seconds is None else DRAIN.margin_pct(seconds, LIMIT)
    met = seconds is not None and DRAIN.keeps(seconds, LIMIT)
    promise = Threshold(
        metric=DRAIN.name, operator="<=", limit=LIMIT, written="<= 5s", measured=seconds, margin_pct=margin, met=met
    )
    fields: dict[str, Any] = {
        "test": "Drain of a Full Table",
        "procedure": "drain",
        "metric": DRAIN.name,
        "figures": known,
        "thresholds": [promise],
        "verdict": "not measured" if seconds is None else "met" if met else "missed",
        "verdict_reason": "why",
        "margin_pct": margin,
        "limited_by": "dut",
        "evidence": Evidence(trials=[]),
    }
    return made_up_record(**(fields | changes))


@pytest.mark.parametrize(
    ("seconds", "limited_by", "line"),
    [
        (3.2, "dut", "time to drain the table 3.2 s (± 5.0 %)   floor at most 5.0 s   margin +56.2 %   MET"),
        (8.0, "dut", "time to drain the table 8.0 s (± 5.0 %)   floor at most 5.0 s   margin -37.5 %   MISSED"),
        (3.2, "range", "time to drain the table at most 3.2 s (± 5.0 %)   floor at most 5.0 s   margin +56.2 %   MET"),
        (None, "fault", "no result   floor at most 5.0 s   NOT MEASURED"),
    ],
)
def test_the_verdict_line_names_the_metric_with_its_margin(seconds: float | None, limited_by: str, line: str) -> None:
    first, *_ = console.verdict_line(drained(seconds, limited_by=limited_by)).split("\n")
    assert first.strip() == line


def test_every_file_of_a_report_has_the_metric_its_unit_and_the_margin(tmp_path: Path) -> None:
    run = run_of(tmp_path, drained(8.0), made_up_record(test="Rate"))
    page = write_reports([run], run)
    assert [each.row.test for each in page.searches] == ["Rate"]
    slow, _ = json.loads((run / "summary.json").read_text())["tests"]
    drained_s = {"value": 8.0, "unit": "s", "low": 8.0, "high": 8.0 * 1.05}
    assert (slow["metric"], slow["unit"], slow["held_s"]) == (DRAIN.name, "s", None)
    assert slow["figures"] == {DRAIN.name: {**drained_s, "samples": []}}
    assert (slow["floor"], slow["measured"], slow["margin_pct"]) == (5.0, 8.0, -37.5)
    line, rate = csv.DictReader(io.StringIO((run / "results.csv").read_text()))
    assert [name for name in line if name in METRICS] == list(METRICS)
    assert [line[f"{DRAIN.name}{key}"] for key in ("", "_unit", "_low", "_high")] == list(map(str, drained_s.values()))
    assert [rate[f"cps{key}"] for key in ("", "_unit")] == ["381000.0", "connections/s"]
    assert (line["cps"], line["cps_unit"], line["held_s"], rate["held_s"]) == ("", "", "", "10.0")
    failure = next(ET.parse(run / "junit.xml").iter("failure"))
    assert {"Floor: at most 5.0 s", "Measured: 8.0 s"} < set(str(failure.text).splitlines()), "what GitLab shows"
    assert "| at most 5.0 s | **8.0 s** | \u221237.5 % |" in (run / "sla.md").read_text()
    row = next(each for each in rows_of(read_page((run / "sla.html").read_text())) if each["test"] != "Rate")
    assert (row["Floor"], row["Measured"]) == ("at most 5.0 s", "8.0 s")


def test_history_and_scaling_say_that_lower_is_better() -> None:
    (chart,) = history_charts([[drained(10.0, run_id="1"), drained(4.0, run_id="2")]])
    assert chart.caption == "2 runs; the newest has 4.0 s, \u221260.0 % against the first (lower is better)."
    assert chart.y.name == "time to drain the table (s), lower is better"
    assert [guide.text for guide in chart.guides] == ["promised at most 5.0 s"]
    assert [series.style for series in chart.series] == ["run-line", "run-met", "run-missed"]
    records = [
        drained(seconds, topology=Topology(cpus=cpus), limited_by=limited_by)
        for cpus, seconds, limited_by in ((1, 4.0, "dut"), (2, 2.0, "range"))
    ]
    (chart,) = rate_charts(records)
    assert chart.caption == "time to drain the table (s), lower is better"
    assert [(row.floor, row.ideal) for row in chart.rows] == [(5.0, None), (5.0, None)]
    assert [row.text for row in chart.rows] == ["4.0 s", "2.0 s"]


def test_repetitions_of_no_search_are_called_so() -> None:
    samples = Estimate(value=3.2, unit="s", low=3.0, high=3.4, samples=[3.0, 3.2, 3.4])
    record = drained(3.2, figures={DRAIN.name: samples})
    assert figures.spread(record) == ("12.5 %", "over 3 repetitions")
    assert "(12.5 % over 3 repetitions)" in console.verdict_line(record)
    several = made_up_record(found(381_000.0))
    searched = replace(several.figures["cps"], samples=(370_000.0, 381_000.0, 390_000.0))
    assert figures.spread(several.model_copy(update={"figures": {"cps": searched}})) == ("5.2 %", "over 3 searches")


def test_the_figure_that_others_published_is_beside_the_row_and_only_of_its_own_metric(tmp_path: Path) -> None:
    def published(**known: float) -> str:
        floor = replace(made_up_floor(), reference=Reference(figures=known, source="the article"))
        run = run_of(tmp_path, made_up_record(floor=floor))
        (row,) = compose(read_runs([run]), run).rows
        return "".join(row.details.get("Published elsewhere", ()))

    assert published(cps=100_000) == "+281 % against 100.0 k/s; the article; other hardware"
    assert published(pps=100_000) == ""
