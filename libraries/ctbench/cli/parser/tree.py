"""All commands of `./run` in one tree of parsers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import MEANINGS, ExitStatus
from ctbench.base.text import brief
from ctbench.base.units import did_you_mean
from ctbench.cli.check import CHECKS
from ctbench.cli.parser.command import Command, Needs, Parser, paragraphs, pass_on, status_rows

SETUP = Command(
    name="setup",
    summary="install what is missing (system packages, .venv), and stop",
    description="Install what is missing: system packages with apt, and Python packages in .venv. Every other command"
    " does so by itself; only the system packages need root. For the emulated machine (docs/emulated.md) it also"
    " installs QEMU and unpacks a kernel, 120 MB, of which this command alone brings a newer one;"
    " CONNTRACK_SLA_EMULATED=no in its environment declines that.",
    examples=("./run setup",),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "everything is installed",
        ExitStatus.NOTHING_MEASURED: "something could not be installed: the last line says what to do",
    },
)

TESTS = Command(
    name="tests",
    summary="check this project itself: lint, types, dry run, unit and integration tests",
    usage="./run tests [options of pytest]",
    description="Check this project itself: lint, types, the dry run of the suites, unit and integration tests. Started"
    " by root, the tests run as an ordinary user, and some of them as root as well.\n\nEvery argument goes to pytest:"
    " after ./run tests, `.venv/bin/pytest --help` lists its options.",
    judge=pass_on,
    examples=("./run tests", "./run tests -x -k threshold"),
    needs=Needs.TESTS,
    statuses={
        ExitStatus.MET: "everything passed",
        ExitStatus.MISSED: "something failed",
        ExitStatus.NOTHING_MEASURED: "something needed could not be installed",
    },
)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=CHECKS, metavar="NAME", help="one of the checks below")
    rest = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="for the program behind it"
    )
    rest.required = False


def _judge_check(parser: Parser, options: argparse.Namespace, _rest: Sequence[str]) -> None:
    if options.arguments and not CHECKS[options.name].takes_arguments:
        parser.error(f"check {options.name} takes no arguments, and {brief(options.arguments[0], 60)} is one")


CHECK = Command(
    name="check",
    summary="one of the checks of ./run tests alone",
    usage="./run check NAME [ARGUMENTS]",
    description="Run one of the checks of this project alone.",
    add=_add_check,
    judge=_judge_check,
    more={"checks": [(name, check.summary) for name, check in CHECKS.items()]},
    closing="types, promises, dryrun, unit and integration take arguments for their program: ./run check unit"
    " --help is the help of pytest.",
    examples=("./run check lint", "./run check promises --sla mine", "./run check unit -k threshold"),
    needs=Needs.TESTS,
    statuses={
        ExitStatus.MET: "the check passed",
        ExitStatus.MISSED: "the check failed; another status is that of its program",
        ExitStatus.NOTHING_MEASURED: "something needed could not be installed",
    },
)


def _add_sla(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--candidate",
        metavar="DIR|KERNEL",
        help="test this installation of Open vSwitch (its --prefix, or a folder of packages) instead of the package,"
        " side by side with the base; only its own rows. A kernel (linux-*.deb, bzImage) is judged by instructions",
    )
    parser.add_argument(
        "--base",
        metavar="DIR",
        help="the installation that the candidate is compared with (default: distribution, the package)",
    )
    parser.add_argument("--all", action="store_true", help="with a candidate, measure the rows of other DUTs as well")
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="end as `git bisect run` asks: 0 the candidate is good, 1 it is bad, 125 not known (docs/gate.md)",
    )
    parser.add_argument(
        "--testbeds",
        metavar="NAME,NAME",
        help="measure suites side by side, each on a testbed of its own; a testbed in sandboxes may be named twice"
        " where this machine has the CPUs for it",
    )
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with a run that was stopped: measure what has no record yet, and report the whole. RUN is latest, a"
        " folder of results/, or a path; what the run was asked for need not be given again",
    )


SLA = Command(
    name="sla",
    summary="measure, and judge against the SLA; writes a report",
    usage="./run sla [options] [options of Robot Framework] [suites...]",
    description="Measure, and judge against the SLA. Without suites it measures all of suites/. A run writes to"
    " results/<UTC time>-<process>/; results/latest points to the last one.",
    add=_add_sla,
    judge=pass_on,
    more={
        "options of Robot Framework that are often used": (
            ("-v TESTBED:NAME", "the testbed: a name below variables/testbeds/ or a path (default: local)"),
            ("-v CAMPAIGN:NAME", "how long and how often, from variables/campaigns/ or a path (default: quick)"),
            ("-v SLA:NAME", "the floors, from variables/sla/ or a path (default: local)"),
            ("-i, --include TAG", "only tests with this tag, such as 1cpuANDconntrack; may be given again"),
            ("-e, --exclude TAG", "no tests with this tag; may be given again"),
            ("-t, --test NAME", "only the test with this name; may be given again"),
            ("-s, --suite NAME", "only the suite with this name; may be given again"),
            ("-d, --outputdir DIR", "write to this folder"),
            ("-A, --argumentfile FILE", "read more arguments from a file; test_lists/ has such files"),
            ("--dryrun", "check the suites, and measure nothing"),
        )
    },
    closing="Options go before the suites. Every other argument goes to Robot Framework: after ./run setup,"
    " `.venv/bin/robot --help` lists all of its options.",
    examples=(
        "./run sla -v CAMPAIGN:gate -v SLA:mine --include 1cpuANDconntrack",
        "./run sla --argumentfile test_lists/gate.args",
        "./run sla --candidate /opt/ovs-3.7.1 --argumentfile test_lists/gate.args",
        "./run sla --testbeds lab-a,lab-b -v CAMPAIGN:characterise",
        "./run sla --resume latest",
    ),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "every SLA that was measured is met (others may be skipped: the machine lacks what they need)",
        ExitStatus.MISSED: "an SLA is missed, or a test failed although its SLA is met",
        ExitStatus.NOT_MEASURED: "at least one test could not be judged, and nothing else failed",
        ExitStatus.CONFIGURATION: "",
        ExitStatus.TESTBED: "a test failed without a verdict: the testbed broke, or a step of the test",
        ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured",
    },
)


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("runs", nargs="*", metavar="DIR", type=Path, help="folder of a run (default: results/latest)")
    add("--outputdir", "-d", metavar="DIR", type=Path,
        help="where to write to (default: the folder of the run); needed with several runs")  # fmt: skip


REPORT = Command(
    name="report",
    summary="write the report of a run once more, or one report of several runs",
    description="Write sla.html (with report.css and numbers.html), sla.md, junit.xml, summary.json and results.csv"
    " from the records of one or more runs. ./run sla does so at its end.",
    add=_add_report,
    examples=(
        "./run report",
        "./run report results/20260101T* --outputdir merged",
    ),
    needs=Needs.VENV,
    statuses={
        ExitStatus.MET: "the report is written",
        ExitStatus.CONFIGURATION: "a folder holds no run, or an option is invalid",
    },
)


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "testbed", nargs="?", default="local", metavar="TESTBED", help="name or path (default: %(default)s)"
    )


DOCTOR = Command(
    name="doctor",
    summary="look at the hosts of a testbed, and say how to fix what is wrong",
    description="Look at the hosts of a testbed, and say what is not set up and which command fixes it. Changes"
    " nothing.",
    add=_add_doctor,
    examples=("./run doctor", "./run doctor mylab"),
    needs=Needs.VENV,
    statuses={
        ExitStatus.MET: "nothing has to be fixed",
        ExitStatus.CONFIGURATION: "an invalid value in the testbed file",
        ExitStatus.NOTHING_MEASURED: "something has to be fixed, or a host cannot be reached",
    },
)


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", default="here", metavar="NAME", help="of the SLA file to write (default: %(default)s)")
    add("--widest", default="25%", metavar="PERCENT",
        help="a test whose floor would be more than this below its median gets none (default: 25%%)")  # fmt: skip
    add("--most-runs", default="10", metavar="NUMBER",
        help="end after so many runs, whatever they say (default: %(default)s)")  # fmt: skip
    add("--testbed", default="local", metavar="NAME", help="name or path (default: %(default)s)")
    add("--campaign", default="quick", metavar="NAME", help="name or path (default: %(default)s)")
    add("--sla", default="local", metavar="NAME",
        help="floors to measure with, which say what tests there are: name or path (default: %(default)s)")  # fmt: skip
    add("--include", action="append", default=[], metavar="TAG",
        help="measure only tests with this tag, such as 1cpuANDconntrack; may be given again")  # fmt: skip
    add("--from", dest="folders", action="append", default=[], type=Path, metavar="DIR",
        help="do not measure: use the records of this run; may be given again")  # fmt: skip
    add("--outputdir", type=Path, metavar="DIR",
        help="where the runs go; none is made again (default: a new folder in results/)")  # fmt: skip
    add("--keep-image", type=Path, metavar="FILE",
        help="keep what the emulated machine booted in this file (docs/emulated.md)")  # fmt: skip
    add("--force", action="store_true", help="replace a file that is there")


CALIBRATE = Command(
    name="calibrate",
    summary="measure this machine as often as it takes, and write an SLA file for it",
    description="""Measure this machine and write variables/sla/NAME.yaml: floors that 95 % of its further runs reach
