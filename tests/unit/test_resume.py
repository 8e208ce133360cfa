"""`./run sla --resume RUN`: what is measured, what the whole comes to, and what is refused."""

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
from ctbench.run.run_request import claimed
from ctbench.testbed.config import TestbedConfig

ROOT = Path(__file__).parents[2]
LIBRARY = f"*** Settings ***\nLibrary    {Path(__file__).with_name('made_up_tests.py')}\n*** Test Cases ***\n"
FIRST = LIBRARY + "One\n    Measure\nTwo\n    Measure    missed\nLacking\n    Skip    no NIC\n"
#: It has a test of the same name, and one that ends the run.
SECOND = LIBRARY + "One\n    [Tags]    late\n    Stop The First Time\n    Measure\nLast\n    Measure\n"
MEASURED_FIRST = ["Suites.First.One", "Suites.First.Two"]
ALL = [*MEASURED_FIRST, "Suites.Second.One", "Suites.Second.Last"]


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
        assert commands.status("sla", ["--console", "none", "-v", "CAMPAIGN:quick"]) == 1
    assert measured((folder / "results" / "latest").resolve()) == MEASURED_FIRST
    return folder


@pytest.fixture
def stopped(checkout: Path, stopped_once: Path) -> Path:
    """The folder of a run that was stopped in its second suite, moved to the checkout of this test."""
    shutil.copytree(stopped_once / "results", checkout / "results", symlinks=True)
    for path in (checkout / "results").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(path.read_bytes().replace(bytes(stopped_once), bytes(checkout)))
    return (checkout / "results" / "latest").resolve()


def measured(folder: Path) -> list[str]:
    """The tests that were measured, in order, each as often as it was."""
    return (folder / "measured").read_text().splitlines()


def shown(folder: Path) -> list[tuple[str, str, str]]:
    """Name, status and message of each test in output.xml."""
    return [(one.full_name, one.status, one.message) for one in ExecutionResult(folder / "output.xml").suite.all_tests]


def resume(*more: str, run: str = "latest") -> int:
    return commands.status("sla", ["--resume", run, *more])


