"""The control plane's main thread while a load lasts: how long it ran, and the longest time that it did not wait for an
event, in which nobody gets an answer."""

import threading
from collections.abc import Callable
from time import monotonic as _now
from types import TracebackType
from typing import Self

from ctbench.base.errors import TestbedError
from ctbench.dut.control_plane import ThreadLook

#: Seconds between two looks. What the thread does for less than that is not seen, nor a wait that is shorter.
EVERY_S = 0.003


class MainThreadWatch:
    """Looks at a thread again and again, in a thread of its own, for as long as it is entered."""

    def __init__(self, look: Callable[[], ThreadLook | None], every_s: float = EVERY_S) -> None:
        self._look = look
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        #: When it was looked at, and what was seen.
        self.seen: list[tuple[float, ThreadLook]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    @property
    def ran_s(self) -> float | None:
        """CPU time of the thread; None where it was not seen."""
        return self.seen[-1][1].ran_s - self.seen[0][1].ran_s if len(self.seen) > 1 else None

    @property
    def longest_s(self) -> float | None:
        """Seconds from the first to the last look of the longest series in which it never waited; None where it was
        not seen."""
        return longest_busy(self.seen) if len(self.seen) > 1 else None

    def _watch(self) -> None:
        while not self._done.is_set():
            try:
                look = self._look()
            except TestbedError:  # gone: that is the trial's to find
                return
            if look is None:
                return
            self.seen.append((_now(), look))
            self._done.wait(self._every_s)


def longest_busy(seen: list[tuple[float, ThreadLook]]) -> float:
    """Seconds of the longest series of looks at which the thread did not wait."""
    longest, since = 0.0, None
    for at, look in seen:
        if look.waits:
            since = None
        else:
            since = at if since is None else since
            longest = max(longest, at - since)
    return longest
