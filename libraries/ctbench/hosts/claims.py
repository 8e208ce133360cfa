"""Claims of a run on hosts of a lab and on CPUs of this machine. Another run, of any user, waits for the end of the
claim, or stops with a message that names its owner.

The lock of a host is flock(2) on a folder that every host has, the lock of a CPU on its folder in sysfs. Every user may
open these, no file is left behind, and the kernel releases the lock however the process ends. A command of the run
holds the lock. It ends with this process, over SSH with its connection (ssh.sh), and its command line names the owner.
"""

import getpass
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.base.text import brief
from ctbench.hosts.base import Host, Process
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import ends_with_us
from ctbench.hosts.machine import BOOT, CPU, read_files

FOLDER = "/run"
#: What flock(1) runs: it says that the host is claimed, and again each half minute. A connection whose other end is
#: gone without a word ends when what was written to it is not acknowledged, after some 16 minutes: tcp(7),
#: tcp_retries2.
_MARK, _HOLD = "conntrack-sla", 'while echo "$0"; do setpriv --pdeathsig KILL -- sleep 30; done'
#: What holds the locks of many CPUs, a program of Python, which sleeps: they are of this machine.
_HOLD_ALL = """
import fcntl, os, signal, sys
for folder in sys.argv[1:-2]:
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
print(sys.argv[-2], flush=True)
signal.pause()
"""
#: Status of flock(1) where another process has the lock; EX_TEMPFAIL of sysexits.h.
_TAKEN = 75
#: Seconds that a run which was killed just now takes to be gone; between two looks; between two lines of progress;
#: that a claim takes of what is free.
_GRACE_S, _LOOK_S, _SAY_S, _FREE_S = 3.0, 0.1, 60.0, 5.0
#: How CI servers call a job: Jenkins, GitHub Actions, GitLab.
_JOBS = ("BUILD_TAG", "GITHUB_RUN_ID", "CI_JOB_URL")
#: Characters of who has a host.
_LONGEST = 200


class Taken(TestbedError):
    """Another run holds the claim on a host or on CPUs."""


def folders_of(cpus: Sequence[int]) -> list[str]:
    """Return the folders to lock for CPUs of this machine; a CPU without a folder is not claimed."""
    folders = (f"{CPU}/cpu{cpu}" for cpu in sorted(cpus))
    return [folder for folder in folders if Path(folder).is_dir()]


class Claim:
    """Locks on folders of hosts, held until the hosts are closed. A lost connection loses its lock, which is taken
    again before any other command on that host."""

    def __init__(
        self, hosts: HostPool, folders: Mapping[str, Sequence[str]], wait_s: float | None, say: Callable[[str], None]
    ) -> None:
        """Lock `folders`, by the host's name in the testbed file: one folder of each host, or with `wait_s` None
        several of this machine. Wait up to `wait_s` seconds for another run's lock, for None without limit, then raise
        `Taken`. Report to `say` the wait, and a host that cannot be claimed: its fault shows when it is used."""
        self._hosts, self._folders, self._wait_s, self._say = hosts, folders, wait_s, say
        self._held: dict[str, Process] = {}
        #: Why a host is not claimed, as it was said.
        self._unclaimed: dict[str, str] = {}
        self._taken_means = "wait for its end, or set wait_for_hosts_s in the testbed file"
        # Two runs that took two locks in different orders would wait for each other.
        self._names = sorted(folders, key=lambda name: (*self._lock_of(name), name))
        for name in self._names:
            self._try_to_take(name, wait_s)
        self._taken_means = "this run has no lock on it, and leaves it as it is"

    def renew(self) -> None:
        """Claim the hosts again whose connection was lost or that were out of reach. Raise `Taken` where another run
        was quicker. Do not wait for it while this claim holds a later host, for which the other run may wait."""
        for number, name in enumerate(self._names):
            if not self._is_held(name):
                holds_later = any(map(self._is_held, self._names[number + 1 :]))
                self._try_to_take(name, 0 if holds_later else self._wait_s)

    def require(self, host: Host) -> None:
        """Claim this host again where its lock was lost. Raise `Taken`, without waiting, where another run has it.
        Claims of CPUs are ignored."""
        for name in self._names:
            if self._wait_s is not None and self._hosts.host(name) is host and not self._is_held(name):
                self._try_to_take(name, 0)

    def _is_held(self, name: str) -> bool:
        return name in self._held and self._held[name].is_running()

    def _lock_of(self, name: str) -> tuple[str, str]:
        """Return the identity of a lock, which does not depend on the name and address of its host: the boot of the
        machine, device and inode. Return empty texts for a host that does not tell them."""
        host = self._hosts.host(name)
        try:
            return host.read(BOOT), host.run(["stat", "-c", "%d %i", *self._folders[name]]).stdout
        except TestbedError:
            return "", ""

    def _try_to_take(self, name: str, wait_s: float | None) -> None:
        host = self._hosts.host(name)
        host.on_connect = None  # to take it connects
        try:
            self._take(name, host, wait_s)
            self._unclaimed.pop(name, None)
        except TestbedError as error:
            if isinstance(error, Taken):
                host.disconnect()  # what comes next connects, and so asks again
                raise
            if self._unclaimed.get(name) != str(error):
                self._say(f"{name} is not claimed, so another run may use it at the same time: {error}")
            self._unclaimed[name] = str(error)
        except BaseException:  # told to end
            host.disconnect()
            raise
        finally:
            host.on_connect = partial(self._try_to_take, name, 0)

    def _take(self, name: str, host: Host, wait_s: float | None) -> None:
        folders = self._folders[name]
        taken, lost = holders(host, folders), self._held.pop(name, None)
        ours = ourselves() in taken.values()
        if ours and lost and str(lost.pid) in _processes(host, folders).values():
            # The host has not noticed yet that the connection is gone. Once it does, the lock ends.
            host.run(["kill", str(lost.pid)], check=False)
        elif ours:  # by another name of the same host
            return
        begun = time.monotonic()
        say_at = begun + (0 if taken else _FREE_S)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "said")
            process = host.start(_locking(folders, wait_s), log=log)
            while process.is_running():
                if _MARK in log.read_text():
                    self._held[name] = process
                    return
                now = time.monotonic()
                if wait_s != 0 and now >= say_at:
                    left = "" if wait_s is None else f", {(wait_s - now + begun) / 60:.0f} min at most"
                    self._say(f"{name}: {_others(host, folders)}. Waiting for its end{left}.")
                    say_at = now + _SAY_S
                time.sleep(_LOOK_S)
            status, complaint = process.stop(), brief(log.read_text().strip(), _LONGEST)
        if status != _TAKEN:
            raise TestbedError(f"{name}: its lock ended with status {status}: {complaint or 'it printed nothing'}.")
        raise Taken(f"{name}: {_others(host, folders)} for itself: {self._taken_means}.")


