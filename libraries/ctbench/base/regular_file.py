"""A file that somebody named, read as what it has to be: a regular file, and no larger than what it is for."""

import os
import stat
from pathlib import Path

from ctbench.errors import ConfigError
from ctbench.units import printable

#: What a path leads to, where that is no regular file.
_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISSOCK, "socket"),
)


def named_folder(name: str | Path) -> Path:
    """A folder that somebody named, whether there is one or not. `ConfigError` where no path can be meant."""
    try:
        os.stat(name)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except OSError as error:  # too long, a ring of links
        raise ConfigError(f"{printable(str(name), 100)}: {error.strerror}.\n  Expected a folder.") from None
    except ValueError:  # NUL
        raise ConfigError(f"{printable(str(name), 100)}: is no path.\n  Expected a folder.") from None
    return Path(name)


def read_regular(path: Path, shown: str, most_bytes: int) -> bytes:
    """The content of a regular file. `shown`: how messages name it.

    Never waits (a pipe without a writer, a device without an end) and never reads more than `most_bytes`.
    Raises `ConfigError` for anything else.
    """
    try:
        # Looked at before it is opened: to open a device may do something to it.
        _check(path.stat(), shown, most_bytes)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check(os.fstat(handle), shown, most_bytes)
            return _read(handle, shown, most_bytes)
        finally:
            os.close(handle)
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror}.\n  Expected a file that you may read.") from None
    except ValueError:  # a NUL in the path
        raise ConfigError(f"{shown}: is no path.\n  Expected a file that you may read.") from None


def _check(status: os.stat_result, shown: str, most_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "thing of its own kind")
        raise ConfigError(f"{shown}: is not a file but a {kind}.\n  Expected a regular file.")
    if status.st_size > most_bytes:
        raise _too_large(shown, most_bytes)


def _read(handle: int, shown: str, most_bytes: int) -> bytes:
    """Files of the kernel (/proc) say that they have no bytes at all: only reading shows where they end."""
    parts, left = [], most_bytes + 1
    while left and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    if not left:
        raise _too_large(shown, most_bytes)
    return b"".join(parts)


def _too_large(shown: str, most_bytes: int) -> ConfigError:
    return ConfigError(
        f"{shown}: is larger than {most_bytes // 1024} KiB.\n  Expected a file like those that ship, of a few KiB."
    )
