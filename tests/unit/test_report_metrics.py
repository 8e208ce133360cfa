"""A figure that is not a rate, and better when it is lower: every page says so, and none has it the wrong way round;
figures from elsewhere: what was published, labelled as other hardware, and other runs."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pages import read_page, rows_of
from robot.running import TestSuiteBuilder

from ConntrackSLA.rows import named
from ctbench.base.paths import SUITES
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.report import console, figures, labels
from ctbench.report.charts.bars import rate_charts
from ctbench.report.charts.lines import history_charts, search_chart
from ctbench.report.compose import compose
from ctbench.report.reference import NONE, Elsewhere, References, against, keys, published_parts, read_references
from ctbench.report.runs import read_runs
from ctbench.report.write import write_reports
from ctbench.results.environment import MachineFacts
from ctbench.results.evidence import Evidence
from ctbench.results.metrics import METRICS, SECONDS, Metric
from ctbench.results.published import read_published
from ctbench.results.record import Record
from ctbench.results.record_model import Figure, Reference, ThresholdRecord
from ctbench.results.store import Stored, write
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile, load_profile

from .simulated import found, made_up_floor, made_up_record

#: A metric that no procedure measures. It has the name of another one: the schema of records has a list of the names.
DRAIN = Metric("latency_max", "time to drain the table", SECONDS, "lower", "promise")
LIMIT = 5.0


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with this metric."""
    monkeypatch.setitem(METRICS, DRAIN.name, DRAIN)