def test_what_has_no_record_is_measured_and_all_is_reported(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resume() == 1  # what was missed before the stop counts
    said = capsys.readouterr().out
    assert "2 of 5 tests have a record.\n" in said
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
    assert len(summary["run_ids"]) == 1
    assert [path.name for path in (stopped / "parts").iterdir()] == ["1.xml"]
    assert "its record counts." in shown(stopped)[0][2], "why it was not measured again"


def test_a_run_can_be_stopped_and_go_on_again_and_again(stopped: Path) -> None:
    (stopped / "stopped").unlink()
    assert resume() == 1
    assert measured(stopped) == MEASURED_FIRST
    assert resume() == 1
    assert measured(stopped) == ALL
    assert [status for _, status, _ in shown(stopped)] == ["PASS", "FAIL", "SKIP", "PASS", "PASS"]
    assert resume() == 1  # only what was skipped is asked again
    assert measured(stopped) == ALL


def test_a_run_that_is_complete_is_reported_and_nothing_is_measured(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.status("sla", ["--console", "none", "--include", "late", "--outputdir", "out"]) == 5
    assert resume(run="out") == 0
    capsys.readouterr()
    assert resume(run="out") == 0
    said = capsys.readouterr().out
    assert "1 of 1 tests have a record.\n" in said
    assert said.endswith("Every SLA that was measured is met (1 met, 0 missed, 0 not measured).\n")
    assert measured(checkout / "out") == ["Suites.Second.One"]
    assert [status for _, status, _ in shown(checkout / "out")] == ["PASS"]


def test_what_was_not_measured_has_a_record_and_is_measured_again_when_that_is_removed(checkout: Path) -> None:
    (checkout / "suites" / "01__first.robot").write_text(FIRST.replace("missed", "not measured"))
    assert commands.status("sla", ["--console", "none"]) == 5  # it was stopped before others were measured
    folder = (checkout / "results" / "latest").resolve()
    assert resume() == 3
    assert measured(folder) == ALL
    (folder / "records" / "suites-first.two.json").unlink()
    (checkout / "suites" / "01__first.robot").write_text(FIRST.replace("missed", "met"))
    assert resume() == 0
    assert measured(folder) == [*ALL, "Suites.First.Two"]


def test_a_run_that_goes_on_has_one_output_of_every_test_whatever_its_name(checkout: Path) -> None:
    assert commands.status("sla", ["--console", "none", "-d", "out", "--timestampoutputs"]) == 1
    assert resume(run="out") == 1
    result = ExecutionResult(checkout / "out" / "output.xml")
    assert [test.name for test in result.suite.all_tests] == ["One", "Two", "Lacking", "One", "Last"]
    assert result.suite.metadata["Merged Parts"] == "2"


def test_a_torn_record_is_named_and_its_test_measured_again(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = stopped / "records" / "suites-first.one.json"
    torn.write_text(torn.read_text()[:200])
    assert resume() == 1
    assert f"{torn}: is not JSON" in capsys.readouterr().err
    assert measured(stopped).count("Suites.First.One") == 2


def test_several_files_keep_the_name_that_they_have_together(checkout: Path) -> None:
    assert commands.status("sla", ["--console", "none", "suites/01__first.robot", "suites/02__second.robot"]) == 1
    folder = (checkout / "results" / "latest").resolve()
    (folder / "records" / "first-second-first.two.json").unlink()
    assert resume() == 1
    assert {name.partition(".")[0] for name in measured(folder)} == {"First & Second"}
    assert len(shown(folder)) == 5


def test_records_of_an_older_run_in_the_same_folder_are_not_counted(checkout: Path) -> None:
    where = ["--console", "none", "--outputdir", "out"]
    assert commands.status("sla", [*where, "suites/01__first.robot"]) == 1
    (checkout / "suites" / "01__first.robot").write_text(FIRST.replace("Two\n", "Two\n    Stop The First Time\n"))
    assert commands.status("sla", [*where, "--exclude", "late", "suites/01__first.robot"]) == 5
    assert resume(run="out") == 1
    assert measured(checkout / "out") == ["First.One", "First.Two", "First.One", "First.Two"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--outputdir", "elsewhere"], "Expected neither --dryrun nor --outputdir."),
        (["--dryrun"], "Expected neither --dryrun nor --outputdir."),
        (["-v", "OTHER:1"], '-v "OTHER": no suite uses this variable.'),
        (["-v", "CAMPAIGN:quik"], 'Did you mean "quick"?'),
    ],
)
def test_what_cannot_go_on_is_refused(
    given: list[str], said: str, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(stopped.rglob("*"))
    assert resume(*given) == 4
    assert said in capsys.readouterr().err
    assert sorted(stopped.rglob("*")) == before


def test_what_is_given_comes_after_what_was_asked_for(stopped: Path) -> None:
    assert resume("--outputdir", "results/latest", "--loglevel", "TRACE", "--include", "late") == 1
    assert measured(stopped) == [*MEASURED_FIRST, "Suites.Second.One"]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("nope", '--resume "nope": no such run.'),
        ("", '--resume "": no such run.'),
        ("x" * 5000, ": no such run."),
        ("~nosuchuser/x", '--resume "~nosuchuser/x": no such run.'),
        ("a\0b", ": no such run."),
        ("suites", "asked-for.json: does not exist."),
        ("torn", "asked-for.json: the file: "),
    ],
)
def test_no_such_run(run: str, said: str, stopped: Path, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "torn").mkdir()
    (checkout / "torn" / "asked-for.json").write_text('{"schema_version": 1, ')
    assert resume(run=run) == 4
    assert said in capsys.readouterr().err


def test_a_run_that_still_measures_is_refused_unless_killed(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with claimed(stopped):
        assert resume() == 4
        assert f"{stopped}: another ./run sla measures into it." in capsys.readouterr().err
        assert commands.status("sla", ["--console", "none", "--outputdir", str(stopped)]) == 4
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'libraries')!r})\nfrom pathlib import Path\n"
        "from ctbench.run.run_request import claimed\n"
        f"with claimed(Path({str(stopped)!r})):\n    print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout and other.stdout.readline() == b"mine\n"
        assert resume() == 4
        other.kill()
        other.wait()
        assert resume() == 1


def test_the_folder_of_a_run_keeps_no_secret(checkout: Path) -> None:
    commands.status("sla", ["--console", "none", "-v", "TOKEN: Secret:hush", "-v", "SLA:local", "--include", "nothing"])
    for path in checkout.glob("results/*/asked-for.json"):
        assert "hush" not in path.read_text()


def test_options_of_the_environment_are_remembered_as_well(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOT_OPTIONS", "--include late --console none")
    assert commands.status("sla") == 5
    folder = (checkout / "results" / "latest").resolve()
    assert resume() == 0
    assert measured(folder) == ["Suites.Second.One"]


def test_a_run_goes_on_from_any_folder(stopped: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "elsewhere").mkdir()
    monkeypatch.chdir(checkout / "elsewhere")
    assert resume(run=f"../results/{stopped.name}") == 1
    assert measured(stopped) == ALL
