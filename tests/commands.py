"""Commands of this checkout as ./run starts them, whose runs land in a test's own folder and not in the developer's."""

import os
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.paths import PROGRAM, RESULTS_VARIABLE
from ctbench.cli.main import main


def status(name: str, arguments: Sequence[str | Path] = ()) -> int:
    """What `./run NAME ARGUMENTS` ends with, run in this process and without its handlers of signals."""
    return main([name, *map(str, arguments)])


def command(name: str, *arguments: str | Path) -> list[str]:
    """`./run NAME ARGUMENTS`, once everything is installed."""
    return [*PROGRAM, name, *map(str, arguments)]


def environment(results: Path, **more: str | Path) -> dict[str, str]:
    """Our environment, where runs land in `results`. PYTHONPATH is pytest's own business, and would hide that a command
    or a suite does not find its library."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | {RESULTS_VARIABLE: str(results)} | {name: str(value) for name, value in more.items()}
