"""Whatever breaks in a run: a sentence for the user, and a traceback of an unexpected error for the developer.

Nothing may be lost for an error, so some places catch every one. An exception by which somebody ends the run can come
at any of them (it is raised by the handler of a signal), and has to pass.
"""

import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import CtbenchError

#: In the output folder of a run.
LOG = "unexpected-errors.log"
_stops: set[type[Exception]] = set()


def let_pass(kind: type[Exception]) -> None:
    """From now on this kind of exception is somebody's wish to end the run."""
    _stops.add(kind)


def reraise_stop(error: Exception) -> None:
    """Raise `error` again where it is somebody's wish to end the run."""
    if isinstance(error, tuple(_stops)):
        raise error


def sentence_of(error: Exception, output: Path) -> str:
    """What went wrong, in one sentence. Of an unexpected error the traceback is added to `LOG` in `output`,
    which the sentence names; where it cannot be written, the sentence is all there is."""
    if isinstance(error, CtbenchError):
        return str(error)
    said = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ").rstrip(".")
    file = output / LOG
    with suppress(OSError):
        output.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n{''.join(traceback.format_exception(error))}\n")
        return f"an error that was not foreseen, {said} (traceback in {file})."
    return f"an error that was not foreseen, {said}."
