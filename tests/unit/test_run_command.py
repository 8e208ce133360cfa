"""`./run` itself: its help, its mistakes, and what it says when it cannot install what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run"
CLI = "libraries/ctbench/cli"


def run(*arguments: str, path: str = os.environ["PATH"], script: Path = RUN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(script), *arguments],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of ./run in a folder of its own, so that no test can touch this checkout's .venv."""
    script = tmp_path / "run"
    script.write_text(RUN.read_text())
    (tmp_path / CLI).mkdir(parents=True)
    (tmp_path / CLI / "setup.sh").write_text((ROOT / CLI / "setup.sh").read_text())
    return script


def stub(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    command = folder / name
    command.write_text(f"#!/bin/sh\n{body}\n")
    command.chmod(0o755)


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_help_lists_commands_and_exit_statuses(word: str) -> None:
    done = run(word)
    assert done.returncode == 0
    for text in ("setup", "sla", "report", "calibrate", "tests", "130"):
        assert text in done.stdout


def test_an_unknown_command_is_one_sentence_and_status_2() -> None:
    done = run("bogus")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "run: there is no command 'bogus': see ./run --help.\n"


def test_no_command_at_all_is_status_2() -> None:
    assert run().returncode == 2


def test_an_unknown_check_is_status_2() -> None:
    assert run("check", "bogus").returncode == 2


def test_another_processor_is_refused(tmp_path: Path, elsewhere: Path) -> None:
    stub(tmp_path / "bin", "uname", "echo aarch64")
    done = run("setup", path=f"{tmp_path}/bin:{os.environ['PATH']}", script=elsewhere)
    assert done.returncode == 6
    assert "aarch64" in done.stderr


def test_another_distribution_is_told_what_it_needs(tmp_path: Path, elsewhere: Path) -> None:
    stub(tmp_path / "bin", "uname", "echo x86_64")
    for name in ("dirname", "readlink"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    done = run("setup", path=f"{tmp_path}/bin", script=elsewhere)
    assert done.returncode == 6
    assert "conntrack-tools" in done.stderr
    assert done.stderr.count("\n") == 1


def test_packages_that_cannot_be_installed_become_a_command_for_an_administrator(
    tmp_path: Path, elsewhere: Path
) -> None:
    bin_folder = tmp_path / "bin"
    stub(bin_folder, "uname", "echo x86_64")
    stub(bin_folder, "dpkg-query", "exit 1")
    stub(bin_folder, "apt-cache", "echo '  Depends: librte-eal24'")
    stub(bin_folder, "apt-get", 'case "$*" in *update*) ;; *) exit 100 ;; esac')
    stub(bin_folder, "sudo", "exit 1")
    done = run("setup", path=f"{bin_folder}:{os.environ['PATH']}", script=elsewhere)
    assert done.returncode == 6
    command = done.stderr.splitlines()[-1]
    assert "apt-get install" in command
    assert "'librte-net-memif24' 'librte-mempool-ring24'" in command
    assert not (tmp_path / ".venv").exists()
