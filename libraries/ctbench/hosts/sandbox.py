"""A sandbox: user, network, mount and PID namespaces of the run's own, made without root, which end with their first
process.

Nothing needs cleaning up: the kernel kills every process of a PID namespace whose first process has ended, and what
they held (mounts, interfaces, memory) goes with them. The first process ends when its socket to this process closes,
however this process ended. PR_SET_PDEATHSIG ends it as well where a child of this process still holds a copy of that
socket.
"""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts import sandbox_init
from ctbench.hosts.base import Completed
from ctbench.hosts.local import LocalHost, ends_with_us, environment, fate

#: Seconds that the namespaces may take to be made, or to be taken down (a gigabyte of memory is freed).
LIFECYCLE_TIMEOUT_S = 15.0
#: Seconds that the news of a process' end may take, when it is known to have ended: its memory is freed first.
FATE_TIMEOUT_S = 2.0
#: Makes the namespaces usable, and becomes what follows. A /run of its own: daemons keep sockets and locks there, and
#: the host must not see any of it. The host's /sys shows the host's interfaces; one that is mounted here shows those of
#: this network namespace.
PREPARE = """
mount -n -t tmpfs -o nosuid,nodev tmpfs /run &&
mount -n -t sysfs -o nosuid,nodev,noexec sysfs /sys &&
ip link set lo up &&
exec "$@"
"""
#: Kernel settings (below /proc/sys) that keep namespaces from ordinary users: a value that does, one that does not.
FORBIDDING_SETTINGS = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}


