"""What pabot starts for each suite: takes a testbed of the pool, then runs Robot Framework, in this very process.

Arguments: the folder of the shares, then Robot Framework's own as pabot gives them, an argument file in the folder of
the suite's results.
"""

import os
import sys
from pathlib import Path

from ctbench.hosts.parent import end_with_parent
from ctbench.testbed.share import CONSOLE_FILE, SHARE_VARIABLE, Shares

#: In the environment: the process ID of pabot.
PABOT_VARIABLE = "CTBENCH_PABOT"


def main(arguments: list[str]) -> int:
    """Robot Framework's return code. 1 where the run was stopped before."""
    folder, *rest = arguments
    end_with_parent(int(os.environ[PABOT_VARIABLE]))
    share = Shares(Path(folder)).take()
    if share is None:
        return 1
    argument_file = Path(rest[rest.index("-A") + 1])
    console = os.open(argument_file.with_name(CONSOLE_FILE), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(console, sys.stdout.fileno())
    os.dup2(console, sys.stderr.fileno())
    os.close(console)
    if share.cpus:
        # What is started later inherits it, and `auto` in a testbed file chooses among these.
        os.sched_setaffinity(0, share.cpus)
    os.environ[SHARE_VARIABLE] = share.to_json()
    from robot.run import run_cli  # noqa: PLC0415 - a run that was stopped does not wait for its import

    return int(run_cli(rest, exit=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
