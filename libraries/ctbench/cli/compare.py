"""`./run compare`: holds two sides of runs against each other, or measures two installations side by side."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.plain_text import printable
from ctbench.base.statuses import ExitStatus
from ctbench.base.units import parse_ratio
from ctbench.cli.compare_counts import Kernels
from ctbench.cli.compare_installations import Installations
from ctbench.cli.parser.tree import parse as parse_options
from ctbench.cli.results_folder import results_root
from ctbench.cli.robot.command_line import DataError
from ctbench.compare import text
from ctbench.compare.comparability import only_alike
from ctbench.compare.judge import compare
from ctbench.compare.limits import LEAST_OF_COUNTS, LEAST_OF_PAIRS, LEAST_OF_RUNS
from ctbench.compare.page import PAGE, write_comparison
from ctbench.compare.side import read_runs, require_runs
from ctbench.report.published import as_text
from ctbench.report.reference import read_references
from ctbench.report.write import PAGE as REPORT
from ctbench.report.write import write_reports
from ctbench.results.comparison import Comparison
from ctbench.results.published import is_published


def run(options: argparse.Namespace, rest: Sequence[str]) -> int:
    """Compare, after measuring where that is asked for."""
    default = LEAST_OF_COUNTS if options.kernels else LEAST_OF_PAIRS if options.installations else LEAST_OF_RUNS
    least = _least_difference(options.least_difference, default)
    output = options.outputdir or results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-compare-{os.getpid()}"
    output = output.absolute()
    stopped, found = 0, None
    if options.installations:
        stopped, found = Installations(options, rest, output, least).run()
    elif options.kernels:
        stopped, found = Kernels(options, rest, output, least).run()
    else:
        if any(is_published(Path(part)) for side in rest for part in side.split(",")):
            return beside_published(rest[0], rest[1], output)
        found = of_runs(rest, least, options)
    if found is None:
        return stopped
    if found.differences and not options.different:
        raise ConfigError(
            "\n".join([*found.differences, "  Expected runs of one testbed that are alike, or --different."])
        )
    write(found, output)
    print(printable(text.console(found)))
    print(printable(f"Comparison: {output / PAGE}"))
    return stopped or status(found)


def of_runs(sides: Sequence[str], least: float, options: argparse.Namespace) -> Comparison:
    """The comparison of two sides of finished runs."""
    for side in sides:
        require_runs(side)
    base, candidate = (read_runs(side) for side in sides)
    if options.only_alike:
        base = only_alike(base, candidate)
    return compare(base, candidate, least_difference=least, only=options.only)


def _least_difference(given: str | None, default: float) -> float:
    try:
        least = default if given is None else parse_ratio(given)
    except ValueError as error:
        raise ConfigError(f"--least-difference: {error}") from None
    if least >= 1:
        raise ConfigError("--least-difference: of 100% nothing ever regressed.\n  Expected less, for example 2%.")
    return least


def beside_published(base: str, candidate: str, output: Path) -> int:
    """Show a run next to published figures, table by table, and write its report with them. Nothing is judged: they are
    from other hardware. Raises `ConfigError` where a side is anything else."""
    figures, runs = ([Path(part) for part in side.split(",")] for side in (base, candidate))
    if not all(is_published(folder) for folder in figures) or any(is_published(folder) for folder in runs):
        raise ConfigError(
            f"{base} and {candidate}: published figures cannot be measured against.\n"
            "  Expected them as BASE, such as results/reference/ovs-3.0.0, and as CANDIDATE the folder of a run."
        )
    page = write_reports(runs, output, read_references(figures))
    print(printable(as_text(page.published)))
    print(printable(f"Report: {output / REPORT}"))
    return ExitStatus.MET


def write(found: Comparison, output: Path) -> None:
    """Write compare.json, compare.md and compare.html."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / "compare.json").write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (output / "compare.md").write_text(text.markdown(found), encoding="utf-8")
        write_comparison(found, output)
    except OSError as error:
        raise ConfigError(
            f"{output}: cannot be written ({error.strerror}): choose a folder with --outputdir."
        ) from None


def status(found: Comparison) -> ExitStatus:
    """What a script learns."""
    if not found.tests and not (found.counts and found.counts.tests):
        return ExitStatus.NOTHING_MEASURED
    by_word = {"regressed": ExitStatus.REGRESSED, "not measurable": ExitStatus.NOT_MEASURABLE}
    return by_word.get(found.judgement, ExitStatus.MET)


def main() -> int:
    """The command line; returns the exit status."""
    options = parse_options("compare")
    try:
        return run(options, options.rest)
    except DataError as error:
        print(f"compare: {str(error).rstrip('.')}. Try `./run compare --help`.", file=sys.stderr)
        return ExitStatus.USAGE
    except CtbenchError as error:
        print(printable(f"compare: {error}"), file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
