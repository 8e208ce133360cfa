"""The Jenkinsfile and the job for GitHub Actions in docs/ci.md: they call commands that exist, and know every status
that these end with. Jenkins and GitHub themselves are not here."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
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
        ["sh", "-e", "-c", script],
        env=environment(**parameters),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    arguments = done.stdout.splitlines()
    assert (done.returncode, arguments[:3]) == (status, ["sla", "--argumentfile", "test_lists/gate.args"])
    assert arguments[-len(added) :] == added


@pytest.mark.parametrize("left", [[], ["without-record.json"]])
def test_the_history_has_the_records_of_a_build_and_what_left_none(left: list[str], tmp_path: Path) -> None:
    (tmp_path / "results" / "gate" / "records").mkdir(parents=True)
    for name in ("output.xml", *left):
        (tmp_path / "results" / "gate" / name).touch()
    (tmp_path / "run").symlink_to("/usr/bin/true")
    subprocess.run(["sh", "-e", "-c", shell_lines("History")], env=environment(), cwd=tmp_path, check=True)
    kept = tmp_path / "results" / "history" / "gate" / "13"
    assert sorted(each.name for each in kept.iterdir()) == ["records", *left]


def test_every_exit_status_of_a_run_has_a_result() -> None:
    assert handled("judge") == set(map(int, ExitStatus)) | {129, 143}
    colours = {status: result_of(status) for status in handled("judge") - {129, 130}}  # those end as 143 does
    assert colours.pop(0) == "SUCCESS" and colours.pop(3) == "UNSTABLE"
    assert set(colours.values()) == {"FAILURE"}


@pytest.mark.parametrize(
    ("status", "result"), [(0, "SUCCESS"), (3, "UNSTABLE"), *((each, "FAILURE") for each in (1, 2, 4, 5))]
)
def test_a_test_that_failed_makes_of_a_build_what_its_status_says(status: int, result: str) -> None:
    """A gate that ends with 0 may leave a test open, which fails in Robot Framework. The plugin's rule: a build is
    unstable below the first share of tests that passed, percent, and fails below the second."""
    passes, fails = (
        float(low if eval(condition, {"status": f"{status}"}) else high)
        for name in ("passThreshold", "unstableThreshold")
        for condition, low, high in re.findall(
            rf"{name}: (.*?) \? ([\d.]+) : ([\d.]+)", TEXT.replace("env.SLA_STATUS", "status")
        )
    )
    passed = 95.0
    assert result == ("FAILURE" if passed < fails else "UNSTABLE" if passed < passes else "SUCCESS")


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


(RECIPE,) = (
    yaml.safe_load(block.split("```")[0])
    for block in (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").split("```yaml\n")[1:]
    if block.startswith("name:")
)
(STEP,) = (step for step in RECIPE["jobs"]["gate"]["steps"] if step.get("id") == "gate")


@pytest.mark.parametrize(
    ("ended", "accepted", "status"),
    [(0, "false", 0), (1, "false", 1), (3, "false", 3), (3, "true", 0), (4, "true", 4), (5, "true", 5)],
)
def test_what_was_not_measured_is_green_only_where_an_input_asks_for_it(
    ended: int, accepted: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "docker").write_text(f"#!/bin/sh\nexit {ended}\n")
    (tmp_path / "docker").chmod(0o755)
    assert STEP["env"]["ACCEPT"] == "${{ inputs.accept_not_measured }}"
    done = subprocess.run(
        ["bash", "-e", "-c", STEP["run"]],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ACCEPT": accepted},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert ("::warning::" in done.stdout) == (ended == 3)


def test_nothing_is_accepted_unless_it_is_asked_for() -> None:
    inputs = RECIPE[True]["workflow_dispatch"]["inputs"]  # YAML reads the key `on` so
    assert inputs["accept_not_measured"]["default"] is False
    gitlab = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").split("## GitLab CI")[1].split("```")[1]
    assert "allow_failure" not in gitlab
