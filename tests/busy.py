"""Whether the machine was busy while a test ran: one that failed is run once more then."""

import threading
from pathlib import Path
from time import monotonic, sleep

#: Seconds between two looks, and how late one of them is where the machine stood still.
_LOOK_S, _LONG_S = 0.01, 0.05
#: Share of the time of all CPUs in which they worked, from which on none was left for a test.
_ALL = 0.9


class Machine:
    """True where the machine stood still since the last `begin`, or had no CPU left."""

    def __init__(self) -> None:
        self._late_s = 0.0
        self._before = _worked()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self) -> None:
        """A test begins."""
        self._late_s, self._before = 0.0, _worked()

    def __bool__(self) -> bool:
        worked, whole = (now - then for now, then in zip(_worked(), self._before, strict=True))
        late_s = max(self._late_s, monotonic() - self._due)  # the watch may not have woken yet
        return late_s > _LONG_S or worked > _ALL * whole > 0

    def _watch(self) -> None:
        while True:
            self._due = monotonic() + _LOOK_S
            sleep(_LOOK_S)
            self._late_s = max(self._late_s, monotonic() - self._due)


def _worked() -> tuple[int, int]:
    """Ticks of all CPUs so far: those in which they worked, and all (proc(5), stat)."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
