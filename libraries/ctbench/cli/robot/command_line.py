"""The command line of `./run sla`: Robot Framework's own options, and a few more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot.errors import DataError, Information
from robot.run import RobotFramework

from ctbench.cli.robot.selection import argument_files_replaced
from ctbench.testbed.pool import split_names

__all__ = ["CommandLine", "DataError", "Information", "chosen_files", "parse"]

#: Tags follow from what a row of a suite says, and from what the SLA promises of it.
_TAGS = "ConntrackSLA.tags"


@dataclass(frozen=True)
class CommandLine:
    """What the user asked for, as Robot Framework's own parser understands it."""

    arguments: tuple[str, ...]
    outputdir: str | None
    assignments: tuple[str, ...]
    dry_run: bool
    #: false: it is about all suites, because none was named.
    names_suites: bool
    #: Where several testbeds are to measure side by side: their names.
    testbeds: tuple[str, ...] = ()
    #: Robot Framework's options by their long names, and the suites.
    options: Mapping[str, Any] = field(default_factory=dict)
    suites: tuple[str, ...] = ()
    #: The run that is to go on, as it was named.
    resume: str | None = None


def parse(arguments: Sequence[str], default_suite: Path) -> CommandLine:
    """Split options from suites with Robot Framework's parser; without suites, `default_suite` is added.

    Argument files are replaced by what they say: they may hold `--testbeds`, which is ours and not Robot's. Raises
    DataError (wrong usage) and Information (`--help`, `--version`), as the parser does; `ConfigError` for a pool that
    is none.
    """
    complete, testbeds = _take("--testbeds", argument_files_replaced(arguments))
    complete, resume = _take("--resume", complete)
    parser, names_suites = RobotFramework(), True
    try:
        options, suites = parser.parse_arguments(complete)
    except ValueError as error:  # of shlex: a quote in ROBOT_OPTIONS that does not end
        raise DataError(f"ROBOT_OPTIONS in the environment: {error}") from None
    except DataError as error:
        if "at least 1 argument" not in str(error):
            raise
        complete.append(str(default_suite))
        names_suites = False
        options, suites = parser.parse_arguments(complete)
    late = next((suite for suite in suites if suite.startswith("-") and not Path(suite).exists()), None)
    if late:
        raise DataError(f"Options go before the suites: {late} comes after {suites[0]}.")
    assignments = tuple(options.get("variable", ()))
    sla = chosen_files(assignments).get("sla")
    return CommandLine(
        arguments=("--prerunmodifier", f"{_TAGS};{sla}" if sla else _TAGS, *complete),
        outputdir=options.get("outputdir"),
        assignments=assignments,
        dry_run=bool(options.get("dryrun")),
        names_suites=names_suites,
        testbeds=tuple(split_names(testbeds)) if testbeds is not None else (),
        options=options,
        suites=tuple(suites),
        resume=resume,
    )


def _take(option: str, arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The arguments without an option of our own, and its value; the last one counts, as with Robot's options."""
    rest, found = [], None
    waiting = iter(arguments)
    for argument in waiting:
        name, assigned, value = argument.partition("=")
        if name != option:
            rest.append(argument)
        elif (found := value if assigned else next(waiting, None)) is None:
            raise DataError(f"option {option} requires argument")
    return rest, found


def chosen_files(assignments: Sequence[str]) -> dict[str, str]:
    """What `-v TESTBED:…`, `-v CAMPAIGN:…`, `-v SLA:…`, `-v REFERENCE:…` and `-v BASE:…` name; case, spaces and
    underscores do not count for Robot.

    A value that is itself a variable is known to Robot only, which reads the files again and is no less strict.
    """
    chosen = {}
    for assignment in assignments:
        name, _, value = assignment.partition(":")
        name = name.replace("_", "").replace(" ", "").lower()
        if name in ("testbed", "campaign", "sla", "reference", "base") and "${" not in value:
            chosen[name] = value
    return chosen
