"""Instructions of two sides, counted in an emulated machine: beside the rates of two installations, or of two kernels
alone. Each side is a run of the suites."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.statuses import ExitStatus
from ctbench.base.yaml_files import load
from ctbench.cli.child_runs import ChildRun
from ctbench.cli.compare_chosen import for_robot
from ctbench.cli.emulated_dut import emulated_dut
from ctbench.compare.counts import judge_counts, nothing_counted
from ctbench.compare.emulated import EMULATED, kernel, kernel_setting, write_emulated
from ctbench.compare.functions import grown, that_differ
from ctbench.compare.side import Runs
from ctbench.compare.starts import Role
from ctbench.compare.verdicts import whole
from ctbench.dut.counting import ByFunction, OpenedDut, Workload
from ctbench.dut.topology import Topology
from ctbench.measure.procedures.instruction_count import workload_of
from ctbench.results.comparison import Comparison, CountedTest, Counts
from ctbench.results.store import read_stored
from ctbench.results.without_record import read as read_without
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import load_profile

#: Tests with Open vSwitch in the emulated machine.
_WITH_OVS = ("--include", f"{EMULATED}ANDovs")
#: Workloads that say of a build what the others say as well, or nothing (a dump is all the kernel's). The testbed file
#: may leave out more, of another reason: what it does not need, and a comparison of builds does.
_LEFT_OUT: tuple[Workload, ...] = ("stream-1k", "stream-10k", "removal", "dump")
#: What ./run sla may end with so that there are counts; floors do not matter here.
_COUNTED = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
_FOLDER = "counts"
_ROLES: tuple[Role, Role] = ("base", "candidate")


@dataclass
class Counting:
    """A run of the emulated tests on either side."""

    output: Path
    #: What an emulated machine has on each side: keys of its entry in a testbed file.
    changes: Mapping[Role, Mapping[str, Any]]
    #: What goes to Robot Framework.
    chosen: Sequence[str]
    #: What a run was stopped by, or 0.
    stopped: int = field(default=0, init=False)

    def run(self, testbed: TestbedConfig) -> str:
        """Count what is not counted yet. Returns why there is nothing to compare, or nothing."""
        for number, role in enumerate(self.changes, 1):
            file, made = self.output / _FOLDER / f"{role}.yaml", ChildRun(self.folder(role))
            file.parent.mkdir(parents=True, exist_ok=True)
            write_emulated(testbed, self.changes[role], file)
            if made.done:
                continue
            print(f"compare: instructions of the {role}, run {number} of {len(self.changes)}", flush=True)
            ended = made.make(["-v", f"TESTBED:{file}", *self.chosen])
            if ended == ExitStatus.INTERRUPTED:
                self.stopped = ended
                print(f"compare: To go on: the same command with\n  --outputdir {self.output}", file=sys.stderr)
                return "it was interrupted"
            if ended not in _COUNTED:
                return self._why(role, ended)
            made.mark_done(ended)
        return ""

    def functions(self, counts: Counts) -> Counts:
        """The same with the functions that grew most, of tests that differ."""
        tests = that_differ(counts.tests)
        found: dict[Role, dict[tuple[str, str], ByFunction]] = {}
        try:
            for role in self.changes if tests else ():
                print(f"compare: functions of the {role}", flush=True)
                with emulated_dut(load("testbeds", self.output / _FOLDER / f"{role}.yaml", TestbedConfig)) as dut:
                    found[role] = _functions(dut, tests)
        except CtbenchError as error:
            return counts.model_copy(update={"notes": [*counts.notes, f"No functions were counted: {error}"]})
        shown = []
        for test in tests:
            base, candidate = (found[role].get((test.topology, test.profile)) for role in _ROLES)
            if base and candidate:
                shown.append(grown(test, base, candidate))
        return counts.model_copy(update={"functions": shown})

    def folder(self, role: Role) -> Path:
        """Of a side's run."""
        return self.output / _FOLDER / role

    def side(self, role: Role, name: str) -> Runs:
        """What was counted of a side."""
        stored, broken = read_stored(self.folder(role))
        return Runs(name, (self.folder(role),), tuple(stored), tuple(broken))

    def _why(self, role: Role, ended: int) -> str:
        """What the tests of a run that measured nothing say."""
        said = [each.reason for each in read_without(self.folder(role))[0]]
        return said[0] if said else f"the run of the {role} ended with status {ended}"


def _functions(dut: OpenedDut, tests: Sequence[CountedTest]) -> dict[tuple[str, str], ByFunction]:
    """The functions of each test, by its topology and profile, as far as they add up. All topologies of a workload are
    booted together."""
    by_workload: dict[Workload, dict[str, str]] = {}
    for test in tests:
        topology = Topology.parse(test.topology)
        dut.apply(topology)
        workload = workload_of(load_profile(test.profile), topology)
        by_workload.setdefault(workload, {})[test.topology] = test.profile
    return {
        (key, profiles[key]): found
        for workload, profiles in by_workload.items()
        for key, found in dut.count_functions([Topology.parse(key) for key in profiles], workload).items()
    }


def count_builds(
    output: Path, prefixes: Mapping[Role, str], testbed: TestbedConfig, only: Sequence[str], *, functions: bool = False
) -> Counts:
    """Instructions of two installations. What stands in the way is a sentence of the result: the rates go on."""
    changes = {role: {"ovs": {"prefix": each}, "leave_out": list(_LEFT_OUT)} for role, each in prefixes.items()}
    counting = Counting(output, changes, _WITH_OVS)
    try:
        why = counting.run(testbed)
    except CtbenchError as error:
        why = str(error)
    if counting.stopped:
        raise KeyboardInterrupt
    if why:
        return nothing_counted(why)
    base, candidate = (counting.side(role, prefixes[role]) for role in _ROLES)
    counts = judge_counts(base.stored, candidate.stored, only=only)
    return counting.functions(counts) if functions else counts


@dataclass
class Kernels:
    """Two kernels to compare, by instructions alone."""

    options: argparse.Namespace
    rest: Sequence[str]
    output: Path
    least_difference: float
    files: dict[Role, str] = field(init=False)

    def __post_init__(self) -> None:
        """Raises `ConfigError` for what is no kernel."""
        self.files = dict(kernel(each) for each in self.options.kernels)
        if len(self.files) < 2:
            raise ConfigError("--kernels: names one side twice.\n  Expected base=FILE candidate=FILE.")

    def run(self) -> tuple[int, Comparison | None]:
        """Count what is not counted yet, and judge it: why it stopped early, or 0, and the comparison; None where
        nothing was counted."""
        changes = {
            role: {"kernel": kernel_setting(file, self.output / _FOLDER / f"kernel-{role}")}
            for role, file in self.files.items()
        }
        counting = Counting(self.output, changes, for_robot(self.rest, EMULATED))
        if why := counting.run(load("testbeds", self.options.testbed, TestbedConfig)):
            print(f"compare: {nothing_counted(why).sentence}")
            return counting.stopped or ExitStatus.NOTHING_MEASURED, None
        base, candidate = (counting.side(role, self.files[role]) for role in _ROLES)
        least, only = self.least_difference, self.options.only
        counts = judge_counts(base.stored, candidate.stored, least_difference=least, only=only)
        counts = counting.functions(counts) if self.options.functions else counts
        return 0, whole(
            "counts", base, candidate, [],
            family=0, least_difference=least, notes=[], counts=counts,
        )  # fmt: skip
