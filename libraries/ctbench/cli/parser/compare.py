"""`./run compare`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import ExitStatus
from ctbench.base.units import write_ratio
from ctbench.cli.parser.command import Command, Needs, Parser
from ctbench.compare.limits import LEAST_OF_COUNTS, LEAST_OF_RUNS


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--least-difference", metavar="PERCENT",
        help="what got worse by no more than this is not a regression (default: "
        f"{write_ratio(LEAST_OF_RUNS)}% of runs, {write_ratio(LEAST_OF_COUNTS)}% of instructions)")  # fmt: skip
    add("--only", action="append", default=[], metavar="TEXT",
        help="compare only tests with this text in name, topology, profile or metric; may be given again")  # fmt: skip
    add("--different", action="store_true",
        help="compare although testbeds, profiles or campaigns differ; the report says how")  # fmt: skip
    add("--only-alike", action="store_true",
        help="leave out runs of BASE that were measured in another way than CANDIDATE, and name them")  # fmt: skip
    add("--outputdir", type=Path, metavar="DIR", help="where to write to (default: a new folder in results/)")
    add("--installations", nargs=2, metavar="ROLE=PREFIX",
        help="compare the instructions of two installations of Open vSwitch in an emulated machine; for their rates, "
        "./run sla --candidate")  # fmt: skip
    add("--kernels", nargs=2, metavar="ROLE=FILE",
        help="compare the instructions of two kernels, each a package (.deb) or a bzImage, in an emulated "
        "machine")  # fmt: skip
    add("--functions", action="store_true",
        help="show the ten functions whose instructions grew most, of tests that differ; a minute more")  # fmt: skip
    add("--testbed", default="local", metavar="NAME", help="name or path (default: %(default)s)")


def _judge(parser: Parser, options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Two sides are needed; where instructions are counted, the rest goes to Robot Framework."""
    if options.installations and options.kernels:
        parser.error("--installations and --kernels are two comparisons, and one of them is made at a time")
    if options.installations or options.kernels:
        return
    parser.refuse(rest[2:] if not any(each.startswith("-") for each in rest) else rest)
    if len(rest) != 2:
        parser.error(f"BASE and CANDIDATE are needed, and {len(rest) or 'none'} of them is given")


COMPARE = Command(
    name="compare",
    summary="compare two finished runs, or the instructions of two kernels or builds of OVS",
    usage="./run compare [options] BASE CANDIDATE\n"
    "       ./run compare --installations base=PREFIX candidate=PREFIX [options]\n"
    "                     [options of Robot Framework] [suites...]\n"
    "       ./run compare --kernels base=FILE candidate=FILE [options]\n"
    "                     [options of Robot Framework] [suites...]",
    description="""Compare two builds test by test: regressed, no evidence, improved or not measurable. Writes
compare.html, compare.md and compare.json.

Two builds are measured side by side by ./run sla --candidate PREFIX --base PREFIX.

With --kernels, or --installations of Open vSwitch, instructions are compared that an emulated machine counts
(docs/emulated.md): seconds a test, the same on every host. FILE is a package (.deb), a bzImage whose modules are beside
it or in /lib/modules, or "distribution"; PREFIX is what Open vSwitch was configured with, or "distribution". Arguments
that are not listed here go to Robot Framework. Ctrl-C loses nothing: the same command with the --outputdir that it
names goes on where it stopped.

BASE and CANDIDATE are the folder of a run, a folder with runs in it, or several with commas between them. Tests are
matched by topology, profile and metric. Each run is a sample; where a side is one run, each of its repetitions is one.
That is much weaker: what drifts between the runs falls on one of them.""",
    add=_add,
    judge=_judge,
    examples=(
        "./run compare --installations base=distribution candidate=/opt/ovs-3.7.1 --functions",
        "./run compare --kernels base=distribution candidate=/tmp/linux-image-6.12.deb",
        "./run compare results/last-release results/this-one",
    ),
    needs=Needs.PACKAGES,
    statuses={
        ExitStatus.MET: "no test regressed",
        ExitStatus.CONFIGURATION: "the sides cannot be compared, or an option is invalid",
        ExitStatus.NOTHING_MEASURED: "something needed is missing, or there is nothing to compare",
        ExitStatus.REGRESSED: "a test regressed",
        ExitStatus.NOT_MEASURABLE: "something is not measurable, and nothing regressed",
    },
)
