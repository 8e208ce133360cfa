"""One output, log and report of Robot Framework for the parts of a continued run, or for several processes.

The keyword library skips a test that has all of its records already; Robot Framework's merger keeps the older result of
a skipped test.
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
    """Move the output of the last part of a run aside, and return the outputs of all earlier parts in order."""
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
    """Write one output, log and report of all parts, as `rebot --merge` does. The last part counts, except for tests
    that it skipped. A part that was killed left no complete output: its tests are in the SLA report alone. Raise
    `OSError` or `DataError` where the merge fails."""
    last = Path(settings.output) if settings.output else None
    if last and parts and is_whole(last):
        result = ExecutionResult(*parts, last, merge=True)
        # Who reads the log has not seen the run.
        result.suite.metadata["Merged Parts"] = str(len(parts) + 1)
        write_results(result, settings, last)


def is_whole(output: Path) -> bool:
    """True where Robot Framework's output, XML or JSON, is complete: it is written as the run goes."""
    content = output.read_bytes().rstrip() if output.exists() else b""
    if content.startswith(b"{"):
        with suppress(ValueError):
            return isinstance(json.loads(content), dict)
    return content.endswith(b"</robot>")


def write_results(result: ExecutionResult, settings: RobotSettings, output: Path) -> None:
    """Write the output of several processes, and its log and report, as one process with these settings would have.
    With --output NONE, remove `output` after that."""
    part = output.with_name(f".part-{output.name}")
    result.save(part, legacy_output=settings.legacy_output)
    part.replace(output)
    ResultWriter(str(output)).write_results(settings.get_rebot_settings())
    if not settings.output:
        output.unlink()
