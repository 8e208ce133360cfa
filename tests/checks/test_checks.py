"""The checks of ./run tests that are no tests of pytest."""

import configparser
import os
import shlex
import subprocess
import sys
from pathlib import Path

import commands
import pytest

from ctbench.base.paths import ROOT


@pytest.mark.parametrize("name", ["types", "lint", "dryrun"])
def test_a_check_passes(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        commands.command("check", name), env=commands.environment(tmp_path), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_programs_of_checks_may_be_in_a_folder_of_any_name() -> None:
    folder = Path("/a pl#ce%2F/bin")
    command = [sys.executable, "-m", "tox", "config", "--conf", str(ROOT), "-e", "ALL", "-k", "commands"]
    said = subprocess.run(
        command, env=os.environ | {"CTBENCH_BIN": str(folder)}, capture_output=True, text=True, check=True
    ).stdout
    environments = configparser.ConfigParser(interpolation=None)
    environments.read_string(said)
    lines = [line for each in environments.values() for line in each.get("commands", "").splitlines() if line]
    assert {Path(shlex.split(line)[0]).parent for line in lines} == {folder}, said
