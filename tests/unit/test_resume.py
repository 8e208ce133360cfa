"""The same command again with the same --outputdir: what is measured, what the whole says, and what is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import commands
import pytest
from robot.api import ExecutionResult

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli import sla
from ctbench.run.run_folder import claimed
from ctbench.testbed.config import TestbedConfig

ROOT = Path(__file__).parents[2]
LIBRARY = f"*** Settings ***\nLibrary    {Path(__file__).with_name('made_up_tests.py')}\n*** Test Cases ***\n"
FIRST = LIBRARY + "One\n    Measure\nTwo\n    Measure    missed\nLacking\n    Skip    no NIC\n"
#: It has a test of the same name, and one that ends the run.
SECOND = LIBRARY + "One\n    [Tags]    late\n    Stop The First Time\n    Measure\nLast\n    Measure\n"
MEASURED_FIRST = ["Suites.First.One", "Suites.First.Two"]
ALL = [*MEASURED_FIRST, "Suites.Second.One", "Suites.Second.Last"]
OUT = "out"


def set_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of two suites on a machine that has everything, which is the current folder."""
    shutil.copytree(ROOT / "variables", folder / "variables")
    for name, text in (("01__first", FIRST), ("02__second", SECOND)):
        path = folder / "suites" / f"{name}.robot"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sla, "SUITES", folder / "suites")
    monkeypatch.setenv(RESULTS_VARIABLE, str(folder / "results"))
    monkeypatch.setattr(TestbedConfig, "check_machine", lambda _testbed: None)
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkout of one test."""
    return set_up(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose run was stopped in its second suite."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_up(folder, monkeypatch)
        assert again() == 1
    assert measured(folder / OUT) == MEASURED_FIRST
    return folder / OUT


@pytest.fixture
def stopped(checkout: Path, stopped_once: Path) -> Path:
    """The folder of a run that was stopped in its second suite, in the checkout of this test."""
    return Path(shutil.copytree(stopped_once, checkout / OUT))


def measured(folder: Path) -> list[str]:
    """The tests that were measured, in order, each as often as it was."""
    return (folder / "measured").read_text().splitlines()


def shown(folder: Path) -> list[tuple[str, str, str]]:
    """Name, status and message of each test in output.xml."""
    return [(one.full_name, one.status, one.message) for one in ExecutionResult(folder / "output.xml").suite.all_tests]


def again(*more: str) -> int:
    """What the command ends with that was typed before, and is typed again."""
    return commands.status("sla", ["--console", "none", "--outputdir", OUT, *more])


def test_what_has_no_record_is_measured_and_all_is_reported(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again() == 1  # what was missed before the stop counts
    said = capsys.readouterr().out
    assert f"2 of 5 tests have a record in {stopped}, which counts where nothing has changed." in said
    assert said.endswith("An SLA is missed (3 met, 1 missed, 0 not measured).\n")
    assert measured(stopped) == ALL
    assert [(name, status) for name, status, _ in shown(stopped)] == [
        ("Suites.First.One", "PASS"),
        ("Suites.First.Two", "FAIL"),
        ("Suites.First.Lacking", "SKIP"),
        ("Suites.Second.One", "PASS"),
        ("Suites.Second.Last", "PASS"),
    ]
    summary = json.loads((stopped / "summary.json").read_text())
    assert len(summary["tests"]) == 4
    assert len(summary["run_ids"]) == 1, "a folder is one run, for calibrations, gates and histories"
    assert [path.name for path in (stopped / "parts").iterdir()] == ["1.xml"]
    assert "its record counts." in shown(stopped)[0][2], "why it was not measured again"


def test_a_run_can_be_stopped_and_go_on_again_and_again(stopped: Path) -> None:
    (stopped / "stopped").unlink()
    assert again() == 1
    assert measured(stopped) == MEASURED_FIRST
    assert again() == 1
    assert measured(stopped) == ALL
    assert [status for _, status, _ in shown(stopped)] == ["PASS", "FAIL", "SKIP", "PASS", "PASS"]
    assert again() == 1  # only what was skipped is asked again
    assert measured(stopped) == ALL


def test_a_run_that_is_complete_is_reported_and_nothing_is_measured(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert again("--include", "late") == 5
    assert again("--include", "late") == 0
    capsys.readouterr()
    assert again("--include", "late") == 0
    said = capsys.readouterr().out
    assert "1 of 1 tests have a record in " in said
    assert said.endswith("Every SLA that was measured is met (1 met, 0 missed, 0 not measured).\n")
    assert measured(checkout / OUT) == ["Suites.Second.One"]
    assert [status for _, status, _ in shown(checkout / OUT)] == ["PASS"]


def test_what_was_not_measured_has_a_record_and_is_measured_again_when_that_is_removed(checkout: Path) -> None:
    (checkout / "suites" / "01__first.robot").write_text(FIRST.replace("missed", "not measured"))
    assert again() == 5  # it was stopped before others were measured
    assert again() == 3
    assert measured(checkout / OUT) == ALL
    (checkout / OUT / "records" / "suites-first.two.json").unlink()
    (checkout / "suites" / "01__first.robot").write_text(FIRST.replace("missed", "met"))
    assert again() == 0
    assert measured(checkout / OUT) == [*ALL, "Suites.First.Two"]


def test_a_run_that_goes_on_has_one_output_of_every_test_whatever_its_name(checkout: Path) -> None:
    assert again("--timestampoutputs") == 1
    assert again("--timestampoutputs") == 1
    result = ExecutionResult(checkout / OUT / "output.xml")
    assert [test.name for test in result.suite.all_tests] == ["One", "Two", "Lacking", "One", "Last"]
    assert result.suite.metadata["Merged Parts"] == "2"


def test_a_torn_record_is_named_and_its_test_measured_again(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = stopped / "records" / "suites-first.one.json"
    torn.write_text(torn.read_text()[:200])
    assert again() == 1
    assert f"{torn}: is not JSON" in capsys.readouterr().err
    assert measured(stopped).count("Suites.First.One") == 2


@pytest.mark.parametrize(("written", "name"), [("At least ${MIN}", "At least 50k"), (r"50\% \& more", "50% & more")])
def test_a_record_counts_whose_test_has_a_variable_or_an_escape_in_its_name(
    checkout: Path, written: str, name: str
) -> None:
    named = f"*** Variables ***\n${{MIN}}    50k\n{LIBRARY}{written}\n    Measure    missed\n"
    (checkout / "suites" / "01__first.robot").write_text(named)
    assert again() == 1
    assert measured(checkout / OUT) == [f"Suites.First.{name}"]
    assert again() == 1
    assert measured(checkout / OUT) == [f"Suites.First.{name}", *ALL[2:]]
    summary = json.loads((checkout / OUT / "summary.json").read_text())
    assert [each["verdict"] for each in summary["tests"]] == ["missed", "met", "met"]


def test_records_of_other_tests_in_the_same_folder_are_not_counted(stopped: Path) -> None:
    assert again("--include", "late") == 0
    assert measured(stopped) == [*MEASURED_FIRST, "Suites.Second.One"]


@pytest.mark.parametrize("option", ["--dryrun", "--rerunfailed={}/output.xml", "--rerunfailedsuites={}/output.xml"])
def test_what_would_replace_the_outputs_of_the_run_is_refused(
    stopped: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run passes every test: the merged output would have that instead of what was measured."""
    assert again(option.format(stopped)) == 4
    assert f"run: {option.partition('=')[0]}: {stopped}" in capsys.readouterr().err
    assert again() == 1
    assert [status for _, status, _ in shown(stopped)] == ["PASS", "FAIL", "SKIP", "PASS", "PASS"]


def test_a_run_that_still_measures_is_refused_unless_killed(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with claimed(stopped):
        assert again() == 4
        assert f"{stopped}: another ./run sla measures into it." in capsys.readouterr().err
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'libraries')!r})\nfrom pathlib import Path\n"
        "from ctbench.run.run_folder import claimed\n"
        f"with claimed(Path({str(stopped)!r})):\n    print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout and other.stdout.readline() == b"mine\n"
        assert again() == 4
        other.kill()
        other.wait()
        assert again() == 1
