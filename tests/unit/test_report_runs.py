"""What a report is made from: several runs, those of pabot, thousands of tests; and what `./run report` says."""

import json
from datetime import UTC, datetime
from pathlib import Path

import commands
import pytest
from golden import GOLDEN
from pages import read_page, rows_of

from ctbench.base.errors import CtbenchError
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli import sla
from ctbench.report import console
from ctbench.report.charts.chart import Bars
from ctbench.report.compose import compose
from ctbench.report.runs import PABOT_RESULTS, read_runs
from ctbench.report.write import write_reports
from ctbench.results import store
from ctbench.results.environment import TestbedFacts
from ctbench.results.store import WITHOUT_RECORD_FILE, WithoutRecord, write

from .simulated import found, made_up_record, run_of, with_environment


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(made_up_record(), tmp_path / "run")
    return tmp_path / "run"


def test_the_terminal_says_how_many_files_are_unreadable_and_why(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, content in enumerate(("[]", "not JSON"), 1):
        (run / "records" / f"odd-{number}.json").write_text(content)
        assert commands.status("report", [str(run)]) == 0
        said = capsys.readouterr().out
        assert said.startswith("The SLA that was measured is met.\n")
        assert f"\n{number} file" in said and "records/odd-1.json: " in said


def test_several_runs_are_merged_into_a_folder_of_their_own(run: Path, tmp_path: Path) -> None:
    write(made_up_record(test="Another"), tmp_path / "second")
    assert commands.status("report", [str(run), str(tmp_path / "second"), "--outputdir", str(tmp_path / "both")]) == 0
    html = (tmp_path / "both" / "sla.html").read_text()
    assert "All 2 SLAs" in html and 'href="../second"' in html


def test_several_runs_need_a_folder_of_their_own(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.status("report", [str(run), str(run)]) == 4
    assert "--outputdir" in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for folder in ("nowhere", str(tmp_path / "empty")):
        assert commands.status("report", [folder]) == 4
        first, expected = capsys.readouterr().err.splitlines()
        assert first == f"run: {folder}: holds no run."
        assert expected.startswith("  Expected a folder that ./run sla wrote")


def test_a_folder_that_is_closed_to_this_user_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert commands.status("report", [closed]) == 4
    assert f"run: {closed}" in capsys.readouterr().err


@pytest.fixture
def passing(tmp_path: Path) -> Path:
    """A suite that measures nothing."""
    suite = tmp_path / "a.robot"
    suite.write_text("*** Test Cases ***\nPasses\n    No Operation\n")
    return suite


def test_a_run_that_measured_nothing_has_robots_report_alone_and_old_notes_are_gone(
    passing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RESULTS_VARIABLE, str(passing.parent / "results"))
    folder = passing.parent / "out"
    folder.mkdir()
    store.note_without_record([WithoutRecord(suite="S", test="T", outcome="skipped", reason="old")], folder)
    command = sla.parse(["--console", "none", str(passing)], passing.parent)
    sla.run(command, folder, sla.selected_suite(command.arguments))
    assert (folder / "report.html").exists()
    assert not (folder / WITHOUT_RECORD_FILE).exists()
    assert not (folder / "sla.html").exists()


def skipped(test: str, reason: str = "2 CPUs are needed, 1 was found", suite: str = "S") -> WithoutRecord:
    return WithoutRecord(suite=suite, test=test, outcome="skipped", reason=reason)


def test_the_newest_record_of_a_test_counts_and_the_older_are_history(tmp_path: Path) -> None:
    for year, rate in ((2024, 40_000.0), (2025, 381_000.0)):
        moment = datetime(year, 1, 1, tzinfo=UTC)
        write(made_up_record(found(rate), started=moment, ended=moment, run_id=str(year)), tmp_path / str(year))
    page = compose(read_runs([tmp_path / "2025", tmp_path / "2024"]), tmp_path)
    assert page.sentence.startswith("Open vSwitch 3.1.0, Connection tracking: holds 381.0 k new connections a second")
    assert page.details[-1] == "The SLA that was measured is met."
    answer, trend = page.setups
    assert isinstance(answer, Bars) and page.charts == (trend,)
    assert [text for text, _ in page.runs] == ["2025", "2024"]


def test_the_runs_of_pabots_processes_are_one_report_and_testbeds_are_kept_apart(tmp_path: Path) -> None:
    for number in (0, 1, 2):
        write(made_up_record(test=f"Test {number}"), tmp_path / "pabot_results" / str(number))
    page = compose(read_runs([tmp_path]), tmp_path)
    assert page.details[-1] == "All 3 SLAs that were measured are met."
    assert [text for text, _ in page.runs] == ["0", "1", "2"]
    links = [row.record for row in page.rows]
    assert all((tmp_path / link).is_file() for link in links)
    two = (with_environment(made_up_record(), testbed=TestbedFacts(name=name)) for name in ("one", "two"))
    run_of(tmp_path / "two", *two)
    assert len(read_runs([tmp_path / "two"]).newest) == 2


def test_what_was_not_run_stands_by_what_it_needs(tmp_path: Path) -> None:
    reasons = {
        "4 PMD CPU(s) and 1 for the traffic generator need 5 CPUs; this machine has 2 usable.": "5 CPUs",
        "2 CPUs and 3 for others need 5 CPUs; this machine has 2 usable.": "5 CPUs",
        "sandbox: the kernel module bonding is missing (`ip link add`: Unknown).": "kernel module bonding",
        "sandbox: VLAN filtering (CONFIG_X) is missing (`ip`).": "VLAN filtering (CONFIG_X)",
        "This testbed skips tests tagged extended (skips): one without that measures them.": "tests tagged extended",
        "Nothing of this is known; it goes on.": "Nothing of this is known",
    }
    store.note_without_record([skipped(str(number), text) for number, text in enumerate(reasons)], tmp_path)
    page = compose(read_runs([tmp_path]), tmp_path)
    assert {reason: each.need for each in page.not_run for reason, _ in each.reasons} == reasons
    assert (page.not_run[0].need, page.not_run[0].number) == ("5 CPUs", 2)


def test_what_is_left_for_the_night_is_counted_apart_from_what_the_testbed_lacks(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    night = [skipped(test, "no time").model_copy(update={"outcome": "nightly only"}) for test in "ABC"]
    failed = skipped("E", "no such file").model_copy(update={"outcome": "failed"})
    new = skipped("F", "two machines").model_copy(update={"outcome": "no floor yet"})
    rest = skipped("G", "stopped").model_copy(update={"outcome": "not begun"})
    store.note_without_record([*night, skipped("D"), failed, new, rest], tmp_path)
    page = write_reports([tmp_path], tmp_path)
    assert [(number, shown.word) for number, shown in page.counts][3:] == [
        (1, "skipped"), (3, "nightly only"), (1, "no floor yet"), (1, "failed, no record"), (1, "not begun"),
    ]  # fmt: skip
    assert [(each.outcome, each.number) for each in page.not_run] == [
        ("failed", 1), ("not begun", 1), ("skipped", 1), ("nightly only", 3), ("no floor yet", 1),
    ]  # fmt: skip
    assert [each.partition(": ")[0] for each in page.unseen[-4:]] == [
        "1 test not begun", "1 test skipped", "3 tests nightly only", "1 test not judged"
    ]  # fmt: skip
    assert json.loads((tmp_path / "summary.json").read_text())["counts"]["nightly only"] == 3
    junit = (tmp_path / "junit.xml").read_text()
    assert (junit.count("<skipped"), junit.count("<error")) == (5, 2)
    (said,) = console.without_figure([*night, skipped("D"), failed])
    assert said.startswith("1 failed before anything was measured; 1 skipped: ") and "3 nightly only:" in said
    assert console.without_figure([]) == []


def test_a_test_that_another_run_measured_is_not_skipped(tmp_path: Path) -> None:
    record = made_up_record()
    write(record, tmp_path / "large")
    (tmp_path / "small").mkdir()
    store.note_without_record([skipped(record.test, suite=record.suite), skipped("Other")], tmp_path / "small")
    runs = read_runs([tmp_path / "large", tmp_path / "small"])
    assert [test.test for test in runs.without_record] == ["Other"]


@pytest.mark.parametrize("outcome", ["failed", "not begun"])
def test_a_test_that_its_newest_run_could_not_measure_is_not_met_by_an_older_one(tmp_path: Path, outcome: str) -> None:
    at = {day: datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)}
    for day in (1, 3):
        write(made_up_record(started=at[day], ended=at[day], run_id=str(day)), tmp_path / str(day))
    ended = skipped(made_up_record().test, suite=made_up_record().suite)
    ended = ended.model_copy(update={"outcome": outcome, "noted": at[2]})
    write(made_up_record(started=at[1], ended=at[1]), tmp_path / "pool" / PABOT_RESULTS / "0")
    for folder in (tmp_path / "1", tmp_path / "2", tmp_path / "pool" / PABOT_RESULTS / "1"):
        folder.mkdir(exist_ok=True)
        store.note_without_record([ended], folder)
    page = write_reports([tmp_path / "1", tmp_path / "2"], tmp_path / "two")
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert (page.tone, summary["verdict"], summary["counts"]["met"]) == ("unmeasured", "not measured", 1)
    assert [test["outcome"] for test in summary["without_record"]] == [outcome]
    junit = (tmp_path / "two" / "junit.xml").read_text()
    assert (junit.count("<testcase"), junit.count("<error")) == (2, 1)
    # What the same run measured counts, in whichever part of it, and what a later one did.
    for some in (["1"], ["pool"], ["3", "2", "1"]):
        page = write_reports([tmp_path / each for each in some], tmp_path / "met")
        assert (page.tone, page.not_run) == ("met", ())


def test_a_test_that_two_runs_could_not_measure_is_counted_once(tmp_path: Path) -> None:
    failed = skipped("A", "no such file").model_copy(update={"outcome": "failed"})
    for number, test in enumerate((skipped("A", "need 8 CPUs"), failed, skipped("A", "need 4 CPUs"))):
        (tmp_path / str(number)).mkdir()
        store.note_without_record([test], tmp_path / str(number))
    (left,) = read_runs([tmp_path / str(number) for number in range(3)]).without_record
    assert left.outcome == "failed"


def test_a_run_in_which_everything_was_skipped_says_that_nothing_was_measured(tmp_path: Path) -> None:
    store.note_without_record([skipped("A")], tmp_path)
    page = write_reports([tmp_path], tmp_path)
    assert (page.sentence, page.tone) == ("Nothing was measured.", "unmeasured")
    assert "2 CPUs are needed" in (tmp_path / "sla.html").read_text()


def test_a_folder_that_cannot_be_written_is_one_sentence_and_an_older_report_is_replaced(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    for _ in range(2):
        write_reports([tmp_path], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "history.csv", "history.openmetrics", "junit.xml", "numbers.html", "records", "report.css", "results.csv",
        "sla.html", "sla.md", "summary.json",
    ]  # fmt: skip
    write(made_up_record(), tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CtbenchError, match="the report could not be written"):
        write_reports([tmp_path], tmp_path / "file")


def test_of_a_run_of_hundreds_of_tests_a_merge_request_has_some_and_all_else_every_one(tmp_path: Path) -> None:
    tests, document = 300, json.loads(made_up_record().to_json())
    (tmp_path / "records").mkdir()
    for number in range(tests):
        own = {"suite": f"All.Suite {number % 7}", "test": f"Test {number}", "notes": [f"note {number}"]}
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document | own))
    write_reports([tmp_path], tmp_path)
    page = read_page((tmp_path / "sla.html").read_text())
    assert len(rows_of(page)) == len((tmp_path / "results.csv").read_text().splitlines()) - 1 == tests
    assert page.by_id("setups").all("figure") and not page.by_id("nearest").all("article"), "all are met"
    text = (tmp_path / "sla.md").read_text()
    assert len(text) < 65_536 and "100 more tests: see sla.html" in text


def test_of_long_reasons_a_merge_request_has_fewer(tmp_path: Path) -> None:
    golden = [json.loads(path.read_text()) for path in GOLDEN.glob("records/ovs*.json")]
    document = max(
        (each for each in golden if each["verdict"] == "missed"), key=lambda each: len(each["verdict_reason"])
    )
    (tmp_path / "records").mkdir()
    for number in range(200):
        own = {"test": f"{'Long ' * 9}{number}"}
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document | own))
    write_reports([tmp_path], tmp_path)
    text = (tmp_path / "sla.md").read_text()
    assert 20_000 < len(text) < 65_536 and "100 more tests: see sla.html" in text


def test_a_run_ends_with_the_headline_of_its_report(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sla.report(run)
    said = " ".join(capsys.readouterr().out.split())
    headline = compose(read_runs([run]), run).headline
    assert len(headline) > 2 and all(each in said for each in headline)
