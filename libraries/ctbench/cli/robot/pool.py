"""`./run sla --testbeds a,b`: runs suites side by side with pabot, each process on a testbed of its own.

pabot runs in a process of its own (`pool_pabot.py`) and starts another for each suite file (`pool_suite.py`), as many
at once as there are testbeds. Each of these takes a testbed (`ctbench.testbed.share`) and keeps it until it ends.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from robot.errors import DataError

from ctbench.base.paths import LIBRARIES
from ctbench.cli.robot.pool_arguments import absolute_folders, for_pabot
from ctbench.cli.robot.selection import selected_suite
from ctbench.report import console
from ctbench.report.runs import PABOT_RESULTS, read_runs
from ctbench.results import without_record
from ctbench.results.record import RecordError
from ctbench.results.store import read_whole
from ctbench.results.without_record import WithoutRecord
from ctbench.run.exit_status import MISTAKES_FILE, ROBOT_CRASHED, ROBOT_INVALID_DATA, note_mistake
from ctbench.run.pool_member import new_run_id
from ctbench.testbed.pool import Member
from ctbench.testbed.share import CONSOLE_FILE, Share, Shares

PABOT = Path(__file__).with_name("pool_pabot.py")
SUITE = Path(__file__).with_name("pool_suite.py")
#: In the folder of the run while it lasts: pabot's current folder, where it keeps a file of its own.
FOLDER = ".pool"
#: In that folder: the order of the suites, what pabot starts for each, what it says, and the shares.
_ORDER, _START, _SAID, _SHARES = "suites-in-order", "start-suite.sh", "pabot.txt", "shares"
#: Seconds that the processes get to end when the run is stopped, or pabot was killed.
_GRACE_S = 20.0
#: Of what a process said before it was lost, characters shown.
_SHOWN = 1000
#: Seconds between two looks for new records, and for processes that were killed.
_WATCH_S = 0.5


@dataclass(frozen=True)
class Selection:
    """What a command line selects."""

    #: Name of the uppermost suite where it is made of several folders or files; pabot has another one for that.
    name: str
    #: Long names of the suites with their tests, in the order in which one process would run them.
    suites: dict[str, list[str]]


def select(arguments: Sequence[str]) -> Selection:
    """What a command line selects. Raises DataError where that is nothing."""
    suite = selected_suite(arguments)
    found: dict[str, list[str]] = {}
    for test in suite.all_tests:
        found.setdefault(test.parent.full_name, []).append(test.name)
    # A suite that is made of several has no file.
    return Selection("" if suite.source else suite.name, found)


class _Stop:
    """Ends the processes when the run is told to end: they write their results, as a single one does."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._told = False

    def __call__(self, *_: object) -> None:
        with suppress(OSError):  # the run is over
            self._shares.stop()
        self._send(signal.SIGKILL if self._told else signal.SIGTERM)
        if not self._told:
            self._told = True
            last = threading.Timer(_GRACE_S, self._send, [signal.SIGKILL])
            last.daemon = True
            last.start()

    def _send(self, number: signal.Signals) -> None:
        for process in self._shares.holders():
            with suppress(ProcessLookupError):
                os.kill(process, number)


class _Watch(threading.Thread):
    """Shows a line for each record as it is written: the processes' own lines go to files."""

    def __init__(self, output: Path) -> None:
        super().__init__(daemon=True)
        self._output = output
        self._known = set(self._files())
        self._over = threading.Event()

    def run(self) -> None:
        """Until `end`."""
        while not self._over.wait(_WATCH_S):
            self._show_new()

    def end(self) -> None:
        """Show what is left."""
        self._over.set()
        self.join()
        self._show_new()

    def _files(self) -> list[Path]:
        return sorted((self._output / "records").glob("*.json"), key=lambda path: path.lstat().st_mtime_ns)

    def _show_new(self) -> None:
        for path in self._files():
            if path not in self._known:
                self._known.add(path)
                with suppress(OSError, RecordError):  # the report names it
                    print(console.pool_line(read_whole(path)), flush=True)


