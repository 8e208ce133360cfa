"""This machine as a Host: commands as subprocesses, each in a process group that a timeout ends as a whole."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts import limits, socket_opener
from ctbench.hosts.base import Completed, Host, Process, SocketKind

#: Where system tools are that an ordinary user's PATH often leaves out (Debian: /usr/sbin).
SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
#: Seconds that a process gets to open a socket and hand it over.
SOCKET_TIMEOUT_S = 10.0
#: Opens a socket of the kind that follows, and hands it over.
OPEN_SOCKET = (sys.executable, "-I", "-S", socket_opener.__file__)


class LocalProcess(Process):
    """A background command, by its process group on this machine and its process ID inside the host."""

    def __init__(self, popen: "subprocess.Popen[bytes]", target: int, pid: int, host: "LocalHost") -> None:
        """`target`: the ID on this machine of the command's process (`popen` may be nsenter, which carries it into a
        sandbox). `pid`: its ID inside the host."""
        self._popen = popen
        self._target = target
        self.pid = pid
        self._host = host

    def is_running(self) -> bool:
        return self._popen.poll() is None

    def stop(self, timeout: float = 5.0) -> int:
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._target, signal.SIGTERM)
            try:
                return self._popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self._host.kill(self._popen)
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TestbedError(f"Process {self.pid} did not end within {timeout:g} s of SIGKILL.") from None


class LocalHost(Host):
    """This machine, as the user that runs the suite."""

    name = "this machine"

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        # Files, not pipes: a daemon that keeps the command's output open would keep us waiting for the end of a pipe.
        with _file() as source, _file() as out, _file() as err:
            source.write(stdin.encode())
            source.seek(0)
            with self._starting(argv):
                popen = _spawn(self._enter(argv), source, out, err, env)
            if not self._ends(popen, timeout):
                raise TestbedError(f"{self.name}: `{' '.join(argv)}` did not end within {timeout:g} s.")
            return Completed(popen.returncode, _text(out), _text(err))

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> LocalProcess:
        with self._starting(argv), (log or Path(os.devnull)).open("ab") as output:
            popen = _spawn(self._enter(argv), subprocess.DEVNULL, output, subprocess.STDOUT, env)
        process = LocalProcess(popen, *self._ids(popen), self)
        self._started.append(process)
        return process

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket.socket:
        """Open the socket in a process of the host, which hands it over on its standard input; see socket_opener.py."""
        argv = [*(["ip", "netns", "exec", namespace] if namespace else []), *OPEN_SOCKET, kind]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs, _file() as output:
                with self._starting(argv):
                    popen = _spawn(self._enter(argv), theirs.fileno(), output, output)
                self._ends(popen, SOCKET_TIMEOUT_S)
                said = _text(output).strip().splitlines() or ["it was not opened in time"]
            _, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
        if kind == "packet" and "PermissionError" in said[-1]:  # without AF_XDP, packet sockets are taken
            raise MissingResource(
                f"{self.name}: such a socket needs CAP_NET_RAW: run as root, or take a testbed with `host: sandbox`."
            )
        if not descriptors:
            raise TestbedError(f"{self.name}: no socket: {said[-1].rstrip('.')}.")
        # Told what it is: a socket of AF_XDP does not answer the questions that Python would find out by.
        return socket.socket(socket_opener.FAMILIES[kind], socket.SOCK_RAW, 0, fileno=descriptors[0])

    def local_pid(self, pid: int) -> int:
        return pid

    def local_path(self, remote: str) -> Path:
        return Path(remote)

    def kill(self, popen: "subprocess.Popen[bytes]") -> None:
        """Send SIGKILL to a command and its children: the process group that it leads."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)

    def close(self) -> None:
        if self._started:
            process = self._started.pop()
            try:
                process.stop()
            finally:  # one that does not end leaves no other one running
                self.close()

    def _enter(self, argv: Sequence[str]) -> Sequence[str]:
        """Return the command that runs `argv` inside the host."""
        return argv

    def _ids(self, popen: "subprocess.Popen[bytes]") -> tuple[int, int]:
        """Return the process IDs of the command that `popen` carries in: on this machine, and inside the host."""
        return popen.pid, popen.pid

    @contextlib.contextmanager
    def _starting(self, argv: Sequence[str]) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` cannot be started: {error.strerror}.") from error

    def _ends(self, popen: "subprocess.Popen[bytes]", timeout: float) -> bool:
        """Return whether the command ends by itself within `timeout` seconds; else kill it. Wait for the event:
        `Popen.wait` with a timeout would poll."""
        ended = False
        descriptor = os.pidfd_open(popen.pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            ended = bool(poll.poll(timeout * 1000))
        finally:  # Ctrl-C among it: the command is in a session of its own and would not get it
            os.close(descriptor)
            if not ended:
                self.kill(popen)
            popen.wait()
        return ended


def _spawn(
    argv: Sequence[str],
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    env: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv, stdin=stdin, stdout=stdout, stderr=stderr, env=environment(env), start_new_session=True
    )


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of commands: that of this process, output in English for the parsers, and a PATH with the
    system tools."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    path += [folder for folder in SYSTEM_PATH if folder not in path]
    return {**os.environ, "LC_ALL": "C", "PATH": os.pathsep.join(filter(None, path)), **(extra or {})}


def fate(status: int) -> str:
    """Describe an exit status in words, negative for the signal that ended the process: `was killed by SIGKILL`."""
    if status >= 0:
        return f"ended with status {status}"
    if -status == signal.SIGKILL and limits.killed_for_memory():
        return f"was killed by SIGKILL: the control group has {limits.limits_here()}, which was used up"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-status}"


def is_own_fault(status: int | None) -> bool:
    """True where a process ended by a signal that its own fault raised, signal(7)."""
    return -(status or 0) in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def _file() -> IO[bytes]:
    """Return a file in memory, which needs no space on a disk and no writable folder."""
    return os.fdopen(os.memfd_create("ctbench"), "w+b")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


@dataclass(frozen=True)
class Owner:
    """The identity of a process of a machine, which a later process with the same ID does not share."""

    machine: str
    #: Boot of the machine, and when the process started, clock ticks since then (proc(5), /proc/PID/stat).
    boot: str
    ticks: str
    pid: str

    def __str__(self) -> str:
        return f"ctbench process {self.pid} of {self.machine} ({self.boot} {self.ticks})"

    @classmethod
    def of(cls, pid: str) -> "Owner":
        """Return the process of this machine that has this ID now, without `ticks` where there is none."""
        ticks = ""
        with contextlib.suppress(OSError):
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return cls(socket.gethostname(), Path("/proc/sys/kernel/random/boot_id").read_text().strip(), ticks, pid)

    @classmethod
    def myself(cls) -> "Owner":
        return cls.of(str(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """Parse the text of `str`; return None for any other text."""
        match text.replace("(", "").replace(")", "").split():
            case ["ctbench", "process", pid, "of", machine, boot, ticks]:
                return cls(machine, boot, ticks, pid)
        return None

    def lives(self) -> bool:
        """True where the process runs on this machine."""
        return self == Owner.of(self.pid)

    def is_gone(self) -> bool:
        """True where the process has certainly ended; False on another machine, where that is not known."""
        return self.machine == socket.gethostname() and not self.lives()


def ends_with_us(argv: Sequence[str]) -> list[str]:
    """Return the command that starts `argv` so that the kernel kills it when the starting thread ends, kill -9
    included; prctl(2), PR_SET_PDEATHSIG."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *argv]


def run_child(argv: Sequence[str]) -> int:
    """Run `argv` to its end and return its exit status. The child ends with this process at the latest.

    Pass SIGINT and SIGTERM on to the child and wait for its end. The status is then 128 and the number of the signal,
    as it is where a signal killed the child. Call it from the main thread.
    """
    early: list[int] = []  # before there was a child to hand them on to
    handed_on: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        (handed_on if child else early).append(number)
        for process in child:
            process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # A process group of its own: a terminal would send Ctrl-C to it as well, and a second one ends Robot Framework
        # by force.
        child.append(subprocess.Popen(ends_with_us(argv), process_group=0))
        if early:
            child[0].send_signal(early[0])
        ended = child[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received := early + handed_on:
        return 128 + received[0]
    return ended if ended >= 0 else 128 - ended
