"""Reads a file that somebody else named or wrote, or says why not: it may be a pipe, a device, a folder, endless, or
gone by now. Never waits, and opens nothing but an ordinary file: to open a device may do something to it."""

import os
import stat
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.plain_text import brief

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnreadableFile(Exception):
    """Why a file is not read; the text goes on after its name: `is a folder`."""


class TooLarge(UnreadableFile):
    """The file has more bytes than one of its kind."""


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of an ordinary file of at most `most_bytes`. Raises `UnreadableFile`; `FileNotFoundError` where there
    is none."""
    try:
        _require_regular(path.stat())
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            _require_regular(status)  # it may have been replaced since
            # Files of the kernel (/proc) say that they have no bytes: only reading shows where they end. Otherwise room
            # for what is there: a buffer of the most that is allowed takes its time for each file.
            content = file.read((min(status.st_size, most_bytes) if status.st_size else most_bytes) + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        raise UnreadableFile(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(content) > most_bytes:
        raise TooLarge(f"is larger than {_size(most_bytes)}")
    return content


def read_named(path: Path, shown: str, most_bytes: int) -> bytes:
    """Like `read_regular`, for a file that a user named; anything wrong is a `ConfigError`. `shown`: how messages name
    the file."""
    try:
        return read_regular(path, most_bytes)
    except FileNotFoundError as error:
        raise ConfigError(f"{shown}: {error.strerror}.\n  Expected a file that you may read.") from None
    except TooLarge as error:
        raise ConfigError(f"{shown}: {error}.\n  Expected a file like those that ship, of a few KiB.") from None
    except UnreadableFile as error:
        raise ConfigError(f"{shown}: {error}.\n  Expected a regular file that you may read.") from None


def named_folder(name: str | Path) -> Path:
    """A folder that somebody named, whether there is one or not. `ConfigError` where it cannot be a path."""
    try:
        os.stat(name)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except OSError as error:  # too long, a ring of links
        raise ConfigError(f"{brief(str(name), 100)}: {error.strerror}.\n  Expected a folder.") from None
    except ValueError:  # NUL
        raise ConfigError(f"{brief(str(name), 100)}: is not a path.\n  Expected a folder.") from None
    return Path(name)


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "not an ordinary file")
        raise UnreadableFile(f"is {kind}")


def _size(most_bytes: int) -> str:
    return f"{most_bytes // 1024} KiB" if most_bytes < 1_000_000 else f"{most_bytes / 1_000_000:g} MB"
