"""The checks of ./run tests that are no tests of pytest."""

import subprocess
from pathlib import Path

import commands
import pytest


@pytest.mark.parametrize("name", ["types", "lint", "dryrun"])
def test_a_check_passes(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        commands.command("check", name), env=commands.environment(tmp_path), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
