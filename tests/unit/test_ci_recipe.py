"""The job for GitHub Actions in docs/ci.md, its shell lines with a stand-in for docker: GitHub itself is not here."""

import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
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
        ["bash", "-e", "-c", STEP["run"]], env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ACCEPT": accepted},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert ("::warning::" in done.stdout) == (ended == 3)


def test_nothing_is_accepted_unless_it_is_asked_for() -> None:
    inputs = RECIPE[True]["workflow_dispatch"]["inputs"]  # YAML reads the key `on` so
    assert inputs["accept_not_measured"]["default"] is False
    gitlab = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").split("## GitLab CI")[1].split("```")[1]
    assert "allow_failure" not in gitlab
