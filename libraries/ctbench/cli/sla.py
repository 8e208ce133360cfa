"""The command `./run sla`: checks, a folder for the results, Robot Framework, the exit status.

Robot Framework runs in this process, so that a signal that kills `./run` also kills it, and with it the sandbox.
"""

import argparse
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError, ExitStatus, OutputError
from ctbench.base.files import check_writable
from ctbench.base.paths import SUITES, results_root
from ctbench.base.text import brief
from ctbench.cli import error_boundary, kernel_candidate
from ctbench.cli.robot import pool
from ctbench.cli.robot.command_line import (
    CommandLine,
    DataError,
    Information,
    RobotSettings,
    TestCase,
    TestSuite,
    are_ours,
    as_arguments,
    check_names,
    parse,
    run_robot,
    selected_suite,
)
from ctbench.cli.robot.outputs import merge, set_aside
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import read_machine
from ctbench.report import console
from ctbench.report.write import PAGE, write_reports
from ctbench.results import store
from ctbench.results.store import Stored
from ctbench.run.exit_status import (
    MISTAKES_FILE,
    OF_TESTS,
    exit_status,
    read_verdicts,
    sentence,
    why_without_verdict,
)
from ctbench.run.run_folder import claimed, new_run_id
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import Member, make_pool

#: Robot Framework's return codes from here on are of runs that did not come to their end, and the one of its own fault
#: (User Guide, 3.1.3).
_NO_RESULT, _FAULT = 251, 255


def read_testbeds(command: CommandLine, suite: TestSuite) -> list[tuple[str, TestbedConfig]]:
    """Return the testbeds of the run with their names, after reading all files that were chosen. Raise `ConfigError`,
    which names the mistake. Empty where suites of another project may name the testbed: they check it when they open
    it."""
    chosen = dict(command.chosen)
    if command.testbeds:
        return [(name, RunSettings.load(**chosen | {"testbed": name}).testbed) for name in command.testbeds]
    testbed = RunSettings.load(**chosen).testbed
    is_known = "testbed" in chosen or are_ours([test.source for test in suite.all_tests], SUITES)
    return [(chosen.get("testbed", "local"), testbed)] if is_known else []


def usable_cores() -> Sequence[Sequence[int]]:
    """Return the CPUs that this process may use, by core."""
    return read_machine(LocalHost()).cores


def keep_as_latest(folder: Path) -> None:
    """Point `latest` of the results to a run that has a result, by a relative link. It is replaced in one step, so that
    it is never missing."""
    latest = results_root() / "latest"
    fresh = latest.with_name(f".latest-{os.getpid()}")
    try:
        latest.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.path.relpath(folder.resolve(), latest.parent.resolve()))
        fresh.replace(latest)
    except OSError as error:
        print(f"run: {latest} does not point to this run ({error.strerror}).", file=sys.stderr)
    finally:
        with suppress(OSError):  # it is not there any more where all went well
            fresh.unlink()


def prepare(command: CommandLine) -> Path:
    """Make the folder that this run writes to, and return it."""
    # The process ID keeps apart what starts within the same second.
    own = results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    folder = Path(own if command.outputdir is None else command.outputdir).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_writable(folder)
    except (OSError, ValueError) as error:  # ValueError: a name with NUL
        where = brief(str(getattr(error, "filename", None) or folder), error_boundary.SHOWN)
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"The results cannot be written to {where} ({reason}): choose a folder with --outputdir."
        ) from None
    error_boundary.keep_tracebacks_in(folder)
    return folder