by its own scatter, with 95 % confidence. At least five runs, and more until every floor is narrow enough (--widest); a
test that scatters too much for that gets no floor, and the file says why. The floors bind to this machine: elsewhere a
miss is not measured. Then ./run sla -v SLA:NAME notices when something gets slower. The file extends the one that was
measured with (--sla), so what gets no floor keeps the one that it has there.

Of a testbed with nothing but an emulated machine one run is enough: instructions do not scatter, and the file promises
them of what that machine boots, its image.

Ctrl-C loses no finished run: the command says how to go on, and --from makes the file from the runs that are there.""",
    add=_add_calibrate,
    examples=(
        "./run calibrate mine",
        "./run calibrate mine --most-runs 15 --widest 20%",
        "./run calibrate mykernel --testbed emulated --keep-image mykernel.image",
    ),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "the SLA file is written",
        ExitStatus.CONFIGURATION: "",
        ExitStatus.TESTBED: "the testbed failed in one of the runs",
        ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured",
    },
)


COMMANDS = {each.name: each for each in (SETUP, SLA, CALIBRATE, REPORT, DOCTOR, TESTS, CHECK)}
_HELP = ("help", "--help", "-h")

_DESCRIPTION = """Measure connection tracking of a device under test, and judge it against a service level agreement.

Every command first installs what it needs and skips what is there; report and doctor install only the .venv. Only
system packages need root."""
_MORE = "./run COMMAND --help shows the options of a command, an example, and what its exit status means."


def command_of(arguments: Sequence[str]) -> Command:
    """The command that is asked for with these arguments, once its parser takes them. Ends the process where help
    is asked for (status 0), and for wrong usage (2)."""
    top, _ = _tree()
    if not arguments:
        top.print_help(sys.stderr)
        raise SystemExit(ExitStatus.USAGE)
    name, *rest = arguments
    if name in _HELP and rest:  # ./run help COMMAND
        name, rest = rest[0], ["--help"]
    if name in _HELP:
        top.print_help()
        raise SystemExit(ExitStatus.MET)
    if name not in COMMANDS:
        meant = did_you_mean(name, list(COMMANDS))
        top.exit(ExitStatus.USAGE, f"run: there is no command '{brief(name, 60)}': see ./run --help.{meant}\n")
    parse(name, rest)
    return COMMANDS[name]


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
