"""`./run check NAME`: one check of this project. The programs behind each are written here and nowhere else."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ctbench.base.errors import ExitStatus
from ctbench.base.paths import LIBRARIES, ROOT


@dataclass(frozen=True)
class Check:
    """One check. It passes where each of its programs ends with 0."""

    summary: str
    #: Names of programs of the .venv, with their arguments.
    programs: tuple[tuple[str, ...], ...]
    #: Whether they take more arguments, which come before `last`.
    takes_arguments: bool = False
    last: tuple[str, ...] = ()
    #: Whether paths among its arguments are where the user is, and not in the checkout.
    here: bool = False


_FINDS_OURS = {"PYTHONPATH": str(LIBRARIES)}
_PROMISES = ("python", "-m", "ConntrackSLA.check_promises")

CHECKS = {
    "lint": Check(
        "style and layout of the sources and the suites, imports, promises",
        (
            ("ruff", "check", "."),
            ("ruff", "format", "--check", "."),
            ("robocop", "check", "suites", "resources"),
            ("robocop", "format", "--check", "suites", "resources"),
            ("lint-imports", "--no-cache"),
            _PROMISES,
        ),
    ),
    "types": Check("types of the sources (mypy)", (("mypy",),), takes_arguments=True),
    "promises": Check(
        "rows of suites without a floor, and floors without a row; [--sla NAME] [SUITES]",
        (_PROMISES,),
        takes_arguments=True,
        here=True,
    ),
    "dryrun": Check(
        "the suites can be read and run (robot --dryrun)",
        (
            (
                "robot", "--pythonpath", "libraries", "--dryrun",
                "--output", "NONE", "--log", "NONE", "--report", "NONE", "--console", "dotted",
            ),
        ),
        takes_arguments=True,
        last=("suites",),
    ),
    "unit": Check("tests that need nothing but Python (pytest)", (("pytest", "tests/unit"),), takes_arguments=True),
    "integration": Check(
        "tests with the real Open vSwitch and Linux (pytest)", (("pytest", "tests/integration"),), takes_arguments=True
    ),
    "docs": Check(
        "write docs/keywords.html", (("libdoc", "--pythonpath", "libraries", "ConntrackSLA", "docs/keywords.html"),)
    ),
}  # fmt: skip


def main() -> int:
    """Run the programs of the check; one that has a single program becomes that program."""
    from ctbench.cli.parser.tree import parse  # noqa: PLC0415 - the parser knows the names of the checks from here

    options = parse("check")
    check = CHECKS[options.name]
    if len(check.programs) == 1:
        become([*check.programs[0], *options.arguments, *check.last], None if check.here else ROOT)
    environment = os.environ | _FINDS_OURS
    ended = [subprocess.run(_argv(each), cwd=ROOT, env=environment, check=False).returncode for each in check.programs]
    return ExitStatus.MISSED if any(ended) else ExitStatus.MET


def become(program: Sequence[str], folder: Path | None = ROOT) -> NoReturn:
    """Replace this process by a program of our .venv, so that signals and the exit status are that program's; started
    in a `folder`, or where we are."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if folder:
        os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    command = _argv(program)
    os.execve(command[0], command, os.environ | _FINDS_OURS)


def _argv(program: Sequence[str]) -> list[str]:
    python = program[0] == "python"  # of an installed package it is not in a folder of ours
    return [sys.executable if python else str(Path(sys.prefix) / "bin" / program[0]), *program[1:]]