def run(command: CommandLine, folder: Path, suite: TestSuite, members: Sequence[Member] = ()) -> int:
    """Run Robot Framework, on a pool of testbeds once for each suite, print the results, and return the exit status;
    after a signal that of the signal. The run of the folder is continued where that has records of these tests."""
    stored = [] if command.dry_run else store.read_stored(folder)[0]
    run_id = stored[-1].record.run_id if stored else new_run_id()
    ours = _of_tests([each for each in stored if each.record.run_id == run_id], suite)
    known = {(each.record.suite, each.record.test) for each in ours}
    others = [each.path for each in stored if each not in ours]
    mistakes = folder / MISTAKES_FILE
    for left in (mistakes, folder / store.WITHOUT_RECORD_FILE):  # those of an older run, or part
        left.unlink(missing_ok=True)
    # Robot Framework has to count failed tests here: `--nostatusrc` of the user takes effect at the end.
    options = {**command.options, "outputdir": str(folder), "statusrc": True}
    options |= {"timestampoutputs": False} if known else {}  # the whole has one output
    named = ["--variable", "BY_NAME:true"] if command.options.get("test") else []
    arguments = [*named, *as_arguments(options), *command.suites]
    settings = RobotSettings(options)
    parts = _go_on(folder, settings, f"{len(known)} of {suite.test_count}") if known else []
    with _heard() as signals:
        escaped: Exception | None = None
        try:
            # A test with a record counts by its verdict. The return code tells of the tests without one.
            alone = ["--variable", f"RUN_ID:{run_id}", *arguments]
            robot_rc = pool.run(members, folder, arguments, run_id) if members else run_robot(alone)
        except Exception as error:  # of Robot Framework's loggers, such as those that cannot write any more
            robot_rc = _FAULT
            escaped = error
    if known:
        _merge(parts, settings)
        records = [each.record for each in store.read_stored(folder)[0] if each.path not in others]
        print(f"\nThe whole run:\n\n{console.summary(records)}")

    verdicts = read_verdicts(folder, others, accepting=not command.bisect)
    status = exit_status(robot_rc, verdicts, dry_run=command.dry_run, mistakes=mistakes.exists())
    if not _is_writable(folder):
        status = ExitStatus.OUTPUT
    elif escaped:
        status = ExitStatus(error_boundary.report_error(escaped))
    status = ExitStatus.INTERRUPTED if signals else kernel_candidate.with_uncounted(status, folder)
    has_result = bool(verdicts.total()) or (robot_rc < _NO_RESULT and not signals)
    if verdicts.total():
        print(f"Records: {folder / 'records'}")
    if folder.exists():
        print(f"Results: {folder}")
    if not command.dry_run:
        if not report(folder) and status == ExitStatus.MET:
            status = ExitStatus.OUTPUT
        if has_result:
            keep_as_latest(folder)
        print(sentence(status, verdicts, why_without_verdict(folder)))
    if signals:
        print(f"To go on: the same command with --outputdir {shlex.quote(str(folder))}")
        return 128 + signals[0]
    return status if command.options.get("statusrc", True) or status not in OF_TESTS else 0


def _of_tests(stored: Sequence[Stored], suite: TestSuite) -> list[Stored]:
    """Return the records that are of the suite's tests. Robot Framework replaces variables and escapes in the name of a
    test when it runs the test: where a suite has such a name, all of its records are."""
    tests = {(test.parent.full_name, test.name) for test in suite.all_tests}
    replaced = {of_suite for of_suite, name in tests if re.search(r"[$@&%]\{|\\", name)}
    return [each for each in stored if each.record.suite in replaced or (each.record.suite, each.record.test) in tests]


def _go_on(folder: Path, settings: RobotSettings, measured: str) -> list[Path]:
    """Print how many tests have records, set the outputs of the earlier parts aside, and return them."""
    print(
        f"{measured} tests have a record in {folder}, which counts where nothing has changed. Another --outputdir "
        "measures all of them.",
        flush=True,
    )
    return set_aside(folder, settings)


def _merge(parts: Sequence[Path], settings: RobotSettings) -> None:
    try:
        merge(parts, settings)
    except (OSError, DataError) as error:
        print(f"run: Robot Framework's output of the whole run could not be written ({error}).", file=sys.stderr)


