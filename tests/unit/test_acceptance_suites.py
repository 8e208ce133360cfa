"""What a run ends with and leaves, as acceptance tests in Robot Framework: tests/acceptance, on a simulated testbed."""

import subprocess
import sys
from pathlib import Path

import commands
import pytest

SUITES = sorted((Path(__file__).parents[1] / "acceptance").glob("*.robot"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.stem)
def test_an_acceptance_suite_passes(suite: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "robot", "--outputdir", str(tmp_path), str(suite)], env=commands.environment(tmp_path),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
