"""`./run sla --resume RUN`: what of a run that was stopped is left to measure, and one output of all its parts."""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultWriter
from robot.conf import RobotSettings
from robot.errors import DataError
from robot.run import RobotFramework

from ctbench.base.errors import ConfigError
from ctbench.base.files import check_writable
from ctbench.cli.robot.command_line import as_arguments, plain_name, selected_suite
from ctbench.report import console
from ctbench.report.runs import PABOT_RESULTS
from ctbench.results.record import RecordError
from ctbench.results.store import WITHOUT_RECORD_FILE, read_stored, read_whole
from ctbench.run.exit_status import MISTAKES_FILE, record_files
from ctbench.run.run_request import RunRequest, left

#: Below the folder of a run that was stopped: what its parts left next to their records, a folder each by its number.
PARTS = "parts"
#: What a part leaves next to its records and Robot Framework's output, and the next one would replace.
_LEFT = ("console", "dut", "generator", PABOT_RESULTS, MISTAKES_FILE, WITHOUT_RECORD_FILE)
#: Options that name what Robot Framework writes, and its settings of the same names; the time that it adds to them.
_OUTPUTS = ("output", "log", "report", "xunit")
_TIME = re.compile(r"-\d{8}-\d{6}$")
#: Options of Robot Framework that only say what is shown and how: they may be others when a run goes on.
_SHOWS = frozenset(
    {"console", "quiet", "consolewidth", "consolecolors", "consolelinks", "consolemarkers", "loglevel", "debugfile",
     "maxerrorlines", "maxassignlength"}
)  # fmt: skip
#: Variables that name a file, whose content is compared.
_FILES = ("testbed", "campaign", "sla")
#: A variable of Robot Framework's type for secrets: `NAME: Secret:value`.
_SECRET = re.compile(r"[^:]+:\s*Secret\s*:", re.IGNORECASE)


def kept_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a run's folder keeps: not the folder itself, and nothing secret."""
    kept = {name: value for name, value in options.items() if name not in ("outputdir", "dryrun")}
    if "variable" in kept:
        kept["variable"] = [each for each in kept["variable"] if not _SECRET.match(each)]
    return kept


def absolute(suites: Sequence[str]) -> list[str]:
    """Suites as they are found from any folder."""
    return [os.path.abspath(suite) for suite in suites]  # noqa: PTH100 # links stay: they are names of suites


def continued(
    request: RunRequest, folder: Path, given: Mapping[str, Any], suites: Sequence[str], testbeds: Sequence[str]
) -> list[str]:
    """The command line with which the run of a folder goes on: what was asked for, with what is `given` with it:
    `--resume` and may be another one. `ConfigError` says which option is not as it was."""
    options: dict[str, Any] = dict(request.options)
    other = ["the suites"] if suites and set(absolute(suites)) != set(request.suites) else []
    for name, value in given.items():
        if name == "variable":
            asked = options.get(name, [])
            free = [each for each in value if plain_name(each) in _FILES or _SECRET.match(each)]
            other += [f"-v {each.partition(':')[0]}" for each in value if each not in [*asked, *free]]
            options[name] = [*asked, *free]
        elif name in _SHOWS:
            options[name] = value
        elif Path(value).resolve() != folder if name == "outputdir" else value != options.get(name):
            other.append(f"--{name}")
    if other:
        raise ConfigError(
            f"--resume: {', '.join(other)}: the run was asked for something else.\n  Expected --resume alone, which "
            "knows what was asked for, or the same."
        )
    pool = ",".join(testbeds or request.testbeds)
    chosen = ["--testbeds", pool] if pool else []
    return ["--outputdir", str(folder), *chosen, *as_arguments(options), *request.suites]


