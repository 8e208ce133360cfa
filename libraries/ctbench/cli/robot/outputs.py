"""One output, log and report of Robot Framework: of the parts of a run that goes on in its folder, and of processes.

What has a record already is skipped by the row itself (`AcceptanceRun`); Robot Framework's merger keeps the older
result of a test that is skipped.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from robot.api import ExecutionResult, ResultWriter
from robot.conf import RobotSettings

#: Below the folder of a run that went on: the outputs of Robot Framework of its earlier parts, by their numbers.
PARTS = "parts"


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
