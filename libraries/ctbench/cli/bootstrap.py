"""Where `./run` begins: answers what needs no package (help, wrong usage), or says what the command needs first.

Started by the Python of the system, before anything is installed: nothing but Python's own library is imported here.
What the command needs goes to descriptor 3, because stdout is for the help.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# Started as a file, in isolated mode, so that nothing else is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ctbench.base.errors import ConfigError
from ctbench.base.paths import VARIABLES, results_root
from ctbench.cli.error_boundary import enter


def find() -> Callable[[], int]:
    """What is left to do once the arguments are known to be right: say what the command needs. Help and wrong usage end
    the process here."""
    from ctbench.cli.parser.tree import command_of  # noqa: PLC0415 - inside the boundary

    command = command_of(sys.argv[1:])
    check_places(command.name, sys.argv[2:])
    return lambda: os.write(3, command.needs.encode()) * 0


def check_places(command: str, arguments: Sequence[str]) -> None:
    """Raise `ConfigError` where `command` could not keep what it finds: before it installs and compiles, which takes a
    minute. Arguments that may name another folder are understood later."""
    others = ("-d", "--outputdir", "-A", "--argumentfile", "--resume", "--from")
    if command not in ("sla", "calibrate") or any(each.startswith(others) for each in arguments):
        return
    if command == "calibrate" and not os.access(VARIABLES / "sla", os.W_OK):
        raise ConfigError(
            f"{VARIABLES / 'sla'} cannot be written, where the SLA file goes.\n  Expected a clone of the project that "
            "you may write to: make one for yourself."
        )
    folder = results_root()
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if "ROBOT_OPTIONS" not in os.environ and not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise ConfigError(f"The results cannot be written to {folder}: choose a folder with --outputdir.")


if __name__ == "__main__":
    enter("".join(sys.argv[1:2]), find)
