"""The gate of a kernel, `./run sla --candidate KERNEL`: the emulated rows are counted with the base's kernel, then
measured with the candidate's, judged by an SLA of these counts."""

import os
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from ctbench.base.errors import ConfigError, ExitStatus, MissingResource
from ctbench.base.paths import SUITES
from ctbench.base.text import printable
from ctbench.base.yaml_files import load
from ctbench.cli.child_runs import ChildRuns, keep
from ctbench.cli.robot.command_line import CommandLine, as_arguments, check_names, parse, plain_name
from ctbench.dut.emulated import check_kernel, read_release
from ctbench.dut.registry import KINDS
from ctbench.hosts.local import LocalHost
from ctbench.results.record import Record
from ctbench.results.store import WithoutRecord, note_without_record, read_stored, read_without_record
from ctbench.run.settings import VARIABLES
from ctbench.sla.calibration import Stock, ceilings, counts_file
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed

#: The kind of DUT that counts instructions; the testbed that has nothing else is called the same.
EMULATED = next(name for name, kind in KINDS.items() if "instructions" in kind.abilities)
_A_KERNEL = 'a package of Linux (.deb), a bzImage with its modules next to it, or "distribution"'

#: What ./run sla may end with so that there are counts of the base; floors do not matter there.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
#: A candidate may cost so much more than the base: new connections differ by as much from one seed of the hash
#: functions to the next.
ROOM = 0.005
#: Seeds of either side at least. Those of two kernels are not pairs: a like kernel would be missed by chance with two
#: seeds of each in 7 of 100 rows whose seeds differ, with five in 1 of 10 000 (simulated, normally distributed).
SEEDS = 5
#: What has to be the same on both sides, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "packages in the machine", "seeds": "number of seeds"}
#: What the folder of a gate has of its base: its run, what both sides are asked for, and the SLA that is made of that.
BASE, ARGUMENTS, COUNTS = "base", "arguments-of-both.txt", "counts-of-base.yaml"
#: Variables that each side has values of its own for.
_OF_SIDE = ("TESTBED", "CANDIDATE", "BASE", "SLA")
#: Options of Robot Framework that the base's run does without: they name or shape outputs, logs and reports, or end a
#: run early, or hide its status.
_OF_CANDIDATE = {
    "outputdir", "output", "legacyoutput", "log", "report", "xunit", "debugfile", "timestampoutputs", "splitlog",
    "logtitle", "reporttitle", "reportbackground", "maxerrorlines", "maxassignlength", "suitestatlevel",
    "tagstatinclude", "tagstatexclude", "tagstatcombine", "tagdoc", "tagstatlink", "expandkeywords", "removekeywords",
    "flattenkeywords", "prerebotmodifier", "statusrc", "dryrun", "exitonfailure", "exitonerror", "skipteardownonexit",
}  # fmt: skip


def is_kernel(given: str) -> bool:
    """True where a candidate is a kernel: its package (linux-….deb), a bzImage, or a folder with the layout of a
    package. False for an empty text."""
    path = Path(given)
    try:
        if path.is_dir():
            return bool(given) and any((path / "boot").glob("vmlinuz-*"))
        return path.name.startswith("linux-") if path.suffix == ".deb" else bool(read_release(path))
    except (MissingResource, OSError):
        return False


