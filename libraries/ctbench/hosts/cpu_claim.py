"""CPUs of this machine that a run has for itself: another one, of whatever user, waits for its end.

The lock of a CPU is flock(2) on its folder in sysfs, which every user may open: it leaves no file behind, and the
kernel gives it back however the process ends.
"""

import fcntl
import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

#: A folder for each CPU.
CPUS = Path("/sys/devices/system/cpu")
#: Seconds between two looks whether they are free.
_LOOK_S = 0.5

#: What this process holds: the descriptor of each CPU's folder and how often it was claimed.
_held: dict[Path, tuple[int, int]] = {}


class CpuClaim:
    """CPUs that were claimed, until they are released."""

    def __init__(self, cpus: Collection[int], wait: Callable[[str], None], folder: Path = CPUS) -> None:
        """Wait until no other run has one of the `cpus`; `wait` is told by whom they are measured, once for each. A CPU
        whose folder cannot be opened or locked is not claimed."""
        self._paths = [folder / f"cpu{cpu}" for cpu in sorted(cpus)]
        self._claimed: list[Path] = []
        told = ""
        while (by := self._take()) is not None:
            if by != told:
                wait(by)
                told = by
            time.sleep(_LOOK_S)

    def release(self) -> None:
        """Give them back. May be called twice."""
        while self._claimed:
            path = self._claimed.pop()
            descriptor, times = _held[path]
            if times > 1:
                _held[path] = descriptor, times - 1
            else:
                del _held[path]
                os.close(descriptor)

    def _take(self) -> str | None:
        """Take all of them or none; who has one that cannot be had, None where all are ours."""
        for path in self._paths:
            if path in _held:
                descriptor, times = _held[path]
                _held[path] = descriptor, times + 1
                self._claimed.append(path)
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:  # no such CPU, or no sysfs
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                by = _holder(descriptor)
                os.close(descriptor)
                self.release()
                return by
            except OSError:  # a file system without locks
                os.close(descriptor)
                continue
            _held[path] = descriptor, 1
            self._claimed.append(path)
        return None


def _holder(descriptor: int) -> str:
    """The process that has a lock."""
    at, process = os.fstat(descriptor), None
    with suppress(OSError):
        process = process_with_lock(Path("/proc/locks").read_text(encoding="ascii"), at.st_dev, at.st_ino)
    return f"process {process}" if process else "another process"


def process_with_lock(locks: str, device: int, inode: int) -> str | None:
    """The process that has a lock on a file, as /proc/locks names it (proc(5)); None where it names none."""
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    for line in locks.splitlines():
        _, kind, *_, process, file, _start, _end = line.split()
        if file == place and kind != "->" and process.isdecimal() and process != "0":
            return process
    return None
