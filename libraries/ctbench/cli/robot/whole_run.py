"""The output of Robot Framework for a run that was measured in parts: one output.xml, log and report of the whole.

A part that was killed left an output.xml that ends in the middle; of it counts what is complete. A test with a record
that no part has (the power went before Robot Framework's output was on the disk) is made from its record.
"""

import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from xml.parsers import expat

from robot.api import ExecutionResult, ResultWriter
from robot.conf import RobotSettings
from robot.errors import DataError
from robot.result import Result
from robot.result import TestCase as ResultTest
from robot.result import TestSuite as ResultSuite
from robot.running import TestSuite

from ctbench.report import console
from ctbench.report.runs import PABOT_RESULTS
from ctbench.results.record import Record
from ctbench.results.without_record import WITHOUT_RECORD_FILE
from ctbench.run.exit_status import MISTAKES_FILE
from ctbench.run.progress import TestKey, key

#: Below the folder of a run that was stopped: what its parts left next to their records, a folder each by its number.
PARTS = "parts"
#: What a part leaves next to its records and Robot Framework's output, and the next one would replace.
_LEFT = ("console", "dut", "generator", PABOT_RESULTS, MISTAKES_FILE, WITHOUT_RECORD_FILE)


def set_aside(output: Path, settings: RobotSettings) -> None:
    """Move what the last part left into a folder of its own, so that the next part does not replace it."""
    left = [path for path in (_robot_output(settings), *(output / name for name in _LEFT)) if path and path.exists()]
    if not left:
        return
    number = len(list((output / PARTS).glob("*"))) + 1
    folder = output / PARTS / str(number)
    folder.mkdir(parents=True)
    for path in left:
        shutil.move(path, folder / (f"output{path.suffix}" if path == _robot_output(settings) else path.name))


def is_whole(settings: RobotSettings, selected: Sequence[TestKey]) -> int | None:
    """The return code that Robot Framework's output stands for where it has all tests; None where it has not."""
    path = _robot_output(settings)
    if path is None or not path.exists() or (settings.log and not Path(settings.log).exists()):
        return None
    try:
        result = ExecutionResult(path)
    except DataError:
        return None
    found = {(test.parent.full_name, test.name) for test in result.suite.all_tests}
    return int(result.return_code) if found >= set(selected) else None


def write_whole(output: Path, settings: RobotSettings, selected: TestSuite, records: Sequence[Record]) -> int | None:
    """Write output, log and report of all parts; returns the return code that they stand for, None without output."""
    path = _robot_output(settings)
    if path is None:
        return None
    last = [path] if path.exists() else []
    parts = [each for each in map(_read, [*_outputs(output), *last]) if each]
    whole = Result(suite=_Whole(parts, records).suite(selected), rpa=bool(settings.rpa), generator="Robot")
    for each in parts:
        whole.errors.add(each.errors)
    part = path.with_name(f".part-{path.name}")
    whole.save(part)
    part.replace(path)
    # Read once more: that is what Robot Framework itself writes its log from.
    ResultWriter(str(path)).write_results(settings.get_rebot_settings())
    return int(whole.return_code)


