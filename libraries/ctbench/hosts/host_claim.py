"""Hosts of a lab that a run has for itself: another run waits for its end, or is told who has them.

The lock of a host is flock(2) on a folder that every host has and every user may open. flock(1) holds it there as a
command of ours, which ends with this process, over SSH with its connection (ssh.sh); then the kernel gives the lock
back. It leaves no file behind: who has it stands on the command line of flock(1).
"""

import getpass
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.base.text import brief
from ctbench.hosts.base import Host, Process
from ctbench.hosts.connections import HostPool
from ctbench.hosts.cpu_claim import process_with_lock
from ctbench.hosts.local import ends_with_us
from ctbench.hosts.machine import read_files

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
