"""pabot in a process of its own, which ends with the process that started it: its number, then pabot's own arguments.

Ctrl-C of a terminal is not for pabot, which would replace what its processes had found by a failure of each test: it is
started in a session of its own, and `pool.py` ends the processes instead.
"""

import os
import signal
import sys

from pabot.pabot import main_program

from ctbench.cli.robot.pool_suite import PABOT_VARIABLE
from ctbench.hosts.parent import end_with_parent


def main(arguments: list[str]) -> int:
    """pabot's exit status; see "Programmatic use" of its README."""
    parent, *rest = arguments
    end_with_parent(int(parent))
    os.environ[PABOT_VARIABLE] = str(os.getpid())
    # Jenkins tells all processes of a job to end: pabot has to be there to merge what the suites' processes found. Not
    # ignored, because these would inherit that.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    return int(main_program(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
