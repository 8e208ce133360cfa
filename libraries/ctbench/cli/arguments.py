"""The command line of `./run`: an argparse parser for each command. The command's module in this package has
`main(options)`.

Nothing is imported here that has to be installed, so that help always works.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ctbench.base.errors import MEANINGS, ExitStatus
from ctbench.base.paths import INSTALLED
from ctbench.base.text import brief, printable
from ctbench.base.units import did_you_mean, quoted

#: Checks of this project, environments of tox.ini, and what each looks at; those whose program takes no arguments.
CHECKS = {
    "lint": "style and layout of sources and suites, imports, promises",
    "types": "types of the sources (mypy)",
    "promises": "rows without a floor, floors without a row; [--sla] [SUITES]",
    "dryrun": "the suites can be read and run (robot --dryrun)",
    "unit": "tests that need nothing but Python (pytest)",
    "integration": "tests with the real Open vSwitch and Linux (pytest)",
    "docs": "write docs/keywords.html",
}
WITHOUT_ARGUMENTS = ("lint", "docs")


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one sentence."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        self.exit(ExitStatus.USAGE, printable(f"run: {message}{end} Try `{self.prog} --help`.\n"))

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """End the process because of arguments that this parser does not know."""
        option = next((each for each in rest if each.startswith("-")), "").partition("=")[0]
        if not option:
            self.error(f"{brief(rest[0], 60)} is one argument too many")
        known = sorted(set(re.findall(r"--[a-z][a-z-]*", self.format_help())))
        self.error(f"there is no option {brief(option, 60)}.{did_you_mean(option, known)}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line: the `command`, its options and its `parser`; in `given` its arguments, in `rest` those for
    another program. End the process for help (status 0) and for wrong usage (2)."""
    parser, names = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        raise SystemExit(ExitStatus.USAGE)
    asked = [*arguments[1:2], "--help"] if arguments[0] == "help" else arguments
    if asked[0] not in (*names, "--help", "-h"):
        parser.error(f"there is no command {quoted(asked[0])}.{did_you_mean(asked[0], names)}")
    options, rest = parser.parse_known_args(asked)
    if rest and not options.passes_on:
        options.parser.refuse(rest)
    options.given, options.rest = list(arguments[1:]), rest
    return options


def _parser() -> tuple[Parser, list[str]]:
    """Return the parser of `./run`, and the names of its commands."""
    parser = Parser(
        prog="./run",
        usage="./run COMMAND [arguments]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND ...", required=True, parser_class=Parser, prog="./run"
    )
    for add in (_setup, _sla, _calibrate, _report, _doctor, _tests, _check):
        if not (INSTALLED and add in (_setup, _tests)):  # these look after a checkout
            add(commands)
    return parser, list(commands.choices)


def _add(commands: Any, name: str, *, passes_on: bool = False, **texts: str) -> argparse.ArgumentParser:
    """Add the parser of a command. `passes_on`: arguments that it does not know go to another program."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **texts
    )
    parser.set_defaults(parser=parser, passes_on=passes_on)
    return parser


_DESCRIPTION = """\
Measure connection tracking of a device under test, and judge it against a
service level agreement.

Every command first installs what it needs and skips what is there; report and
doctor install only the .venv. Only system packages need root."""
_EPILOG = """\
./run COMMAND --help shows the options of a command, examples, and what its
exit status means.

example:
  ./run sla -v CAMPAIGN:gate -v SLA:mine --include 1cpuANDconntrack

exit status:
""" + "\n".join(
    textwrap.fill(said, 78, initial_indent=f"  {status:<5d}", subsequent_indent=" " * 7)
    for status, said in MEANINGS.items()
)


def _sla(commands: Any) -> None:
    parser = _add(
        commands,
        "sla",
        passes_on=True,
        help="measure, and judge against the SLA; writes a report",
        usage="./run sla [options] [options of Robot Framework] [suites...]",
        description="""\
Measure, and judge against the SLA. Without suites it measures all of suites/.
A run writes to results/<UTC time>-<process>/; results/latest points to the
last one that has a result.""",
        epilog="""\
options of Robot Framework that are often used:
  -v TESTBED:NAME          the testbed: a name below variables/testbeds/ or a
                           path (default: local)
  -v CAMPAIGN:NAME         how long and how often, from variables/campaigns/
                           or a path (default: quick)
  -v SLA:NAME              the floors, from variables/sla/ or a path
                           (default: local)
  -V FILE                  the same from a variable file
  -i, --include TAG        only tests with this tag, such as
                           1cpuANDconntrack; may be given again
  -e, --exclude TAG        no tests with this tag; may be given again
  -t, --test NAME          only the test with this name; may be given again
  -s, --suite NAME         only the suite with this name; may be given again
  -d, --outputdir DIR      write to this folder; what it has a record of counts
                           where nothing has changed, so that the same command
                           goes on with a run that was stopped
  -A, --argumentfile FILE  read more arguments from a file; test_lists/ has
                           such files
  --dryrun                 check the suites, and measure nothing

