"""`./run sla --candidate KERNEL`: the emulated rows, with the candidate's kernel and with the base's, counted and
judged in the words of an SLA."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import yaml

from ctbench.base.errors import ConfigError, ExitStatus, MissingResource
from ctbench.base.paths import SUITES
from ctbench.base.text import printable
from ctbench.base.units import format_margin, quoted
from ctbench.base.yaml_files import load
from ctbench.cli.child_runs import ChildRuns
from ctbench.cli.robot.command_line import CommandLine, as_arguments, check_names
from ctbench.dut.emulated import check_kernel, read_release
from ctbench.dut.registry import KINDS
from ctbench.report import labels
from ctbench.results.store import read_stored, read_without_record
from ctbench.results.verdict import Verdict
from ctbench.sla.counts import LEAST_OF_COUNTS, differences, judge_counts
from ctbench.testbed.config import TestbedConfig

#: The kind of DUT that counts instructions; the testbed that has nothing else is called the same.
EMULATED = next(name for name, kind in KINDS.items() if "instructions" in kind.abilities)
_A_KERNEL = 'a package of Linux (.deb), a bzImage with its modules beside it, or "distribution"'

Role = Literal["base", "candidate"]
ROLES: tuple[Role, Role] = ("base", "candidate")
#: What ./run sla may end with so that there are counts; floors do not matter here.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED, ExitStatus.TESTBED)
_FOLDER = "counts"
#: What came of it, as it is printed.
RESULT = "counts.txt"
#: Options of Robot Framework that choose tests.
_CHOOSE = ("include", "exclude", "test", "suite", "task")
_STATUS = {"missed": ExitStatus.MISSED, "not measured": ExitStatus.NOT_MEASURED, "met": ExitStatus.MET}


def is_kernel(given: str) -> bool:
    """Whether a candidate is a kernel: its package (linux-…), a bzImage, or a folder as a package has it. An empty text
    names none."""
    path = Path(given)
    try:
        if path.is_dir():
            return bool(given) and any((path / "boot").glob("vmlinuz-*"))
        return path.name.startswith("linux-") if path.suffix == ".deb" else bool(read_release(path))
    except (MissingResource, OSError):
        return False


def run(command: CommandLine, prepare: Callable[[CommandLine], Path], keep: Callable[[Path], None]) -> int:
    """Count, judge, and write what came of it to the folder that `prepare` makes; `keep` is told when it has one.
    `ConfigError` for two files that are not kernels, `MissingResource` where packages cannot be unpacked."""
    chosen = command.chosen
    asked_for = {"--resume": command.resume, "--testbeds": command.testbeds, "--all": chosen.get("all_rows")}
    if option := next((name for name, given in asked_for.items() if given), ""):
        raise ConfigError(f"{option}: a kernel is counted in its own rows, at once.\n  Expected no such option.")
    check_names(command, (), SUITES)
    base, candidate = chosen.get("base", "distribution"), chosen["candidate"]
    if os.path.realpath(base) == os.path.realpath(candidate):
        raise ConfigError(f"--candidate: {candidate} is the base itself.\n  Expected another kernel.")
    names: dict[Role, str] = {"base": whole_kernel("--base", base), "candidate": whole_kernel("--candidate", candidate)}
    testbed = load("testbeds", chosen.get("testbed", "local"), TestbedConfig)
    if command.dry_run:
        return ExitStatus.MET
    folder = prepare(command)
    if why := _count(names, testbed, folder / _FOLDER, _chosen(command)):
        print(f"No instructions were counted: {why.rstrip('.')}.")
        return ExitStatus.NOTHING_MEASURED
    base_side, candidate_side = (read_stored(folder / _FOLDER / role) for role in ROLES)
    records = [[each.record for each in stored] for stored, _ in (base_side, candidate_side)]
    tests = judge_counts(*records)
    unread = [f"Not counted: {each.reason}" for _, broken in (base_side, candidate_side) for each in broken]
    said = printable("\n".join([*lines(tests), *differences(*records), *unread]))
    (folder / RESULT).write_text(f"{said}\n", encoding="utf-8")
    keep(folder)
    print(f"{said}\nResult: {folder / RESULT}")
    words = [found.word for _, found in tests]
    return next((status for word, status in _STATUS.items() if word in words), ExitStatus.NOTHING_MEASURED)


def _chosen(command: CommandLine) -> list[str]:
    """What goes to Robot Framework: without suites and tags, all tests of the emulated machine."""
    options = {name: value for name, value in command.options.items() if name in _CHOOSE and value}
    suites = command.suites if command.names_suites else ()
    rows = [] if suites or options.get("include") else ["--include", EMULATED]
    return [*as_arguments(options), *suites, *rows]


def _count(names: Mapping[Role, str], testbed: TestbedConfig, folder: Path, chosen: Sequence[str]) -> str:
    """Run the emulated tests with each kernel, what is not counted yet. Returns why there is nothing to compare, or
    nothing."""
    made = ChildRuns(_GOES_ON)
    for number, role in enumerate(ROLES, 1):
        file = folder / f"{role}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_testbed(testbed, names[role], file)
        line = f"instructions of the {role}, run {number} of {len(ROLES)}; its own verdicts do not count here"
        ended = made.make(folder / role, ["-v", f"TESTBED:{file}", *chosen], line)
        if ended == ExitStatus.INTERRUPTED:
            print(f"To go on: the same command with --outputdir {folder.parent}", file=sys.stderr)
            raise KeyboardInterrupt
        if ended:
            said = [each.reason for each in read_without_record(folder / role)[0]]
            return said[0] if said else f"the run of the {role} ended with status {ended}"
    return ""


def lines(tests: Sequence[tuple[str, Verdict]]) -> list[str]:
    """A line for each test, the worst news first, and what came of all."""
    said = [
        f"  {test[:50]:<50}  {word.upper():<12}  {found.reason}"
        for word in _STATUS
        for test, found in tests
        if found.word == word
    ]
    floor = f"at most {format_margin(LEAST_OF_COUNTS * 100)} instructions"
    words = [found.word for _, found in tests]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("met", "missed", "not measured"))
    return [*said, f"Of {labels.plural(len(tests), 'row')}, {floor} of the base's: {counts}."]


def whole_kernel(option: str, given: str) -> str:
    """The kernel that an option names: `distribution`, or its file, looked into: a package has to unpack, an image to
    be whole, with its modules in the same folder. `ConfigError` where it is not."""
    if given == "distribution":
        return given
    path = Path(given).absolute()
    if not path.exists():
        raise ConfigError(f"{option}: {quoted(given)} is not there.\n  Expected {_A_KERNEL}.")
    try:
        check_kernel(path)
    except MissingResource as error:
        why = str(error).rstrip(".")
        raise ConfigError(f"{option}: {given} is not a kernel: {why}.\n  Expected {_A_KERNEL}.") from None
    return str(path)


def write_testbed(testbed: TestbedConfig, kernel: str, target: Path) -> None:
    """Write a testbed file with nothing but an emulated machine of this kernel: else as that of `testbed`, or that of
    the testbed with nothing else. It skips what `testbed` skips of them. `ConfigError` where a file is there that says
    something else: it belongs to the runs in its folder."""
    alone = load("testbeds", EMULATED, TestbedConfig)
    machine = next(dut for dut in (*testbed.duts, *alone.duts) if dut.type == EMULATED)
    data = alone.model_dump(mode="json", exclude_unset=True)
    data["duts"] = [machine.model_dump(mode="json", exclude_unset=True) | {"kernel": kernel}]
    data["skips"] = [tag for tag in testbed.skips if tag != EMULATED]
    text = yaml.safe_dump(data, sort_keys=False)
    if target.exists() and target.read_text(encoding="utf-8") != text:
        raise ConfigError(
            f"{target}: is of a comparison of something else.\n  Expected another --outputdir, or the same options."
        )
    target.write_text(text, encoding="utf-8")
    load("testbeds", target, TestbedConfig)