def run(members: Sequence[Member], output: Path, arguments: Sequence[str], run_id: str = "") -> int:
    """Run what `arguments` select on the testbeds of the pool; returns what Robot Framework would, by itself.

    Records land in `output`; so do pabot's merged output.xml and log, and in numbered parts, one for each process, what
    they said (`console`) and the logs of the DUT and of TRex.
    """
    try:
        selection = select(arguments)
    except DataError as error:
        print(f"[ ERROR ] {error}", file=sys.stderr)
        return ROBOT_INVALID_DATA
    run_id = run_id or new_run_id()
    offered = [Share(each.name, each.testbed, each.cpus, run_id, str(output)) for each in members]
    with _own_folder(output) as folder:
        shares = Shares(folder / _SHARES)
        shares.offer(offered)
        print(f"{len(selection.suites)} suites on {', '.join(_said(member) for member in members)}", flush=True)
        with _watched(output), _stopped_by_signals(shares):
            ended = _run_pabot(len(members), folder, selection, arguments)
            deadline = time.monotonic() + _GRACE_S
            while ended < 0 and shares.holders() and time.monotonic() < deadline:  # the kernel is about to kill them
                time.sleep(_WATCH_S)
        lost = gather(output, selection)
        status = status_of_pabot(ended, lost, _read(folder / _SAID))
    if (output / "records").is_dir():
        newest = [each.path for each in read_runs([output]).newest if each.record.run_id == run_id]
        with suppress(OSError, RecordError):  # they were read just now
            print(f"\n{console.summary([read_whole(path) for path in newest])}")
    return status


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
def _watched(output: Path) -> Iterator[None]:
    watch = _Watch(output)
    watch.start()
    try:
        yield
    finally:
        watch.end()


@contextmanager
def _stopped_by_signals(shares: Shares) -> Iterator[None]:
    stop = _Stop(shares)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_pabot(processes: int, folder: Path, selection: Selection, arguments: Sequence[str]) -> int:
    """Run pabot to its end; its exit status, negative where a signal ended it."""
    start = [sys.executable, str(SUITE), str(folder / _SHARES)]
    # pabot takes a command with blanks in it to pieces.
    (folder / _START).write_text(f'cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(start)} "$@"\n')
    (folder / _ORDER).write_text("".join(f"--suite {name}\n" for name in selection.suites), encoding="utf-8")
    own = ["--command", "sh", _START, "--end-command", "--no-pabotlib", "--processes", str(processes)]
    own += ["--pabotconsole", "none", "--ordering", _ORDER]
    environment = {name: value for name, value in os.environ.items() if name != "ROBOT_OPTIONS"}  # read already
    # For the Rebot that pabot starts, which is next to the Python that runs this.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment["PYTHONPATH"] = os.pathsep.join([str(LIBRARIES), absolute_folders(os.environ.get("PYTHONPATH", ""))])
    with (folder / _SAID).open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, str(PABOT), str(os.getpid()), *own, *for_pabot(arguments, selection.name)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


def status_of_pabot(status: int, lost: int, said: str) -> int:
    """What Robot Framework would have returned, from what pabot returned and how many suites have no results."""
    if status < 0:
        name = signal.Signals(-status).name
        print(f"run: pabot was ended by {name}: what was measured is kept, output.xml is not.", file=sys.stderr)
        return 1
    if status == ROBOT_INVALID_DATA and lost:
        # pabot takes results that are missing for wrong usage; here the records say what the rest came to.
        return 1
    if status in (ROBOT_INVALID_DATA, ROBOT_CRASHED):
        print(f"run: pabot failed with exit status {status}. {said.strip()[-_SHOWN:]}".rstrip(), file=sys.stderr)
    return status


def _said(member: Member) -> str:
    cpus = f" (CPU {', '.join(str(cpu) for cpu in member.cpus)})" if member.cpus else ""
    return f"{member.name}{cpus}"


def gather(output: Path, selection: Selection) -> int:
    """Put what the processes left where a single one leaves it, and clear pabot's folder away. Returns how many suites
    have no results, because their process was killed or never began; their tests are noted as failed."""
    lost = 0
    noted: list[WithoutRecord] = []
    for number, (suite, tests) in enumerate(selection.suites.items()):
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
        noted += without_record.read(part)[0]
        # Robot Framework writes it as it goes.
        if not _read(part / "output.xml").endswith("</robot>\n"):
            lost += 1
            reason = "The process of this suite was killed." if began else "The run was stopped before."
            left = [test for test in tests if test not in {each.test for each in noted if each.suite == suite}]
            noted += [WithoutRecord(suite=suite, test=test, outcome="failed", reason=reason) for test in left]
            print(f"run: {suite}: {reason} {said.strip()[-_SHOWN:]}".rstrip(), file=sys.stderr)
    if noted:
        without_record.note(noted, output)
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
