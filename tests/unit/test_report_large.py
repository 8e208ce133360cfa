"""A run of thousands of tests, and a year of runs: pages stay small, and records do not stay in memory whole."""

import json
import re
from pathlib import Path

import pytest

from ctbench.base import in_two
from ctbench.cli import report
from ctbench.report import enough
from ctbench.report.runs import RunSet, read_runs
from ctbench.report.write import write_reports
from ctbench.results.store import read_stored, write

from .simulated import made_up_record

pytestmark = pytest.mark.unit

TESTS = 2000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two thousand tests in seven suites, a third of them missed, each with a note of its own."""
    folder = tmp_path_factory.mktemp("large")
    document = json.loads(made_up_record().to_json())
    (folder / "records").mkdir()
    for number in range(TESTS):
        missed = number % 3 == 0
        own = {
            "suite": f"All.Suite {number % 7}",
            "test": f"Test {number}",
            "run_id": f"run-{number}",
            "started": f"2025-01-02T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "verdict": "missed" if missed else "met",
            "verdict_reason": f"reason {number}" if missed else "",
            "notes": [f"note {number}"],
            "evidence": document["evidence"] | {"ceiling": 1000.0 + number},
        }
        (folder / "records" / f"{number}.json").write_text(json.dumps(document | own))
    (folder / "report-tests-99.html").write_text("of an earlier report")
    assert report.main([str(folder)]) == 0
    return folder


def test_no_page_grows_with_the_tests(run: Path) -> None:
    pages = sorted(run.glob("*.html"))
    assert [page.name for page in pages] == ["report-tests-1.html", "report-tests-2.html", "report-tests-3.html",
                                             "report-tests-4.html", "report.html"]  # fmt: skip
    assert all(page.stat().st_size < 1_000_000 for page in pages)
    assert (run / "report.md").stat().st_size < 60_000, "what GitHub takes as a comment"


def test_every_test_has_its_row_on_one_of_the_pages(run: Path) -> None:
    rows = [
        test
        for page in run.glob("report-tests-*.html")
        for test in re.findall(r'scope="row">(Test \d+)<', page.read_text())
    ]
    assert len(rows) == TESTS and set(rows) == {f"Test {number}" for number in range(TESTS)}


def test_the_first_page_counts_all_lists_the_suites_and_says_what_is_elsewhere(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert "667 of 2\u202f000 SLAs are missed" in page
    assert page.count('scope="row"><a href="report-tests-') == 7
    assert f"{667 - enough.PROBLEMS} more tests are missed or not measured: see the table below" in page
    assert "1\u202f980 more" in page, "values of a fact, notes"


def test_links_between_the_pages_lead_somewhere(run: Path) -> None:
    pages = {page.name: page.read_text() for page in run.glob("*.html")}
    for name, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            file, _, anchor = link.partition("#")
            assert (run / file).exists()
            assert not anchor or f'id="{anchor}"' in pages[file or name], link


def test_figures_for_programs_have_all_tests(run: Path) -> None:
    assert len(json.loads((run / "summary.json").read_text())["tests"]) == TESTS
    assert len((run / "results.csv").read_text().splitlines()) == TESTS + 1
    assert (run / "junit.xml").read_text().count("<testcase ") == TESTS


def test_trials_are_not_kept_and_what_runs_have_in_common_is_kept_once(run: Path) -> None:
    newest = read_runs([run]).newest
    assert all(not each.record.evidence.trials and each.sustain_s for each in newest)
    assert len({id(each.record.campaign) for each in newest}) <= 2, "one for each process that read"
    assert len({id(each.record.profile) for each in newest}) <= 2


def test_two_processes_read_what_one_reads(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = read_stored(run)
    monkeypatch.setattr(in_two, "WORTH_IT", TESTS + 1)
    assert read_stored(run) == both


def test_a_copy_that_comes_to_nothing_leaves_its_part_to_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_two, "WORTH_IT", 2)
    monkeypatch.setattr(in_two.os, "sched_getaffinity", lambda _pid: {0, 1})  # type: ignore[attr-defined]
    here = in_two.os.getpid()  # type: ignore[attr-defined]

    def work(items: "list[int]") -> list[int]:
        if in_two.os.getpid() != here:  # type: ignore[attr-defined]
            raise MemoryError
        return [item * 2 for item in items]

    assert in_two.in_two(work, range(10)) == [item * 2 for item in range(10)]


def test_the_pages_of_a_larger_report_go_when_a_smaller_one_is_written(run: Path, tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    for name in ("report-tests-1.html", "report-tests-2.html"):
        (tmp_path / name).write_text("of an earlier report")
    write_reports([tmp_path], tmp_path)
    assert not list(tmp_path.glob("report-tests-*.html"))


def test_a_test_of_hundreds_of_runs_has_one_chart(tmp_path: Path) -> None:
    document = json.loads(made_up_record().to_json())
    (tmp_path / "records").mkdir()
    for number in range(365):
        started = f"2025-{1 + number // 31:02d}-{1 + number % 28:02d}T00:00:{number % 60:02d}Z"
        own = {"run_id": f"run-{number}", "started": started}
        (tmp_path / "records" / f"{number}.json").write_text(json.dumps(document | own))
    page = write_reports([tmp_path], tmp_path)
    (gallery,) = [gallery for gallery in page.galleries if gallery.anchor == "history"]
    assert len(gallery.charts) == 1 and "365 runs" in gallery.charts[0].caption
    assert isinstance(read_runs([tmp_path]), RunSet)
