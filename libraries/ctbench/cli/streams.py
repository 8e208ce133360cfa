"""Standard output and error that never fail: what nobody reads any more is dropped, and the command goes on.

`./run sla | head -1` closes the pipe in the middle of a measurement, a terminal is closed, a disk behind `>` is full.
The command's work does not depend on that, so a write that fails is no error of the command.
"""

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, TextIO, cast

#: A reader that has gone away is nothing to complain about.
_GONE = (errno.EPIPE, errno.EBADF)


class LastingOutput(io.RawIOBase):
    """The bytes of a file descriptor, until one write fails; then nothing. `on_loss` hears why, once."""

    def __init__(self, descriptor: int, on_loss: Callable[[OSError], None]) -> None:
        self._descriptor = descriptor
        self._on_loss = on_loss
        self._lost = False

    def writable(self) -> bool:
        """Always, also when nobody reads."""
        return True

    def fileno(self) -> int:
        """For children, and for who asks whether this is a terminal."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether people look at it as it comes."""
        return os.isatty(self._descriptor)

    def write(self, data: Any, /) -> int:
        """Write all of it, or drop all of it."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left and not self._lost:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # somebody made the terminal non-blocking, which we share with him
                select.select([], [self._descriptor], [])
            except OSError as error:
                self._lost = True
                self._on_loss(error)
        return size


def open_standard_files() -> None:
    """Let descriptors 0, 1 and 2 be open: the next file that is opened would take the place of one that is not, and get
    what is said to it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free one, which is this


def protect() -> None:
    """Replace the standard streams by lasting ones, which also have an answer to each character that the terminal's
    encoding does not know."""
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    # In this order, so that a loss of stdout can be said on a stderr that does not fail.
    sys.stderr = sys.__stderr__ = _lasting(2, sys.stderr, lambda _error: None)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _lasting(1, sys.stdout, _say_loss)  # type: ignore[misc]


def _lasting(descriptor: int, before: TextIO | None, on_loss: Callable[[OSError], None]) -> io.TextIOWrapper:
    if before is not None:
        with contextlib.suppress(OSError, ValueError):
            before.flush()
    encoding = (before.encoding if before is not None else None) or "utf-8"
    # Without a buffer of bytes: a signal's handler may write while something else does.
    output = LastingOutput(descriptor, on_loss)
    return io.TextIOWrapper(cast(BinaryIO, output), encoding, "backslashreplace", line_buffering=True)


def _say_loss(error: OSError) -> None:
    if error.errno not in _GONE:
        print(
            f"run: what is shown here cannot be written ({error.strerror}): the rest of it is dropped.", file=sys.stderr
        )
