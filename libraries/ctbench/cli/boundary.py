"""The boundary around every command of `./run`: whatever escapes becomes one sentence, an exit status of its own, and a
file with the traceback. Nothing but Python's own library is imported here: it has to work where a package does not.
"""

import contextlib
import errno
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ctbench.base.errors import CtbenchError, InternalError, OutputError
from ctbench.base.paths import LIBRARIES, ROOT
from ctbench.cli import streams

#: What asks for an end. `./run` starts Python with these blocked, so that one that comes early waits for us.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: In the environment: packages were installed once more for this very command, which is enough.
HEALED = "CTBENCH_HEALED"
#: What a full or missing disk says.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.ESTALE)
#: Characters of an error's own text in a sentence.
_SHOWN = 300

#: Where the traceback goes, once a run has a folder.
_folder: Path | None = None


#: A command: takes its arguments from sys.argv, and returns its exit status.
Main = Callable[[], int]


def enter(command: str, find: Callable[[], Main]) -> NoReturn:
    """Run a command to its end, and end the process with its status. `find` imports it: that is inside as well."""
    _use_utf8()
    streams.open_standard_files()
    streams.protect()
    threading.excepthook = _of_thread
    _handle(_leave_at_once)
    status = _status_of(command, find)
    _handle_default()
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(status)


def _use_utf8() -> None:
    """Begin again where Python would read names of files in another encoding: ours are UTF-8, whatever the locale.
    `./run` sees to that; this is for people who start Python themselves."""
    if sys.getfilesystemencoding() != "utf-8":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONUTF8": "1"})


def keep_tracebacks_in(folder: Path) -> None:
    """From now on there is a folder of a run, which says more than one of ours."""
    global _folder  # noqa: PLW0603 - one process is one command
    _folder = folder


def _status_of(command: str, find: Callable[[], Main]) -> int:
    try:
        main = find()
        _handle(_stop)
        return int(main())
    except KeyboardInterrupt:
        _say("stopped.")
        return 128 + signal.SIGINT
    except SystemExit as end:
        return _code(end)
    except BaseException as error:
        if _is_damaged(error) and HEALED not in os.environ:
            _heal(command, error)
        return told(command, error)


def told(command: str, error: BaseException) -> int:
    """Say in one sentence what escaped from `command`, and return the exit status that it comes to. What nobody
    expected leaves a file with its traceback, which the sentence names."""
    if isinstance(error, CtbenchError):
        _say(str(error))
        return error.exit_status
    if isinstance(error, OSError) and error.errno in _DISK:
        _say(_disk_sentence(error))
        return OutputError.exit_status
    place = write_traceback(command, error)
    _say(f"{_sentence(error)} {_told(place)}")
    if place is None:
        traceback.print_exception(error)
    return InternalError.exit_status


def _disk_sentence(error: OSError) -> str:
    """What a disk that takes nothing more comes to."""
    where = f"{cut(str(error.filename))}: " if error.filename else ""
    return (
        f"{where}cannot be written ({error.strerror}). What was written before is kept. "
        "Expected a disk with space left, or another folder (--outputdir)."
    )


def _code(end: SystemExit) -> int:
    """The status that somebody ended the process with; a text is a reason, and Python's 1 for it is not ours."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    _say(str(end.code))
    return InternalError.exit_status


def _sentence(error: BaseException) -> str:
    """One sentence about an error that nobody expected."""
    what = " ".join(str(error).split())
    return f"unexpected error, {type(error).__name__}{f': {cut(what)}' if what else ''}."


def _told(place: Path | None) -> str:
    if place is None:
        return "Its traceback follows, as no folder for it can be written:"
    return f"This is a fault of the program: please report it with its traceback, which is in {place}."


def write_traceback(command: str, error: BaseException) -> Path | None:
    """Write a file with the traceback: into the run's folder, else the user's own, else the one for temporary files.
    Returns its path; None where none of them can be written."""
    now = datetime.now(UTC)
    text = f"./run {command}, {now:%Y-%m-%d %H:%M:%S} UTC\nPython {sys.version}\n\n" + "".join(
        traceback.format_exception(error)
    )
    for folder in _folders():
        path = folder / f"error-{now:%Y%m%dT%H%M%SZ}-{os.getpid()}.txt"
        try:
            if folder != _folder:  # that of a run which is gone is not made once more
                folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                path.unlink(missing_ok=True)
        else:
            return path
    return None


def _folders() -> Iterator[Path]:
    if _folder is not None:
        yield _folder
    with contextlib.suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "conntrack-sla" / "errors"
    with contextlib.suppress(OSError):  # no folder for temporary files
        yield Path(tempfile.gettempdir())


def _of_thread(broken: threading.ExceptHookArgs) -> None:
    """An error that ends a thread, which ends no command: said, as any other."""
    if broken.exc_value is not None and not isinstance(broken.exc_value, SystemExit):
        _say(f"{_sentence(broken.exc_value)} {_told(write_traceback('', broken.exc_value))}")


# --- signals --------------------------------------------------------------------------------------------------------


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    """Let `handler` hear of the signals that ask for an end, except those that nohup(1) and the like keep from us, and
    let those come that waited."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _handle_default() -> None:
    """While Python takes itself down, Ctrl-C has nothing more to stop."""
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _leave_at_once(number: int, _frame: FrameType | None) -> None:
    """While modules are imported nothing is started, and an exception may land where it is only printed."""
    with contextlib.suppress(OSError):
        os.write(2, b"run: stopped.\n")
    os._exit(128 + number)


def _stop(number: int, _frame: FrameType | None) -> None:
    """End as a run does that is told to: through whatever handles SIGTERM meanwhile, such as Robot Framework."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number == signal.SIGHUP and signal.getsignal(signal.SIGTERM) not in (_stop, signal.SIG_IGN, signal.SIG_DFL):
        signal.raise_signal(signal.SIGTERM)
        return
    raise SystemExit(128 + number)


# --- a damaged .venv ------------------------------------------------------------------------------------------------


def _is_damaged(error: BaseException) -> bool:
    """Whether an error comes of a package that lacks something, and not of what this project does: a module that is not
    there, or that cannot be imported."""
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        return False
    if isinstance(error, ModuleNotFoundError):
        return not _is_ours(error.name or "")
    if isinstance(error, ImportError) and error.name:
        return not _is_ours(error.name)
    if isinstance(error, SyntaxError):
        return _in_venv(error.filename or "")
    frames = traceback.extract_tb(error.__traceback__)
    importing = any(frame.filename.startswith("<frozen importlib") for frame in frames)
    return importing and any(_in_venv(frame.filename) for frame in frames)


def _is_ours(name: str) -> bool:
    top = name.partition(".")[0]
    return (LIBRARIES / top).exists()


def _in_venv(path: str) -> bool:
    return Path(path).is_relative_to(ROOT / ".venv")


def _heal(command: str, error: BaseException) -> None:
    """Begin again with packages that are installed once more. Returns where that is not possible."""
    _say(f"the Python packages in {ROOT / '.venv'} are damaged ({cut(str(error))}).")
    with contextlib.suppress(OSError):
        typed = [str(ROOT / "run"), command, *sys.argv[1:]]
        os.execve(typed[0], typed, {**os.environ, HEALED: "yes"})


def _say(text: str) -> None:
    print(f"run: {text}", file=sys.stderr)


def cut(text: str) -> str:
    """A text that somebody else wrote, short enough for a sentence."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
