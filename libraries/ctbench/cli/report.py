"""`./run report` once everything is installed: writes the report of one run, or one report of several runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.plain_text import printable
from ctbench.base.regular_file import named_folder
from ctbench.cli.boundary import enter
from ctbench.cli.results_folder import results_root
from ctbench.report.reference import read_references
from ctbench.report.write import PAGE, write_reports


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """What the user asked for; a mistake in it ends the process with status 2, as everywhere in ./run."""
    parser = argparse.ArgumentParser(
        prog="./run report",
        description="Writes report.html (with report.css), report.md, junit.xml, summary.json and results.csv from the "
        "records of one or more runs. Exit status: 0 written, 2 wrong usage, 4 a folder holds no run.",
    )
    parser.add_argument("runs", nargs="*", metavar="DIR", type=Path, help="folder of a run (results/latest)")
    parser.add_argument(
        "--outputdir",
        "-d",
        metavar="DIR",
        type=Path,
        help="where to write (the run's folder); needed with several",
    )
    parser.add_argument(
        "--reference",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="set the figures beside these: published ones (results/reference/ovs-3.0.0), or another run; "
        "may be given again",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; every mistake is one sentence on stderr."""
    asked = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        runs = [named_folder(run) for run in asked.runs] or [results_root() / "latest"]
        if asked.outputdir is None and len(runs) > 1:
            raise ConfigError(f"{len(runs)} runs are merged into a folder of their own: name it with --outputdir.")
        output = (asked.outputdir or runs[0]).absolute()
        page = write_reports(runs, output, read_references(asked.reference))
    except CtbenchError as error:
        print(printable(f"run: {error}"), file=sys.stderr)
        return error.exit_status
    print(page.sentence)
    print(printable(f"Report:  {output / PAGE}"))
    return 0


if __name__ == "__main__":
    enter("report", lambda: main)
