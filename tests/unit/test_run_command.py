"""`./run` itself: its help, its mistakes, and what it says when it cannot install what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

from ctbench.base.errors import ExitStatus
from ctbench.cli.parser.tree import COMMANDS

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
    """A copy of ./run in a folder of its own, so that no test can touch this checkout's .venv: nothing is installed."""
    script = tmp_path / "run"
    script.write_text(RUN.read_text())
    (tmp_path / "libraries").symlink_to(ROOT / "libraries")
    return script


@pytest.fixture
def without_python(elsewhere: Path) -> Path:
    """The same on a machine that has no Python."""
    setup, cli = (ROOT / CLI / "setup.sh").read_text(), elsewhere.parent / CLI
    (elsewhere.parent / "libraries").unlink()
    cli.mkdir(parents=True)
    (cli / "setup.sh").write_text(setup.replace("system_python=/usr/bin/python3", "system_python=/nowhere/python3"))
    return elsewhere


def stub(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    command = folder / name
    command.write_text(f"#!/bin/sh\n{body}\n")
    command.chmod(0o755)


def test_a_bisect_skips_a_commit_where_nothing_can_be_set_up(without_python: Path) -> None:
    tools = without_python.parent / "tools"
    for name in ("dirname", "readlink", "env", "uname"):
        stub(tools, name, f'exec /usr/bin/{name} "$@"')
    assert run("sla", "--candidate", "x", path=str(tools), script=without_python).returncode == 6
    assert run("sla", "--candidate", "x", "--bisect", path=str(tools), script=without_python).returncode == 125
    assert run("sla", "--bisect", "--candidate").returncode == 125


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"]])
def test_help_lists_commands_and_exit_statuses_where_nothing_is_installed(words: list[str], elsewhere: Path) -> None:
    done = run(*words, script=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert f"\n    {name} " in done.stdout
    for status in ExitStatus:
        assert f"\n  {status:d} " in done.stdout
    assert not (elsewhere.parent / ".venv").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_needs_nothing_that_is_installed(name: str, elsewhere: Path) -> None:
    done = run(name, "--help", script=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: ./run {name} ")
    assert done.stdout == run("help", name, script=elsewhere).stdout
    assert not (elsewhere.parent / ".venv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "there is no command 'bogus': see ./run --help."),
        (["slaa"], "there is no command 'slaa': see ./run --help. Did you mean \"sla\"?"),
        (["help", "bogus"], "there is no command 'bogus': see ./run --help."),
        (["\x1b[31m"], "there is no command '\\x1b[31m': see ./run --help."),
        (["setup", "now"], "now is one argument too many. Try `./run setup --help`."),
        (
            ["report", "--outputdri=x"],
            'there is no option --outputdri. Did you mean "--outputdir"? Try `./run report --help`.',
        ),
        (["report", "--outputdir"], "argument --outputdir/-d: expected one argument. Try `./run report --help`."),
        (["calibrate", "a", "b"], "b is one argument too many. Try `./run calibrate --help`."),
        (["doctor", "--nope", "x"], "there is no option --nope. Try `./run doctor --help`."),
        (["compare", "one"], "BASE and CANDIDATE are needed, and 1 of them is given. Try `./run compare --help`."),
        (["compare", "one", "two", "--nope"], "there is no option --nope. Try `./run compare --help`."),
        (["sla", "--testbeds"], "argument --testbeds: expected one argument. Try `./run sla --help`."),
        (["sla", "--resume"], "argument --resume: expected one argument. Try `./run sla --help`."),
        (
            ["check", "bogus"],
            "argument NAME: invalid choice: 'bogus' (choose from 'lint', 'types', 'promises', 'dryrun', 'unit',"
            " 'integration', 'docs'). Try `./run check --help`.",
        ),
        (["check"], "the following arguments are required: NAME. Try `./run check --help`."),
        (["check", "lint", "x"], "check lint takes no arguments, and x is one. Try `./run check --help`."),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2_before_anything_is_installed(
    arguments: list[str], said: str, elsewhere: Path
) -> None:
    done = run(*arguments, script=elsewhere)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"run: {said}\n")
    assert not (elsewhere.parent / ".venv").exists()


def test_no_command_at_all_is_status_2_and_the_help(elsewhere: Path) -> None:
    done = run(script=elsewhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == run("--help", script=elsewhere).stdout


@pytest.mark.parametrize("shell", ["--help | true", "--help >&- 2>&- <&-"])
def test_help_that_nobody_reads_is_no_mistake(shell: str, elsewhere: Path) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", f"bash '{elsewhere}' {shell}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["sla", "--help"], ["report"], []])
def test_without_python_there_is_one_sentence(arguments: list[str], without_python: Path) -> None:
    done = run(*arguments, script=without_python)
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == "run: there is no /nowhere/python3, which reads the command line: ./run setup installs it.\n"


@pytest.mark.parametrize(
    ("name", "machine"),
    [("setup", "elsewhere"), ("setup", "without_python"), ("sla", "without_python"), ("tests", "without_python")],
)
def test_another_processor_is_refused_before_anything_is_installed_and_without_python(
    name: str, machine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stub(tmp_path / "bin", "uname", "echo aarch64")
    script = request.getfixturevalue(machine)
    done = run(name, path=f"{tmp_path}/bin:{os.environ['PATH']}", script=script)
    assert done.returncode == 6
    assert "aarch64" in done.stderr


def test_a_python_that_is_too_old_is_said(tmp_path: Path, without_python: Path) -> None:
    stub(tmp_path / "bin", "python3", "exit 1")
    setup = without_python.parent / CLI / "setup.sh"
    setup.write_text(setup.read_text().replace("/nowhere/python3", f"{tmp_path}/bin/python3"))
    done = run("--help", script=without_python)
    assert (done.returncode, done.stdout) == (6, "")
    assert "python3 is too old: Python 3.11 is needed" in done.stderr


def test_another_distribution_is_told_what_it_needs(tmp_path: Path, elsewhere: Path) -> None:
    stub(tmp_path / "bin", "uname", "echo x86_64")
    for name in ("dirname", "env", "readlink"):
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
