"""Where `./run` begins: answers what needs no package (help, wrong usage), or says what the command needs first.

Started by the Python of the system, before anything is installed: nothing but Python's own library is imported here.
What the command needs goes to descriptor 3, because stdout is for the help.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

# Started as a file, in isolated mode, so that nothing else is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ctbench.cli.error_boundary import enter


def find() -> Callable[[], int]:
    """What is left to do once the arguments are known to be right: say what the command needs. Help and wrong usage end
    the process here."""
    from ctbench.cli.parser.tree import command_of  # noqa: PLC0415 - inside the boundary

    command = command_of(sys.argv[1:])
    return lambda: os.write(3, command.needs.encode()) * 0


if __name__ == "__main__":
    enter("".join(sys.argv[1:2]), find)
