"""Where `./run` begins: answers what needs no package (help, wrong usage), or says what the command needs first.

Started by the Python of the system, before anything is installed: nothing but Python's own library is imported here.
What the command needs goes to descriptor 3, because stdout is for the help.
"""

import os
import sys
from pathlib import Path

# Started as a file, in isolated mode, so that nothing else is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ctbench.cli.boundary import enter
from ctbench.cli.parser.tree import command_of


def main() -> int:
    """Say what the command needs; `command_of` ends the process where there is nothing to run."""
    os.write(3, command_of(sys.argv[1:]).needs.encode())
    return 0


if __name__ == "__main__":
    enter("".join(sys.argv[1:2]), lambda: main)
