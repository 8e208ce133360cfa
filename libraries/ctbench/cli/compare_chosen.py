"""Which tests `./run compare` measures: suites and options of Robot Framework on its command line."""

from collections.abc import Sequence

from ctbench.base.errors import ConfigError
from ctbench.base.paths import SUITES
from ctbench.cli.robot.command_line import chosen_files, parse


def for_robot(rest: Sequence[str], include: str) -> list[str]:
    """What goes to Robot Framework: without suites and tags, the tests with the tags `include`."""
    taken = chosen_files(parse(rest, SUITES).assignments)
    for name, value in taken.items():
        expected = f"--{name} {value}" if name in ("testbed", "campaign") else "no such variable: no floor is judged"
        raise ConfigError(f"-v {name.upper()}: is not for compare.\n  Expected {expected}.")
    given = parse(rest, SUITES).names_suites or any(each.startswith(("-i", "--include")) for each in rest)
    return list(rest) if given else [*rest, "--include", include]
