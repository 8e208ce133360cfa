"""`./run doctor`."""

import argparse

from ctbench.base.statuses import ExitStatus
from ctbench.cli.parser.command import Command, Needs


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "testbed", nargs="?", default="local", metavar="TESTBED", help="name or path (default: %(default)s)"
    )


DOCTOR = Command(
    name="doctor",
    summary="look at the hosts of a testbed, and say how to fix what is wrong",
    description="Look at the hosts of a testbed, and say what is not set up and which command fixes it. Changes"
    " nothing.",
    add=_add,
    examples=("./run doctor", "./run doctor mylab"),
    needs=Needs.VENV,
    statuses={
        ExitStatus.MET: "nothing has to be fixed",
        ExitStatus.CONFIGURATION: "an invalid value in the testbed file",
        ExitStatus.NOTHING_MEASURED: "something has to be fixed, or a host cannot be reached",
    },
)
