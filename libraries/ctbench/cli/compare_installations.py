"""`./run compare --installations`: two builds side by side, start by start, and first the base against itself."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.paths import SUITES
from ctbench.base.plain_text import printable
from ctbench.base.statuses import ExitStatus
from ctbench.base.units import parse_whole
from ctbench.cli.child_runs import ChildRun, Clock
from ctbench.cli.compare_chosen import for_robot
from ctbench.cli.compare_counts import count_builds
from ctbench.cli.robot.command_line import DataError, parse
from ctbench.cli.robot.selection import selected_suite
from ctbench.compare.installations import check_side
from ctbench.compare.limits import LEAST_STARTS, MOST_STARTS, SAME_STARTS, STARTS
from ctbench.compare.paired import judge_starts, needed_starts, read_starts, scatters, shows
from ctbench.compare.starts import (
    Role,
    Start,
    comparable,
    installation,
    pair_starts,
    refuse_earlier,
    same_starts,
    write_testbed,
)
from ctbench.compare.text import what_it_shows
from ctbench.results.comparison import Comparison
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig

#: What ./run sla may end with so that it is worth going on.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)


@dataclass
class Installations:
    """Two installations to compare: what was asked for, checked before anything is measured."""

    options: argparse.Namespace
    rest: Sequence[str]
    output: Path
    least_difference: float
    prefixes: dict[Role, str] = field(init=False)
    #: None: as many as the tests need.
    starts: int | None = field(init=False)

    def __post_init__(self) -> None:
        """Raises `ConfigError` for what would be a pity to learn after an hour."""
        self.prefixes = dict(installation(each) for each in self.options.installations)
        if len(self.prefixes) < 2:
            raise ConfigError("--installations: names one side twice.\n  Expected base=PREFIX candidate=PREFIX.")
        try:
            given = self.options.starts
            self.starts = None if given is None else parse_whole(given, LEAST_STARTS, MOST_STARTS)
        except ValueError as error:
            raise ConfigError(f"--starts: {error}") from None
        refuse_earlier(self.output)

    def run(self) -> tuple[int, Comparison | None]:
        """Measure what is not measured yet, and judge what there is: why it stopped early, or 0, and the comparison;
        None where no start of both builds came to its end."""
        chosen = ["-v", f"CAMPAIGN:{self.options.campaign}", *for_robot(self.rest, "OR".join(comparable()))]
        testbed = self._check(chosen)
        files = self._testbed_files(testbed)
        counts = None
        if not self.options.no_instructions:
            options = self.options
            counts = count_builds(self.output, self.prefixes, testbed, options.only, functions=options.functions)
            print(printable(f"compare: {counts.sentence}"), flush=True)
        clock = Clock()
        same = list(same_starts(self.output, SAME_STARTS))
        stopped = self._measure("base against itself", same, self.starts or STARTS, clock, files, chosen)
        pairs = list(pair_starts(self.output, self.starts or STARTS))
        if not stopped:
            pairs = list(pair_starts(self.output, self._planned(_done(same))))
            stopped = self._measure("candidate against base", pairs, 0, clock, files, chosen)
        measured = read_starts(_done(pairs))
        if not measured:
            return stopped or ExitStatus.NOTHING_MEASURED, None
        return stopped, judge_starts(
            self.prefixes, read_starts(_done(same)), measured,
            least_difference=self.least_difference, only=self.options.only, counts=counts,
        )  # fmt: skip

    def _measure(
        self,
        what: str,
        starts: Sequence[Start],
        afterwards: int,
        clock: Clock,
        files: dict[Role, Path],
        chosen: Sequence[str],
    ) -> int:
        """Make the starts that are not made yet; `afterwards`: how many of another kind follow. Returns why it stopped
        early, or 0."""
        for start in starts:
            made = ChildRun(start.folder)
            if made.done:
                continue
            to_come = len(starts) - start.number + 1 + afterwards
            order = "" if start.first == start.second else f", {start.first} first"
            print(f"compare: {what}, start {start.number} of {len(starts)}{order}; {clock.left(to_come)}", flush=True)
            variables = ["-v", f"TESTBED:{files[start.first]}", "-v", f"BASE:{self.prefixes[start.second]}"]
            ended = made.make([*variables, *chosen])
            if ended not in _GOES_ON:
                complete = sum(ChildRun(each.folder).done for each in starts)
                print(
                    f"compare: start {start.number} ended with status {ended}. {complete} of {len(starts)} starts "
                    f"({what}) are complete, in {self.output}. To go on: the same command with\n"
                    f"  --outputdir {self.output}",
                    file=sys.stderr,
                )
                return ended
            made.mark_done(ended)
            clock.made += 1
        return 0

    def _planned(self, same: Sequence[Start]) -> int:
        """After the base was measured against itself the tests are known, and with them how many starts can say
        anything; and what this machine can show."""
        logs = scatters(read_starts(same))
        tests = max(1, len(logs))
        needed = min(MOST_STARTS, needed_starts(tests))
        planned = self.starts or max(STARTS, needed)
        if planned < needed:
            print(
                f"compare: {tests} tests need {needed} starts, and --starts is {planned}: nothing will be judged. "
                "Stop it with Ctrl-C and give more, or fewer tests."
                if tests > 1
                else f"compare: one test needs {needed} starts, and --starts is {planned}: nothing will be judged. "
                "Stop it with Ctrl-C and give more."
            )
        shown = {test: shows(found, planned, tests, self.least_difference) for test, found in logs.items()}
        print(printable(f"compare: {len(same)} starts of the base against itself: {what_it_shows(shown, planned)}."))
        return planned

    def _check(self, chosen: Sequence[str]) -> TestbedConfig:
        """The testbed, once it is known that both installations can be measured on it and that there is a test to do it
        with."""
        options = self.options
        testbed = RunSettings.load(options.testbed, options.campaign, base=self.prefixes["base"]).testbed
        try:
            selected_suite(parse(chosen, SUITES).arguments)
        except DataError as error:
            raise ConfigError(f"{str(error).rstrip('.')}.\n  Expected suites and tags of at least one test.") from None
        for role, prefix in self.prefixes.items():
            check_side(role, prefix, testbed)
        return testbed

    def _testbed_files(self, testbed: TestbedConfig) -> dict[Role, Path]:
        files = {role: self.output / f"{role}.yaml" for role in self.prefixes}
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            for role, prefix in self.prefixes.items():
                write_testbed(testbed, prefix, files[role])
        except OSError as error:
            raise ConfigError(
                f"{self.output}: cannot be written ({error.strerror}): choose a folder with --outputdir."
            ) from None
        return files


def _done(starts: Sequence[Start]) -> list[Start]:
    return [start for start in starts if ChildRun(start.folder).done]