class Resumed:
    """What is left of a run, and how it becomes one with what was before."""

    def __init__(self, folder: Path, request: RunRequest, arguments: Sequence[str], here: Path) -> None:
        """`arguments`: of Robot Framework; `here`: the folder that the user is in. Raises `ConfigError` where the
        arguments select nothing, or the folder cannot be written. A file that should be a record and is none is put
        aside, and its test measured again.
        """
        self.here = here
        self._folder, self._request = folder, request
        try:
            suite = selected_suite(arguments)
        except DataError as error:
            raise ConfigError(f"--resume: {str(error).rstrip('.')}.\n  Expected the suites of the run.") from None
        self._name = suite.full_name
        try:
            check_writable(folder)
        except OSError as error:
            raise ConfigError(
                f"--resume: {folder} cannot be written ({error.strerror}).\n  Expected a folder of your own, on a disk "
                "with space left."
            ) from None
        for part in (folder / "records").glob("*.part"):  # of a record that was being written
            part.unlink()
        for broken in read_stored(folder)[1]:
            if broken.path.name not in request.earlier:
                aside = broken.path.rename(f"{broken.path}.broken")
                print(
                    f"run: {broken.reason}\n  It is now called {aside.name}, and its test is measured again.",
                    file=sys.stderr,
                )
        tests = [(test.parent.full_name, test.name) for test in suite.all_tests]
        #: The tests that have no record.
        self.left = left(tests, request.measured(folder), lambda test: test)
        what = f"measuring {len(self.left)}" if self.left else "nothing is left to measure"
        #: How far the run got.
        self.sentence = f"{len(tests) - len(self.left)} of {len(tests)} tests have a record; {what}."

    @property
    def before(self) -> list[Path]:
        return [path for path in record_files(self._folder) if path.name in self._request.earlier]

    def begin(self, arguments: Sequence[str], suites: int) -> list[str]:
        """Make way for the output of this part; returns its `arguments`, the last ones of which are as many `suites`,
        with what leaves out the other tests."""
        options = RobotFramework().parse_arguments(list(arguments))[0]
        self._settings, self._timed = RobotSettings(options), bool(options.get("timestampoutputs"))
        if not self.left:
            return list(arguments)
        output = Path(self._settings.output) if self._settings.output else None
        debug = Path(self._settings.debug_file) if self._settings.debug_file else None
        paths = [path for path in (output, debug, *(self._folder / name for name in _LEFT)) if path and path.exists()]
        # With --timestampoutputs each part has its time in its names: ours is said from here on.
        named = [f"--{name}={path}" for name in _OUTPUTS if (path := getattr(self._settings, name))]
        timed = ["--notimestampoutputs", *named] if self._timed else []
        part = self._folder / PARTS / str(len(list((self._folder / PARTS).glob("*"))) + 1)
        part.mkdir(parents=True)
        for path in paths:
            shutil.move(path, part / path.name)
        modifier = f"ConntrackSLA.leave_out.LeaveOut;{self._name};{self._folder}"
        # The last one: those of the user may give tests the names that they have in their records.
        return [*arguments[:-suites], *timed, "--prerunmodifier", modifier, *arguments[-suites:]]

    def end(self) -> None:
        """Put the parts together."""
        try:
            if self.left and self._settings.output:
                self._merge(Path(self._settings.output))
        except (OSError, DataError) as error:
            print(f"run: Robot Framework's output of the whole run could not be written ({error}).", file=sys.stderr)
        with suppress(OSError, RecordError):
            records = [read_whole(each.path) for each in self._request.stored(self._folder)]
            print(f"\nThe whole run:\n\n{console.summary(records)}")

    def _merge(self, last: Path) -> None:
        """One output.xml, log and report of all parts, as `rebot --merge` makes them: what a test has in the last part
        counts. A part that was killed left an output that ends in the middle: its tests are in the report alone."""
        folders = sorted((self._folder / PARTS).glob("*"), key=lambda path: (len(path.name), path.name))
        outputs = [path for folder in folders for where in (last.name, f"{PABOT_RESULTS}/*/output.xml")
                   for path in sorted(folder.glob(where))]  # fmt: skip
        if self._timed:
            stem = _TIME.sub("", last.stem)
            outputs += sorted(path for path in last.parent.glob(f"{stem}-*{last.suffix}") if path < last)
        whole = [path for path in (*outputs, last) if is_whole(path)]
        if len(whole) > 1:
            result = ExecutionResult(*whole, merge=True)
            result.suite.metadata["Merged Parts"] = str(len(whole))  # who reads the log has not seen the run
            write_results(result, self._settings, last)


def is_whole(output: Path) -> bool:
    """Whether Robot Framework's output, XML or JSON, is there to its end: it is written as the run goes."""
    content = output.read_bytes().rstrip() if output.exists() else b""
    if content.startswith(b"{"):
        with suppress(ValueError):
            return isinstance(json.loads(content), dict)
    return content.endswith(b"</robot>")


def write_results(result: ExecutionResult, settings: RobotSettings, output: Path) -> None:
    """Write the output of several processes, as one would have written it with these settings, and its log and report;
    with --output NONE an `output` for them, which goes."""
    part = output.with_name(f".part-{output.name}")
    result.save(part, legacy_output=settings.legacy_output)
    part.replace(output)
    ResultWriter(str(output)).write_results(settings.get_rebot_settings())
    if not settings.output:
        output.unlink()
