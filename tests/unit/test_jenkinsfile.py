"""The Jenkinsfile calls commands that exist, and knows every status that they end with. Jenkins itself is not here."""

import re
import subprocess
from pathlib import Path

import pytest
from JenkinsBuild import ROOT, TEXT, body, environment, result_of, shell_lines

from ctbench.base.errors import ExitStatus


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


def test_every_exit_status_of_a_run_has_a_result() -> None:
    assert handled("judge") == set(map(int, ExitStatus)) | {129, 143}
    colours = {status: result_of(status) for status in handled("judge") - {129, 130}}  # those end as 143 does
    assert colours.pop(0) == "SUCCESS" and colours.pop(3) == "UNSTABLE"
    assert set(colours.values()) == {"FAILURE"}


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
