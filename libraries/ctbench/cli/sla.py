"""`./run sla` once everything is installed: checks, a folder for the results, Robot Framework, the exit status.

Robot Framework runs in this very process, so that whatever kills `./run` kills it, and with it the sandbox.
"""

import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctbench.base.errors import ConfigError, CtbenchError, OutputError
from ctbench.base.paths import SUITES
from ctbench.base.statuses import ExitStatus
from ctbench.cli import boundary
from ctbench.cli.ending import abnormal_end
from ctbench.cli.results_folder import WatchedFolder, check_possible, check_writable, results_root
from ctbench.cli.robot.command_line import CommandLine, DataError, Information, chosen_files, parse
from ctbench.cli.robot.robot_run import RobotRun
from ctbench.cli.robot.selection import selected_suite
from ctbench.cli.variables import check_forms, check_names
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import read_machine
from ctbench.report.reference import read_references
from ctbench.report.write import PAGE, write_reports
from ctbench.results.without_record import WITHOUT_RECORD_FILE
from ctbench.run.asked_for import AskedFor, claimed, find, stop_sentence
from ctbench.run.asked_for import read as read_asked_for
from ctbench.run.command_line import absolute, goes_on_with, kept_options
from ctbench.run.exit_status import MISTAKES_FILE, exit_status, read_verdicts, record_stamps, sentence
from ctbench.run.inputs import differences, read_inputs
from ctbench.run.pool_member import new_run_id
from ctbench.run.settings import RunSettings
from ctbench.testbed import checks
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import Member, make_pool

if TYPE_CHECKING:
    from ctbench.cli.robot.another_part import Part

#: Robot Framework's own report, whose usual name is that of the SLA report.
ROBOT_REPORT = "robot-report.html"


def read_testbeds(command: CommandLine) -> list[tuple[str, TestbedConfig]]:
    """The testbeds of the run with their names, after all files that were chosen were read. `ConfigError` says what is
    wrong with one."""
    chosen = chosen_files(command.assignments)
    if command.testbeds and "testbed" in chosen:
        raise ConfigError("--testbeds and -v TESTBED:… are both given.\n  Expected one of them.")
    if not command.testbeds:
        return [(chosen.get("testbed", "local"), RunSettings.load(**chosen).testbed)]
    return [(name, RunSettings.load(testbed=name, **chosen).testbed) for name in command.testbeds]


