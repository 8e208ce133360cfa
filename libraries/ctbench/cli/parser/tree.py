"""All commands of `./run` in one tree of parsers."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from ctbench.base.plain_text import brief
from ctbench.base.spelling import did_you_mean
from ctbench.base.statuses import MEANINGS, ExitStatus
from ctbench.cli.parser.calibrate import CALIBRATE
from ctbench.cli.parser.command import Command, Parser, paragraphs, status_rows
from ctbench.cli.parser.compare import COMPARE
from ctbench.cli.parser.development import CHECK, SETUP, TESTS
from ctbench.cli.parser.doctor import DOCTOR
from ctbench.cli.parser.report import REPORT
from ctbench.cli.parser.sla import SLA

COMMANDS = {each.name: each for each in (SETUP, SLA, CALIBRATE, REPORT, COMPARE, DOCTOR, TESTS, CHECK)}
_HELP = ("help", "--help", "-h")

_DESCRIPTION = """Measure connection tracking of a device under test, and judge it against a service level agreement.

Every command first installs what it needs and skips what is there; report and doctor install only the .venv. Only
system packages need root."""
_MORE = "./run COMMAND --help shows the options of a command, an example, and what its exit status means."


def command_of(arguments: Sequence[str]) -> Command:
    """The command that somebody asks for with these arguments, once its parser takes them. Ends the process where help
    is asked for (status 0), and for wrong usage (2)."""
    top, parsers = _tree()
    if not arguments:
        top.print_help(sys.stderr)
        raise SystemExit(ExitStatus.USAGE)
    name, *rest = arguments
    if name in _HELP:
        _show_help(top, parsers, rest)
    if name not in COMMANDS:
        _refuse_command(top, name)
    command = COMMANDS[name]
    parse(name, rest)
    return command


def parse(name: str, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the arguments of a command (those of this process, without others) ask for; `rest` are those that its parser
    does not know, in their order. Ends the process as `command_of` does."""
    parser = _tree()[1][name]
    options, rest = parser.parse_known_args(arguments)
    COMMANDS[name].judge(parser, options, rest)
    options.rest = rest
    return options


def _tree() -> tuple[Parser, dict[str, Parser]]:
    """The parser of `./run`, and that of each command below it."""
    top = Parser(
        prog="./run",
        usage="./run COMMAND [arguments]",
        description=paragraphs(_DESCRIPTION),
        epilog=f"""{paragraphs(_MORE)}

example:
  ./run sla -v CAMPAIGN:gate -v SLA:mine --include 1cpuANDconntrack

exit status:
{status_rows(MEANINGS)}""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    below = top.add_subparsers(title="commands", metavar="COMMAND ...", prog="./run", parser_class=Parser)
    parsers = {}
    for command in COMMANDS.values():
        parsers[command.name] = below.add_parser(
            command.name,
            help=command.summary,
            usage=command.usage or None,
            description=paragraphs(command.description),
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add(parsers[command.name])
    return top, parsers


def _show_help(top: Parser, parsers: dict[str, Parser], rest: Sequence[str]) -> NoReturn:
    """`./run --help`, and `./run help COMMAND`."""
    if rest and rest[0] not in parsers:
        _refuse_command(top, rest[0])
    (parsers[rest[0]] if rest else top).print_help()
    raise SystemExit(ExitStatus.MET)


def _refuse_command(top: Parser, name: str) -> NoReturn:
    meant = did_you_mean(name, list(COMMANDS))
    top.exit(ExitStatus.USAGE, f"run: there is no command '{brief(name, 60)}': see ./run --help.{meant}\n")