def run(command: CommandLine, prepare: Callable[[CommandLine], Path], begin: Callable[[CommandLine], int]) -> int:
    """Count with the base's kernel in the folder that `prepare` makes, and `begin` a run with the candidate's there.
    Return the exit status. Raise `ConfigError` where one of both is not a kernel, `MissingResource` where the emulated
    machine lacks a program. Another SLA is ignored: the lists of tests and files of variables that all runs share name
    one."""
    chosen = command.chosen
    asked_for = {"--testbeds": command.testbeds, "--all": chosen.get("all_rows")}
    if option := next((name for name, given in asked_for.items() if given), ""):
        raise ConfigError(f"{option}: does not go with a kernel as the candidate.\n  Expected no such option.")
    if "sla" in chosen:
        print("What the base costs is the SLA of this run: no other SLA is used.")
    check_names(command, (), SUITES)
    base, candidate = chosen.get("base", "distribution"), chosen["candidate"]
    if os.path.realpath(base) == os.path.realpath(candidate):
        raise ConfigError(f"--candidate: {candidate} is the base itself.\n  Expected another kernel.")
    base, candidate = whole_kernel("--base", base), whole_kernel("--candidate", candidate)
    testbed = load("testbeds", chosen.get("testbed", "local"), TestbedConfig)
    if command.dry_run:
        return begin(parse(_with_rows(command, command.options, EMULATED, VARIABLES["SLA"]), SUITES))
    folder = prepare(command)
    machine = write_testbed(testbed, candidate, folder / "candidate.yaml")
    base_machine = write_testbed(testbed, base, folder / "base.yaml")
    of_both = options_of_both(command)
    suites = [os.path.abspath(suite) for suite in command.suites if command.names_suites]  # noqa: PTH100 # links stay
    keep(folder / ARGUMENTS, "".join(f"{each}\n" for each in [*as_arguments(of_both), *suites]))
    facts = facts_of(machine, folder)
    records = count_base(folder, _with_rows(command, of_both, folder / "base.yaml", VARIABLES["SLA"]))
    if not ceilings(records):
        why = next((test.reason for test in not_counted(folder)), "no row was chosen")
        print(printable(f"No instructions were counted: {why.rstrip('.')}."))
        return ExitStatus.NOTHING_MEASURED
    for key, name in _ALIKE.items():
        if any(getattr(record.environment.dut, key, None) != facts[key] for record in records):
            raise ConfigError(f"{folder}: the base was counted with another {name}.\n  Expected another --outputdir.")
    program = program_of(base_machine)
    if any(record.environment.dut.program != program for record in records if record.result):
        raise ConfigError(f"{folder}: the base is no longer what was counted.\n  Expected another --outputdir.")
    sla = folder / COUNTS
    sla.write_text(counts_file(sla.stem, records, Stock("", {}), str(facts["image"]), ROOM), encoding="utf-8")
    judged = {**command.options, "outputdir": str(folder)}
    return begin(parse(_with_rows(command, judged, machine.path, sla), SUITES))


def options_of_both(command: CommandLine) -> dict[str, Any]:
    """Return the options that the base's run shares with the candidate's, in the order of their names."""
    both = {name: value for name, value in sorted(command.options.items()) if name not in _OF_CANDIDATE}
    of_side = [*map(plain_name, _OF_SIDE)]
    return both | {"variable": [each for each in command.assignments if plain_name(each) not in of_side]}


def count_base(folder: Path, arguments: Sequence[str]) -> list[Record]:
    """Return the records of the base's run with these arguments; make that run unless it is complete. A run that was
    stopped, or broke, ends this command with its status."""
    line = "instructions of the base; its own verdicts do not count here"
    ended = ChildRuns(_GOES_ON).make(folder / BASE, arguments, line)
    if ended not in (0, ExitStatus.NOTHING_MEASURED):
        print(f"run: the base's run ended with status {ended}.", file=sys.stderr)
        print(f"To go on: the same command with --outputdir {shlex.quote(str(folder))}", file=sys.stderr)
        raise SystemExit(ended)
    return [each.record for each in read_stored(folder / BASE)[0]]


def not_counted(folder: Path) -> list[WithoutRecord]:
    """Return the rows that were not counted with the base of the gate in this folder, with the reason. Skipped tests,
    which are skipped with the candidate as well, are among them only where nothing was counted."""
    stored, broken = read_stored(folder / BASE)
    without = read_without_record(folder / BASE)[0]
    found = _counted(folder)
    rows = [_noted(each.record, each.record.verdict_reason, found) for each in stored if not each.record.result]
    rows += [WithoutRecord(suite=BASE, test=each.path.stem, outcome="failed", reason=each.reason) for each in broken]
    return rows + [
        each.model_copy(update={"outcome": "failed"}) for each in without if each.outcome != "skipped" or not stored
    ]


def _only_with_base(folder: Path) -> list[WithoutRecord]:
    """Return the rows that were counted with the base of the gate in this folder, and have no record of the
    candidate."""
    found = _counted(folder)
    base = [each.record for each in read_stored(folder / BASE)[0] if each.record.result]
    why = "The base's count of it is in the folder base."
    return [_noted(record, why, found) for record in base if _row(record) not in found]


def _counted(folder: Path) -> set[tuple[str, ...]]:
    """Return the rows that have a record in a folder."""
    return {_row(each.record) for each in read_stored(folder)[0]}


def _row(record: Record) -> tuple[str, ...]:
    return record.suite, record.test, record.topology.key, record.profile.name, record.metric