Options go before the suites. Every other argument goes to Robot Framework:
after ./run setup, `.venv/bin/robot --help` lists all of its options.

examples:
  ./run sla -v CAMPAIGN:gate -v SLA:mine --include 1cpuANDconntrack
  ./run sla --argumentfile test_lists/gate.args
  ./run sla --candidate /opt/ovs-3.7.1 --argumentfile test_lists/gate.args
  ./run sla --testbeds lab-a,lab-b -v CAMPAIGN:characterise

exit status (any other: ./run --help):
  0    every SLA that was measured is met (others may be skipped: the machine
       lacks what they need)
  1    an SLA is missed, or a test failed although its SLA is met
  3    at least one test could not be judged, and nothing else failed
  4    configuration error: an invalid value in a file or an option
  5    a test failed without a verdict: the testbed broke, or a step of the
       test
  6    something needed is missing, or nothing was measured""",
    )
    add = parser.add_argument
    add(
        "--candidate",
        metavar="DIR|KERNEL",
        help="test this installation of Open vSwitch (its --prefix, or a folder of packages) instead of the package,"
        " side by side with the base; only its own rows. A kernel (linux-*.deb, bzImage) is judged by instructions",
    )
    add(
        "--base",
        metavar="DIR",
        help="the installation that the candidate is compared with (default: distribution, the package)",
    )
    add("--all", action="store_true", help="with a candidate, measure the rows of other DUTs as well")
    add(
        "--bisect",
        action="store_true",
        help="end as `git bisect run` asks: 0 the candidate is good, 1 it is bad, 125 not known (docs/gate.md)",
    )
    add(
        "--testbeds",
        metavar="NAME,NAME",
        help="measure suites side by side, each on a testbed of its own; a testbed in sandboxes may be named twice"
        " where this machine has the CPUs for it",
    )


def _calibrate(commands: Any) -> None:
    parser = _add(
        commands,
        "calibrate",
        help="measure this machine as often as it takes, and write an SLA file for it",
        description="""\
Measure this machine and write variables/sla/NAME.yaml: floors that 95 % of
its further runs reach by its own scatter, with 95 % confidence. At least five
runs, and more until every floor is narrow enough (--widest); a test that
scatters too much for that gets no floor, and the file says why. The floors
bind to this machine: elsewhere a miss is not measured. Then ./run sla
-v SLA:NAME notices when something gets slower. The file extends the one that
was measured with (--sla), so what gets no floor keeps the one that it has
there.

Of a testbed with nothing but an emulated machine one run is enough:
instructions do not scatter, and the file promises them of what that machine
boots, its image.

Ctrl-C loses no finished run: the command says how to go on, and --from makes
the file from the runs that are there.""",
        epilog="""\
examples:
  ./run calibrate mine
  ./run calibrate mine --most-runs 15 --widest 20%
  ./run calibrate mykernel --testbed mykernel

exit status (any other: ./run --help):
  0    the SLA file is written
  4    configuration error: an invalid value in a file or an option
  5    the testbed failed in one of the runs
  6    something needed is missing, or nothing was measured""",
    )
    add = parser.add_argument
    add("name", nargs="?", default="here", metavar="NAME", help="of the SLA file to write (default: %(default)s)")
    add(
        "--widest",
        default="25%",
        metavar="PERCENT",
        help="a test whose floor would be more than this below its median gets none (default: 25%%)",
    )
    add(
        "--most-runs",
        default="10",
        metavar="NUMBER",
        help="end after so many runs, whatever they say (default: %(default)s)",
    )
    add("--testbed", default="local", metavar="NAME", help="name or path (default: %(default)s)")
    add("--campaign", default="quick", metavar="NAME", help="name or path (default: %(default)s)")
    add(
        "--sla",
        default="local",
        metavar="NAME",
        help="floors to measure with, which say what tests there are: name or path (default: %(default)s)",
    )
    add(
        "--include",
        action="append",
        default=[],
        metavar="TAG",
        help="measure only tests with this tag, such as 1cpuANDconntrack; may be given again",
    )
    add(
        "--from",
        dest="folders",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="do not measure: use the records of this run; may be given again",
    )
    add(
        "--outputdir",
        type=Path,
        metavar="DIR",
        help="where the runs go; none is made again (default: a new folder in results/)",
    )
    add("--force", action="store_true", help="replace a file that is there")


def _report(commands: Any) -> None:
    parser = _add(
        commands,
        "report",
        help="write the report of a run once more, or one report of several runs",
        description="""\
