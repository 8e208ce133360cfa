"""The command line of `./run sla`: options of Robot Framework and a few more, the suites that they select, the files
that `-v` names. And the start of Robot Framework in this process.

The suites are read here as for a run, so that a mistake is found before anything is made.
"""

import difflib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot.conf import RobotSettings
from robot.errors import FRAMEWORK_ERROR, DataError, Information
from robot.model import ModelModifier
from robot.output import LOGGER
from robot.run import RobotFramework
from robot.running import TestCase, TestSuite, TestSuiteBuilder
from robot.utils import find_file
from robot.utils.argumentparser import ArgFileParser
from robot.variables import Variables, VariableScopes

from ctbench.base.errors import ConfigError, sentence_of
from ctbench.base.units import did_you_mean, quoted
from ctbench.cli.arguments import parse as parse_ours
from ctbench.dut.rulesets import catalogue
from ctbench.run.settings import VARIABLES
from ctbench.testbed.pool import split_names

__all__ = ["CommandLine", "DataError", "Information", "RobotSettings", "TestCase", "TestSuite", "chosen_files", "parse"]


@dataclass(frozen=True)
class CommandLine:
    """The user's command line, parsed with Robot Framework's own parser."""

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
    #: What it names, as `RunSettings.load` takes it.
    chosen: Mapping[str, str] = field(default_factory=dict)
    suites: tuple[str, ...] = ()
    #: Whether `git bisect run` asks.
    bisect: bool = False


def parse(arguments: Sequence[str], default_suite: Path) -> CommandLine:
    """Split options from suites with Robot Framework's parser; without suites, add `default_suite`.

    Argument files are replaced by their content, because they may hold options of this project, such as `--testbeds`.
    End the process for wrong usage. Raise Information (`--version`) as Robot Framework's parser does; `ConfigError` for
    options that exclude each other, and for an invalid pool.
    """
    try:
        ours = parse_ours(["sla", *_ARGUMENT_FILES.process(list(arguments))])
    except DataError as error:
        parse_ours(["sla"]).parser.error(str(error).rstrip("."))
    builds = {"CANDIDATE": ours.candidate, "BASE": ours.base, "ALL": "true" if ours.all else None}
    if "" in (ours.candidate, ours.base):
        raise ConfigError("--candidate or --base is empty.\n  Expected a build: --candidate DIR.")
    if (ours.base or ours.all or ours.bisect) and not ours.candidate:
        raise ConfigError("--base, --all and --bisect are about a candidate.\n  Expected --candidate DIR.")
    if ours.bisect and "--bisect" not in arguments:
        raise ConfigError("--bisect is in an argument file.\n  Expected it on the command line, which all know of.")
    complete = [part for name, value in builds.items() if value for part in ("-v", f"{name}:{value}")] + list(ours.rest)
    parser, names_suites = RobotFramework(), True
    try:
        options, suites = parser.parse_arguments(complete)
    except ValueError as error:  # of shlex: a quote in ROBOT_OPTIONS that does not end
        ours.parser.error(f"ROBOT_OPTIONS in the environment: {error}")
    except DataError as error:
        if "at least 1 argument" not in str(error):
            ours.parser.error(str(error).rstrip("."))
        complete.append(str(default_suite))
        names_suites = False
        options, suites = parser.parse_arguments(complete)
    late = next((suite for suite in suites if suite.startswith("-") and not Path(suite).exists()), None)
    if late:
        ours.parser.error(f"options go before the suites: {late} comes after {suites[0]}")
    assignments, files = tuple(options.get("variable", ())), options.get("variablefile", ())
    with suppress(DataError):  # another option's value that is none: said where the suites are read
        sys.path[:0] = RobotSettings(options).pythonpath
    names_of_files(files)
    chosen = chosen_files(assignments, files)
    if ours.testbeds is not None and "testbed" in chosen:
        raise ConfigError("--testbeds and -v TESTBED:… are both given.\n  Expected one of them.")
    return CommandLine(
        arguments=(*as_arguments(options), *suites),
        outputdir=options.get("outputdir"),
        assignments=assignments,
        dry_run=bool(options.get("dryrun")),
        names_suites=names_suites,
        testbeds=tuple(split_names(ours.testbeds)) if ours.testbeds is not None else (),
        options=options,
        chosen=chosen,
        suites=tuple(suites),
        bisect=ours.bisect,
    )


def chosen_files(assignments: Sequence[str], files: Sequence[str] = ()) -> dict[str, str]:
    """Return what `-v TESTBED:…` and the other variables of a run name, as arguments of `RunSettings.load`: the values
    that Robot Framework gets from `-v` and from variable files (`-V`). A variable without a value is left out: Robot
    Framework reports it when it reads the variable."""
    with _said_later():
        variables = VariableScopes(RobotSettings({"variable": list(assignments), "variablefile": list(files)})).current
    found = {}
    for name in VARIABLES:
        with suppress(DataError):
            value = variables[f"${{{name}}}"]
            found["all_rows" if name == "ALL" else name.lower()] = "" if value in (None, False) else str(value)
    return found


