"""`./run sla --testbeds a,b`: runs suites side by side with pabot, each process on a testbed of its own.

pabot runs in this process and starts one of Robot Framework for each suite file, as many at once as there are testbeds.
A process takes its testbed from here (`ConntrackSLA.pool`), as one of pabot's value sets, and keeps it until it ends.
"""

import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pabot import pabot
from pabot.pabotlib import _PabotLib
from pabot.robotremoteserver import RobotRemoteServer
from robot.conf import RobotSettings
from robot.errors import DataError
from robot.model import ModelModifier
from robot.output import LOGGER
from robot.run import RobotFramework
from robot.running import TestSuite, TestSuiteBuilder

from ctbench.exit_status import MISTAKES_FILE, ROBOT_INVALID_DATA, note_mistake
from ctbench.pool_run import new_run_id
from ctbench.report import console
from ctbench.report.material import PABOT_RESULTS, read_material
from ctbench.results import without_record
from ctbench.results.record import RecordError, from_json
from ctbench.results.without_record import WithoutRecord
from ctbench.testbed_pool import Member

#: The order of the suites, for pabot, in the folder of the run.
_ORDER = ".suites-in-order"
#: Seconds that the processes get to end by themselves when the run is stopped.
_GRACE_S = 20.0
#: Of what a process said before it was lost, characters shown.
_SHOWN = 1000
#: Seconds between two looks for new records.
_WATCH_S = 0.5


@dataclass(frozen=True)
class Selection:
    """What a command line selects."""

    #: Name of the uppermost suite where it is made of several folders or files; pabot has another one for that.
    name: str
    #: Long names of the suites with their tests, in the order in which one process would run them.
    suites: dict[str, list[str]]


def selected_suite(arguments: Sequence[str]) -> TestSuite:
    """What Robot Framework would run. Raises DataError where that is nothing."""
    options, sources = RobotFramework().parse_arguments(list(arguments))
    settings = RobotSettings(options)
    builder = TestSuiteBuilder(
        included_extensions=settings.extension, included_files=settings.parse_include,
        custom_parsers=settings.parsers, rpa=settings.rpa, lang=settings.languages,
    )  # fmt: skip
    suite = builder.build(*sources)
    if settings.pre_run_modifiers:
        suite.visit(ModelModifier(settings.pre_run_modifiers, settings.run_empty_suite, LOGGER))
    suite.configure(**settings.suite_config)
    return suite


def select(arguments: Sequence[str]) -> Selection:
    """What a command line selects. Raises DataError where that is nothing."""
    suite = selected_suite(arguments)
    found: dict[str, list[str]] = {}
    for test in suite.all_tests:
        found.setdefault(test.parent.full_name, []).append(test.name)
    # A suite that is made of several has no file.
    return Selection("" if suite.source else suite.name, found)


class ValueSets(_PabotLib):  # type: ignore[misc] # pabot has no types
    """pabot's value sets, one for each testbed. One is free again as soon as its process has ended."""

    def __init__(self, members: Sequence[Member], output: Path, run_id: str) -> None:
        super().__init__()
        for member in members:
            # The name is in it: pabot takes sets with the same values for one.
            values: dict[str, Any] = {"name": member.name, "testbed": member.testbed, "cpus": list(member.cpus)}
            self.add_value_to_set(member.name, values | {"run_id": run_id, "output": str(output)})

    def is_ignored_execution(self, caller_id: str) -> bool:
        """pabot asks this when a process has ended, however it ended."""
        self.release_value_set(caller_id)
        return bool(super().is_ignored_execution(caller_id))


class _Stop:
    """Ends the processes when the run is told to end: they write their results, as a single one does."""

    def __init__(self) -> None:
        self._told = False

    def __call__(self, *_: object) -> None:
        pabot.CTRL_C_PRESSED = True  # nothing new is started
        self._send(signal.SIGKILL if self._told else signal.SIGTERM)
        if not self._told:
            self._told = True
            last = threading.Timer(_GRACE_S, self._send, [signal.SIGKILL])
            last.daemon = True
            last.start()

    @staticmethod
    def _send(number: signal.Signals) -> None:
        for process in list(pabot._ensure_process_manager().processes):
            process.send_signal(number)  # not to one that has ended: Popen knows


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
        return sorted((self._output / "records").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)

    def _show_new(self) -> None:
        for path in self._files():
            if path not in self._known:
                self._known.add(path)
                with suppress(OSError, RecordError):  # the report names it
                    print(console.pool_line(from_json(path.read_text(encoding="utf-8"), str(path))), flush=True)


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
    order = output / _ORDER
    order.write_text("".join(f"--suite {name}\n" for name in selection.suites), encoding="utf-8")
    run_id = run_id or new_run_id()
    server = RobotRemoteServer(ValueSets(members, output, run_id), port=0, serve=False)
    uri = f"127.0.0.1:{server.activate()}"
    # In a thread and not in a process, as pabot would have it: then it cannot outlive us.
    threading.Thread(target=server.serve, args=[False], daemon=True).start()
    stop = _Stop()
    _adapt_pabot(uri, stop)
    before = signal.signal(signal.SIGTERM, stop)
    watch = _Watch(output)
    print(f"{len(selection.suites)} suites on {', '.join(_said(member) for member in members)}", flush=True)
    watch.start()
    try:
        status = pabot.main_program([
            "--no-pabotlib", "--processes", str(len(members)), "--pabotconsole", "none", "--ordering", str(order),
            *(["--name", selection.name] if selection.name else []), "--variable", "TESTBED_POOL:yes", *arguments,
        ])  # fmt: skip
    finally:
        watch.end()
        signal.signal(signal.SIGTERM, before)
        order.unlink()
    lost = gather(output, selection)
    if (output / "records").is_dir():
        newest = [each.record for each in read_material([output]).newest]
        print(f"\n{console.summary([record for record in newest if record.run_id == run_id])}")
    # pabot takes results that are missing for wrong usage; here the records say what the rest came to.
    return 1 if lost and status == ROBOT_INVALID_DATA else int(status)


def _adapt_pabot(uri: str, stop: _Stop) -> None:
    """What pabot 5.2 has no options for."""
    # A process looks for its value set here.
    pabot._PABOTLIBURI = uri
    # Its own handler ends the processes by force, and replaces what they had found by a failure of each test.
    pabot.keyboard_interrupt = stop
    # It keeps names of suites in the current folder.
    pabot._open_pabotsuitenames = lambda _mode: io.StringIO()
    # It starts `robot`, which is beside the Python that runs this.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


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
        said = "".join(_read(part / f"robot_{stream}.out") for stream in ("stdout", "stderr"))
        if part.is_dir():
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
            reason = "The process of this suite was killed." if part.is_dir() else "The run was stopped before."
            left = [test for test in tests if test not in {each.test for each in noted if each.suite == suite}]
            noted += [WithoutRecord(suite=suite, test=test, outcome="failed", reason=reason) for test in left]
            print(f"run: {suite}: {reason} {said.strip()[-_SHOWN:]}".rstrip(), file=sys.stderr)
    if noted:
        without_record.note(noted, output)
    shutil.rmtree(output / PABOT_RESULTS, ignore_errors=True)
    return lost


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _fresh(path: Path) -> Path:
    """A place to put something: what an older run left there goes."""
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    return path