def check_packages() -> None:
    """Raise ModuleNotFoundError for a package that is imported only after the run began: then it can be installed once
    more (`boundary`), and nothing is lost."""
    for name in ("MLRsearch", "RequestsLibrary", "SSHLibrary", "llvmlite", "numba", "numpy", "pabot", "paramiko"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def usable_cores() -> Sequence[Sequence[int]]:
    """The CPUs that this process may use, by core."""
    return read_machine(LocalHost()).cores


def make_outputdir(results: Path, now: datetime, pid: int) -> Path:
    """A new folder for one run. The process ID keeps apart what starts within the same second."""
    folder = results / f"{now:%Y%m%dT%H%M%SZ}-{pid}"
    folder.mkdir(parents=True)
    return folder


def point_latest(results: Path, folder: Path) -> None:
    """Let `latest` point to `folder`, relative and in one step, so that nobody ever finds it missing."""
    results.mkdir(parents=True, exist_ok=True)
    fresh = results / f".latest-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(folder.resolve(), results.resolve()))
    try:
        fresh.replace(results / "latest")
    except OSError:
        fresh.unlink()
        raise


@contextmanager
def _said_about(wanted: Path) -> Iterator[None]:
    """What hinders us from writing there, as one sentence."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        where = boundary.cut(str(getattr(error, "filename", None) or wanted))
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"The results cannot be written to {where} ({reason}): choose a folder with --outputdir."
        ) from None


def prepare(command: CommandLine) -> Path:
    """The folder this run writes to, made now and found through `latest`, so that even a killed run can be found."""
    results = results_root()
    with _said_about(Path(command.outputdir or results)):
        if command.outputdir is None:
            folder, made = make_outputdir(results, datetime.now(UTC), os.getpid()), True
        else:
            folder = Path(command.outputdir).absolute()
            made = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
        try:
            check_writable(folder)
        except OSError:
            if made:
                folder.rmdir()
            raise
    if not command.dry_run:
        try:
            point_latest(results, folder)
        except OSError as error:
            print(f"run: {results / 'latest'} does not point to this run ({error.strerror}).", file=sys.stderr)
    boundary.keep_tracebacks_in(folder)
    return folder


def check_selection(command: CommandLine) -> None:
    """Raise `ConfigError` where no test would run, or a variable is given that no suite uses: then nothing is made."""
    if command.outputdir:
        with _said_about(Path(command.outputdir)):
            check_possible(Path(command.outputdir).absolute())
    try:
        suite = selected_suite(command.arguments)
    except DataError as error:
        raise ConfigError(str(error)) from None
    check_names(command.assignments, [test.source for test in suite.all_tests], SUITES)


def run(
    command: CommandLine, folder: Path, members: Sequence[Member] = (), run_id: str = "", part: "Part | None" = None
) -> int:
    """Run Robot Framework, on a pool of testbeds once for each suite, and say what came of it: of the whole run, where
    this is another `part` of it. A signal that stopped it is this run's exit status."""
    records = folder / "records"
    watched, robot = WatchedFolder(folder), RobotRun()
    before = part.before if part else record_stamps(records)
    mistakes = folder / MISTAKES_FILE
    # report.html is ours; an option of the user comes later and wins.
    arguments = ["--outputdir", str(folder), "--report", ROBOT_REPORT, *command.arguments]
    if part:
        arguments = part.begin(arguments)
    else:
        for left in (mistakes, folder / WITHOUT_RECORD_FILE):  # those of an older run
            left.unlink(missing_ok=True)
    heard, said = socket.socketpair()
    heard.setblocking(False)
    said.setblocking(False)
    # Robot handles signals itself and tells nobody; Python also notes the number of each signal here.
    signal.set_wakeup_fd(said.fileno(), warn_on_full_buffer=False)
    robot_rc = 0 if part and not part.left else _run_robot(robot, members, folder, arguments, run_id)
    signal.set_wakeup_fd(-1)
    signals = _received(heard)
    if part:
        robot_rc = part.end(robot_rc)

    verdicts = read_verdicts(records, before)
    for problem in verdicts.broken:
        print(f"Not a record: {problem}", file=sys.stderr)
    found = exit_status(robot_rc, verdicts, dry_run=command.dry_run, mistakes=mistakes.exists())
    broken_off = abnormal_end(watched, robot.escaped, before)
    status = ExitStatus.INTERRUPTED if signals else broken_off or found
    if verdicts.total:
        print(f"Records: {records}")
    if folder.exists():
        print(f"Results: {folder}")
    if not command.dry_run:
        if not report(folder, chosen_files(command.assignments).get("reference")) and status == ExitStatus.MET:
            status = ExitStatus.OUTPUT
        print(sentence(status, verdicts))
    if signals:
        print(stop_sentence(folder, part.here if part else Path.cwd()))
    return 128 + signals[0] if signals else status


def _run_robot(robot: RobotRun, members: Sequence[Member], folder: Path, arguments: Sequence[str], run_id: str) -> int:
    if not members:
        return robot.run(["--variable", f"RUN_ID:{run_id}", *arguments])
    # It brings pabot, which few runs need.
    from ctbench.cli.robot import pool  # noqa: PLC0415

    return pool.run(members, folder, arguments, run_id)


def report(folder: Path, reference: str | None) -> bool:
    """Write the report of this run, next to an earlier one where that was named. What hinders it is said. False where
    it could not be written."""
    if not (folder / "records").is_dir() and not (folder / WITHOUT_RECORD_FILE).is_file():
        return True
    try:
        write_reports([folder], folder, read_references([Path(reference)] if reference else []))
    except CtbenchError as error:
        print(f"run: {error}", file=sys.stderr)
        return not isinstance(error, OutputError)
    print(f"SLA report: {folder / PAGE}")
    return True


def _received(heard: socket.socket) -> bytes:
    """The numbers of the signals that asked for an end, in order; a resized terminal is none of them."""
    try:
        numbers = heard.recv(4096)
    except BlockingIOError:
        return b""
    return bytes(number for number in numbers if number in boundary.STOP_SIGNALS)


def asked_for(command: CommandLine, testbeds: Sequence[tuple[str, TestbedConfig]], folder: Path) -> AskedFor:
    """What a run that begins now is asked for."""
    return AskedFor(
        run_id=new_run_id(),
        folder=str(Path.cwd()),
        options=kept_options(command.options),
        suites=absolute(command.suites) if command.names_suites else [],
        testbeds=list(command.testbeds),
        inputs=inputs_of(command, testbeds),
        earlier=[path.name for path in record_stamps(folder / "records")],
    )


def inputs_of(command: CommandLine, testbeds: Sequence[tuple[str, TestbedConfig]]) -> dict[str, Any]:
    """What has to be the same in all parts of a run."""
    return read_inputs([testbed for _, testbed in testbeds], chosen_files(command.assignments))


def begin(command: CommandLine) -> int:
    """A new run, in a folder that keeps what it was asked for."""
    testbeds = read_testbeds(command)
    check_packages()
    # The machine is looked at before its CPUs are shared out: what it lacks altogether is said first.
    if not command.dry_run:
        for _, testbed in testbeds:
            checks.check_machine(testbed)
    check_selection(command)
    members = make_pool(testbeds, usable_cores()) if command.testbeds else []
    folder = prepare(command)
    if command.dry_run:
        return run(command, folder)
    with claimed(folder):
        asked = asked_for(command, testbeds, folder)
        asked.write(folder)
        return run(command, folder, members, asked.run_id)


def resume(given: CommandLine, name: str) -> int:
    """Go on with the run `name`, which was stopped: measure what has no record yet, and report the whole."""
    # It brings pabot, which few runs need.
    from ctbench.cli.robot.another_part import Part  # noqa: PLC0415

    folder, here = find(results_root(), name), Path.cwd()
    with claimed(folder):
        asked = read_asked_for(folder)
        named = given.suites if given.names_suites else ()
        arguments = goes_on_with(asked, folder, given.options, named, given.testbeds)
        os.environ.pop("ROBOT_OPTIONS", None)  # they are among what was asked for
        with suppress(OSError):
            os.chdir(asked.folder)
        command = parse(arguments, SUITES)
        testbeds = read_testbeds(command)
        check_packages()
        if differing := list(differences(asked.inputs, inputs_of(command, testbeds))):
            expected = "  Expected what the run began with; a new run measures all with what is there now."
            raise ConfigError("\n".join([f"--resume {name}: {differing[0]}", *differing[1:], expected]))
        part = Part(folder, command.arguments, asked.earlier, len(command.suites), here)
        print(part.sentence, flush=True)
        members = make_pool(testbeds, usable_cores()) if command.testbeds else []
        for _, testbed in testbeds if part.left else ():
            checks.check_machine(testbed)
        return run(command, prepare(command), members, asked.run_id, part)


def main(arguments: Sequence[str] | None = None) -> int:
    """Everything from the command line to the exit status; every mistake is one sentence on stderr."""
    try:
        command = parse(sys.argv[1:] if arguments is None else arguments, SUITES)
        check_forms(command.assignments)
        return begin(command) if command.resume is None else resume(command, command.resume)
    except Information as information:
        print(information)
        return 0
    except DataError as error:
        print(f"run: {str(error).rstrip('.')}. Try `./run sla --help`.", file=sys.stderr)
        return ExitStatus.USAGE
    except CtbenchError as error:
        print(f"run: {error}", file=sys.stderr)
        return error.exit_status