def names_of_files(files: Sequence[str]) -> list[str]:
    """Return the names of the variables in variable files. Raise `ConfigError` for a file that Robot Framework cannot
    read, because it would continue without the file."""
    found = Variables()
    for name, arguments in RobotSettings({"variablefile": list(files)}).variable_files:
        try:
            is_path = name.lower().endswith(_BY_PATH)
            found.set_from_file(find_file(name, file_type="Variable file") if is_path else name, arguments)
        except DataError as error:
            raise ConfigError(str(error)) from None
    return [*found.as_dict(decoration=False)]


#: Puts what argument files say in the place of their options, as Robot Framework does.
_ARGUMENT_FILES = ArgFileParser(["--argumentfile", "-A"])
#: Variable files that are named by their path; others are modules.
_BY_PATH = (".py", "/", ".yaml", ".yml", ".json")


def plain_name(assignment: str) -> str:
    """Return the name of a variable as Robot Framework compares names: case, spaces and underscores do not count."""
    return assignment.partition(":")[0].replace("_", "").replace(" ", "").lower()


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return options, by their long names, as arguments of a command line."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            found.append(f"--{name}" if value else f"--no{name}")
        else:
            found += [f"--{name}={each}" for each in (value if isinstance(value, list) else [value])]
    return found


def selected_suite(arguments: Sequence[str]) -> TestSuite:
    """Return the suite that Robot Framework would run. Raise DataError where that is empty, and for an option or a file
    that Robot Framework refuses; `ConfigError` for a ruleset without a catalogue file: no row would have its tags."""
    catalogue()
    options, sources = RobotFramework().parse_arguments(list(arguments))
    for source in map(Path, sources):
        if source.exists() and not source.is_dir() and not source.suffix:
            raise DataError(
                f"{source} has no suffix that says what it is: a suite is a folder, or a file such as "
                f"{source.name}.robot."
            )
    settings = RobotSettings(options)
    sys.path[:0] = settings.pythonpath
    builder = TestSuiteBuilder(
        included_extensions=settings.extension, included_files=settings.parse_include,
        custom_parsers=settings.parsers, rpa=settings.rpa, lang=settings.languages,
        allow_empty_suite=settings.run_empty_suite,
    )  # fmt: skip
    with _said_later():
        suite = builder.build(*sources)
        if settings.pre_run_modifiers:
            suite.visit(ModelModifier(settings.pre_run_modifiers, settings.run_empty_suite, LOGGER))
        suite.configure(**settings.suite_config)
        suite.validate_execution_mode()
    return suite


@contextmanager
def _said_later() -> Iterator[None]:
    """Drop Robot Framework's messages on what it reads: it repeats them when it reads the same for the run."""
    known = len(LOGGER._message_cache or ())
    with LOGGER.cache_only:
        yield
    if LOGGER._message_cache is not None:
        del LOGGER._message_cache[known:]


#: Of a variable file, which others may read too, a name is refused that is nearly one of these (difflib's ratio).
_NEARLY = 0.8


def are_ours(suites: Collection[Path], root: Path) -> bool:
    """True where the files of all tests are below `root` (suites/ of the checkout). Suites of another project have
    variables of their own."""
    return all(suite.resolve().is_relative_to(root.resolve()) for suite in suites)


def check_names(command: CommandLine, suites: Collection[Path], root: Path) -> None:
    """Raise `ConfigError` for an assignment of a variable that no suite uses, and for a probable misspelling of such a
    variable in a variable file. `suites`: the files of the tests to run; those of another project are not checked."""
    if not are_ours(suites, root):
        return
    for assignment in command.assignments:
        typed, name = assignment.partition(":")[0], plain_name(assignment)
        if name not in map(plain_name, VARIABLES):
            meant = did_you_mean(name.upper(), list(VARIABLES))
            raise ConfigError(
                f"-v {quoted(typed)}: no suite uses this variable.\n  Expected one of: {', '.join(VARIABLES)}.{meant}"
            )
    for typed in names_of_files(command.options.get("variablefile", ())):
        name = plain_name(typed).upper()
        if name not in VARIABLES and (nearly := difflib.get_close_matches(name, VARIABLES, 1, _NEARLY)):
            raise ConfigError(
                f"-V: {quoted(typed)}: no suite uses this variable.\n"
                f"  Expected {nearly[0]}, or a name that is less like it."
            )


class Robot(RobotFramework):  # type: ignore[misc] # robot has no types
    """Robot Framework, which reports an unforeseen error, such as a full disk, in one sentence."""

    def main(self, datasources: Sequence[str], **options: Any) -> int:
        """Run as Robot Framework's own `main`, and return its return code."""
        try:
            status: int = super().main(datasources, **options)
        except DataError:
            raise
        except Exception as error:
            LOGGER.error(sentence_of(error, None))
            return int(FRAMEWORK_ERROR)
        return status


def run_robot(arguments: Sequence[str]) -> int:
    """Run Robot Framework in this process, and return its return code."""
    status: int = Robot().execute_cli(list(arguments), exit=False)
    return status
