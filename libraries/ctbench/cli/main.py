"""The dispatcher of `./run COMMAND`, and of `conntrack-sla COMMAND` in the installed package: one command, to its exit
status."""

import importlib
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from ctbench.cli import arguments, error_boundary

#: Where git bisect asks, in place of every status that says neither good (0) nor bad (1): it skips the commit. From 128
#: on it stops: who ended the run does not want the next one either.
BISECT, SKIPPED, STOPPED = "--bisect", 125, 128


def main(asked: Sequence[str]) -> int:
    """Run a command and return its exit status. An error that escapes from it becomes a sentence and a status."""
    try:
        options = arguments.parse(asked)
        status: int = importlib.import_module(f"ctbench.cli.{options.command}").main(options)
    except BaseException as error:
        status = error_boundary.report_error(error)
    return SKIPPED if BISECT in asked and 1 < status < STOPPED else status


def run() -> NoReturn:
    """Run the command line of this process, and exit with its status."""
    error_boundary.enter()
    status = main(sys.argv[1:])
    error_boundary.handle_signals(signal.SIG_DFL)  # while Python takes itself down, Ctrl-C has nothing more to stop
    sys.exit(status)
