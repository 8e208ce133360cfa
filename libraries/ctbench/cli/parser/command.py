"""What a command of `./run` is to its parser, and how its help is laid out."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn, TypeVar

from ctbench.base.errors import MEANINGS, ConfigError, ExitStatus
from ctbench.base.text import brief
from ctbench.base.units import did_you_mean

Found = TypeVar("Found")
#: Statuses that mean the same for every command.
OF_ALL = (ExitStatus.USAGE, ExitStatus.INTERNAL, ExitStatus.OUTPUT, ExitStatus.INTERRUPTED)


class Needs(StrEnum):
    """What `./run` makes sure of before a command starts (`setup.sh`)."""

    VENV = "venv"
    PACKAGES = "packages"
    TESTS = "tests"


@dataclass(frozen=True)
class Command:
    name: str
    #: One line of `./run --help`.
    summary: str
    #: Paragraphs, with empty lines between them.
    description: str
    examples: tuple[str, ...]
    needs: Needs
    #: What it ends with besides the statuses of all commands, in its own words; without words: the usual meaning.
    statuses: Mapping[ExitStatus, str]
    #: Arguments and options.
    add: Callable[[argparse.ArgumentParser], None] = lambda _parser: None
    #: In the place of the usage that follows from the options.
    usage: str = ""
    #: Judges the arguments that its parser does not know, and ends the process where they are wrong usage.
    judge: Callable[["Parser", argparse.Namespace, Sequence[str]], None] = lambda parser, _, rest: parser.refuse(rest)
    #: More rows of two columns, by their heading: what another program knows.
    more: Mapping[str, Iterable[tuple[str, str]]] = field(default_factory=dict)
    #: A paragraph below them.
    closing: str = ""

    @property
    def epilog(self) -> str:
        """What is below the options: what else there is, the examples, the exit statuses."""
        meanings = dict.fromkeys(OF_ALL, "") | dict(self.statuses)
        parts = [f"{heading}:\n{rows(found)}" for heading, found in self.more.items()]
        parts += [paragraphs(self.closing)] if self.closing else []
        parts.append("\n".join([f"example{'s' * (len(self.examples) > 1)}:", *(f"  {each}" for each in self.examples)]))
        parts.append("exit status:\n" + status_rows(meanings))
        return "\n\n".join(parts)


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one sentence."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        self.exit(ExitStatus.USAGE, f"run: {message}{end} Try `{self.prog} --help`.\n")

    def refuse(self, rest: Sequence[str]) -> None:
        """End because of arguments that this parser does not know, where there are some."""
        unknown = next((each for each in rest if each.startswith("-")), "").partition("=")[0]
        if unknown:
            known = sorted(set(re.findall(r"--[a-z][a-z-]*", self.format_help())))
            self.error(f"there is no option {brief(unknown, 60)}.{did_you_mean(unknown, known)}")
        if rest:
            self.error(f"{brief(rest[0], 60)} is one argument too many")


def read_option(name: str, parse: Callable[..., Found], *arguments: object) -> Found:
    """The value of an option; `ConfigError` names it where `parse` refuses it."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def pass_on(_parser: Parser, _options: argparse.Namespace, _rest: Sequence[str]) -> None:
    """For a command whose other arguments go to another program, which judges them itself."""


def status_rows(meanings: Mapping[ExitStatus, str]) -> str:
    """Exit statuses in their order, with these meanings or, without one, the usual meaning."""
    return rows((str(int(each)), meanings[each] or MEANINGS[each]) for each in sorted(meanings))


def rows(found: Iterable[tuple[str, str]]) -> str:
    listed = list(found)
    indent = " " * (2 + max(len(name) for name, _ in listed) + 2)
    return "\n".join(
        textwrap.fill(text, width(), initial_indent=f"  {name}".ljust(len(indent)), subsequent_indent=indent)
        for name, text in listed
    )


def paragraphs(text: str) -> str:
    """A text whose paragraphs fill the lines of the terminal."""
    return "\n\n".join(textwrap.fill(" ".join(each.split()), width()) for each in text.split("\n\n"))


def width() -> int:
    """Characters of a line, as argparse counts them, but not more than are easy to read."""
    return max(40, min(shutil.get_terminal_size().columns - 2, 110))
