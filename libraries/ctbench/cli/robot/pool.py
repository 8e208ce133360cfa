"""`./run sla --testbeds a,b`: runs suites side by side with pabot, each process on a testbed of its own.

pabot starts a process for each suite file (`pool_suite.py`), as many at once as there are testbeds. Each of these takes
a testbed (`ctbench.testbed.pool`) and keeps it until it ends.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from robot.errors import DataError
from robot.run import RobotFramework

from ctbench.base.paths import LIBRARIES
from ctbench.cli.robot.command_line import as_arguments, selected_suite
from ctbench.hosts.local import ends_with_us
from ctbench.report import console
from ctbench.report.runs import PABOT_RESULTS, read_runs
from ctbench.results import store
from ctbench.results.record import RecordError
from ctbench.results.store import WithoutRecord, read_whole
from ctbench.run.exit_status import MISTAKES_FILE, ROBOT_INVALID_DATA, note_mistake, record_stamps
from ctbench.testbed.pool import CONSOLE_FILE, SHARES_VARIABLE, Member, Share, Shares

#: In the folder of the run while it lasts: the order of the suites, what pabot says, and the shares.
FOLDER, _ORDER, _SAID, _SHARES = ".pool", "suites-in-order", "pabot.txt", "shares"
#: What pabot leaves in the current folder.
_SUITE_NAMES = Path(".pabotsuitenames")
#: Seconds that the processes get to end when the run is stopped, or pabot was killed.
_GRACE_S = 20.0
#: Of what a process said before it was lost, characters shown.
_SHOWN = 1000
#: Seconds between two looks for new records, and for processes that were killed.
_WATCH_S = 0.5

#: Long names of the suites with their tests, in the order in which one process would run them.
Suites = Mapping[str, Sequence[str]]


def run(members: Sequence[Member], output: Path, arguments: Sequence[str], run_id: str) -> int:
    """Run what `arguments` select on the testbeds of the pool; returns what Robot Framework would, by itself.

    Records land in `output`; so do pabot's merged output.xml and log, and in numbered parts, one for each process, what
    they said (`console`) and the logs of the DUT and of TRex.
    """
    options, sources = RobotFramework().parse_arguments(list(arguments))
    try:
        suite = selected_suite(arguments)
    except DataError as error:
        print(f"[ ERROR ] {error}", file=sys.stderr)
        return ROBOT_INVALID_DATA
    if not suite.source:  # made of several, for which pabot has another name
        options["name"] = suite.name
    suites: dict[str, list[str]] = {}
    for test in suite.all_tests:
        suites.setdefault(test.parent.full_name, []).append(test.name)
    with _own_folder(output) as folder:
        shares = Shares(folder / _SHARES)
        shares.offer([Share(each.name, each.testbed, each.cpus, run_id, str(output)) for each in members])
        said = (f"{each.name} (CPU {', '.join(map(str, each.cpus))})" if each.cpus else each.name for each in members)
        print(f"{len(suites)} suites on {', '.join(said)}", flush=True)
        (folder / _ORDER).write_text("".join(f"--suite {name}\n" for name in suites), encoding="utf-8")
        with _records_shown(output), _stopped_by_signals(shares):
            status = _run_pabot(len(members), folder, [*as_arguments(options), *sources])
            deadline = time.monotonic() + _GRACE_S
            while status < 0 and shares.holders() and time.monotonic() < deadline:  # the kernel is about to kill them
                time.sleep(_WATCH_S)
        lost = gather(output, suites)
        if status < 0:
            name = signal.Signals(-status).name
            print(f"run: pabot was ended by {name}: what was measured is kept, output.xml is not.", file=sys.stderr)
        elif status >= ROBOT_INVALID_DATA and not lost:
            text = _read(folder / _SAID).strip()[-_SHOWN:]
            print(f"run: pabot failed with exit status {status}. {text}".rstrip(), file=sys.stderr)
    if (output / "records").is_dir():
        newest = [each.path for each in read_runs([output]).newest if each.record.run_id == run_id]
        with suppress(OSError, RecordError):  # they were read just now
            print(f"\n{console.summary([read_whole(path) for path in newest])}")
    # pabot takes results that are missing for wrong usage.
    return 1 if status < 0 or lost else status


@contextmanager
def _own_folder(output: Path) -> Iterator[Path]:
    """A folder in `output` for as long as the run lasts. One of a run that was killed is cleared away."""
    folder = output / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _records_shown(output: Path) -> Iterator[None]:
    """Meanwhile, show a line for each record as it is written: the processes' own lines go to files."""
    over, known = threading.Event(), set(record_stamps(output / "records"))

    def show() -> None:
        while True:
            last = over.wait(_WATCH_S)
            found = {path: stamp for path, stamp in record_stamps(output / "records").items() if path not in known}
            for path in sorted(found, key=found.__getitem__):
                known.add(path)
                with suppress(OSError, RecordError):  # the report names it
                    print(console.pool_line(read_whole(path)), flush=True)
            if last:
                return

    watch = threading.Thread(target=show, daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


@contextmanager
def _stopped_by_signals(shares: Shares) -> Iterator[None]:
    """Meanwhile, end the suites' processes when the run is told to end: they write their results, as a single one does.
    A second signal, or the end of their time, ends them by force."""
    told: list[int] = []

    def send(number: signal.Signals) -> None:
        for process in shares.holders():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def stop(number: int, _frame: object) -> None:
        shares.stop()
        send(signal.SIGKILL if told else signal.SIGTERM)
        told.append(number)
        last = threading.Timer(_GRACE_S, send, [signal.SIGKILL])
        last.daemon = True
        last.start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_pabot(processes: int, folder: Path, arguments: Sequence[str]) -> int:
    """Run pabot to its end; its exit status, negative where a signal ended it.

    pabot would replace what its processes had found by a failure of each test. So it has a session of its own, without
    Ctrl-C of a terminal, and ignores the SIGTERM that Jenkins sends to all processes of a job: it merges what they
    found.
    """
    # pabot takes a command with blanks in it to pieces: this one is found in PATH.
    command = ends_with_us(["python", "-m", "ctbench.cli.robot.pool_suite"])
    own = ["--command", *command, "--end-command", "--no-pabotlib", "--processes", str(processes)]
    own += ["--pabotconsole", "none", "--ordering", str(folder / _ORDER)]
    if path := os.environ.get("CTBENCH_PYTHONPATH"):
        own += ["--pythonpath", path]
    environment = {name: value for name, value in os.environ.items() if name != "ROBOT_OPTIONS"}  # read already
    # For the Python and the Rebot that pabot starts, which are next to the Python that runs this.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment |= {"PYTHONPATH": str(LIBRARIES), SHARES_VARIABLE: str(folder / _SHARES)}
    with (folder / _SAID).open("wb") as said:
        program = ["env", "--ignore-signal=TERM", sys.executable, "-m", "pabot.pabot", *own, *arguments]
        process = subprocess.Popen(
            ends_with_us(program), env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()
        _SUITE_NAMES.unlink(missing_ok=True)


def gather(output: Path, suites: Suites) -> int:
    """Put what the processes left where a single one leaves it, and clear pabot's folder away. Returns how many suites
    have no results, because their process was killed or never began; their tests are noted as failed."""
    lost = 0
    noted: list[WithoutRecord] = []
    for number, (suite, tests) in enumerate(suites.items()):
        part = output / PABOT_RESULTS / str(number)
        began = (part / CONSOLE_FILE).exists()
        said = _read(part / CONSOLE_FILE) or "".join(_read(path) for path in sorted(part.glob("*.out")))
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
        # Robot Framework writes it as it goes.
        if not _read(part / "output.xml").endswith("</robot>\n"):
            lost += 1
            reason = "The process of this suite was killed." if began else "The run was stopped before."
            left = [test for test in tests if test not in {each.test for each in noted if each.suite == suite}]
            noted += [WithoutRecord(suite=suite, test=test, outcome="failed", reason=reason) for test in left]
            print(f"run: {suite}: {reason} {said.strip()[-_SHOWN:]}".rstrip(), file=sys.stderr)
    if noted:
        store.note_without_record(noted, output)
    shutil.rmtree(output / PABOT_RESULTS, ignore_errors=True)
    return lost


def _read(path: Path) -> str:
    """Its text, empty where there is none. The last line of a process that was killed may end within a character."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _fresh(path: Path) -> Path:
    """A place to put something: what an older run left there goes."""
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    return path
