"""`./run calibrate`."""

import argparse
from pathlib import Path

from ctbench.base.statuses import ExitStatus
from ctbench.cli.parser.command import Command, Needs


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", default="here", metavar="NAME", help="of the SLA file to write (default: %(default)s)")
    add("--runs", default="3", metavar="NUMBER", help="how often to measure (default: %(default)s)")
    add(
        "--margin",
        default="20%",
        metavar="PERCENT",
        help="how much worse than the median the floors are (default: %(default)s)",
    )
    add("--testbed", default="local", metavar="NAME", help="name or path (default: %(default)s)")
    add("--campaign", default="quick", metavar="NAME", help="name or path (default: %(default)s)")
    add("--sla", default="local", metavar="NAME",
        help="floors to measure with, which say what tests there are: name or path (default: %(default)s)")  # fmt: skip
    add("--include", action="append", default=[], metavar="TAG",
        help="measure only tests with this tag, such as 1cpuANDconntrack; may be given again")  # fmt: skip
    add("--from", dest="folders", action="append", default=[], type=Path, metavar="DIR",
        help="do not measure: use the records of this run; may be given again")  # fmt: skip
    add("--force", action="store_true", help="replace a file that is there")


CALIBRATE = Command(
    name="calibrate",
    summary="measure this machine several times, and write an SLA file for it",
    description="Measure this machine several times and write variables/sla/NAME.yaml: floors a margin worse than the"
    " medians, with the spread as comments. Then ./run sla -v SLA:NAME notices when something gets slower. What was not"
    " measured keeps the floors that it was measured with.\n\nCtrl-C loses nothing: --from makes the file from the runs"
    " that are there.",
    add=_add,
    examples=("./run calibrate mine", "./run calibrate mine --from results/latest --margin 10%"),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "the SLA file is written",
        ExitStatus.CONFIGURATION: "",
        ExitStatus.TESTBED: "the testbed failed in one of the runs",
        ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured",
    },
)
