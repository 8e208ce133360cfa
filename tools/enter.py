"""`./run COMMAND` once everything is installed: inside the boundary, which is there before a package is imported."""

import importlib
import sys
from collections.abc import Callable

from ctbench.cli.boundary import enter


def find(name: str) -> Callable[[], int]:
    """The main function of the command `name`, a module of this folder."""
    main: Callable[[], int] = importlib.import_module(name).main
    return main


if __name__ == "__main__":
    command = sys.argv.pop(1)
    enter(command, lambda: find(command))
