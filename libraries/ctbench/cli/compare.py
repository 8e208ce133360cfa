"""`./run compare`: counts the instructions of two kernels (or installations) in an emulated machine, and compares what
it found."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, CtbenchError, ExitStatus
from ctbench.base.paths import SUITES, results_root
from ctbench.base.text import printable
from ctbench.base.units import parse_ratio
from ctbench.base.yaml_files import load
from ctbench.cli.child_runs import ChildRuns
from ctbench.cli.parser.command import read_option
from ctbench.cli.parser.tree import parse as parse_options
from ctbench.cli.robot.command_line import DataError, parse
from ctbench.compare import text
from ctbench.compare.judge import grown, judge_counts, that_differ, whole
from ctbench.compare.limits import LEAST_OF_COUNTS
from ctbench.compare.page import PAGE, write_comparison
from ctbench.compare.setups import EMULATED, installations, kernel_setting, kernels, write_emulated
from ctbench.compare.sides import ROLES, Role, Runs
from ctbench.dut.abilities import ByFunction, Counter, Workload
from ctbench.dut.topology import Topology
from ctbench.measure.procedures.instruction_count import workload_of
from ctbench.results.comparison import Comparison, CountedTest, Counts
from ctbench.results.store import read_stored, read_without_record
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import counter_of
from ctbench.traffic.profiles import load_profile

#: What ./run sla may end with so that it is worth going on, or so that there are counts; floors do not matter here.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
#: Tests with Open vSwitch in the emulated machine, less those that say of a build what the others say as well, or
#: nothing (a dump is all the kernel's).
_WITH_OVS = f"{EMULATED}ANDovsNOT1kflowsNOT10kflowsNOTremovalNOTdump"
_FOLDER = "counts"


def run(options: argparse.Namespace) -> int:
    """Compare, after measuring where that is asked for."""
    given = options.least_difference
    least = LEAST_OF_COUNTS if given is None else read_option("--least-difference", parse_ratio, given)
    if least >= 1:
        raise ConfigError("--least-difference: of 100% nothing ever regressed.\n  Expected less, for example 2%.")
    output = options.outputdir or results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-compare-{os.getpid()}"
    output = output.absolute()
    found = by_instructions(options, output, least)
    if found is None:
        return ExitStatus.NOTHING_MEASURED
    with _written(output):
        (output / "compare.json").write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (output / "compare.md").write_text(text.markdown(found), encoding="utf-8")
        write_comparison(found, output)
    print(printable(text.console(found)))
    print(printable(f"Comparison: {output / PAGE}"))
    return status(found)


@contextmanager
def _written(output: Path) -> Iterator[None]:
    """The folder is made, and what is written to it meanwhile; `ConfigError` where that cannot be."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigError(
            f"{output}: cannot be written ({error.strerror}): choose a folder with --outputdir."
        ) from None


def status(found: Comparison) -> ExitStatus:
    if not found.counts.tests:
        return ExitStatus.NOTHING_MEASURED
    by_word = {"regressed": ExitStatus.REGRESSED, "not measurable": ExitStatus.NOT_MEASURABLE}
    return by_word.get(found.judgement, ExitStatus.MET)


def for_robot(rest: Sequence[str], include: str) -> list[str]:
    """What goes to Robot Framework: without suites and tags, the tests with the tags `include`."""
    command = parse(rest, SUITES)
    for name, value in command.chosen.items():
        expected = f"--{name} {value}" if name in ("testbed", "campaign") else "no such variable: no floor is judged"
        raise ConfigError(f"-v {name.upper()}: is not for compare.\n  Expected {expected}.")
    given = command.names_suites or any(each.startswith(("-i", "--include")) for each in rest)
    return list(rest) if given else [*rest, "--include", include]


def _to_go_on(output: Path) -> str:
    return f"To go on: the same command with\n  --outputdir {output}"


