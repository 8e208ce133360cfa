"""The command `./run check NAME`: one check of this project, as tox.ini describes it."""

import argparse
import os
import sys
from typing import NoReturn

from ctbench.base.paths import INSTALLED, LIBRARIES, ROOT
from ctbench.cli.arguments import WITHOUT_ARGUMENTS


def main(options: argparse.Namespace) -> int:
    if options.arguments and options.name in WITHOUT_ARGUMENTS:
        options.parser.error(f"check {options.name} takes no arguments, and {options.arguments[0]} is one")
    if options.name == "promises":
        # Of an installed package too, and where the user is: its arguments are suites of one's own.
        of_users = options.arguments or INSTALLED
        become("ConntrackSLA.check_promises" if of_users else "tools.promises", *options.arguments)
    become("tox", "run", "-qq", "--conf", str(ROOT), "-e", options.name, "--", *options.arguments)


def become(module: str, *arguments: str) -> NoReturn:
    """Replace this process by a Python module, so that signals and the exit status are that module's."""
    path = os.pathsep.join(filter(None, [str(LIBRARIES), str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", module, *arguments]
    os.execve(command[0], command, os.environ | {"PYTHONPATH": path, "CTBENCH_BIN": f"{sys.prefix}/bin"})
