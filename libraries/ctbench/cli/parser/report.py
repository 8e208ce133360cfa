"""`./run report`."""

import argparse
from pathlib import Path

from ctbench.base.statuses import ExitStatus
from ctbench.cli.parser.command import Command, Needs


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("runs", nargs="*", metavar="DIR", type=Path, help="folder of a run (default: results/latest)")
    add("--outputdir", "-d", metavar="DIR", type=Path,
        help="where to write to (default: the folder of the run); needed with several runs")  # fmt: skip
    add("--reference", metavar="DIR", type=Path, action="append", default=[],
        help="show these figures for comparison: published ones (results/reference/ovs-3.0.0), or another run; may be"
        " given again")  # fmt: skip


REPORT = Command(
    name="report",
    summary="write the report of a run once more, or one report of several runs",
    description="Write report.html (with report.css), report.md, junit.xml, summary.json and results.csv from the"
    " records of one or more runs. ./run sla does so at its end.",
    add=_add,
    examples=(
        "./run report",
        "./run report --reference results/reference/ovs-3.0.0",
        "./run report results/20260101T* --outputdir merged",
    ),
    needs=Needs.VENV,
    statuses={
        ExitStatus.MET: "the report is written",
        ExitStatus.CONFIGURATION: "a folder holds no run, or an option is invalid",
    },
)
