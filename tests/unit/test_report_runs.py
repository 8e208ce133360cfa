"""What a report is made from: several runs, those of pabot, and files that are no records."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.report import console
from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.report.write import write_reports
from ctbench.results import without_record
from ctbench.results.environment import TestbedFacts
from ctbench.results.store import write
from ctbench.results.without_record import WithoutRecord

from .simulated import found, made_up_record

pytestmark = pytest.mark.unit


def skipped(test: str, reason: str = "2 CPUs are needed, 1 was found", suite: str = "S") -> WithoutRecord:
    return WithoutRecord(suite=suite, test=test, outcome="skipped", reason=reason)


def test_the_newest_record_of_a_test_counts_and_the_older_are_history(tmp_path: Path) -> None:
    for year, rate in ((2024, 40_000.0), (2025, 381_000.0)):
        moment = datetime(year, 1, 1, tzinfo=UTC)
        write(made_up_record(found(rate), started=moment, ended=moment, run_id=str(year)), tmp_path / str(year))
    page = compose(read_runs([tmp_path / "2025", tmp_path / "2024"]), tmp_path)
    assert page.sentence == "The SLA that was measured is met."
    assert [gallery.title for gallery in page.galleries] == ["History over the runs"]
    assert [run.text for run in page.runs] == ["2025", "2024"]


def test_the_runs_of_pabots_processes_are_one_report(tmp_path: Path) -> None:
    for number in (0, 1, 10, 9):
        write(made_up_record(test=f"Test {number}"), tmp_path / "pabot_results" / str(number))
    page = compose(read_runs([tmp_path]), tmp_path)
    assert page.sentence == "All 4 SLAs that were measured are met."
    assert [run.text for run in page.runs] == ["0", "1", "9", "10"]
    links = [row.record.href for row in page.groups[0].rows]
    assert all((tmp_path / link).is_file() for link in links)


def test_the_same_test_on_another_testbed_is_another_row(tmp_path: Path) -> None:
    record = made_up_record()
    for name in ("one", "two"):
        environment = record.environment.model_copy(update={"testbed": TestbedFacts(name=name)})
        write(record.model_copy(update={"environment": environment}), tmp_path)
    assert len(read_runs([tmp_path]).newest) == 2


def test_files_that_are_no_records_are_named_skipped_and_counted(tmp_path: Path) -> None:
    good = write(made_up_record(), tmp_path)
    records = good.parent
    document = json.loads(good.read_text())
    (records / "truncated.json").write_text(good.read_text()[:500])
    (records / "future.json").write_text(json.dumps(document | {"schema_version": 3}))
    (records / "wrong.json").write_text(json.dumps(document | {"verdict": "splendid"}))
    page = write_reports([tmp_path], tmp_path)
    assert page.sentence == "The SLA that was measured is met."
    assert page.tone == "unmeasured"
    assert page.details[-1] == "3 files are no records and are not counted."
    assert [(count.number, count.word) for count in page.counts][-1] == (3, "unreadable")
    html = (tmp_path / "report.html").read_text()
    for said in ("records/future.json: schema_version: 3", "records/truncated.json: is not JSON", "records/wrong.json"):
        assert said in html
    assert str(tmp_path) not in html
    assert json.loads((tmp_path / "summary.json").read_text())["counts"]["unreadable"] == 3
    assert (tmp_path / "junit.xml").read_text().count('type="unreadable"') == 3


def test_skipped_tests_are_counted_by_their_reason(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    without_record.note([skipped("A"), skipped("B"), skipped("C", "no bonds here")], tmp_path)
    page = compose(read_runs([tmp_path]), tmp_path)
    assert [(some.reason, some.tests) for some in page.without_record] == [
        ("2 CPUs are needed, 1 was found", ("S: A", "S: B")),
        ("no bonds here", ("S: C",)),
    ]


def test_what_is_left_for_the_night_is_counted_apart_from_what_the_testbed_lacks(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    night = [skipped(test, "no time").model_copy(update={"outcome": "left for the night"}) for test in "ABC"]
    failed = skipped("E", "no such file").model_copy(update={"outcome": "failed"})
    without_record.note([*night, skipped("D"), failed], tmp_path)
    page = write_reports([tmp_path], tmp_path)
    assert [(count.number, count.word) for count in page.counts][3:] == [
        (1, "skipped"), (3, "left for the night"), (1, "failed, no record"),
    ]  # fmt: skip
    assert [(some.outcome, some.number) for some in page.without_record] == [
        ("failed", 1), ("skipped", 1), ("left for the night", 3),
    ]  # fmt: skip
    assert "1 test was skipped: this testbed lacks what it needs, as told below." in page.details
    assert "3 tests were left for the night: this campaign has no time for more." in page.details
    assert json.loads((tmp_path / "summary.json").read_text())["counts"]["left for the night"] == 3
    junit = (tmp_path / "junit.xml").read_text()
    assert (junit.count("<skipped"), junit.count("<error")) == (4, 1)
    assert console.without_figure([*night, skipped("D")]) == [
        "1 skipped, because this testbed lacks what they need; 3 left for the night, because the campaign has no time "
        "for them"
    ]
    assert console.without_figure([]) == []


def test_a_test_that_another_run_measured_is_not_skipped(tmp_path: Path) -> None:
    record = made_up_record()
    write(record, tmp_path / "large")
    (tmp_path / "small").mkdir()
    without_record.note([skipped(record.test, suite=record.suite), skipped("Other")], tmp_path / "small")
    runs = read_runs([tmp_path / "large", tmp_path / "small"])
    assert [test.test for test in runs.without_record] == ["Other"]


def test_a_run_in_which_everything_was_skipped_says_that_nothing_was_measured(tmp_path: Path) -> None:
    without_record.note([skipped("A")], tmp_path)
    page = write_reports([tmp_path], tmp_path)
    assert (page.sentence, page.tone) == ("Nothing was measured.", "unmeasured")
    assert "2 CPUs are needed" in (tmp_path / "report.html").read_text()


def test_a_list_of_skipped_tests_that_is_broken_is_named(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    (tmp_path / "without-record.json").write_text('{"tests": [{"sui')
    runs = read_runs([tmp_path])
    assert [broken.path.name for broken in runs.broken] == ["without-record.json"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_without_a_run_is_one_sentence(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "nothing"
    if exists:
        folder.mkdir()
    with pytest.raises(ConfigError, match=r"nothing: holds no run\.\n  Expected a folder that ./run sla wrote"):
        read_runs([folder])
