"""Reads a file of others whole, or says why not: it may be a pipe, a device, a folder, endless, or gone by now."""

import os
import stat
from pathlib import Path

_MEGABYTE = 1_000_000
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnreadableFile(Exception):
    """Why a file is not read; the text goes on after its name: `is a folder`."""


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of an ordinary file of at most `most_bytes`. Never waits, and opens nothing but such a file: opening
    a device can have effects. Raises `UnreadableFile`; `FileNotFoundError` where there is none."""
    try:
        _require_regular(path.stat())
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            _require_regular(status)  # it may have been replaced since
            # Room for what is there: a buffer of the most that is allowed takes its time for each file.
            content = file.read(min(status.st_size, most_bytes) + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        raise UnreadableFile(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(content) > most_bytes:
        raise UnreadableFile(f"is larger than {most_bytes / _MEGABYTE:g} MB")
    return content


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no ordinary file")
        raise UnreadableFile(f"is {kind}")
