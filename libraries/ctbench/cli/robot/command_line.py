"""The command line of `./run sla`: Robot Framework's own options and a few more, what they select, and what `-v` names.

Robot Framework reads the suites here as for a run, so that a mistake is found before anything is made.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot.conf import RobotSettings
from robot.errors import DataError, Information
from robot.model import ModelModifier
from robot.output import LOGGER
from robot.run import RobotFramework
from robot.running import TestSuite, TestSuiteBuilder
from robot.utils import find_file
from robot.utils.argumentparser import ArgFileParser

from ctbench.base.errors import ConfigError
from ctbench.base.units import did_you_mean, quoted
from ctbench.dut.rulesets import catalogue
from ctbench.testbed.pool import split_names

__all__ = ["CommandLine", "DataError", "Information", "chosen_files", "parse"]


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
    complete, testbeds = _take("--testbeds", _ARGUMENT_FILES.process(list(arguments)))
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
    return CommandLine(
        arguments=tuple(complete),
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
        name, value = plain_name(assignment), assignment.partition(":")[2]
        if name in ("testbed", "campaign", "sla", "reference", "base") and "${" not in value:
            chosen[name] = value
    return chosen


#: Puts what argument files say in the place of their options, as Robot Framework does.
_ARGUMENT_FILES = ArgFileParser(["--argumentfile", "-A"])
#: Variable files that are named by their path; others are modules.
_BY_PATH = (".py", "/", ".yaml", ".yml", ".json")


def plain_name(assignment: str) -> str:
    """The name of a variable as Robot Framework compares names: case, spaces and underscores do not count."""
    return assignment.partition(":")[0].replace("_", "").replace(" ", "").lower()


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options by their long names as a command line has them."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, bool):
            found.append(f"--{name}" if value else f"--no{name}")
        else:
            found += [f"--{name}={each}" for each in (value if isinstance(value, list) else [value])]
    return found


def selected_suite(arguments: Sequence[str]) -> TestSuite:
    """What Robot Framework would run. Raises DataError where that is nothing, and for an option or a file that Robot
    refuses; `ConfigError` for a ruleset that the catalogue lacks: no row would have its tags."""
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
    for name, _ in settings.variable_files:
        if name.lower().endswith(_BY_PATH):
            find_file(name, file_type="Variable file")
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
    """Forgets Robot's complaints about what it reads: it says them when it reads the same for the run."""
    known = len(LOGGER._message_cache or ())
    with LOGGER.cache_only:
        yield
    if LOGGER._message_cache is not None:
        del LOGGER._message_cache[known:]


#: What the suites of this project read (resources/testbed.resource).
KNOWN = ("TESTBED", "CAMPAIGN", "SLA", "REFERENCE", "BASE")
#: What a run sets for its own processes.
_INTERNAL = ("TESTBED_POOL",)
#: Those that cannot be empty, by their plain names.
_NEEDED = {"testbed": "TESTBED", "campaign": "CAMPAIGN", "sla": "SLA"}
#: Files in which suites that are not ours may say that they use a variable.
_SUITE_FILES = ("*.robot", "*.resource", "*.py", "*.yaml", "*.yml", "*.json", "*.tsv", "*.txt")


def check_forms(assignments: Sequence[str]) -> None:
    """Raise `ConfigError` for an assignment without a name, or of a variable of ours without a value."""
    for assignment in assignments:
        name, value = plain_name(assignment), assignment.partition(":")[2]
        if not name:
            raise ConfigError(f"-v {quoted(assignment)}: there is no name before the colon.\n  Expected -v NAME:value.")
        if name in _NEEDED and not value:
            raise ConfigError(f"-v {quoted(assignment)}: has no value.\n  Expected -v {_NEEDED[name]}:NAME.")


def check_names(assignments: Sequence[str], suites: Collection[Path], root: Path) -> None:
    """Raise `ConfigError` for an assignment of a variable that no suite uses.

    `suites` are the files of the tests that are to run. Where all of them are below `root` (suites/ of the checkout),
    an unknown name is refused. Suites of somebody else may have variables of their own: there a name is refused only
    where it is close to a known one and no file next to them has it.
    """
    ours = all(suite.resolve().is_relative_to(root.resolve()) for suite in suites)
    known = {plain_name(name) for name in (*KNOWN, *_INTERNAL)}
    for assignment in assignments:
        typed, name = assignment.partition(":")[0], plain_name(assignment)
        if name in known:
            continue
        meant = did_you_mean(name.upper(), KNOWN)
        if ours or (meant and not _mentioned(name, suites)):
            raise ConfigError(
                f"-v {quoted(typed)}: no suite uses this variable.\n  Expected one of: {', '.join(KNOWN)}.{meant}"
            )


def _mentioned(name: str, suites: Iterable[Path]) -> bool:
    """Whether a file next to the suites has the name, in whatever way."""
    for folder in {suite.parent for suite in suites}:
        for pattern in _SUITE_FILES:
            for file in folder.glob(pattern):
                try:
                    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
                except OSError:
                    continue
                if name in text.replace("_", "").replace(" ", "").lower():
                    return True
    return False