Write sla.html (with report.css and numbers.html), sla.md, junit.xml,
summary.json, results.csv, history.csv and history.openmetrics from the records
of one or more runs. ./run sla does so at its end.""",
        epilog="""\
examples:
  ./run report
  ./run report results/20260101T* --outputdir merged

exit status (any other: ./run --help):
  0    the report is written
  4    a folder holds no run, or an option is invalid""",
    )
    add = parser.add_argument
    add("runs", nargs="*", metavar="DIR", type=Path, help="folder of a run (default: results/latest)")
    add(
        "--outputdir",
        "-d",
        metavar="DIR",
        type=Path,
        help="where to write to (default: the folder of the run); needed with several runs",
    )


def _doctor(commands: Any) -> None:
    parser = _add(
        commands,
        "doctor",
        help="look at the hosts of a testbed, and say how to fix what is wrong",
        description="""\
Look at the hosts of a testbed, and say what is not set up and which command
fixes it. Changes nothing, but with --frames: that sets each device under test
up as for a test, and puts its host back as it was. With --write it first
writes a testbed file, variables/testbeds/NAME.yaml, from what it finds:
network cards that nothing uses, CPUs, hugepages, Open vSwitch, TRex. Without
--dut and --generator that is this machine, with devices under test in
sandboxes.""",
        epilog="""\
examples:
  ./run doctor
  ./run doctor mylab
  ./run doctor mylab --frames
  ./run doctor --write here
  ./run doctor --write mylab --dut root@dut.lab --generator root@tgen.lab

exit status (any other: ./run --help):
  0    nothing has to be fixed
  4    an invalid value in the testbed file, or a file that may not be written
  6    something has to be fixed, or a host cannot be reached""",
    )
    add = parser.add_argument
    add("testbed", nargs="?", default="", metavar="TESTBED", help="name or path (default: local)")
    add(
        "--frames",
        action="store_true",
        help="send a thousand frames each way through each device under test, and compare what both sides counted",
    )
    add("--write", default="", metavar="NAME", help="write the testbed file NAME, then look at its hosts")
    add("--dut", default="", metavar="USER@HOST", help="where the device under test is (default: this machine)")
    add("--generator", default="", metavar="USER@HOST", help="where TRex is (default: this machine)")


def _setup(commands: Any) -> None:
    _add(
        commands,
        "setup",
        help="install what is missing (system packages, .venv), and stop",
        description="""\
Install what is missing: system packages with apt, and Python packages in
.venv. The commands sla, calibrate, tests and check do so by themselves;
only the system packages need root. For the emulated machine
(docs/emulated.md) it also installs QEMU and unpacks a kernel, 120 MB, of
which this command alone brings a newer one; CONNTRACK_SLA_EMULATED=no in
its environment declines that.""",
        epilog="""\
example:
  ./run setup

exit status (any other: ./run --help):
  0    everything is installed
  6    something could not be installed: the last line says what to do""",
    )


def _tests(commands: Any) -> None:
    _add(
        commands,
        "tests",
        passes_on=True,
        help="check this project itself: lint, types, dry run, unit and integration tests",
        usage="./run tests [options of pytest]",
        description="""\
Check this project itself: lint, types, the dry run of the suites, unit and
integration tests. Started by root, the tests run as an ordinary user, and
some of them as root as well.

Every argument goes to pytest: after ./run tests, `.venv/bin/pytest --help`
lists its options.""",
        epilog="""\
examples:
  ./run tests
  ./run tests -x -k threshold

exit status (any other: ./run --help):
  0    everything passed
  1    something failed
  6    something needed could not be installed""",
    )


def _check(commands: Any) -> None:
    choices = ["promises"] if INSTALLED else list(CHECKS)
    listed = "\n".join(f"  {name:<12} {CHECKS[name]}" for name in choices)
    parser = _add(
        commands,
        "check",
        help="one of the checks of ./run tests alone",
        usage="./run check NAME [ARGUMENTS]",
        description="Run one of the checks of this project alone: an environment of tox.ini.",
        epilog=f"""\
checks:
{listed}

All but {" and ".join(WITHOUT_ARGUMENTS)} take arguments for their program: ./run check unit
--help is the help of pytest.

examples:
  ./run check lint
  ./run check promises --sla mine
  ./run check unit -k threshold

exit status (any other: ./run --help):
  0    the check passed
  1    the check failed; another status is that of its program
  6    something needed could not be installed""",
    )
    parser.add_argument("name", choices=choices, metavar="NAME", help="one of the checks below")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="for the program behind it"
    ).required = False
