"""`./run setup`, `./run tests` and `./run check`: nothing of them is measured."""

import argparse
from collections.abc import Sequence

from ctbench.base.errors import ExitStatus
from ctbench.base.text import brief
from ctbench.cli.check import CHECKS
from ctbench.cli.parser.command import Command, Needs, Parser, pass_on

SETUP = Command(
    name="setup",
    summary="install what is missing (system packages, .venv), and stop",
    description="Install what is missing: system packages with apt, and Python packages in .venv. Every other command"
    " does so by itself; only the system packages need root. For the emulated machine (docs/emulated.md) it also"
    " installs QEMU and unpacks a kernel, 120 MB, of which this command alone brings a newer one;"
    " CONNTRACK_SLA_EMULATED=no in its environment declines that.",
    examples=("./run setup",),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "everything is installed",
        ExitStatus.NOTHING_MEASURED: "something could not be installed: the last line says what to do",
    },
)

TESTS = Command(
    name="tests",
    summary="check this project itself: lint, types, dry run, unit and integration tests",
    usage="./run tests [options of pytest]",
    description="Check this project itself: lint, types, the dry run of the suites, unit and integration tests. Started"
    " by root, the tests run as an ordinary user, and some of them as root as well.\n\nEvery argument goes to pytest:"
    " after ./run tests, `.venv/bin/pytest --help` lists its options.",
    judge=pass_on,
    examples=("./run tests", "./run tests -x -k threshold"),
    needs=Needs.TESTS,
    statuses={
        ExitStatus.MET: "everything passed",
        ExitStatus.MISSED: "something failed",
        ExitStatus.NOTHING_MEASURED: "something needed could not be installed",
    },
)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=CHECKS, metavar="NAME", help="one of the checks below")
    rest = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="for the program behind it"
    )
    rest.required = False


def _judge_check(parser: Parser, options: argparse.Namespace, _rest: Sequence[str]) -> None:
    if options.arguments and not CHECKS[options.name].takes_arguments:
        parser.error(f"check {options.name} takes no arguments, and {brief(options.arguments[0], 60)} is one")


CHECK = Command(
    name="check",
    summary="one of the checks of ./run tests alone",
    usage="./run check NAME [ARGUMENTS]",
    description="Run one of the checks of this project alone.",
    add=_add_check,
    judge=_judge_check,
    more={"checks": [(name, check.summary) for name, check in CHECKS.items()]},
    closing="types, dryrun, unit and integration take arguments for their program: ./run check unit --help is the help"
    " of pytest.",
    examples=("./run check lint", "./run check unit -k threshold"),
    needs=Needs.TESTS,
    statuses={
        ExitStatus.MET: "the check passed",
        ExitStatus.MISSED: "the check failed; another status is that of its program",
        ExitStatus.NOTHING_MEASURED: "something needed could not be installed",
    },
)
