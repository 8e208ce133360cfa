"""The pool of `./run sla --testbeds a,b`: suites run side by side, each in a Robot Framework process of its own.

A process holds its testbed until it ends, for any reason; then the next suite gets it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pabot import result_merger
from pabot.writer import get_writer
from robot.conf import RobotSettings
from robot.output import LOGGER
from robot.run import RobotFramework

from ctbench.base.paths import LIBRARIES
from ctbench.cli.robot.command_line import as_arguments, selected_suite
from ctbench.cli.robot.outputs import is_whole, write_results
from ctbench.hosts.local import ends_with_us
from ctbench.report import console
from ctbench.report.runs import PABOT_RESULTS, read_runs
from ctbench.results import store
from ctbench.results.record import PoolMember, RecordError
from ctbench.results.store import Ending, WithoutRecord, read_whole
from ctbench.run.exit_status import MISTAKES_FILE, note_mistake, record_files
from ctbench.run.run_folder import POOL_VARIABLE, PoolRun
from ctbench.testbed.pool import Member

#: What a process says, in its folder below `PABOT_RESULTS`: the layout is that of pabot, which reports know.
CONSOLE_FILE = "console.txt"
#: Options of a process: what is made of its results is made of all together.
_OF_A_PROCESS = {
    "output": "output.xml", "log": "NONE", "report": "NONE", "xunit": "NONE", "timestampoutputs": False,
    "legacyoutput": False, "debugfile": "NONE",
}  # fmt: skip
#: Seconds that the processes get to end when the run is stopped.
_GRACE_S = 20.0
#: Of what a process said before it was lost, characters shown.
_SHOWN = 1000
#: Seconds between two looks for new records, and for processes that have ended.
_WATCH_S = 0.5


def run(members: Sequence[Member], output: Path, arguments: Sequence[str], run_id: str) -> int:
    """Run what `arguments` select on the testbeds of the pool. Return Robot Framework's return code; 1 where a suite
    has no results.

    Records go to `output`, and so do the output.xml and log of all. Numbered parts, one for each process, have what it
    printed (`console`) and the logs of the DUT and of TRex.
    """
    options, sources = RobotFramework().parse_arguments(list(arguments))
    suites: dict[str, list[str]] = {}
    for test in selected_suite(arguments).all_tests:
        suites.setdefault(test.parent.full_name, []).append(test.name)
    shutil.rmtree(output / PABOT_RESULTS, ignore_errors=True)  # of a run that was killed
    said = (f"{each.name} (CPU {', '.join(map(str, each.cpus))})" if each.cpus else each.name for each in members)
    print(f"{len(suites)} suites on {', '.join(said)}", flush=True)
    known = set(record_files(output))
    free, waiting = list(members), list(enumerate(suites))
    running: dict[subprocess.Popen[bytes], Member] = {}
    heard = 0
    with _told_to_stop() as told:
        while running or (waiting and not told):
            free += [running.pop(process) for process in list(running) if process.poll() is not None]
            while free and waiting and not told:
                number, suite = waiting.pop(0)
                member = free.pop(0)
                shared = PoolMember(name=member.name, cpus=list(member.cpus), suite=number)
                others = sum(len(tests) for name, tests in suites.items() if name != suite)
                of_pool = PoolRun(run_id=run_id, output=output, member=shared, other_tests=others)
                started = _start(member, of_pool, suite, options, sources)
                running[started] = member
            heard = _end(list(running), told, heard)
            _show_new(output, known)
            time.sleep(_WATCH_S)
    _show_new(output, known)
    status = merge(output / PABOT_RESULTS, RobotSettings(options))
    lost = gather(output, suites)
    if (output / "records").is_dir():
        newest = [each.path for each in read_runs([output]).newest if each.record.run_id == run_id]
        with suppress(OSError, RecordError):  # they were read just now
            print(f"\n{console.summary([read_whole(path) for path in newest])}")
    return 1 if lost else status


def _show_new(output: Path, known: set[Path]) -> None:
    """Print a line for each new record: the processes' own lines go to files."""
    found = [path for path in record_files(output) if path not in known]
    for path in sorted(found, key=os.path.getmtime):
        known.add(path)
        with suppress(OSError, RecordError):  # the report names it
            print(console.pool_line(read_whole(path)), flush=True)