def _is_writable(folder: Path) -> bool:
    """True where the results could be written completely; else print why not. Robot Framework reports a full disk under
    many names."""
    for unwritten in store.unwritten[:1]:
        print(f"run: {unwritten}", file=sys.stderr)
    try:
        check_writable(folder)
    except OSError as error:
        print(f"run: {folder}: cannot be written ({error.strerror}). What was written before is kept.", file=sys.stderr)
        return False
    return not store.unwritten


@contextmanager
def _heard() -> Iterator[list[int]]:
    """Collect the stop signals that arrive in the context, in order; the list is filled at its end. Robot Framework
    handles signals itself and reports none; Python also writes the number of each to a socket."""
    numbers: list[int] = []
    heard, said = socket.socketpair()
    heard.setblocking(False)
    said.setblocking(False)
    signal.set_wakeup_fd(said.fileno(), warn_on_full_buffer=False)
    try:
        yield numbers
    finally:
        signal.set_wakeup_fd(-1)
        with suppress(BlockingIOError):  # there was none
            numbers += [number for number in heard.recv(4096) if number in error_boundary.STOP_SIGNALS]


def report(folder: Path) -> bool:
    """Write the report of this run, and print what prevents it. Return False where its files cannot be written."""
    if not (folder / "records").is_dir() and not (folder / store.WITHOUT_RECORD_FILE).is_file():
        return True
    try:
        page = write_reports([folder], folder)
    except CtbenchError as error:
        print(f"run: {error}", file=sys.stderr)
        return not isinstance(error, OutputError)
    print(f"SLA report: {folder / PAGE}")
    print(f"\n{console.report(page)}\n")
    return True


def look_at(command: CommandLine) -> tuple[TestSuite, list[Member]]:
    """Return the suite to run, and the members of a pool of testbeds, after a check of all that the command line
    names."""
    try:
        suite = selected_suite(command.arguments)
    except DataError as error:
        raise ConfigError(str(error)) from None
    check_names(command, [test.source for test in suite.all_tests], SUITES)
    _check_unique(suite)
    testbeds = read_testbeds(command, suite)
    # The machine is looked at before its CPUs are shared out: what it lacks altogether is said first.
    if not command.dry_run:
        for _, testbed in testbeds:
            testbed.check_machine()
    return suite, make_pool(testbeds, usable_cores()) if command.testbeds else []


def _check_unique(suite: TestSuite) -> None:
    """Raise `ConfigError` for two tests of one name in suites of one name, whose records are not told apart."""
    known: dict[tuple[str, str], TestCase] = {}
    for test in suite.all_tests:
        other = known.setdefault((test.parent.full_name, test.name), test)
        if other is not test:
            raise ConfigError(
                f"{test.full_name}: two tests have this name, in {other.source} (line {other.lineno}) and "
                f"{test.source} (line {test.lineno}).\n  Expected another name for one of the tests, or of the suites."
            )


def begin(command: CommandLine) -> int:
    """Begin a run, or continue the one whose records the folder has. Return the exit status."""
    suite, members = look_at(command)
    folder = prepare(command)
    with claimed(folder):
        for option in ("rerunfailed", "rerunfailedsuites"):
            read = command.options.get(option)
            if read and Path(read).absolute().is_relative_to(folder):
                raise ConfigError(
                    f"--{option}: {read} is of this run, which would replace it.\n  Expected another --outputdir."
                )
        if command.dry_run and (folder / "records").exists():
            raise ConfigError(
                f"--dryrun: {folder} has the records of a run, whose outputs it would replace.\n"
                "  Expected another --outputdir."
            )
        return run(command, folder, suite, members)


def main(options: argparse.Namespace) -> int:
    """Run the command, from its command line to its exit status."""
    try:
        command = parse(options.given, SUITES)
    except Information as information:
        print(information)
        return ExitStatus.MET
    os.environ.pop("ROBOT_OPTIONS", None)  # they are among the options
    if kernel_candidate.is_kernel(command.chosen.get("candidate", "")):
        return kernel_candidate.run(command, prepare, begin)
    return begin(command)
