"""What a run has for itself: CPUs of this machine, and hosts of a lab. Another run, of whatever user, waits for its
end, or is told who has them.

The lock of a CPU is flock(2) on its folder in sysfs, that of a host on a folder that every host has: every user may
open these, no file is left behind, and the kernel gives the lock back however the process ends. On a host flock(1)
holds it as a command of ours, which ends with this process, over SSH with its connection (ssh.sh): who has it stands on
the command line of flock(1).
"""

import fcntl
import getpass
import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.base.text import brief
from ctbench.hosts.base import Host, Process
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import ends_with_us
from ctbench.hosts.machine import read_files

#: A folder for each CPU.
CPUS = Path("/sys/devices/system/cpu")
#: Seconds between two looks whether they are free.
_CPU_LOOK_S = 0.5

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
            time.sleep(_CPU_LOOK_S)

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


FOLDER = "/run"
#: What flock(1) runs: it says that the host is claimed, and again each half minute. A connection whose other end is
#: gone without a word ends when what was written to it is not acknowledged, after some 16 minutes: tcp(7),
#: tcp_retries2.
_MARK, _HOLD = "conntrack-sla", 'while echo "$0"; do setpriv --pdeathsig KILL -- sleep 30; done'
#: Status of flock(1) where another process has the lock; EX_TEMPFAIL of sysexits.h.
_TAKEN = 75
#: Seconds that a run which was killed just now takes to be gone; between two looks; between two lines of progress.
_GRACE_S, _LOOK_S, _SAY_S = 3.0, 0.1, 60.0
#: How CI servers call a job: Jenkins, GitHub Actions, GitLab.
_JOBS = ("BUILD_TAG", "GITHUB_RUN_ID", "CI_JOB_URL")
#: Characters of who has a host.
_LONGEST = 200


class Taken(TestbedError):
    """Another run has a host for itself."""


class HostClaim:
    """Hosts that were claimed, until they are closed: the lock ends with what was started there."""

    def __init__(
        self, hosts: HostPool, names: Iterable[str], wait_s: float, say: Callable[[str], None], folder: str = FOLDER
    ) -> None:
        """Claim the hosts that a testbed file calls so. `Taken` where another run has one for more than `wait_s`
        seconds, which is told to `say`, as is a host that cannot be claimed: what it lacks, it says when it is used."""
        self._hosts, self._wait_s, self._say, self._folder = hosts, wait_s, say, folder
        job = next((f" ({value})" for name in _JOBS if (value := os.environ.get(name))), "")
        since = f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        self._who = brief(f"{_user()}@{socket.gethostname()}, {since}{job}", _LONGEST)
        self._held: dict[str, Process] = {}
        for name in sorted(names):
            self._try_to_take(name)

    def renew(self) -> None:
        """Claim those hosts again whose connection was lost. `Taken` where another run was quicker."""
        for name, process in list(self._held.items()):
            if not process.is_running():
                self._try_to_take(name)

    def _try_to_take(self, name: str) -> None:
        try:
            self._take(name, self._hosts.host(name))
        except Taken:
            raise
        except TestbedError as error:
            self._say(f"{name} is not claimed, so another run may use it at the same time: {error}")

    def _take(self, name: str, host: Host) -> None:
        if (by := holder(host, self._folder)) == self._who:  # by another name of the same host
            return
        argv = ["flock", "--timeout", f"{self._wait_s or _GRACE_S:g}", "--conflict-exit-code", str(_TAKEN), "--close",
                self._folder, *ends_with_us(["sh", "-c", _HOLD, _MARK, self._who])]  # fmt: skip
        begun = time.monotonic()
        said_at = begun - _SAY_S
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "said")
            process = host.start(ends_with_us(argv), log=log)
            while process.is_running():
                if _MARK in log.read_text():
                    self._held[name] = process
                    return
                now = time.monotonic()
                if by and self._wait_s and now >= said_at + _SAY_S:
                    left = self._wait_s - (now - begun)
                    self._say(f"{name}: {by} has this host. Waiting for its end, {left / 60:.0f} min at most.")
                    said_at = now
                time.sleep(_LOOK_S)
            status, complaint = process.stop(), brief(log.read_text().strip(), _LONGEST)
        if status != _TAKEN:
            raise TestbedError(f"{name}: flock ended with status {status}: {complaint or 'it printed nothing'}.")
        raise Taken(
            f"{name}: {holder(host, self._folder) or by} has this host for itself: wait for its end, or set "
            "wait_for_hosts_s in the testbed file."
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # of a container, that no passwd entry names
        return str(os.getuid())


def holder(host: Host, folder: str = FOLDER) -> str:
    """Who has claimed a host, since when and for which job; empty where it is free."""
    place = host.run(["stat", "-c", "%d %i", folder], check=False).stdout.split()
    locks = read_files(host, "/proc/locks").get("/proc/locks", "")
    process = process_with_lock(locks, *map(int, place)) if place else None
    if not process:
        return ""
    words = host.run(["cat", f"/proc/{process}/cmdline"], check=False).stdout.split("\0")
    return brief(words[-2], _LONGEST) if words[-3:-2] == [_MARK] else f"process {process}"