def _noted(record: Record, reason: str, counted: Collection[tuple[str, ...]]) -> WithoutRecord:
    """Return the note of a row. It names the row where another one of its test was counted with the candidate."""
    several = any(row[:2] == (record.suite, record.test) for row in counted)
    test = f"{record.test} ({record.topology.key}, {record.profile.name})" if several else record.test
    return WithoutRecord(suite=record.suite, test=test, outcome="failed", reason=reason)


def with_uncounted(status: ExitStatus, folder: Path) -> ExitStatus:
    """Return the exit status of a run that would end with `status`. Rows of a kernel's gate that its base or its
    candidate did not count are noted as failed, for the report. Where there are some, a status of 0 becomes not
    measured; any other run keeps its status."""
    if not (folder / COUNTS).is_file():
        return status
    of_candidate = _only_with_base(folder) if status == ExitStatus.MET else []  # else it may not have begun all rows
    sides = {"base": not_counted(folder), "candidate": of_candidate}
    left = [
        test.model_copy(update={"reason": f"Not counted with the {side}, and so not judged: {test.reason}"})
        for side, tests in sides.items()
        for test in tests
    ]
    if not left:
        return status
    # The candidate's run skipped those of the base, as its SLA promises nothing of them.
    names = {(test.suite, test.test) for test in left}
    noted = [test for test in read_without_record(folder)[0] if (test.suite, test.test) not in names]
    note_without_record([*noted, *left], folder)
    if status != ExitStatus.MET:
        return status
    for test in left:
        print(printable(f"{test.test}: {test.reason}"))
    return ExitStatus.NOT_MEASURED


def program_of(testbed: TestbedConfig) -> str:
    """Return the identity of a testbed's emulated machine, as records have it."""
    (machine,) = testbed.duts
    return KINDS[EMULATED].program(machine, LocalHost())


def facts_of(testbed: TestbedConfig, folder: Path) -> dict[str, Any]:
    """Return the facts of a testbed's emulated machine as records have them."""
    with closing(Testbed(testbed, folder)) as made:
        return made.counter(EMULATED).snapshot()


def _with_rows(
    command: CommandLine, options: Mapping[str, Any], testbed: Path | str | None, sla: Path | str
) -> list[str]:
    """Return the arguments of the run of one side: the options, its testbed (which names the kernel), its SLA, and the
    suites. Without suites and tags the run has all tests of the emulated machine."""
    suites = command.suites if command.names_suites else ()
    rows = [] if suites or options.get("include") else ["--include", EMULATED]
    # The last value of a variable counts, and any of them before those of variable files.
    values = zip(_OF_SIDE, (testbed, "", "", sla), strict=True)
    of_side = [part for name, value in values for part in ("-v", f"{name}:{value}")]
    return [*as_arguments(options), *of_side, *rows, *suites]


def whole_kernel(option: str, given: str) -> str:
    """Return the kernel that an option names: `distribution`, or its absolute path after a check of the whole file: a
    package has to unpack, an image to be complete, with its modules next to it. Raise `ConfigError` where it is not."""
    if given == "distribution":
        return given
    path = Path(given).absolute()
    try:
        check_kernel(path)
    except MissingResource as error:
        why = str(error).rstrip(".")
        raise ConfigError(f"{option}: {given} is not a kernel: {why}.\n  Expected {_A_KERNEL}.") from None
    return str(path)


def write_testbed(testbed: TestbedConfig, kernel: str, target: Path) -> TestbedConfig:
    """Write a testbed file with an emulated machine of this kernel alone, with `SEEDS` or more. Its other settings are
    those of the machine in `testbed`, or else in the stock testbed, without an image, which has a kernel of its own; it
    skips the tags that `testbed` skips, except the machine itself. Raise `ConfigError` where the file exists with other
    content."""
    alone = load("testbeds", EMULATED, TestbedConfig)
    machine = next(dut for dut in (*testbed.duts, *alone.duts) if dut.type == EMULATED)
    data = alone.model_dump(mode="json", exclude_unset=True)
    own = machine.model_dump(mode="json", exclude_unset=True, exclude={"image"})
    data["duts"] = [own | {"kernel": kernel, "seeds": max(SEEDS, own["seeds"])}]
    data["skips"] = [tag for tag in testbed.skips if tag != EMULATED]
    keep(target, yaml.safe_dump(data, sort_keys=False))
    return load("testbeds", target, TestbedConfig)