def drained(seconds: float | None, **changes: Any) -> Record:
    """The record of a test that found out how long a table takes to drain, by no trial."""
    known = {} if seconds is None else {DRAIN.name: Figure(value=seconds, unit="s", low=seconds, high=seconds * 1.05)}
    margin = None if seconds is None else DRAIN.margin_pct(seconds, LIMIT)
    met = seconds is not None and DRAIN.keeps(seconds, LIMIT)
    promise = ThresholdRecord(
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


def run_of(folder: Path, *records: Record) -> Path:
    """The folder of a run with these records."""
    for record in records:
        write(record, folder)
    return folder


@pytest.mark.parametrize(
    ("seconds", "limited_by", "line"),
    [
        (3.2, "dut", "time to drain the table 3.2 s ± 5.0 %   floor at most 5.0 s   margin +56.2 %   MET"),
        (8.0, "dut", "time to drain the table 8.0 s ± 5.0 %   floor at most 5.0 s   margin -37.5 %   MISSED"),
        (3.2, "range", "time to drain the table at most 3.2 s ± 5.0 %   floor at most 5.0 s   margin +56.2 %   MET"),
        (None, "fault", "no result   floor at most 5.0 s   NOT MEASURED"),
    ],
)
def test_the_verdict_line_names_the_metric_with_its_margin(seconds: float | None, limited_by: str, line: str) -> None:
    first, *_ = console.verdict_line(drained(seconds, limited_by=limited_by)).split("\n")
    assert first.strip() == line


def test_the_table_and_the_metadata_show_the_limit_as_a_largest_value() -> None:
    lines = console.summary([drained(3.2), drained(8.0), made_up_record()]).split("\n")
    assert re.split(r"\s{2,}", lines[3].strip()) == ["Drain of a Full Table", "at most 5.0 s", "3.2 s", "MET"]
    assert re.split(r"\s{2,}", lines[4])[-2:] == ["8.0 s", "MISSED"]
    assert max(map(len, lines)) <= console.TABLE_WIDTH
    shown = console.metadata(drained(8.0))
    assert shown == {"Floor": "at most 5.0 s", "Measured": "8.0 s", "Margin": "-37.5 %", "Verdict": "missed"}


def test_every_file_of_a_report_has_the_metric_its_unit_and_the_margin(tmp_path: Path) -> None:
    run = run_of(tmp_path, drained(8.0), drained(3.2, test="Fast"), made_up_record(test="Rate"))
    page = write_reports([run], run)
    assert page.sentence == "1 of 3 SLAs is missed; 2 are met."
    assert [part.row and part.row.test for part in page.section("searches").parts] == ["Rate"]

    slow, fast, rate = json.loads((run / "summary.json").read_text())["tests"]
    assert (slow["metric"], slow["unit"], slow["procedure"]) == (DRAIN.name, "s", "drain")
    assert slow["figures"] == {DRAIN.name: 8.0}
    assert (slow["floor"], slow["measured"], slow["margin_pct"], fast["margin_pct"]) == (5.0, 8.0, -37.5, 56.25)
    (promise,) = slow["thresholds"]
    assert {name: promise[name] for name in ("metric", "kind", "operator", "limit", "written", "measured", "met")} == {
        "metric": DRAIN.name, "kind": "absolute", "operator": "<=", "limit": 5.0, "written": "<= 5s", "measured": 8.0,
        "met": False,
    }  # fmt: skip
    assert rate["metric"] == "cps" and rate["figures"]["cps"] == 381_000.0

    lines = list(csv.DictReader(io.StringIO((run / "results.csv").read_text())))
    assert [name for name in lines[0] if name in METRICS] == list(METRICS)
    assert [(line[DRAIN.name], line["cps"]) for line in lines] == [("8.0", ""), ("3.2", ""), ("", "381000.0")]
    assert [line["unit"] for line in lines] == ["s", "s", "connections/s"]

    cases = {case.get("name"): case for case in ET.fromstring((run / "junit.xml").read_text()).iter("testcase")}
    properties = {each.get("name"): each.get("value") for each in cases["Drain of a Full Table"].iter("property")}
    assert {"Floor": "at most 5.0 s", "Measured": "8.0 s", "Margin": "\u221237.5 %"}.items() <= properties.items()
    assert properties["Metric"] == "time to drain the table"
    failure = cases["Drain of a Full Table"].find("failure")
    assert failure is not None and failure.text
    told = failure.text.splitlines()  # what GitLab shows
    assert told[0] == failure.get("message") and {"Floor: at most 5.0 s", "Measured: 8.0 s"} < set(told)
    assert cases["Fast"].find("failure") is None

    text = (run / "sla.md").read_text()
    assert "| at most 5.0 s | **8.0 s** | \u221237.5 % |" in text
    rows = {row["test"]: row for row in rows_of(read_page((run / "sla.html").read_text()))}
    assert rows["Drain of a Full Table"]["Measured"] == "8.0 s"
    assert rows["Drain of a Full Table"]["subject"].endswith(": time to drain the table")
    assert rows["Drain of a Full Table"]["Minimum"] == "at most 5.0 s"
    assert rows["Fast"]["Margin"].startswith("+56.2 %")
    assert rows["Rate"]["Measured"].startswith("381.0 k CPS, ")


def test_the_page_says_which_procedure_measured_what(tmp_path: Path) -> None:
    run = run_of(tmp_path, drained(8.0), made_up_record())
    said = compose(read_runs([run]), run).methodology
    assert "Procedure drain measured time to drain the table (1 test)." in said
    assert any(
        line.startswith("Procedure highest-rate measured new connections (1 test): it searches") for line in said
    )


def test_history_and_scaling_say_that_lower_is_better() -> None:
    (chart,) = history_charts([[drained(10.0, run_id="1"), drained(4.0, run_id="2")]])
    assert chart.caption == "2 runs; the newest has 4.0 s, \u221260.0 % against the first (lower is better)."
    assert chart.y.name == "time to drain the table (s), lower is better"
    assert [guide.text for guide in chart.guides] == ["floor at most 5.0 s"]
    assert [series.style for series in chart.series] == ["run-line", "run-met", "run-missed"]
    records = [
        drained(seconds, topology=Topology(cpus=cpus), limited_by=limited_by)
        for cpus, seconds, limited_by in ((1, 4.0, "dut"), (2, 2.0, "range"))
    ]
    (chart,) = rate_charts(records, NONE)
    assert chart.caption == "time to drain the table (s), lower is better"
    assert [(row.floor, row.ideal) for row in chart.rows] == [(5.0, None), (5.0, None)]
    assert [row.text for row in chart.rows] == ["4", "≤ 2"]


def test_a_chart_of_load_against_loss_needs_trials_and_has_no_capacity_where_no_rate_was_looked_for() -> None:
    assert search_chart(drained(3.2)) is None
    chart = search_chart(drained(3.2, evidence=made_up_record().evidence))
    assert chart is not None
    assert [guide.style for guide in chart.guides] == []
    searched = search_chart(made_up_record())
    assert searched is not None
    assert [guide.style for guide in searched.guides] == ["limit", "floor", "capacity"]


def test_a_reference_is_compared_by_the_metric_of_the_record_or_not_at_all(tmp_path: Path) -> None:
    references = read_references([run_of(tmp_path / "old", drained(4.0))])
    record = drained(3.0)
    compared = against(record, references.find(record))
    assert compared is not None
    assert (compared.metric, compared.theirs, compared.difference_pct) == (DRAIN, 4.0, -25.0)
    run = run_of(tmp_path / "new", record)
    (row,) = compose(read_runs([run]), run, references).rows
    (said,) = row.details["Against reference"]
    assert said == "\u221225.0 % against 4.0 s; run old; other hardware; lower is better"
    assert against(record, Elsewhere("2022", "short-lived", {"cps": 48_200, "pps": 334_900})) is None
    assert against(record, Elsewhere("2022", "long-lived", {"pps": 334_900, DRAIN.name: 3.0})) is None
    assert References({}).find(record) is None


def test_repetitions_of_no_search_are_called_so() -> None:
    samples = Figure(value=3.2, unit="s", low=3.0, high=3.4, samples=[3.0, 3.2, 3.4])
    record = drained(3.2, figures={DRAIN.name: samples})
    assert figures.spread(record) == ("12.5 %", "over 3 repetitions")
    assert "3 repetitions found 3.0 s to 3.4 s, a spread of 12.5 %" in console.verdict_line(record)
    several = made_up_record(found(381_000.0))
    searched = replace(several.figures["cps"], samples=(370_000.0, 381_000.0, 390_000.0))
    assert figures.spread(several.model_copy(update={"figures": {"cps": searched}})) == ("5.2 %", "over 3 searches")


REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
#: Stands where there is no figure: an en dash.
DASH = "\u2013"
OVS_3 = REFERENCE / "ovs-3.0.0"


def test_every_published_figure_is_shown_beside_a_row() -> None:
    """A reference file that describes no row would be shown nowhere."""
    rows = named(TestSuiteBuilder().build(SUITES))
    shown = {(key, row.profile.name) for row in rows for key in keys(row.topology)}
    figures = [figure for folder in sorted(REFERENCE.iterdir()) for figure in read_published(folder)]
    assert len(figures) == 47
    assert [figure.label for figure in figures if (figure.key, figure.profile) not in shown] == []


@pytest.mark.parametrize("folder", ["ovs-3.0.0", "ovs-2.7", "linux-5.0"])
def test_the_published_figures_stand_beside_their_floors(folder: str) -> None:
    floors = load("sla", "local", Floors).floors
    for figure in read_published(REFERENCE / folder):
        entries = [entries[figure.profile] for key, entries in floors.items()
                   if figure.key in keys(Topology.parse(key)) and figure.profile in entries]  # fmt: skip
        rates = {name: value for name, value in figure.figures.items() if name in ("cps", "pps")}
        assert entries
        for shown in (entry.published for entry in entries):
            assert shown is not None
            assert (shown.figures, shown.cpus_given, shown.label) == (rates, figure.cpus_given, figure.label)


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_figure_without_a_number_of_cpus_is_beside_every_number_and_says_so(tmp_path: Path, cpus: int) -> None:
    topology = Topology(datapath="linux-router", ruleset="forward", cpus=cpus, rx_queues=cpus)
    record = made_up_record(topology=topology, profile=load_profile("udp-64-10k"))
    references = read_references([REFERENCE / "linux-5.0"])
    found = references.find(record)
    assert found is not None and found.figures["pps"] == 14e6
    assert found.label == "Linux 5.0, 2019, test 1, some 16 CPUs busy, number of CPUs not given"
    bonds = record.model_copy(update={"topology": topology.model_copy(update={"ports": "bond"})})
    assert references.find(bonds) is None
    (part,) = published_parts([Stored(tmp_path / "records/a.json", record)], references, tmp_path)
    assert part.table is not None
    name, lines = list(part.table.groups.items())[1]
    assert name == "2019, test 1, some 16 CPUs busy: plain forwarding, number of CPUs not given, udp-64-10k"
    assert labels.cpus_and_queues(cpus, cpus) in lines[-1].cells[0].text


def test_without_a_reference_the_figure_beside_the_floor_serves() -> None:
    reference = Reference(figures={"cps": 100_000}, source="the article")
    record = made_up_record(floor=replace(made_up_floor(), reference=reference))
    compared = against(record, NONE.find(record))
    assert compared is not None and compared.other_hardware
    assert compared.difference_pct == pytest.approx(281.0)
    assert against(made_up_record(), NONE.find(made_up_record())) is None


def test_shortened_connections_are_compared_by_their_packets() -> None:
    short = ConnectionProfile(name="long-lived-short", derived_from="long-lived", udp_percent=1)
    record = made_up_record(found(14_600.0), profile=short)
    compared = against(record, read_references([OVS_3]).find(record))
    assert compared is not None
    assert (compared.metric.name, compared.theirs) == ("pps", 1_800_000)


def test_another_run_of_the_same_machine_is_not_called_other_hardware(tmp_path: Path) -> None:
    machines = {"old": "Xeon A", "new": "Xeon A", "elsewhere": "Xeon B"}
    for name, model in machines.items():
        record = made_up_record(found(100_000.0 if name == "old" else 110_000.0))
        environment = record.environment.model_copy(update={"machine": MachineFacts(cpu_model=model)})
        write(record.model_copy(update={"environment": environment}), tmp_path / name)
    references = read_references([tmp_path / "old"])
    for name, other in (("new", False), ("elsewhere", True)):
        record = read_runs([tmp_path / name]).newest[0].record
        compared = against(record, references.find(record))
        assert compared is not None
        assert (round(compared.difference_pct, 6), compared.other_hardware) == (10.0, other)


def test_the_published_tables_have_a_line_of_this_run_and_the_articles_difference(tmp_path: Path) -> None:
    references = read_references([OVS_3, REFERENCE / "ovs-2.17.2"])
    (part,) = published_parts([Stored(tmp_path / "records/a.json", made_up_record())], references, tmp_path)
    table = part.table
    assert table is not None and len(table.groups) == 16
    (_, first), _, (name, fourth), *_ = table.groups.items()
    assert name == "2022, table 4: connection tracking, 1 CPU, 1 queue, short-lived"
    lines = [[cell.text for cell in line.cells] for line in fourth]
    assert [(name, cps, difference) for name, cps, *_, difference in lines] == [
        ("Open vSwitch 2.17.2", "39.7 k/s", DASH),
        ("Open vSwitch 3.0.0", "48.2 k/s", "+21.4 %"),
        ("this run: Open vSwitch 3.1.0", "381.0 k/s", "+690 %"),
    ]
    assert fourth[-1].cells[0].href == "records/a.json"
    assert first[-1].cells[0].text == "this run: no figure"
