"""`./run compare`: holds two sides of runs against each other, or measures two installations in turn first."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.paths import PROGRAM, SUITES
from ctbench.base.plain_text import printable
from ctbench.base.statuses import ExitStatus
from ctbench.base.units import parse_ratio, parse_whole
from ctbench.cli.parser.tree import parse as parse_options
from ctbench.cli.results_folder import results_root
from ctbench.cli.robot.command_line import DataError, chosen_files, parse
from ctbench.cli.robot.selection import selected_suite
from ctbench.compare import text
from ctbench.compare.comparability import only_alike
from ctbench.compare.installations import check_side
from ctbench.compare.interleave import STATUS_FILE, Role, Turn, comparable, installation, turns, write_testbed
from ctbench.compare.judge import compare
from ctbench.compare.limits import ALPHA
from ctbench.compare.page import PAGE, write_comparison
from ctbench.compare.side import read_runs, require_runs
from ctbench.hosts.child import run_child
from ctbench.report.published import as_text
from ctbench.report.reference import read_references
from ctbench.report.write import PAGE as REPORT
from ctbench.report.write import write_reports
from ctbench.results.comparison import Comparison
from ctbench.results.published import is_published
from ctbench.results.statistics import needed_samples
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig

#: Nobody waits for more: four runs each, of minutes.
MOST_ROUNDS = 1000

#: What ./run sla may end with so that it is worth going on.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)


def run(options: argparse.Namespace, rest: Sequence[str]) -> int:
    """Compare, after measuring where that is asked for."""
    try:
        least = parse_ratio(options.least_difference)
    except ValueError as error:
        raise ConfigError(f"--least-difference: {error}") from None
    if least >= 1:
        raise ConfigError("--least-difference: of 100% nothing ever regressed.\n  Expected less, for example 2%.")
    output = options.outputdir or results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-compare-{os.getpid()}"
    output = output.absolute()
    stopped, sides = 0, [] if options.installations else list(rest)
    if any(is_published(Path(part)) for side in sides for part in side.split(",")):
        base_name, candidate_name = sides
        return beside_published(base_name, candidate_name, output)
    if options.installations:
        stopped = measure(options, rest, output)
        sides = [str(output / role) for role in ("base", "candidate")]
        if stopped and not all(any(Path(side).glob("*/records/*.json")) for side in sides):
            return stopped
    else:
        for side in sides:
            require_runs(side)
    base, candidate = (read_runs(side) for side in sides)
    if options.only_alike:
        base = only_alike(base, candidate)
    found = compare(base, candidate, least_difference=least, only=options.only)
    if found.differences and not options.different:
        raise ConfigError(
            "\n".join([*found.differences, "  Expected runs of one testbed that are alike, or --different."])
        )
    write(found, output)
    print(printable(text.console(found)))
    print(printable(f"Comparison: {output / PAGE}"))
    return stopped or status(found)


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
    if not found.tests:
        return ExitStatus.NOTHING_MEASURED
    by_word = {"regressed": ExitStatus.REGRESSED, "not measurable": ExitStatus.NOT_MEASURABLE}
    return by_word.get(found.judgement, ExitStatus.MET)


def measure(options: argparse.Namespace, rest: Sequence[str], output: Path) -> int:
    """Measure the two installations in turn, without what is measured already. Returns why it stopped early, or 0."""
    prefixes = dict(installation(each) for each in options.installations)
    if len(prefixes) < 2:
        raise ConfigError("--installations: names one side twice.\n  Expected base=PREFIX candidate=PREFIX.")
    try:
        rounds = parse_whole(options.rounds, 1, MOST_ROUNDS)
    except ValueError as error:
        raise ConfigError(f"--rounds: {error}") from None
    chosen = ["-v", f"CAMPAIGN:{options.campaign}", "-v", f"SLA:{options.sla}", *_for_robot(rest)]
    testbed = _check(options, chosen, prefixes)
    files = _testbed_files(testbed, prefixes, output)
    plan = list(turns(output, rounds))
    for turn in plan:
        if turn.done:
            continue
        print(f"compare: run {turn.number} of {len(plan)}: {turn.role}, {prefixes[turn.role]}", flush=True)
        turn.make_way()
        turn.folder.mkdir(parents=True)
        ended = run_child(
            [*PROGRAM, "sla", "--outputdir", str(turn.folder),
             "-v", f"TESTBED:{files[turn.role]}", *chosen]
        )  # fmt: skip
        if ended not in _GOES_ON:
            complete = sum(each.done for each in plan)
            print(
                f"compare: run {turn.number} ended with status {ended}. {complete} of {len(plan)} runs are complete, "
                f"in {output}. To go on: the same command with\n  --outputdir {output}",
                file=sys.stderr,
            )
            return ended
        (turn.folder / STATUS_FILE).write_text(f"{ended}\n", encoding="utf-8")
        if turn.number == 1:
            _say_what_is_needed(turn, rounds)
    return 0


def _for_robot(rest: Sequence[str]) -> list[str]:
    """What goes to Robot Framework: without suites and tags, the tests of Open vSwitch."""
    taken = chosen_files(parse(rest, SUITES).assignments)
    if taken:
        name = next(iter(taken))
        raise ConfigError(f"-v {name.upper()}: is not for compare.\n  Expected --{name} {taken[name]}.")
    given = parse(rest, SUITES).names_suites or any(each.startswith(("-i", "--include")) for each in rest)
    return list(rest) if given else [*rest, "--include", "OR".join(comparable())]


def _check(options: argparse.Namespace, chosen: Sequence[str], prefixes: dict[Role, str]) -> TestbedConfig:
    """The testbed, once it is known that both installations can be measured on it and that there is a test to do it
    with: the second one's turn comes late."""
    testbed = RunSettings.load(options.testbed, options.campaign, options.sla).testbed
    try:
        selected_suite(parse(chosen, SUITES).arguments)
    except DataError as error:
        raise ConfigError(f"{str(error).rstrip('.')}.\n  Expected suites and tags of at least one test.") from None
    for role, prefix in prefixes.items():
        check_side(role, prefix, testbed)
    return testbed


def _testbed_files(testbed: TestbedConfig, prefixes: dict[Role, str], output: Path) -> dict[Role, Path]:
    files = {role: output / f"{role}.yaml" for role in prefixes}
    try:
        output.mkdir(parents=True, exist_ok=True)
        for role, prefix in prefixes.items():
            write_testbed(testbed, prefix, files[role])
    except OSError as error:
        raise ConfigError(
            f"{output}: cannot be written ({error.strerror}): choose a folder with --outputdir."
        ) from None
    return files


def _say_what_is_needed(first: Turn, rounds: int) -> None:
    """After the first run the number of tests is known, and with it how many runs can say anything."""
    tests = len(read_runs(str(first.folder)).tests())
    needed, planned = needed_samples(ALPHA / max(1, tests)), 2 * rounds
    if planned < needed:
        print(
            f"compare: {tests} tests need {needed} runs on either side, and {rounds} rounds are {planned}: "
            f"use --rounds {(needed + 1) // 2}, or fewer tests."
        )


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