@dataclass
class Counting:
    """The instructions of two sides: a run of the emulated tests on either of them."""

    output: Path
    #: As the user named the sides, and what an emulated machine has on each: keys of its entry in a testbed file.
    names: Mapping[Role, str]
    changes: Mapping[Role, Mapping[str, Any]]

    def run(self, testbed: TestbedConfig, chosen: Sequence[str]) -> str:
        """Count what is not counted yet; `chosen`: what goes to Robot Framework. Returns why there is nothing to
        compare, or nothing."""
        made = ChildRuns(_GOES_ON)
        for number, role in enumerate(ROLES, 1):
            folder, file = self._folder(role), self._file(role)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_emulated(testbed, self.changes[role], file)
            line = (
                f"compare: instructions of the {role}, run {number} of {len(ROLES)}; its own verdicts do not count here"
            )
            ended = made.make(folder, ["-v", f"TESTBED:{file}", *chosen], line)
            if ended == ExitStatus.INTERRUPTED:
                print(f"compare: {_to_go_on(self.output)}", file=sys.stderr)
                raise KeyboardInterrupt
            if ended:
                said = [each.reason for each in read_without_record(folder)[0]]
                return said[0] if said else f"the run of the {role} ended with status {ended}"
        return ""

    def side(self, role: Role) -> Runs:
        folder = self._folder(role)
        return Runs(self.names[role], [folder], *read_stored(folder))

    def judged(self, options: argparse.Namespace, least_difference: float = LEAST_OF_COUNTS) -> Counts:
        """What was counted, compared; with the functions that grew most where that was asked for."""
        base, candidate = (self.side(role).stored for role in ROLES)
        counts = judge_counts(base, candidate, least_difference=least_difference, only=options.only)
        tests = that_differ(counts.tests) if options.functions else []
        found: list[dict[tuple[str, str], ByFunction]] = []
        try:
            for role in ROLES if tests else ():
                print(f"compare: functions of the {role}", flush=True)
                with counter_of(load("testbeds", self._file(role), TestbedConfig)) as counter:
                    found.append(_functions(counter, tests))
        except CtbenchError as error:
            return counts.model_copy(update={"notes": [*counts.notes, f"No functions were counted: {error}"]})
        shown = []
        for test in tests:
            key = test.topology, test.profile
            if all(key in side for side in found):
                shown.append(grown(test, *(side[key] for side in found)))
        return counts.model_copy(update={"functions": shown})

    def _folder(self, role: Role) -> Path:
        return self.output / _FOLDER / role

    def _file(self, role: Role) -> Path:
        return self.output / _FOLDER / f"{role}.yaml"


def _functions(counter: Counter, tests: Sequence[CountedTest]) -> dict[tuple[str, str], ByFunction]:
    """The functions of each test, by its topology and profile, as far as they add up. All topologies of a workload are
    booted together."""
    by_workload: dict[Workload, dict[str, str]] = {}
    for test in tests:
        topology = Topology.parse(test.topology)
        workload = workload_of(load_profile(test.profile), topology)
        by_workload.setdefault(workload, {})[test.topology] = test.profile
    return {
        (key, profiles[key]): found
        for workload, profiles in by_workload.items()
        for key, found in counter.count_functions([Topology.parse(key) for key in profiles], workload).items()
    }


def by_instructions(options: argparse.Namespace, output: Path, least_difference: float) -> Comparison | None:
    """Two kernels, or two installations of Open vSwitch, by instructions: count what is not counted yet, and judge it;
    None where nothing was counted, which is said."""
    changes: dict[Role, dict[str, Any]]
    if options.kernels:
        names, tests = kernels(options.kernels), EMULATED
        made = {role: output / _FOLDER / f"kernel-{role}" for role in names}
        changes = {role: {"kernel": kernel_setting(file, made[role])} for role, file in names.items()}
    else:
        names, tests = installations(options.installations), _WITH_OVS
        changes = {role: {"ovs": {"prefix": prefix}} for role, prefix in names.items()}
    counting = Counting(output, names, changes)
    testbed = load("testbeds", options.testbed, TestbedConfig)
    if options.installations:  # what it skips so that a run is short depends on the build most
        testbed = testbed.model_copy(update={"skips": []})
    if why := counting.run(testbed, for_robot(options.rest, tests)):
        print(f"compare: No instructions were counted: {why.rstrip('.')}.")
        return None
    return whole(
        counting.side("base"),
        counting.side("candidate"),
        least_difference=least_difference,
        counts=counting.judged(options, least_difference),
    )


def main() -> int:
    try:
        return run(parse_options("compare"))
    except DataError as error:
        print(f"compare: {str(error).rstrip('.')}. Try `./run compare --help`.", file=sys.stderr)
        return ExitStatus.USAGE
