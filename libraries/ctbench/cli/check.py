"""`./run check NAME`: one check of this project, which tox.ini describes."""

import argparse
import os
import sys

from ctbench.base.paths import LIBRARIES, ROOT
from ctbench.cli.arguments import WITHOUT_ARGUMENTS


def main(options: argparse.Namespace) -> int:
    """Become the program of the check, so that signals and the exit status are that program's."""
    if options.arguments and options.name in WITHOUT_ARGUMENTS:
        options.parser.error(f"check {options.name} takes no arguments, and {options.arguments[0]} is one")
    tox = ["tox", "run", "-qq", "--conf", str(ROOT), "-e", options.name, "--"]
    # Of an installed package too, and where the user is: its arguments are suites of one's own.
    program = ["ConntrackSLA.check_promises"] if options.name == "promises" else tox
    path = os.pathsep.join(filter(None, [str(LIBRARIES), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", *program, *options.arguments]
    os.execve(command[0], command, os.environ | {"PYTHONPATH": path, "CTBENCH_BIN": f"{sys.prefix}/bin"})
