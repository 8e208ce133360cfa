"""`./run COMMAND` once everything is installed: inside the boundary, which is there before a package is imported."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

# Started as a file, so that nothing depends on PYTHONPATH: its own folder is not for imports, libraries/ is.
sys.path[0] = str(Path(__file__).resolve().parents[2])
# What the user's PYTHONPATH names can be imported, and takes the place of nothing.
sys.path.extend(filter(None, os.environ.get("CTBENCH_PYTHONPATH", "").split(os.pathsep)))

from ctbench.cli.error_boundary import enter  # noqa: E402 - needs the path above


def find(name: str) -> Callable[[], int]:
    """The main function of the command `name`, a module of this package, once its arguments are known to be right."""
    from ctbench.cli.parser.tree import command_of  # noqa: PLC0415 - inside the boundary

    command_of([name, *sys.argv[1:]] if name else [])
    main: Callable[[], int] = importlib.import_module(f"ctbench.cli.{name}").main
    return main


if __name__ == "__main__":
    command = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    enter(command, lambda: find(command))
