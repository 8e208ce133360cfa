"""What pabot starts for each suite: takes a testbed of the pool, then runs Robot Framework, in this very process, whose
arguments these are: an argument file in the folder of the suite's results.
"""

import os
import sys
from pathlib import Path

from ctbench.testbed.pool import CONSOLE_FILE, SHARE_VARIABLE, SHARES_VARIABLE, Shares

#: In the environment: the process ID of pabot.
PABOT_VARIABLE = "CTBENCH_PABOT"


def main(arguments: list[str]) -> int:
    """Robot Framework's return code. 1 where the run was stopped before."""
    share = Shares(Path(os.environ[SHARES_VARIABLE])).take()
    if share is None:
        return 1
    console = Path(arguments[arguments.index("-A") + 1]).with_name(CONSOLE_FILE).open("wb")
    os.dup2(console.fileno(), sys.stdout.fileno())
    os.dup2(console.fileno(), sys.stderr.fileno())
    if share.cpus:
        # What is started later inherits it, and `auto` in a testbed file chooses among these.
        os.sched_setaffinity(0, share.cpus)
    os.environ[SHARE_VARIABLE] = share.to_json()
    from robot.run import run_cli  # noqa: PLC0415 - a run that was stopped does not wait for its import

    return int(run_cli(arguments, exit=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
