"""`./run sla --testbeds a,b`: what is understood or refused before anything starts, and where results are gathered."""

from pathlib import Path

import pytest

from ctbench.cli import sla
from ctbench.cli.robot import pool
from ctbench.report.runs import PABOT_RESULTS, read_runs
from ctbench.results import store
from ctbench.results.record import PoolMember
from ctbench.results.store import WithoutRecord, write
from ctbench.run.exit_status import MISTAKES_FILE
from ctbench.testbed.config import TestbedConfig

from .simulated import made_up_record

DEFAULT = Path("/checkout/suites")


@pytest.mark.parametrize("given", [["--testbeds", "lab-a,lab-b"], ["--testbeds=lab-a,lab-b"]])
def test_the_pool_is_taken_from_the_options_and_robot_does_not_see_it(given: list[str]) -> None:
    command = sla.parse([*given, "--include", "nat", "suites"], DEFAULT)
    assert command.testbeds == ("lab-a", "lab-b")
    assert command.arguments == ("--include", "nat", "suites")


def test_an_argument_file_may_choose_the_pool_and_the_campaign(tmp_path: Path) -> None:
    file = tmp_path / "night.args"
    file.write_text("# two labs\n--testbeds lab-a,lab-b\n--variable CAMPAIGN:gate\n")
    command = sla.parse(["--argumentfile", str(file), "-v", "SLA:mine"], DEFAULT)
    assert command.testbeds == ("lab-a", "lab-b")
    assert sla.chosen_files(command.assignments) == {"campaign": "gate", "sla": "mine"}
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
    assert sla.main([*arguments, "--outputdir", str(tmp_path / "out")]) == status
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_the_processes_left_is_put_where_a_single_one_leaves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = {f"S{number}": ["T", "U"] for number in range(5)}
    for number in range(3):
        part = tmp_path / PABOT_RESULTS / str(number)
        (part / "dut").mkdir(parents=True)
        (part / "dut" / "ovs-vswitchd.log").write_text(f"log {number}")
        (part / pool.CONSOLE_FILE).write_text(f"table {number}\n")
        store.note_without_record(
            [WithoutRecord(suite=f"S{number}", test="T", outcome="skipped", reason="2 CPUs")], part
        )
        (part / "output.xml").write_text("<robot></robot>\n")
    (part / "output.xml").write_text("<robot><suite>")  # that of a process that was killed
    with (part / pool.CONSOLE_FILE).open("ab") as console:
        console.write("µ".encode()[:1])  # it was killed while it wrote
    (tmp_path / PABOT_RESULTS / "3").mkdir()  # that of a process that got no testbed any more
    (part / MISTAKES_FILE).write_text("mine.yaml: x: is missing.\n")
    (tmp_path / "dut" / "0").mkdir(parents=True)  # of an older run in the same folder
    (tmp_path / "dut" / "0" / "old.log").touch()

    assert pool.gather(tmp_path, suites) == 3

    said = capsys.readouterr().err
    assert "mine.yaml: x: is missing.\n" in said
    assert "S2: The process of this suite was killed. table 2\n" in said
    assert "S3: The run was stopped before.\n" in said
    assert "S4: The run was stopped before.\n" in said
    assert (tmp_path / "console" / "1.txt").read_text() == "table 1\n"
    assert [path.name for path in (tmp_path / "dut" / "0").iterdir()] == ["ovs-vswitchd.log"]
    assert (tmp_path / MISTAKES_FILE).read_text() == "mine.yaml: x: is missing.\n"
    noted = [(test.suite, test.test, test.outcome) for test in store.read_without_record(tmp_path)[0]]
    assert noted[:3] == [(f"S{number}", "T", "skipped") for number in range(3)]
    assert noted[3:] == [("S2", "U", "failed"), *((suite, test, "failed") for suite in ("S3", "S4") for test in "TU")]
    assert not (tmp_path / PABOT_RESULTS).exists()


def test_the_order_on_the_page_is_that_of_the_suites_and_not_that_of_the_clock(tmp_path: Path) -> None:
    moment = made_up_record().started
    for place, minute in ((2, 1), (0, 2), (1, 3)):
        began = moment.replace(minute=minute)
        member = PoolMember(name="local#1", cpus=[0, 1], suite=place)
        write(made_up_record(suite=f"S{place}", started=began, ended=began, pool=member), tmp_path)
    runs = read_runs([tmp_path])
    assert [each.record.suite for each in runs.newest] == ["S0", "S1", "S2"]