def _locking(folders: Sequence[str], wait_s: float | None) -> list[str]:
    """Return the command that holds the locks as long as it runs."""
    who = (_MARK, ourselves())
    if wait_s is None:
        return ends_with_us([sys.executable, "-I", "-S", "-c", _HOLD_ALL, *folders, *who])
    limit = ["--timeout", f"{wait_s or _GRACE_S:g}", "--conflict-exit-code", str(_TAKEN)]
    return ends_with_us(["flock", *limit, "--close", *folders, *ends_with_us(["sh", "-c", _HOLD, *who])])


@cache
def ourselves() -> str:
    """Return the description of this run that other runs show."""
    job = next((f" ({value})" for name in _JOBS if (value := os.environ.get(name))), "")
    since = f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return brief(f"{_user()}@{socket.gethostname()}, {since}{job}", _LONGEST)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # of a container, that no passwd entry names
        return str(os.getuid())


def process_with_lock(locks: str, device: int, inode: int) -> str | None:
    """Return the process that has a lock on a file, by /proc/locks (proc(5)); None where it names no process."""
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    for line in locks.splitlines():
        _, kind, *_, process, file, _start, _end = line.split()
        if file == place and kind != "->" and process.isdecimal() and process != "0":
            return process
    return None


def holders(host: Host, folders: Sequence[str] = (FOLDER,)) -> dict[str, str]:
    """Return the owner of each claimed folder, since when and for which job. Free folders are left out."""
    taken = {}
    for folder, process in _processes(host, folders).items():
        words = host.run(["cat", f"/proc/{process}/cmdline"], check=False).stdout.split("\0")
        taken[folder] = brief(words[-2], _LONGEST) if words[-3:-2] == [_MARK] else f"process {process}"
    return taken


def _processes(host: Host, folders: Sequence[str]) -> dict[str, str]:
    """Return the process that holds the lock of each of these folders."""
    places = host.run(["stat", "-c", "%d %i %n", *folders], check=False).stdout.splitlines()
    locks = read_files(host, "/proc/locks").get("/proc/locks", "")
    found = {}
    for place in places:
        device, inode, folder = place.split(maxsplit=2)
        if process := process_with_lock(locks, int(device), int(inode)):
            found[folder] = process
    return found


def _others(host: Host, folders: Sequence[str]) -> str:
    """Return, in words, which other run holds which of these folders. The owner of a lock in another container is not
    known."""
    taken = {folder: who for folder, who in holders(host, folders).items() if who != ourselves()}
    by = next(iter(taken.values()), "another run")
    theirs = [folder for folder, who in taken.items() if who == by] or folders
    cpus = [found[1] for each in theirs if (found := re.search(r"/cpu(\d+)$", each))]
    return f"{by} has {'CPU ' + ', '.join(cpus) if cpus else 'this host'}"
