"""The commands, each a module of this package with a main function. `conntrack-sla COMMAND` is what `./run COMMAND` is,
where the package is installed."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from ctbench.base.errors import ExitStatus
from ctbench.cli.error_boundary import enter

#: Commands that look after a checkout: of an installed package only `check promises` is left of them.
OF_A_CHECKOUT = ("setup", "tests", "check")


def find(name: str) -> Callable[[], int]:
    """The main function of the command `name`, once its arguments are known to be right."""
    from ctbench.cli.parser.tree import command_of  # noqa: PLC0415 - inside the boundary

    command_of([name, *sys.argv[1:]] if name else [])
    main: Callable[[], int] = importlib.import_module(f"ctbench.cli.{name}").main
    return main


def run_installed() -> NoReturn:
    """The command `conntrack-sla` of the package."""
    command = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if command in OF_A_CHECKOUT and not _is_for_all(command, sys.argv[1:]):
        print(f"run: {command} is for a checkout of the project, where ./run {command} does it.", file=sys.stderr)
        sys.exit(ExitStatus.USAGE)
    enter(command, lambda: find(command))


def _is_for_all(command: str, arguments: Sequence[str]) -> bool:
    return command == "check" and list(arguments[:1]) == ["promises"]
