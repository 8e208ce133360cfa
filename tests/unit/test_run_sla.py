"""`./run sla` understands Robot Framework's own command line, keeps every run in a folder of its own, and ends with its
verdict; with --testbeds, what is refused before anything starts and where results are gathered."""

import os
from collections.abc import Sequence
from pathlib import Path

import commands
import pytest

from ctbench.base import paths
from ctbench.base.errors import ConfigError, ExitStatus, MissingResource
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.cli import sla
from ctbench.cli.robot.command_line import chosen_files
from ctbench.report.runs import read_runs
from ctbench.results import store
from ctbench.results.record import PoolMember
from ctbench.results.store import WithoutRecord, write
from ctbench.run.exit_status import (
    MISTAKES_FILE,
    Verdicts,
    exit_status,
    note_mistake,
    read_verdicts,
    record_files,
    why_without_verdict,
)
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


def test_without_suites_the_default_is_added_and_suites_and_options_pass_through() -> None:
    assert sla.parse(["--include", "1cpu"], DEFAULT).arguments == ("--include=1cpu", str(DEFAULT))
    command = sla.parse(["-v", "SLA:mine", "--dryrun", "-d", "out", "suites/ovs"], DEFAULT)
    assert {*command.arguments} == {"--variable=SLA:mine", "--dryrun", "--outputdir=out", "suites/ovs"}
    assert command.assignments == ("SLA:mine",)
    assert command.outputdir == "out"
    assert command.dry_run


