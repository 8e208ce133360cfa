"""`./run calibrate`."""

import argparse
from pathlib import Path

from ctbench.base.statuses import ExitStatus
from ctbench.cli.parser.command import Command, Needs


def _add(parser: argparse.ArgumentParser) -> None:
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
miss is not measured. Then ./run sla -v SLA:NAME notices when something gets slower. What gets no floor keeps those that
it was measured with.

Of a testbed with nothing but an emulated machine one run is enough: instructions do not scatter, and the file promises
them of what that machine boots, its image.

Ctrl-C loses no finished run: the command says how to go on, and --from makes the file from the runs that are there.""",
    add=_add,
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