def _start(
    member: Member, shared: PoolRun, suite: str, options: Mapping[str, Any], sources: Sequence[str]
) -> "subprocess.Popen[bytes]":
    """Start Robot Framework for a suite in a session of its own, so that Ctrl-C in a terminal does not reach it: a
    second one would end it by force."""
    place = shared.output / PABOT_RESULTS / str(shared.member.suite)
    place.mkdir(parents=True)
    variables = [*options.get("variable", ()), f"TESTBED:{member.testbed}"]
    own = {**options, **_OF_A_PROCESS, "outputdir": str(place), "suite": suite, "variable": variables}
    command = [sys.executable, "-P", "-m", "robot", *as_arguments(own), *sources]
    if member.cpus:  # what is started later inherits it, and `auto` in a testbed file chooses among these
        command = ["taskset", "--cpu-list", ",".join(map(str, member.cpus)), *command]
    path = filter(None, [str(LIBRARIES), os.environ.get("CTBENCH_PYTHONPATH")])
    environment = {name: value for name, value in os.environ.items() if name != "ROBOT_OPTIONS"}  # read already
    environment |= {"PYTHONPATH": os.pathsep.join(path), POOL_VARIABLE: shared.model_dump_json()}
    with (place / CONSOLE_FILE).open("wb") as said:
        return subprocess.Popen(
            ends_with_us(command), env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip


@contextmanager
def _told_to_stop() -> Iterator[list[float]]:
    """Collect the times at which this process was asked to end, in seconds of the monotonic clock."""
    told: list[float] = []
    before = {
        number: signal.signal(number, lambda *_: told.append(time.monotonic()))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(processes: Sequence["subprocess.Popen[bytes]"], told: Sequence[float], heard: int) -> int:
    """End the processes where the run was asked to end, so that they write their results. A second signal, or the end
    of the grace period, kills them. `heard`: the number of signals sent to them so far; return the new number."""
    too_late = bool(told) and time.monotonic() > told[0] + _GRACE_S
    if len(told) > heard or too_late:
        for process in processes:
            process.send_signal(signal.SIGKILL if heard or too_late else signal.SIGTERM)
        heard += 1
    return heard


def merge(folder: Path, settings: RobotSettings) -> int:
    """Write one output.xml, log and report of the outputs in `folder`, as one process would have. Return Robot
    Framework's return code; 1 where no process left a complete output. Tests of a killed process are missing."""
    outputs = [path for path in sorted(folder.glob("*/output.xml"), key=lambda path: int(path.parent.name))
               if is_whole(path)]  # fmt: skip
    if not outputs:
        return 1
    messages = get_writer(str(folder))  # a thread of pabot's, with a file: this process would not end before it
    try:
        result = result_merger.merge(list(map(str, outputs)), {}, "", [], None)
    finally:
        messages.stop()
    LOGGER.unregister_console_logger()  # it would name each file
    write_results(result, settings, Path(settings.output or folder / "output.xml"))
    return int(result.return_code)


def gather(output: Path, suites: Mapping[str, Sequence[str]]) -> int:
    """Move the files of the processes to where a single process puts them, and remove their folders. Return how many
    `suites` (long names with their tests, in the order of a single process) have no results, because their process was
    killed or never began; their tests are noted."""
    lost = 0
    noted: list[WithoutRecord] = []
    for number, (suite, tests) in enumerate(suites.items()):
        part = output / PABOT_RESULTS / str(number)
        began = (part / CONSOLE_FILE).exists()
        said = _read(part / CONSOLE_FILE)
        if began:
            _fresh(output / "console" / f"{number}.txt").write_text(said, encoding="utf-8")
        for kind in ("dut", "generator"):
            if (part / kind).is_dir():
                (part / kind).rename(_fresh(output / kind / str(number)))
        mistakes = _read(part / MISTAKES_FILE)
        for mistake in mistakes.splitlines():
            note_mistake(output, mistake)
        print(mistakes, end="", file=sys.stderr)
        noted += store.read_without_record(part)[0]
        if not is_whole(part / "output.xml"):
            lost += 1
            reason = "The process of this suite was killed." if began else "The run was stopped before."
            outcome: Ending = "failed" if began else "not begun"
            left = [test for test in tests if test not in {each.test for each in noted if each.suite == suite}]
            noted += [WithoutRecord(suite=suite, test=test, outcome=outcome, reason=reason) for test in left]
            print(f"run: {suite}: {reason} {said.strip()[-_SHOWN:]}".rstrip(), file=sys.stderr)
    if noted:
        store.note_without_record(noted, output)
    shutil.rmtree(output / PABOT_RESULTS, ignore_errors=True)
    return lost


def _read(path: Path) -> str:
    """Return the text of a file; empty where there is none. The last line of a killed process may end within a
    character."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _fresh(path: Path) -> Path:
    """Return a path that is free: a folder that an older run left there is removed."""
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    return path
