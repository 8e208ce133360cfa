"""What a run ends with and leaves, as acceptance tests in Robot Framework: tests/acceptance, on a simulated testbed."""

import subprocess
import sys
from pathlib import Path

import commands
import pytest

from ctbench.base.paths import ROOT

SUITES = sorted((Path(__file__).parents[1] / "acceptance").glob("*.robot"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.stem)
def test_an_acceptance_suite_passes(suite: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "robot", "--outputdir", str(tmp_path), str(suite)], env=commands.environment(tmp_path),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["firewall.robot", "our-sla.yaml"])
def test_the_page_about_own_suites_shows_what_is_tried(name: str) -> None:
    tried = (Path(__file__).parents[1] / "data" / "own_suites" / "elsewhere" / name).read_text()
    assert f"\n{tried}```" in (ROOT / "docs" / "own-suites.md").read_text()