class _Whole:
    """Puts the tests of all parts where the suites have them. Of a test that is in several, the last one counts."""

    def __init__(self, parts: Sequence[Result], records: Sequence[Record]) -> None:
        self._suites: dict[str, ResultSuite] = {}
        self._tests: dict[TestKey, list[ResultTest]] = defaultdict(list)
        self._records: dict[TestKey, list[Record]] = defaultdict(list)
        for part in parts:
            self._learn(part.suite)
        for record in records:
            self._records[key(record)].append(record)

    def suite(self, selected: TestSuite) -> ResultSuite:
        """The result of a suite with all below it."""
        known = self._suites.get(selected.full_name)
        made = ResultSuite(
            name=selected.name, doc=selected.doc, metadata=selected.metadata, source=selected.source, rpa=selected.rpa
        )
        if known:
            made.doc, made.metadata, made.message = known.doc, known.metadata, known.message
            for fixture in ("setup", "teardown"):
                if getattr(known, f"has_{fixture}"):
                    setattr(made, fixture, getattr(known, fixture))
        made.suites = [self.suite(each) for each in selected.suites]
        names = [test.name for test in selected.tests]
        for name in dict.fromkeys(names):
            made.tests.extend(self._results((selected.full_name, name), names.count(name)))
        begun = [each.start_time for each in (*made.suites, *made.tests) if each.start_time]
        made.start_time = min(begun, default=None)
        return made

    def _results(self, asked: TestKey, count: int) -> list[ResultTest]:
        """The results of the tests of one name, which are `count`. One that has a record and says no verdict is of an
        attempt that was stopped."""
        records, results = self._records[asked][:count], self._tests[asked]
        judged = [test for test in results if "Verdict" in test.metadata][-len(records) :] if records else []
        lost = [_from_record(record) for record in records[len(judged) :]]
        others = [test for test in results if "Verdict" not in test.metadata]
        return [*judged, *lost, *others[max(0, len(others) - (count - len(records))) :]]

    def _learn(self, suite: ResultSuite) -> None:
        self._suites[suite.full_name] = suite
        for test in suite.tests:
            self._tests[suite.full_name, test.name].append(test)
        for each in suite.suites:
            self._learn(each)


def _from_record(record: Record) -> ResultTest:
    """A test as far as its record tells of it."""
    message = f"{record.verdict.capitalize()}: {record.verdict_reason} (From the record: the log of it was lost.)"
    return ResultTest(
        name=record.test, tags=record.tags, status="PASS" if record.verdict == "met" else "FAIL", message=message,
        start_time=record.started.astimezone().replace(tzinfo=None), elapsed_time=record.wall_s,
        metadata=console.metadata(record),
    )  # fmt: skip


def _outputs(output: Path) -> list[Path]:
    """What earlier parts left, the oldest first; of a pool that was killed, each process has its own."""
    folders = sorted((output / PARTS).glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else 0)
    return [path for folder in folders for where in ("", f"{PABOT_RESULTS}/*/")
            for path in sorted(folder.glob(f"{where}output.*"))]  # fmt: skip


def _robot_output(settings: RobotSettings) -> Path | None:
    """Where Robot Framework wrote its output, or would; None where it was told to write none."""
    if not settings.output:
        return None
    path = Path(settings.output)
    if not settings["TimestampOutputs"]:
        return path
    stem = re.sub(r"-\d{8}-\d{6}$", "", path.stem)
    return max(path.parent.glob(f"{stem}-*{path.suffix}"), default=path)


def _read(path: Path) -> Result | None:
    """A result, of a file that ends in the middle what is complete; None, and a sentence, where that is nothing."""
    try:
        return ExecutionResult(path)
    except DataError:
        pass
    try:
        return ExecutionResult(completed(path.read_bytes()))
    except (DataError, OSError):
        if path.stat().st_size:  # Robot Framework keeps the first kilobytes to itself for a while
            print(f"run: {path} cannot be read: log.html has what the records say of its tests.", file=sys.stderr)
        return None


def completed(xml: bytes) -> bytes:
    """An output.xml that ends in the middle, as one of the suites and tests that are complete in it."""
    parser = expat.ParserCreate()
    stack: list[str] = []
    #: Where the last complete part of a suite ends, and what is open there.
    safe: tuple[int, tuple[str, ...]] = (0, ())

    def start(name: str, _attributes: dict[str, str]) -> None:
        nonlocal safe
        stack.append(name)
        if name in ("robot", "suite"):
            # Robot Framework escapes > in attributes.
            safe = xml.index(b">", parser.CurrentByteIndex) + 1, tuple(stack)

    def end(name: str) -> None:
        nonlocal safe
        stack.pop()
        if stack and stack[-1] in ("robot", "suite"):
            # Of an element that is empty, <status/>, the index is that of its end already.
            tag = f"</{name}>".encode()
            where = parser.CurrentByteIndex
            safe = where + len(tag) if xml.startswith(tag, where) else where, tuple(stack)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    with suppress(expat.ExpatError):
        parser.Parse(xml, True)
    where, still_open = safe
    return xml[:where] + "".join(f"</{name}>" for name in reversed(still_open)).encode()
