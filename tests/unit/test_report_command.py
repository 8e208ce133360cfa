"""`./run report`: one run, several, a reference; and what `./run sla` leaves behind."""

from pathlib import Path

import pytest

from ctbench.cli import report, sla
from ctbench.results import without_record
from ctbench.results.store import write
from ctbench.results.without_record import WITHOUT_RECORD_FILE, WithoutRecord

from .simulated import made_up_record

pytestmark = pytest.mark.unit

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference" / "ovs-3.0.0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(made_up_record(), tmp_path / "run")
    return tmp_path / "run"


def test_the_report_of_one_run_is_written_beside_its_records(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(run)]) == 0
    assert (run / "report.html").exists()
    assert capsys.readouterr().out == f"The SLA that was measured is met.\nReport:  {run / 'report.html'}\n"


def test_several_runs_are_merged_into_a_folder_of_their_own(run: Path, tmp_path: Path) -> None:
    write(made_up_record(test="Another"), tmp_path / "second")
    assert report.main([str(run), str(tmp_path / "second"), "--outputdir", str(tmp_path / "both")]) == 0
    html = (tmp_path / "both" / "report.html").read_text()
    assert "All 2 SLAs" in html and 'href="../second"' in html


def test_several_runs_without_a_folder_to_merge_into_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([str(run), str(run)]) == 4
    assert "--outputdir" in capsys.readouterr().err


def test_a_run_is_set_beside_published_figures(run: Path) -> None:
    assert report.main([str(run), "--reference", str(REFERENCE)]) == 0
    assert "2022, table 4" in (run / "report.html").read_text()


@pytest.mark.parametrize("arguments", [["nowhere"], ["--reference", "nowhere"]])
def test_a_folder_that_is_no_run_is_one_sentence_and_status_4(
    run: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([*([str(run)] if arguments[0].startswith("-") else []), *arguments]) == 4
    assert capsys.readouterr().err.startswith("run: nowhere: holds no run.")


def test_an_unknown_option_is_status_2() -> None:
    with pytest.raises(SystemExit) as ended:
        report.main(["--nope"])
    assert ended.value.code == 2


def test_a_run_writes_its_report_and_names_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sla.report(run, None)
    assert (run / "report.html").exists()
    assert str(run / "report.html") in capsys.readouterr().out


def test_a_run_that_left_nothing_has_no_report(tmp_path: Path) -> None:
    sla.report(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


def test_what_hinders_the_report_is_said_and_ends_nothing(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sla.report(run, "nowhere")
    assert "nowhere: holds no run" in capsys.readouterr().err


def test_robots_own_report_has_another_name_and_the_skipped_tests_of_an_older_run_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    without_record.note([WithoutRecord(suite="S", test="T", outcome="skipped", reason="old")], folder)
    suite = tmp_path / "a.robot"
    suite.write_text("*** Test Cases ***\nPasses\n    No Operation\n")
    command = sla.parse(["--console", "none", str(suite)], tmp_path)
    sla.run(command, folder)
    assert (folder / "robot-report.html").exists()
    assert not (folder / WITHOUT_RECORD_FILE).exists()
    assert not (folder / "report.html").exists()
