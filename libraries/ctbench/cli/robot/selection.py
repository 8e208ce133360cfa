"""What a command line selects, found out before anything is made: Robot Framework reads the suites as for a run."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsIndex

from robot.conf import RobotSettings
from robot.errors import DataError
from robot.model import ModelModifier
from robot.output import LOGGER
from robot.run import RobotFramework
from robot.running import TestSuite, TestSuiteBuilder
from robot.utils import find_file
from robot.utils.argumentparser import ArgFileParser

from ctbench.dut.rulesets import catalogue

#: Variable files that are named by their path; others are modules.
_BY_PATH = (".py", "/", ".yaml", ".yml", ".json")
#: Argument files that one command line may read: one that names itself is read again and again.
_MOST_ARGUMENT_FILES = 100


class _Arguments(list[str]):
    """A command line in which Robot Framework's parser puts what an argument file says in the place of its option."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self._files = 0

    def __setitem__(self, place: SupportsIndex | slice, found: Any) -> None:
        """Raises DataError for a file that names itself, and for one that holds no text."""
        named = str(self[place][-1] if isinstance(place, slice) else self[place])
        self._files += 1
        if self._files > _MOST_ARGUMENT_FILES:
            raise DataError(f"The argument file '{named}' names itself, or a file that does names it")
        if any("\0" in argument for argument in found):
            raise DataError(f"The argument file '{named}' is not a text file")
        super().__setitem__(place, found)


def argument_files_replaced(arguments: Sequence[str]) -> list[str]:
    """The command line with what argument files say in their place. Raises DataError for one that cannot be read."""
    replaced: list[str] = ArgFileParser(["--argumentfile", "-A"]).process(_Arguments(arguments))
    return list(replaced)


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