class Sandbox(LocalHost):
    """A host in namespaces of its own, where commands run as root and the real host is out of reach.

    Make and use it from a thread that lives as long as it does: the kernel ties it to that thread (prctl(2)).
    """

    name = "sandbox"
    #: Process ID of its first process, as this machine sees it.
    init_pid: int

    def __init__(self) -> None:
        """Make the namespaces. Raise `MissingResource` where the machine does not allow them."""
        super().__init__()
        #: Exit statuses of daemons that did not end well, by their IDs inside.
        self._ended: dict[int, int] = {}
        self._holder, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with inside:
            try:
                self._outermost = subprocess.Popen(
                    _unshare_argv(),
                    stdin=inside.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=environment(),
                    start_new_session=True,
                )
            except OSError as error:
                self._holder.close()
                raise MissingResource(f"A sandbox needs setpriv and unshare (package util-linux): {error}.") from error
        try:
            self.init_pid = self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        # The working directory is `/`.
        completed = super()._run(argv, timeout, stdin, env)
        if completed.exit_status != 0:
            self._require_alive()  # or its end would be taken for what the command has to say
        return completed

    def ended_with(self, pid: int) -> int | None:
        # The first process collects daemons, and tells.
        deadline = time.monotonic() + FATE_TIMEOUT_S
        while self._holder.fileno() >= 0 and pid not in self._ended and (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self._holder], [], [], left)
            said = self._holder.recv(64) if readable else b""
            if not said:
                break
            ended, status = map(int, said.split())
            self._ended[ended] = status
        return self._ended.get(pid)

    def local_pid(self, pid: int) -> int:
        # Proc(5), NSpid of /proc/PID/status.
        self._require_alive()
        namespace = Path(f"/proc/{self.init_pid}/ns/pid").readlink()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                ids = re.search(r"^NSpid:.*\t(\d+)$", (folder / "status").read_text(), re.MULTILINE)
                if ids and int(ids[1]) == pid and (folder / "ns/pid").readlink() == namespace:
                    return int(folder.name)
        raise TestbedError(f"{self.name}: there is no process {pid}.")

    def local_path(self, remote: str) -> Path:
        # proc(5), /proc/PID/root.
        return Path(f"/proc/{self.init_pid}/root", remote.lstrip("/"))

    def close(self) -> None:
        """End the sandbox and wait until all of it is gone. Raise `TestbedError` where a process does not end. May be
        called twice."""
        self._holder.close()
        try:
            try:
                self._outermost.wait(LIFECYCLE_TIMEOUT_S)
            except subprocess.TimeoutExpired:  # it was stopped
                super().kill(self._outermost)
                self._outermost.wait(LIFECYCLE_TIMEOUT_S)
            super().close()  # only collects the exit statuses: the commands died with the sandbox
        except subprocess.TimeoutExpired as error:
            raise TestbedError(f"A process of the sandbox does not end ({error}).") from error
        finally:
            if self._outermost.stderr:
                self._outermost.stderr.close()

    def _wait_until_ready(self) -> int:
        self._holder.settimeout(LIFECYCLE_TIMEOUT_S)
        try:
            message = self._holder.recv(16)
        except TimeoutError:
            raise TestbedError(f"The sandbox was not ready within {LIFECYCLE_TIMEOUT_S:g} s.") from None
        if message != b"ready":
            _, stderr = self._outermost.communicate(timeout=LIFECYCLE_TIMEOUT_S)
            raise MissingResource(why_forbidden(stderr.decode(errors="replace")))
        return int(Path(f"/proc/{self._outermost.pid}/task/{self._outermost.pid}/children").read_text())

    def _require_alive(self) -> None:
        if self._outermost.poll() is None:
            # One that was killed has no namespaces any more, long before its parent hears of its end.
            with contextlib.suppress(OSError):
                Path(f"/proc/{self.init_pid}/ns/net").readlink()
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._outermost.wait(FATE_TIMEOUT_S)
        status = self._outermost.poll() or 0
        who = (
            "its first process, or the unshare that holds it,"
            if status < 0
            else "its first process was killed: unshare"
        )
        raise TestbedError(f"The sandbox has ended: {who} {fate(status)}.")

    def _enter(self, argv: Sequence[str]) -> Sequence[str]:
        self._require_alive()
        # --preserve-credentials: we are already mapped to root inside, and setgroups is not allowed there.
        namespaces = ["--user", "--net", "--mount", "--pid", "--preserve-credentials"]
        return ["nsenter", "-t", str(self.init_pid), *namespaces, "--", *argv]

    def _ids(self, popen: "subprocess.Popen[bytes]") -> tuple[int, int]:
        """Return the IDs, on this machine and inside, of the process that nsenter forked; nsenter's own once it has
        ended."""
        while popen.poll() is None:
            for pid in _group_without_leader(popen.pid):
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    fields = dict(line.split(":", 1) for line in status.splitlines())
                    if int(fields["PPid"]) == popen.pid:
                        return pid, int(fields["NSpid"].split()[-1])
        return popen.pid, popen.pid

    def kill(self, popen: "subprocess.Popen[bytes]") -> None:
        """Send SIGKILL to the processes that nsenter carried in, and let nsenter collect them. Without nsenter, the
        machine's PID 1 would have to collect them (in a container it may never do so), and a PID namespace cannot end
        before its last zombie is collected."""
        while popen.poll() is None:
            inside = _group_without_leader(popen.pid)
            for pid in inside:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not inside:
                popen.kill()  # it has not entered yet
            with contextlib.suppress(subprocess.TimeoutExpired):
                popen.wait(0.1)


def why_forbidden(stderr: str, settings: Path = Path("/proc/sys")) -> str:
    """Return one sentence on why namespaces cannot be made here and what to do. `stderr`: the output of unshare."""
    for name, (forbids, allows) in FORBIDDING_SETTINGS.items():
        with contextlib.suppress(OSError):
            if (settings / name).read_text().strip() == forbids:
                remedy = f"sysctl {name.replace('/', '.')}={allows}"
                return f"This machine keeps namespaces from ordinary users; an administrator allows them with: {remedy}"
    said = " | ".join(stderr.strip().splitlines()[-2:]) or "no reason given"
    return (
        f"Namespaces cannot be made here ({said}): in a container, allow them "
        "(podman or docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined; docker: also "
        "--security-opt apparmor=unconfined), or run on the machine itself."
    )


def _unshare_argv() -> list[str]:
    init = [sys.executable, "-I", "-S", sandbox_init.__file__]
    namespaces = ["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ends_with_us(["unshare", *namespaces, "--", "sh", "-c", PREPARE, "sh", *init])


def _group_without_leader(group: int) -> list[int]:
    """Return the processes of a process group but its leader, as this machine sees them; proc(5): the fifth field of
    /proc/PID/stat."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()  # the name before it may hold spaces
            if int(fields[2]) == group and int(stat.parent.name) != group:
                members.append(int(stat.parent.name))
    return members
