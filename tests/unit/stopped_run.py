"""A run that was stopped in its second suite, for the tests of what goes on with it."""

import shutil
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli import sla
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
        assert sla.main(["--console", "none", "-v", "CAMPAIGN:quick"]) == 1
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
    return [
        (test.full_name, test.status, test.message) for test in ExecutionResult(folder / "output.xml").suite.all_tests
    ]


def resume(*more: str, run: str = "latest") -> int:
    return sla.main(["--resume", run, *more])
