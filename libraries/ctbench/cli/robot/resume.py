"""`./run sla --resume RUN`: the command line of a run that goes on, and one output of all its parts.

What has a record already is skipped by the row itself (`AcceptanceRun`); Robot Framework's merger keeps the older
result of a test that is skipped.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from robot.api import ExecutionResult, ResultWriter
from robot.conf import RobotSettings

from ctbench.cli.robot.command_line import CommandLine, as_arguments
from ctbench.run.run_request import RunRequest

#: Below the folder of a run that went on: the outputs of Robot Framework of its earlier parts, by their numbers.
PARTS = "parts"
#: A variable of Robot Framework's type for secrets: `NAME: Secret:value`.
_SECRET = re.compile(r"[^:]+:\s*Secret\s*:", re.IGNORECASE)


def kept_options(command: CommandLine) -> list[str]:
    """The options that a run's folder keeps: not the folder itself, and nothing secret."""
    kept = {name: value for name, value in command.options.items() if name not in ("outputdir", "dryrun")}
    kept["variable"] = [each for each in command.assignments if not _SECRET.match(each)]
    return [*as_arguments(kept), *_pool(command)]


def _pool(command: CommandLine) -> list[str]:
    return ["--testbeds", ",".join(command.testbeds)] if command.testbeds else []


def absolute(command: CommandLine) -> list[str]:
    """The suites that were named as they are found from any folder."""
    return [os.path.abspath(suite) for suite in command.suites if command.names_suites]  # noqa: PTH100 # links stay


def continued(request: RunRequest, folder: Path, given: CommandLine) -> list[str]:
    """The command line with which the run of a folder goes on: what was asked for, and after it what is `given` with
    `--resume`. The whole has one output, without the time of a part in its name."""
    options = [*request.options, *as_arguments(given.options), *_pool(given)]
    return [*options, f"--outputdir={folder}", "--notimestampoutputs", *(absolute(given) or request.suites)]


def set_aside(folder: Path, settings: RobotSettings) -> list[Path]:
    """The outputs of the earlier parts of a run, which make way for that of the next one."""
    parts = folder / PARTS
    if settings.output:
        output = Path(settings.output)
        # Those of a part with --timestampoutputs have its time behind their name.
        found = [path for path in output.parent.glob(f"{output.stem}*{output.suffix}") if is_whole(path)]
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns):
            parts.mkdir(exist_ok=True)
            path.rename(parts / f"{len(list(parts.iterdir())) + 1}{path.suffix}")
    return sorted(parts.glob("*"), key=lambda path: int(path.stem))


def merge(parts: Sequence[Path], settings: RobotSettings) -> None:
    """One output, log and report of all parts, as `rebot --merge` makes them: what a test has in the last part counts,
    but where it was skipped there. A part that was killed left no whole output: its tests are in the report alone.
    `OSError` and `DataError` where that is not possible."""
    last = Path(settings.output) if settings.output else None
    if last and parts and is_whole(last):
        result = ExecutionResult(*parts, last, merge=True)
        # Who reads the log has not seen the run.
        result.suite.metadata["Merged Parts"] = str(len(parts) + 1)
        write_results(result, settings, last)


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
