"""A process that is stopped for a while, so that another one can have its CPU: PMD threads poll without end."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Host


class Pause:
    """Stops and continues one process of a host. A signal is sent by its descriptor: in some microseconds, and never to
    another process that got its ID."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process: tuple[int, int] | None = None
        self._since = 0.0
        #: Seconds that it was stopped for in all, up to its last `end`.
        self.seconds = 0.0
        #: Whether it is stopped now.
        self.lasts = False

    def begin(self, pid: int) -> None:
        """Stop a process. Nothing happens where it has died, or is stopped already. `MissingResource` where it is on
        another machine."""
        if self.lasts:
            return
        if self._process is None or self._process[0] != pid:
            self.forget()
            with contextlib.suppress(TestbedError):  # what has died is somebody else's to find
                descriptor = self._host.open_process(pid)
                if descriptor is None:
                    raise MissingResource(
                        f"{self._host.name}: a process there cannot be paused for another one within microseconds: two"
                        " DUTs stand side by side only on this machine."
                    )
                self._process = pid, descriptor
        if self._process and self._send(signal.SIGSTOP):
            self.lasts, self._since = True, time.monotonic()

    def end(self) -> None:
        """Let it go on."""
        if self.lasts:
            self._send(signal.SIGCONT)
            self.lasts = False
            self.seconds += time.monotonic() - self._since

    def forget(self) -> None:
        """Let it go on, and know nothing of it any more."""
        self.end()
        if self._process:
            os.close(self._process[1])
        self._process, self.seconds = None, 0.0

    def _send(self, number: signal.Signals) -> bool:
        assert self._process
        try:
            signal.pidfd_send_signal(self._process[1], number)
        except ProcessLookupError:
            return False
        return True


class Pausable(Protocol):
    """What can be paused, and is asked things."""

    @property
    def paused(self) -> bool: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


Self = TypeVar("Self", bound=Pausable)
Answer = TypeVar("Answer")


def awake(method: Callable[[Self], Answer]) -> Callable[[Self], Answer]:
    """Of what may be paused and could not answer then: it goes on for as long as it is asked something."""

    @wraps(method)
    def asked(self: Self, /) -> Answer:
        paused = self.paused
        self.resume()
        try:
            return method(self)
        finally:
            if paused:
                self.pause()

    return asked
