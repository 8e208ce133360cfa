"""The report's other files, and the page of a comparison."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pages import read_page

from ctbench.base.errors import CtbenchError
from ctbench.compare.page import comparison_html, write_comparison
from ctbench.report.write import write_reports
from ctbench.results import store
from ctbench.results.comparison import ComparedSide, ComparedTest, Comparison, Judgement, Samples
from ctbench.results.store import WithoutRecord, write

from .simulated import made_up_record

pytestmark = pytest.mark.unit


def test_a_test_that_failed_without_a_record_is_an_error_in_junit(tmp_path: Path) -> None:
    note = WithoutRecord(suite="S", test="T", outcome="failed", reason="no such floor")
    store.note_without_record([note], tmp_path)
    write_reports([tmp_path], tmp_path)
    (error,) = ET.fromstring((tmp_path / "junit.xml").read_text()).iter("error")
    assert error.get("message") == "no such floor"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CtbenchError, match="the report could not be written"):
        write_reports([tmp_path], tmp_path / "file")


def test_a_report_replaces_an_older_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    for _ in range(2):
        write_reports([tmp_path], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "junit.xml", "records", "report.css", "report.html", "report.md", "results.csv", "summary.json"
    ]  # fmt: skip


def samples(*rates: float) -> Samples:
    ordered = sorted(rates)
    middle = ordered[len(ordered) // 2]
    return Samples(values=list(rates), median=middle, minimum=ordered[0], maximum=ordered[-1],
                   spread=(ordered[-1] - ordered[0]) / middle, run_ids=["r"],
                   records=["/base/records/a.json"])  # fmt: skip


def compared(test: str, judgement: Judgement, base: Samples, candidate: Samples | None) -> ComparedTest:
    difference = (candidate.median / base.median - 1) * 100 if candidate else None
    return ComparedTest(
        suite="S", test=test, topology="ovs-dpdk/conntrack/1cpu-1rxq", profile="short-lived", metric="cps",
        unit="connections/s",
        base=base, candidate=candidate, difference_pct=difference, resolution=0.01, p_regressed=0.004, p_improved=1.0,
        p_regressed_corrected=0.008, p_improved_corrected=1.0, judgement=judgement, reason=f"because of {test}",
    )  # fmt: skip


def side(name: str) -> ComparedSide:
    return ComparedSide(name=name, folders=["a", "b"], records=10, versions=["Open vSwitch 3.1.0"], testbeds=["local"],
                machines=["Xeon"], kernels=["6.1"], campaigns=["quick"], broken=[])  # fmt: skip


def comparison(*tests: ComparedTest, differences: tuple[str, ...] = ()) -> Comparison:
    return Comparison(
        kind="runs", tool_version="0.1", made=datetime(2025, 1, 1, tzinfo=UTC), base=side("old"), candidate=side("new"),
        least_difference=0.03, alpha=0.01, family=2, tests=list(tests), differences=list(differences), notes=["a note"],
        judgement="regressed", sentence="1 of 2 tests regressed.",
    )  # fmt: skip


def test_a_comparison_begins_with_the_worst_news_and_has_every_figure() -> None:
    quiet = compared("Quiet", "no evidence", samples(100, 101, 102), samples(100, 101, 103))
    slow = compared("Slow", "regressed", samples(100_000, 101_000, 102_000), samples(80_000, 81_000, 82_000))
    gone = compared("Gone", "not measurable", samples(100), None)
    page = read_page(comparison_html(comparison(quiet, slow, gone), Path("/base/compared")))
    assert page.one("h1").text == "1 of 2 tests regressed."
    rows = page.by_id("tests").all("tr", "test")
    assert [row.one("th").own_text for row in rows] == ["Slow", "Gone", "Quiet"]
    cells = {cell.attributes["data-name"]: cell.text for cell in rows[0].all("td")}
    assert cells["Judgement"] == "▼ regressed"
    assert cells["Base"].startswith("101.0 k/s 3 samples, spread 2.0 %")
    assert cells["Candidate"].startswith("81.0 k/s")
    assert (cells["Difference"], cells["p"]) == ("\u221219.8 %", "0.008")
    assert len(rows[0].all("circle")) == 6
    assert [link.attributes["href"] for link in rows[0].all("a")] == ["../records/a.json"] * 2
    assert page.one("ul", "counts").one("li").text == "1 ▼ regressed"


def test_a_comparison_of_what_is_not_alike_says_so_on_the_page(tmp_path: Path) -> None:
    test = compared("T", "no evidence", samples(1.0), samples(1.0))
    path = write_comparison(comparison(test, differences=("The machines differ.",)), tmp_path)
    page = read_page(path.read_text())
    assert "The machines differ." in page.by_id("differences").text
    assert (tmp_path / "report.css").exists()
    assert page.all("script") == [] and not any("style" in each.attributes for each in page.all())
