"""The boundary around every command of `./run`: whatever escapes becomes one sentence, an exit status of its own, and a
file with the traceback; a reader who goes away (`./run sla | head -1`) ends nothing. Nothing but Python's own library
is imported here: it has to work where a package does not.
"""

import contextlib
import errno
import io
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, cast

from ctbench.base.errors import CtbenchError, InternalError, MissingResource, OutputError
from ctbench.base.paths import LIBRARIES, ROOT
from ctbench.base.text import brief, printable

#: What asks for an end. `./run` starts Python with these blocked, so that one that comes early waits for us.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
VENV = ROOT / ".venv"
#: What a full or missing disk says, and a reader that has gone away.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.ESTALE)
_GONE = (errno.EPIPE, errno.EBADF)
#: Commands whose sentences begin with their own name: others of them are on the same screen.
_BY_NAME = ("calibrate", "doctor")
#: Characters of an error's own text in a sentence.
SHOWN = 300

#: Where git bisect asks, in place of every status that says neither good (0) nor bad (1): it skips the commit. From 128
#: on it stops: who ended the run does not want the next one either.
BISECT, SKIPPED, STOPPED = "--bisect", 125, 128

#: Where the traceback goes, once a run has a folder.
_folder: Path | None = None


#: A command: takes its arguments from sys.argv, and returns its exit status.
Main = Callable[[], int]


def enter(command: str, find: Callable[[], Main]) -> NoReturn:
    """Run a command to its end, and end the process with its status. `find` imports it: that is inside as well."""
    _protect_streams()
    threading.excepthook = lambda broken: _say_unexpected("", broken.exc_value or broken.exc_type())
    status = _status_of(command, find)
    if command == "sla" and BISECT in sys.argv and 1 < status < STOPPED:
        status = SKIPPED
    _handle(signal.SIG_DFL)  # while Python takes itself down, Ctrl-C has nothing more to stop
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(status)


def keep_tracebacks_in(folder: Path) -> None:
    """From now on there is a folder of a run, which says more than that for temporary files."""
    global _folder  # noqa: PLW0603 - one process is one command
    _folder = folder


def told(command: str, error: BaseException) -> int:
    """Say in one sentence what escaped from `command`, and return its exit status. What was not foreseen leaves a file
    with its traceback, which the sentence names."""
    if isinstance(error, CtbenchError):
        _say(printable(str(error)), command if command in _BY_NAME else "run")
        return error.exit_status
    if isinstance(error, OSError) and error.errno in _DISK:
        where = f"{brief(str(error.filename), SHOWN)}: " if error.filename else ""
        _say(
            f"{where}cannot be written ({error.strerror}). What was written before is kept. "
            "Expected a disk with space left, or another folder (--outputdir)."
        )
        return OutputError.exit_status
    if isinstance(error, FileNotFoundError) and "No usable temporary directory" in str(error):  # of tempfile
        _say("no folder for temporary files can be written: expected /tmp to be writable, or TMPDIR to name a folder.")
        return MissingResource.exit_status
    if isinstance(error, ImportError) and _lacks_package(error):
        with contextlib.suppress(OSError):
            (VENV / "stamp-requirements").unlink(missing_ok=True)
        _say(
            f"the Python packages in {VENV} are damaged ({brief(str(error), SHOWN)}): ./run setup installs them again."
        )
        return MissingResource.exit_status
    _say_unexpected(command, error)
    return InternalError.exit_status


def _status_of(command: str, find: Callable[[], Main]) -> int:
    try:
        _handle(_stop)
        return int(find()())
    except KeyboardInterrupt:
        if command not in _BY_NAME:  # these have said what is kept
            _say("stopped.")
        return 128 + signal.SIGINT
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        return told(command, InternalError(end.code))  # of a library; Python would end with 1
    except BaseException as error:
        return told(command, error)


def _say_unexpected(command: str, error: BaseException) -> None:
    """The traceback goes to a file in the run's folder, or in that for temporary files; where it cannot be written, the
    terminal has it."""
    what, now = brief(" ".join(str(error).split()), SHOWN), datetime.now(UTC)
    sentence = f"unexpected error, {type(error).__name__}{f': {what}' if what else ''}."
    try:
        path = (_folder or Path(tempfile.gettempdir())) / f"error-{now:%Y%m%dT%H%M%SZ}-{os.getpid()}.txt"
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"./run {command}, {now:%Y-%m-%d %H:%M:%S} UTC\nPython {sys.version}\n\n")
            traceback.print_exception(error, file=file)
    except OSError:
        _say(f"{sentence} Its traceback follows, as no folder for it can be written:")
        traceback.print_exception(error)
    else:
        _say(f"{sentence} This is a fault of the program: please report it with its traceback, which is in {path}.")


def _lacks_package(error: ImportError) -> bool:
    """Whether .venv lacks what was imported, and not this project."""
    ours = not error.name or (LIBRARIES / error.name.partition(".")[0]).exists()
    return not ours and Path(sys.prefix).resolve() == VENV.resolve()


def _say(text: str, who: str = "run") -> None:
    print(f"{who}: {text}", file=sys.stderr)


# --- signals --------------------------------------------------------------------------------------------------------


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Let `handler` hear of the signals that ask for an end, except those that nohup(1) and the like keep from us, and
    let those come that waited."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _stop(number: int, _frame: FrameType | None) -> None:
    """End as a run does that is told to: through whatever handles SIGTERM meanwhile, such as Robot Framework."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number == signal.SIGHUP and signal.getsignal(signal.SIGTERM) not in (_stop, signal.SIG_IGN, signal.SIG_DFL):
        signal.raise_signal(signal.SIGTERM)
        return
    raise SystemExit(128 + number)


# --- standard streams -----------------------------------------------------------------------------------------------


class _LastingOutput(io.FileIO):
    """A standard stream until one write fails; from then on what is said is dropped, by children as well."""

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            try:
                left = left[super().write(left) or 0 :]
            except OSError as error:
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
                if self.fileno() == 1 and error.errno not in _GONE:
                    _say(f"what is shown here cannot be written ({error.strerror}): the rest of it is dropped.")
        return size


def _protect_streams() -> None:
    """Let the standard streams, which `./run` has opened, take every character, whatever the terminal knows."""
    sys.stderr = sys.__stderr__ = _lasting(2, sys.stderr.encoding)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _lasting(1, sys.stdout.encoding)  # type: ignore[misc]


def _lasting(descriptor: int, encoding: str) -> io.TextIOWrapper:
    # Without a buffer of bytes: a signal's handler may write while something else does.
    output = cast(BinaryIO, _LastingOutput(descriptor, "w", closefd=False))
    return io.TextIOWrapper(output, encoding, "backslashreplace", line_buffering=True)
