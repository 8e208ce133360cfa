"""`./run sla` understands Robot Framework's own command line and keeps every run in a folder of its own."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from ctbench.base import paths
from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli import bootstrap, sla
from ctbench.testbed.config import TestbedConfig

from .simulated import made_up_record

DEFAULT = Path("/checkout/suites")
SUITE = """*** Test Cases ***
Passes
    Create Directory    ${OUTPUT DIR}/records
    Copy File    ${SUITE SOURCE}/../../%s.json    ${OUTPUT DIR}/records/passes.json

*** Settings ***
Library    OperatingSystem
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout on a machine that has everything."""
    for folder in ("results", "suites", "variables/sla"):
        (tmp_path / folder).mkdir(parents=True)
    for verdict in ("met", "missed", "not measured"):
        (tmp_path / f"{verdict}.json").write_text(made_up_record(verdict=verdict).to_json())
    monkeypatch.setattr(sla, "SUITES", tmp_path / "suites")
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    monkeypatch.setattr(TestbedConfig, "check_machine", lambda _testbed: None)
    return tmp_path


def test_without_suites_the_default_is_added() -> None:
    assert sla.parse(["--include", "1cpu"], DEFAULT).arguments[-3:] == ("--include", "1cpu", str(DEFAULT))


def test_suites_and_options_pass_through_untouched() -> None:
    command = sla.parse(["-v", "SLA:mine", "--dryrun", "-d", "out", "suites/ovs"], DEFAULT)
    assert command.arguments == ("-v", "SLA:mine", "--dryrun", "-d", "out", "suites/ovs")
    assert command.assignments == ("SLA:mine",)
    assert command.outputdir == "out"
    assert command.dry_run


def test_options_in_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOT_OPTIONS", "--outputdir elsewhere")
    assert sla.parse([], DEFAULT).outputdir == "elsewhere"


@pytest.mark.parametrize("arguments", [["--nope"], ["--include"], ["suites", "--include", "x"]])
def test_wrong_usage_is_one_sentence_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sla.main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_version_is_robots_and_makes_no_folder(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sla.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("Robot Framework ")
    assert not list((checkout / "results").iterdir())


def test_a_missing_resource_ends_it_before_any_folder_is_made(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_testbed: object) -> None:
        raise MissingResource("OVS-DPDK is not installed.")

    monkeypatch.setattr(TestbedConfig, "check_machine", missing)
    assert sla.main([]) == 6
    assert capsys.readouterr().err == "run: OVS-DPDK is not installed.\n"
    assert not list((checkout / "results").iterdir())


@pytest.mark.parametrize(("verdict", "status"), [("met", 0), ("missed", 1), ("not measured", 3)])
def test_a_run_ends_with_its_verdict(checkout: Path, verdict: str, status: int) -> None:
    (checkout / "suites" / "a.robot").write_text(SUITE % verdict)
    assert sla.main(["--console", "none"]) == status
    latest = checkout / "results" / "latest"
    assert (latest / "output.xml").exists()
    assert not Path(latest.readlink()).is_absolute()


FAILING = """*** Test Cases ***
Fails
    Create File    ${OUTPUT DIR}/configuration-errors.txt    mine.yaml: a floor is missing.
    Fail    mine.yaml: a floor is missing.

*** Settings ***
Library    OperatingSystem
"""


def test_a_test_that_a_mistake_in_a_file_ended_is_status_4_and_that_of_an_older_run_is_forgotten(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = checkout / "suites" / "a.robot"
    suite.write_text(FAILING)
    where = ["--console", "none", "--outputdir", str(checkout / "out")]
    assert sla.main(where) == 4
    assert capsys.readouterr().out.endswith("The configuration is wrong: see the message above.\n")
    suite.write_text(SUITE % "met")
    assert sla.main(where) == 0


def test_the_users_outputdir_wins_and_latest_points_to_it(checkout: Path) -> None:
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    mine = checkout / "elsewhere" / "mine"
    assert sla.main(["--console", "none", "--outputdir", str(mine)]) == 0
    assert (mine / "log.html").exists()
    assert (checkout / "results" / "latest").resolve() == mine
    assert [entry.name for entry in (checkout / "results").iterdir()] == ["latest"]


def test_no_suites_is_a_configuration_error(checkout: Path) -> None:
    assert sla.main(["--console", "none"]) == 4


def test_folders_of_one_second_are_kept_apart(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = sla.parse(["--console", "none"], checkout / "suites")
    for process in (7, 8):
        monkeypatch.setattr(sla.os, "getpid", lambda process=process: process)
        assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{process}", sla.prepare(command).name)


def test_latest_moves_on(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        sla.point_latest(tmp_path, tmp_path / name)
        assert str((tmp_path / "latest").readlink()) == name


def test_a_checkout_of_somebody_else_sends_results_to_ones_own_folder(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RESULTS_VARIABLE)
    monkeypatch.setattr(paths.os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert paths.results_root() == tmp_path / "state" / "conntrack-sla" / "results"


@pytest.mark.parametrize(
    ("command", "arguments", "refused"),
    [
        ("sla", ["--include", "1cpu"], True),
        ("calibrate", ["mine"], True),
        ("compare", ["one", "two"], True),
        ("sla", ["--outputdir", "/elsewhere"], False),
        ("sla", ["-A", "night.args"], False),
        ("doctor", [], False),
    ],
)
def test_what_cannot_be_kept_is_said_before_anything_is_installed_or_compiled(
    command: str, arguments: list[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RESULTS_VARIABLE, raising=False)
    monkeypatch.delenv("ROBOT_OPTIONS", raising=False)
    monkeypatch.setattr(bootstrap.os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="cannot be written") if refused else nullcontext():
        bootstrap.check_places(command, arguments)


def test_a_folder_that_cannot_be_written_is_one_sentence(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "file").touch()
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    assert sla.main(["--outputdir", str(checkout / "file" / "out")]) == 4
    assert "--outputdir" in capsys.readouterr().err


def test_the_chosen_files_are_those_that_robot_will_see() -> None:
    chosen = sla.chosen_files(["SLA:mine", "Test Bed:lab", "CAMPAIGN:${DEFAULT}", "OTHER:x"])
    assert chosen == {"sla": "mine", "testbed": "lab"}


@pytest.mark.parametrize("assignment", ["TESTBED:locl", "CAMPAIGN:quik", "SLA:locel"])
def test_a_file_that_does_not_exist_is_a_configuration_error_before_anything_starts(
    assignment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sla.main(["-v", assignment]) == 4
    assert "Did you mean" in capsys.readouterr().err