def test_what_robot_framework_would_see_is_what_is_chosen(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments of a variable file in Python, an argument file, and the environment."""
    (checkout / "of_site.py").write_text(
        "def get_variables(lab):\n    return {'test_bed': lab, 'JIRA': 7, 'sla': 'of-file'}\n"
    )
    (checkout / "night.args").write_text(f"-V {checkout}/of_site.py:xeon\n-v SLA:mine\n")
    assert sla.parse(["-A", str(checkout / "night.args")], DEFAULT).chosen == {"testbed": "xeon", "sla": "mine"}
    monkeypatch.setenv("ROBOT_OPTIONS", f"-V {checkout}/of_site.py:other")
    assert sla.parse([], DEFAULT).chosen == {"testbed": "other", "sla": "of-file"}
    monkeypatch.delenv("ROBOT_OPTIONS")

    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    (checkout / "wrong.json").write_text('{"CAMPAING": "gate", "BASE_URL": "x"}')
    for files, said in (("wrong.json", "Expected CAMPAIGN"), ("none.yaml", "Variable file 'none.yaml' does not exist")):
        monkeypatch.chdir(checkout)
        assert commands.status("sla", ["--console", "none", "-V", files]) == ExitStatus.CONFIGURATION
        assert said in capsys.readouterr().err


def test_the_version_is_robots_and_no_suites_are_an_error(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.status("sla", ["--version"]) == 0
    assert capsys.readouterr().out.startswith("Robot Framework ")
    assert not list((checkout / "results").iterdir())
    assert commands.status("sla", ["--console", "none"]) == 4


def test_a_missing_resource_ends_it_before_any_folder_is_made(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_testbed: object) -> None:
        raise MissingResource("OVS-DPDK is not installed.")

    monkeypatch.setattr(TestbedConfig, "check_machine", missing)
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    assert commands.status("sla") == 6
    assert capsys.readouterr().err == "run: OVS-DPDK is not installed.\n"
    assert not list((checkout / "results").iterdir())


def test_a_test_that_fails_without_a_verdict_is_said_also_where_status_0_is_asked_for(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "suites" / "a.robot").write_text(f"{SUITE % 'met'}*** Test Cases ***\nBroken\n    Fail    no link\n")
    assert commands.status("sla", ["--console", "none", "--nostatusrc"]) == 0
    assert "A test failed without a verdict (1 met, " in capsys.readouterr().out
    assert commands.status("sla", ["--console", "none"]) == ExitStatus.TESTBED


FAILING = """*** Test Cases ***
Fails
    Create File    ${OUTPUT DIR}/configuration-errors.txt    mine.yaml: a floor is missing.
    Fail    mine.yaml: a floor is missing.

*** Settings ***
Library    OperatingSystem
"""


@pytest.mark.parametrize(
    ("suite", "status"),
    [(SUITE % "missed", ExitStatus.MET), (SUITE % "not measured", ExitStatus.MET), (FAILING, ExitStatus.CONFIGURATION)],
    ids=["missed", "not measured", "a mistake in a file"],
)
def test_status_0_is_asked_for_of_what_tests_found_and_not_of_mistakes(
    checkout: Path, suite: str, status: ExitStatus
) -> None:
    (checkout / "suites" / "a.robot").write_text(suite)
    assert commands.status("sla", ["--console", "none", "--nostatusrc"]) == status


def test_a_test_that_a_mistake_in_a_file_ended_is_status_4_and_that_of_an_older_run_is_forgotten(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = checkout / "suites" / "a.robot"
    suite.write_text(FAILING)
    where = ["--console", "none", "--outputdir", str(checkout / "out")]
    assert commands.status("sla", where) == 4
    assert capsys.readouterr().out.endswith("The configuration is wrong: see the message above.\n")
    suite.write_text(SUITE % "met")
    assert commands.status("sla", where) == 0


def test_the_users_outputdir_wins_and_latest_points_to_the_last(checkout: Path, tmp_path: Path) -> None:
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    mine = checkout / "elsewhere" / "mine"
    assert commands.status("sla", ["--console", "none", "--outputdir", str(mine)]) == 0
    assert (mine / "log.html").exists()
    assert (checkout / "results" / "latest").resolve() == mine
    assert [entry.name for entry in (checkout / "results").iterdir()] == ["latest"]
    for name in ("first", "second"):
        (checkout / "results" / name).mkdir()
        sla.keep_as_latest(checkout / "results" / name)
        assert str((checkout / "results" / "latest").readlink()) == name


def test_what_is_named_through_latest_is_that_of_the_run_before(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("met", "missed"):
        (checkout / "suites" / f"{name}.robot").write_text(SUITE % name + "*** Test Cases ***\nFails\n    Fail\n")
    monkeypatch.chdir(checkout / "suites")
    latest = checkout / "results" / "latest"
    assert commands.status("sla", ["--console", "none", "-s", "met"]) == 5
    first = latest.resolve()

    again = ["--console", "none", "-d", "../results/second", "--rerunfailedsuites", "../results/latest/output.xml"]
    assert commands.status("sla", again) == 5
    assert latest.resolve() == checkout / "results" / "second" != first


def test_a_row_without_a_floor_that_is_named_is_measured_on_a_pool_as_well(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run(_members: object, _folder: Path, arguments: Sequence[str], _run_id: str) -> int:
        asked.extend(arguments)
        return 0

    monkeypatch.setattr(sla.pool, "run", run)
    monkeypatch.setattr(sla, "make_pool", lambda *_: ["a member"])
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    commands.status("sla", ["--testbeds", "local,local", "--test", "Passes"])
    assert asked[:2] == ["--variable", "BY_NAME:true"]


def test_a_run_without_a_result_leaves_latest_where_it_was(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "suites" / "a.robot").write_text(SUITE % "met")
    assert commands.status("sla", ["--console", "none"]) == 0
    before = (checkout / "results" / "latest").resolve()
    assert commands.status("sla", ["--console", "none", "--dryrun", "--outputdir", str(checkout / "dry")]) == 0
    monkeypatch.setattr(sla, "run_robot", lambda _: 253)
    assert commands.status("sla", ["--console", "none"]) == 130
    assert (checkout / "results" / "latest").resolve() == before


def test_a_checkout_of_somebody_else_sends_results_to_ones_own_folder(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RESULTS_VARIABLE)
    monkeypatch.setattr(paths.os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert paths.results_root() == tmp_path / "state" / "conntrack-sla" / "results"


def test_who_has_no_home_at_all_is_told_what_may_name_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 734512)  # of no passwd entry
    with pytest.raises(ConfigError, match=r"XDG_CACHE_HOME or HOME"):
        paths.users_own("XDG_CACHE_HOME", ".cache")
    assert paths.users_own("XDG_CACHE_HOME", ".cache", {"HOME": str(tmp_path)}) == tmp_path / ".cache"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["suites/nosuch"], 4, "File or directory to execute does not exist"),
        (["suites/quick"], 4, "suites/quick has no suffix that says what it is"),
        (["suites/empty"], 4, "contains no tests"),
        (["suites/text.txt"], 4, "contains no tests"),
        (["suites/a.robot", "suites/a.robot"], 4, "two tests have this name"),
        (["--include", "nosuchtag"], 4, "matching tag 'nosuchtag'"),
        (["--dryrun", "-t", "nosuch"], 4, "matching name 'nosuch'"),
        (["--testbeds", "local,local", "--include", "nosuchtag"], 4, "matching tag 'nosuchtag'"),
        (["--loglevel", "NOPE"], 4, "Invalid log level 'NOPE'"),
        (["-v", "TESTBED"], 4, "variables/testbeds/.yaml: no such file."),
        (["-v", "TESTBAD:x"], 4, '-v "TESTBAD": no suite uses this variable.'),
        (["-d", "suites/a.robot"], 4, "suites/a.robot (File exists)"),
        (["-d", "x" * 5000], 4, "File name too long"),
        (["--argumentfile", "suites/binary.args"], 2, "can't decode"),
        (["--argumentfile", "suites/none.args"], 2, "No such file"),
        (["-v", "SLA:locel"], 4, "Did you mean"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_cannot_be_run_is_one_sentence_and_changes_nothing(
    arguments: list[str],
    status: int,
    said: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("a.robot", "quick"):
        (checkout / "suites" / name).write_text(SUITE % "met")
    (checkout / "suites" / "empty").mkdir()
    (checkout / "suites" / "text.txt").write_text("nothing")
    (checkout / "suites" / "binary.args").write_bytes(b"\xff\xfe\x80")
    monkeypatch.chdir(checkout)

    assert commands.status("sla", arguments) == status

    printed = capsys.readouterr()
    assert said in printed.err and printed.out == ""
    assert printed.err.count("\n") <= 2 and len(printed.err) < 1000
    assert not list((checkout / "results").iterdir())


def leave(folder: Path, *verdicts: str) -> None:
    for verdict in verdicts:
        write(made_up_record(verdict=verdict), folder)


@pytest.mark.parametrize(
    ("robot_rc", "verdicts", "expected"),
    [
        (0, Verdicts({"met": 3}), ExitStatus.MET),
        (1, Verdicts({"met": 3, "missed": 1}), ExitStatus.MISSED),
        (2, Verdicts({"met": 3, "missed": 1, "not measured": 1}), ExitStatus.MISSED),
        (0, Verdicts({"missed": 1}), ExitStatus.MISSED),
        (1, Verdicts({"met": 3, "not measured": 1}), ExitStatus.NOT_MEASURED),
        (0, Verdicts({"met": 3, "broken": 1}), ExitStatus.NOT_MEASURED),
        (2, Verdicts({"not measured": 1, "failed": 1}), ExitStatus.TESTBED),
        (2, Verdicts({"not measured": 1}), ExitStatus.TESTBED),  # a test of another library
        (2, Verdicts({"missed": 1, "failed": 1}), ExitStatus.MISSED),
        (1, Verdicts({"met": 3, "met, failed": 1}), ExitStatus.MISSED),
        (0, Verdicts({"met, failed": 1}), ExitStatus.MISSED),
        (1, Verdicts({"met": 3}), ExitStatus.TESTBED),
        (4, Verdicts(), ExitStatus.TESTBED),
        (255, Verdicts({"met": 3}), ExitStatus.INTERNAL),
        (0, Verdicts(), ExitStatus.NOTHING_MEASURED),
        (0, Verdicts({"missed, accepted": 1}), ExitStatus.MET),
        (0, Verdicts({"met": 9, "gate": 1}), ExitStatus.NOT_MEASURED),
        (1, Verdicts({"met": 9, "gate": 1}), ExitStatus.TESTBED),
        (2, Verdicts({"met": 9, "left open": 2}), ExitStatus.MET),
        (2, Verdicts({"left open": 2}), ExitStatus.NOT_MEASURED),
        (2, Verdicts({"missed, accepted": 1, "left open": 2}), ExitStatus.MET),
        (2, Verdicts({"met": 9, "left open": 1}), ExitStatus.TESTBED),
        (2, Verdicts({"met": 9, "left open": 1, "not measured": 1}), ExitStatus.NOT_MEASURED),
        (252, Verdicts(), ExitStatus.OUTPUT),
        (253, Verdicts({"met": 1}), ExitStatus.INTERRUPTED),
    ],
)
def test_the_worst_news_decides(robot_rc: int, verdicts: Verdicts, expected: ExitStatus) -> None:
    assert exit_status(robot_rc, verdicts) is expected


@pytest.mark.parametrize(("robot_rc", "expected"), [(0, 0), (1, 4), (252, 74)])
def test_a_dry_run_needs_no_records(robot_rc: int, expected: int) -> None:
    assert exit_status(robot_rc, Verdicts(), dry_run=True) == expected


def test_mistakes_are_noted_one_by_one_and_explain_a_test_without_a_record(tmp_path: Path) -> None:
    note_mistake(tmp_path, "a.yaml: x: is missing.")
    note_mistake(tmp_path, "b.yaml: y: is missing.")
    assert (tmp_path / MISTAKES_FILE).read_text() == "a.yaml: x: is missing.\nb.yaml: y: is missing.\n"
    note_mistake(tmp_path / "nowhere", "lost")
    assert exit_status(1, Verdicts(), mistakes=True) is ExitStatus.CONFIGURATION
    assert exit_status(1, Verdicts({"met": 3}), mistakes=True) is ExitStatus.CONFIGURATION
    assert exit_status(2, Verdicts({"missed": 1}), mistakes=True) is ExitStatus.MISSED
    assert exit_status(2, Verdicts({"not measured": 1, "failed": 1}), mistakes=True) is ExitStatus.CONFIGURATION
    assert exit_status(1, Verdicts({"not measured": 1}), mistakes=True) is ExitStatus.CONFIGURATION


def test_verdicts_are_counted_and_records_of_an_older_run_are_not(tmp_path: Path) -> None:
    leave(tmp_path, "met", "met", "missed", "not measured")
    assert read_verdicts(tmp_path) == Verdicts({"met": 2, "missed": 1, "not measured": 1})
    assert read_verdicts(tmp_path / "nowhere") == Verdicts()
    leave(tmp_path, "missed")
    before = record_files(tmp_path)
    leave(tmp_path, "met")
    assert read_verdicts(tmp_path, before) == Verdicts({"met": 1})
    ended = ("skipped", "not begun", "failed")
    without = [WithoutRecord(suite="S", test=word, outcome=word, reason=f"{word},\nas I say") for word in ended]
    store.note_without_record(without[:1], tmp_path)
    assert why_without_verdict(tmp_path) == ""
    store.note_without_record(without, tmp_path)
    assert read_verdicts(tmp_path, before) == Verdicts({"met": 1, "failed": 1})
    assert why_without_verdict(tmp_path) == "not begun, as I say"


def test_an_argument_file_may_choose_the_pool_and_the_campaign(tmp_path: Path) -> None:
    file = tmp_path / "night.args"
    file.write_text("# two labs\n--testbeds lab-a,lab-b\n--variable CAMPAIGN:gate\n")
    command = sla.parse(["--argumentfile", str(file), "-v", "SLA:mine"], DEFAULT)
    assert command.testbeds == ("lab-a", "lab-b")
    assert chosen_files(command.assignments) == {"campaign": "gate", "sla": "mine"}
    assert not command.names_suites


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--testbeds", "local"], 4, "is not a pool"),
        (["--testbeds", "local,locl"], 4, "variables/testbeds/locl.yaml: no such file"),
        (["--testbeds", "local,local", "-v", "TESTBED:local"], 4, "are both given"),
        (["--testbeds", "local,local-trex", "-v", "CAMPAIGN:quik"], 4, "quik"),
        (["--testbeds", "local,local"], 6, "local would have"),
    ],
)
def test_a_pool_that_cannot_be_is_one_sentence_and_leaves_no_folder(
    arguments: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(TestbedConfig, "check_machine", lambda _testbed: None)
    monkeypatch.setattr(sla, "usable_cores", lambda: [(0, 1)])
    assert commands.status("sla", [*arguments, "--outputdir", str(tmp_path / "out")]) == status
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_order_on_the_page_is_that_of_the_suites_and_not_that_of_the_clock(tmp_path: Path) -> None:
    moment = made_up_record().started
    for place, minute in ((2, 1), (0, 2), (1, 3)):
        began = moment.replace(minute=minute)
        member = PoolMember(name="local#1", cpus=[0, 1], suite=place)
        write(made_up_record(suite=f"S{place}", started=began, ended=began, pool=member), tmp_path)
    runs = read_runs([tmp_path])
    assert [each.record.suite for each in runs.newest] == ["S0", "S1", "S2"]
