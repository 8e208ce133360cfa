"""`./run compare`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import ExitStatus
from ctbench.base.units import write_ratio
from ctbench.cli.parser.command import Command, Needs, Parser
from ctbench.compare.limits import LEAST_OF_COUNTS


def _add(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--least-difference",
        metavar="PERCENT",
        help=f"what costs more by no more than this is not a regression (default: {write_ratio(LEAST_OF_COUNTS)}%)",
    )
    add("--only", action="append", default=[], metavar="TEXT",
        help="compare only tests with this text in name, topology, profile or metric; may be given again")  # fmt: skip
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


def _judge(parser: Parser, options: argparse.Namespace, _rest: Sequence[str]) -> None:
    """Two sides are needed; the rest goes to Robot Framework."""
    if bool(options.installations) == bool(options.kernels):
        parser.error("--installations or --kernels is needed, one of them: what is compared")


COMPARE = Command(
    name="compare",
    summary="compare the instructions of two kernels or builds of OVS",
    usage="./run compare --installations base=PREFIX candidate=PREFIX [options]\n"
    "                     [options of Robot Framework] [suites...]\n"
    "       ./run compare --kernels base=FILE candidate=FILE [options]\n"
    "                     [options of Robot Framework] [suites...]",
    description="""Compare two builds test by test: regressed, no evidence, improved or not measurable. Writes
compare.html, compare.md and compare.json.

Two builds are measured side by side by ./run sla --candidate PREFIX --base PREFIX.

What is compared are the instructions that an emulated machine counts (docs/emulated.md): seconds a test, the same on
every host. FILE is a package (.deb), a bzImage whose modules are beside it or in /lib/modules, or "distribution";
PREFIX is what Open vSwitch was configured with, or "distribution". Arguments that are not listed here go to Robot
Framework. Ctrl-C loses nothing: the same command with the --outputdir that it names goes on where it stopped.""",
    add=_add,
    judge=_judge,
    examples=(
        "./run compare --installations base=distribution candidate=/opt/ovs-3.7.1 --functions",
        "./run compare --kernels base=distribution candidate=/tmp/linux-image-6.12.deb",
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
