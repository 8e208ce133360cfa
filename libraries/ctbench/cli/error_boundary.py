"""The error boundary of every command of `./run`. An error that escapes becomes one sentence and an exit status, a
signal ends a command through its own clean-up, and a closed pipe (`./run sla | head -1`) ends nothing."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ctbench.base.errors import ConfigError, CtbenchError, ExitStatus, MissingResource, OutputError, sentence_of
from ctbench.base.paths import ROOT
from ctbench.base.text import brief, printable

#: What asks for an end.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What a full or missing disk says.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.ESTALE)
#: Characters of an error's own text in a sentence.
SHOWN = 300

#: Where the traceback goes, once a run has a folder.
_folder: Path | None = None


def keep_tracebacks_in(folder: Path) -> None:
    """Write tracebacks to the folder of the run from now on, instead of one for temporary files."""
    global _folder  # noqa: PLW0603 - one process is one command
    _folder = folder


def report_error(error: BaseException) -> int:
    """Print the error that escaped from a command in one sentence, and return its exit status."""
    if isinstance(error, KeyboardInterrupt):
        print("run: stopped.", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int | None):
        return error.code or 0
    known = _as_known(error)
    print(printable(f"run: {known}"), file=sys.stderr)
    return known.exit_status


def _as_known(error: BaseException) -> CtbenchError:
    """Return the error as a `CtbenchError`. The traceback of an unforeseen error goes to a file, which the sentence
    names."""
    if isinstance(error, CtbenchError):
        return error
    if isinstance(error, OSError) and error.errno in _DISK:
        where = f"{brief(str(error.filename), SHOWN)}: " if error.filename else ""
        return OutputError(
            f"{where}cannot be written ({error.strerror}). What was written before is kept. "
            "Expected a disk with space left, or another folder (--outputdir)."
        )
    if isinstance(error, PermissionError) and error.filename:
        return ConfigError(
            f"{brief(str(error.filename), SHOWN)}: {error.strerror}. Expected files and folders that this user may use."
        )
    if isinstance(error, ImportError):
        return MissingResource(
            f"a Python package is damaged or missing ({brief(str(error), SHOWN)}): remove {ROOT / '.venv'}, and ./run "
            "setup makes it again."
        )
    if isinstance(error, SystemExit):  # of a library, with a sentence; Python would end with 1
        return CtbenchError(str(error.code))
    return CtbenchError(f"{sentence_of(error, _folder)} This is a fault of the program: please report it.")


def enter() -> None:
    """Prepare this process: its standard streams, its signals, and the report of an error in a thread."""
    for name in ("stdout", "stderr"):
        if stream := getattr(sys, name):  # it is None where the caller closed it
            setattr(sys, name, _lasting(stream))
            setattr(sys, f"__{name}__", getattr(sys, name))
    threading.excepthook = lambda broken: report_error(broken.exc_value or broken.exc_type())
    handle_signals(_stop)


def handle_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Install `handler` for the signals that ask for an end, except those that this process ignores, as under
    nohup(1)."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _stop(number: int, _frame: FrameType | None) -> None:
    """End the process: with KeyboardInterrupt for SIGINT, else with SystemExit. SIGHUP goes to the current handler of
    SIGTERM, such as Robot Framework's."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number == signal.SIGHUP and signal.getsignal(signal.SIGTERM) not in (_stop, signal.SIG_IGN, signal.SIG_DFL):
        signal.raise_signal(signal.SIGTERM)
        return
    raise SystemExit(128 + number)


class _LastingOutput(io.FileIO):
    """A standard stream that survives a failed write: all later output is dropped, that of children as well."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.fileno())
            os.close(nothing)
            return len(data)


def _lasting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return the stream with an output that survives a failed write and escapes characters that its encoding lacks."""
    output = io.BufferedWriter(_LastingOutput(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=True)
