"""The arguments of a run for pabot, whose current folder is not the user's: it keeps a file of its own there."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from robot.run import RobotFramework

#: Options whose files pabot reads itself. Other files are read by the suites' processes, in the user's folder.
_FILES = ("parser", "prerunmodifier", "prerebotmodifier", "rerunfailed", "rerunfailedsuites")


def for_pabot(arguments: Sequence[str], name: str) -> list[str]:
    """The arguments for a process with another current folder. `name`: of the uppermost suite, where it has no file."""
    options, sources = RobotFramework().parse_arguments(list(arguments))
    if name:
        options["name"] = name
    for option in _FILES:
        if option in options:
            given = options[option]
            options[option] = [_absolute(each) for each in given] if isinstance(given, list) else _absolute(given)
    if "pythonpath" in options:
        options["pythonpath"] = [absolute_folders(each) for each in options["pythonpath"]]
    if "outputdir" in options:
        options["outputdir"] = str(Path(options["outputdir"]).absolute())
    return [*_command_line(options), *(str(Path(source).absolute()) for source in sources)]


def _command_line(options: Mapping[str, str | bool | Sequence[str]]) -> list[str]:
    """What Robot Framework's parser made these options of."""
    line = []
    for name, value in options.items():
        if isinstance(value, bool):
            line.append(f"--{name}" if value else f"--no{name}")
        else:
            line += [f"--{name}={each}" for each in ([value] if isinstance(value, str) else value)]
    return line


def _absolute(value: str) -> str:
    """A file or a module that an option names, with the arguments that may follow it: the file by its whole path."""
    if Path(value).exists():
        return str(Path(value).absolute())
    name, separator, rest = re.fullmatch(r"([^:;]*)([:;]?)(.*)", value, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{Path(name).absolute()}{separator}{rest}" if name and Path(name).exists() else value


def absolute_folders(path: str) -> str:
    """A list of folders, such as PYTHONPATH, found from any folder."""
    return os.pathsep.join(str(Path(folder).absolute()) for folder in path.split(os.pathsep) if folder)
