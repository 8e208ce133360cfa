"""`./run sla`: two options of our own; what else there is goes to Robot Framework."""

import argparse

from ctbench.base.statuses import ExitStatus
from ctbench.cli.parser.command import Command, Needs, pass_on


def _add(parser: argparse.ArgumentParser) -> None:
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
    add=_add,
    judge=pass_on,
    more={
        "options of Robot Framework that are often used": (
            ("-v TESTBED:NAME", "the testbed: a name below variables/testbeds/ or a path (default: local)"),
            ("-v CAMPAIGN:NAME", "how long and how often, from variables/campaigns/ or a path (default: quick)"),
            ("-v SLA:NAME", "the floors, from variables/sla/ or a path (default: local)"),
            ("-v REFERENCE:DIR", "an earlier run, or published figures, that the report shows for comparison"),
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
        "./run sla --testbeds lab-a,lab-b -v CAMPAIGN:characterise",
        "./run sla --resume latest",
    ),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "every SLA that was measured is met (others may be skipped: the machine lacks what they need)",
        ExitStatus.MISSED: "an SLA is missed",
        ExitStatus.NOT_MEASURED: "at least one test could not be judged, and no SLA is missed",
        ExitStatus.CONFIGURATION: "",
        ExitStatus.TESTBED: "the testbed failed although every record says met, or left no record",
        ExitStatus.NOTHING_MEASURED: "something needed is missing, or nothing was measured",
    },
)
