"""The Jenkinsfile calls commands that exist, and knows every status that they end with. Jenkins itself is not here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from JenkinsBuild import ROOT, TEXT, body, environment, result_of, shell_lines

from ctbench.base.errors import ExitStatus
from ctbench.base.paths import RESULTS_VARIABLE

from .test_report_candidate import row


def handled(function: str) -> set[int]:
    return {int(number) for number in re.findall(r"case (\d+):", body(function))}


@pytest.mark.parametrize(
    ("parameters", "added"),
    [
        ({}, ["-v", "TESTBED:local"]),
        ({"TESTBED": "lab", "SLA": "mine"}, ["-v", "SLA:mine", "-v", "TESTBED:lab"]),
        ({"TESTBED": "a,b"}, ["--testbeds", "a,b"]),
        (
            {"TESTBED": "lab", "CANDIDATE": "/opt/my ovs", "BASE": "/opt/ovs-3.2"},
            ["--candidate", "/opt/my ovs", "--base", "/opt/ovs-3.2", "-v", "TESTBED:lab"],
        ),
    ],
)
@pytest.mark.parametrize("status", [0, 1, 3])
def test_its_shell_lines_hand_the_parameters_on_and_end_as_the_run_does(
    parameters: dict[str, str], added: list[str], status: int, tmp_path: Path
) -> None:
    script = shell_lines("Measure")
    (tmp_path / "run").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n')
    (tmp_path / "run").chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", script], env=environment(**parameters), cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    arguments = done.stdout.splitlines()
    assert (done.returncode, arguments[:3]) == (status, ["sla", "--argumentfile", "test_lists/gate.args"])
    assert arguments[-len(added) :] == added


#: `./run sla` as it is, but for what measures: it leaves the record that it is given, as a run leaves it.
REPLAY = """
import os, sys
from pathlib import Path
from ctbench.cli.main import main
from robot.run import RobotFramework
from ctbench.cli import sla
from ctbench.results import store
from ctbench.results.record import from_json
from ctbench.testbed.config import TestbedConfig

def replay(arguments):
    record = from_json(Path(os.environ["REPLAYED"]).read_bytes(), "it")
    options = RobotFramework().parse_arguments(arguments)[0]
    assert f"CANDIDATE:{os.environ['CANDIDATE']}" in options["variable"], options
    store.write(record, Path(options["outputdir"]))
    return int(record.verdict != "met")

sla.run_robot = replay
TestbedConfig.check_build = TestbedConfig.check_machine = lambda *_: None
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("ratio", "word", "status", "result"),
    [(0.93, "missed", 1, "FAILURE"), (0.968, "not measured", 3, "UNSTABLE")],
)
def test_its_shell_lines_gate_a_candidate_and_keep_what_was_found(
    ratio: float, word: str, status: int, result: str, tmp_path: Path
) -> None:
    replayed = row(ratio, met=False, undecided=word == "not measured")
    (tmp_path / "record.json").write_text(replayed.to_json())
    (tmp_path / "replay.py").write_text(REPLAY)
    program = ROOT / "libraries" / "ctbench" / "cli" / "__main__.py"
    replay = f'case "$1" in sla) exec {sys.executable} replay.py "$@";; esac'
    (tmp_path / "run").write_text(f'#!/bin/sh\n{replay}\nexec {sys.executable} {program} "$@"\n')
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "test_lists").symlink_to(ROOT / "test_lists")
    out, history = tmp_path / "results" / "gate", "results/history/gate"
    known = environment(CANDIDATE="/opt/my ovs") | {
        "PYTHONPATH": str(ROOT / "libraries"), "REPLAYED": "record.json", RESULTS_VARIABLE: "results",
    }  # fmt: skip

    def shell(script: str) -> int:
        return subprocess.run(["sh", "-e", "-c", script], env=known, cwd=tmp_path, check=False).returncode

    assert shell(shell_lines("Measure")) == status
    assert result_of(status) == result
    assert "Open vSwitch 3.3.0 against 3.1.0: " in (out / "sla.html").read_text()
    assert (out / "junit.xml").is_file()
    assert shell(shell_lines("History")) == 0
    assert [each.name for each in (tmp_path / history / "13" / "records").iterdir()]
    assert (tmp_path / "results" / "builds" / "sla.html").is_file()


def test_every_exit_status_of_a_run_has_a_result() -> None:
    assert handled("judge") == set(map(int, ExitStatus)) | {129, 143}


def test_every_list_that_a_build_offers_exists_and_so_does_the_one_of_the_night() -> None:
    offered = re.findall(r"'(\w+)'", re.search(r"choices: \[(.*?)\]", TEXT)[1])  # type: ignore[index]
    assert offered == ["gate", "nightly", "published"]
    night = re.search(r"%TEST_LIST=(\w+)", TEXT)
    assert night and night[1] in offered
    assert all((ROOT / "test_lists" / f"{name}.args").is_file() for name in offered)


def test_what_people_type_into_a_parameter_reaches_the_shell_as_one_word() -> None:
    for script in re.findall(r"'''(.*?)'''", TEXT, re.DOTALL):
        assert "${params" not in script
        used = re.findall(r".?\$(?:TESTBED|SLA|CANDIDATE|BASE)\b", script)
        assert all(each[0] in '":' for each in used), used


@pytest.mark.parametrize("job", ["gate", "team/gate", "team/gate/release%2F3.3"])
def test_a_job_may_copy_its_own_artifacts_in_every_folder_and_a_build_does_not_end_where_it_may_not(job: str) -> None:
    (written,) = re.findall(r"copyArtifactPermission\('(.*)' \+ env\.JOB_NAME\)", TEXT.split("triggers {")[0])
    relative, absolute = job.rpartition("/")[2], f"/{job}"  # the names that the plugin compares with
    assert f"{written}{job}" in (relative, absolute)
    guard = TEXT.split("copyArtifacts(projectName")[0].rsplit("catchError(", 1)[1]
    assert guard.rstrip().endswith("{") and guard.count("{") == 1
    assert "buildResult: 'UNSTABLE'" in guard and "catchInterruptions: false" in guard
