"""This machine as a Host: commands as subprocesses, each in a process group that a timeout ends as a whole."""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts import socket_opener
from ctbench.hosts.base import Completed, SocketKind

#: Where system tools are that an ordinary user's PATH often leaves out (Debian: /usr/sbin).
SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
#: How many of the last lines of stderr (or stdout) an error message quotes.
QUOTED_LINES = 5
#: Seconds that a process gets to open a socket and hand it over.
SOCKET_TIMEOUT_S = 10.0
#: Opens a socket of the kind that follows, and hands it over.
OPEN_SOCKET = (sys.executable, "-I", "-S", socket_opener.__file__)

#: Ends a command and its children at once.
Kill = Callable[["subprocess.Popen[bytes]"], None]


class LocalProcess:
    """A background command: the process group that this machine sees, and the ID that the host's commands see."""

    def __init__(self, popen: "subprocess.Popen[bytes]", target: int, pid: int, kill: Kill | None = None) -> None:
        """`target` is the command's process on this machine (`popen` may be what carries it into a sandbox);
        `pid` is its ID inside the host; `kill` ends all of it at once."""
        self._popen = popen
        self._target = target
        self._pid = pid
        self._kill = kill or kill_group

    @property
    def pid(self) -> int:
        """Process ID as the host's own commands see it."""
        return self._pid

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._popen.poll() is None

    def stop(self, timeout: float = 5.0) -> int:
        """SIGTERM to the command; after `timeout` seconds SIGKILL to its whole group. Returns its exit status,
        negative for the signal that ended it."""
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._target, signal.SIGTERM)
            try:
                return self._popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self._kill(self._popen)
        return self._popen.wait(timeout)


class LocalHost:
    """This machine, as the user that runs the suite."""

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return "this machine"

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 30.0,
        *,
        check: bool = True,
        stdin: str = "",
        env: dict[str, str] | None = None,
    ) -> Completed:
        """Run `argv` and wait; see `ctbench.hosts.base.Host.run`."""
        return run_subprocess(argv, argv, self.name, timeout, check=check, stdin=stdin, env=env)

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> LocalProcess:
        """Start `argv` in the background; it is stopped by `close` at the latest."""
        popen = start_subprocess(argv, self.name, env, log)
        process = LocalProcess(popen, popen.pid, popen.pid)
        self._started.append(process)
        return process

    def put(self, local: Path, remote: str) -> None:
        """Copy a file on this machine."""
        copy(local, Path(remote), self.name)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file on this machine."""
        copy(Path(remote), local, self.name)

    def read(self, remote: str) -> str:
        """Content of a small text file."""
        return read_text(Path(remote), remote, self.name)

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket.socket:
        """See `ctbench.hosts.base.Host.open_socket`; needs CAP_NET_RAW, and for `namespace` root."""
        if namespace:
            return fetch_socket(["ip", "netns", "exec", namespace, *OPEN_SOCKET], kind, self.name)
        try:
            return socket_opener.open_socket(kind)
        except PermissionError:
            raise MissingResource(
                f"{self.name}: such a socket needs CAP_NET_RAW: run as root, or take a testbed with `host: sandbox`."
            ) from None

    def how_ended(self, pid: int) -> str:
        """Nobody can tell: a daemon is a child of this machine's first process."""
        return ""

    def open_process(self, pid: int) -> int:
        """See `ctbench.hosts.base.Host.open_process`."""
        return open_process(pid, self.name)

    def local_path(self, remote: str) -> Path:
        """The path itself: the host is this machine."""
        return Path(remote)

    def close(self) -> None:
        """Stop what `start` started."""
        while self._started:
            self._started.pop().stop()


def run_subprocess(
    argv: Sequence[str],
    shown: Sequence[str],
    host: str,
    timeout: float,
    *,
    check: bool,
    stdin: str,
    env: Mapping[str, str] | None,
    kill: Kill | None = None,
) -> Completed:
    """Run `argv`; messages call it `shown`: what the caller asked for, without what carries it into a sandbox.

    `kill` ends it when its time is up. Raises `TestbedError` when it cannot start, when `timeout` seconds are up,
    or, with `check`, when it fails.
    """
    command = " ".join(shown)
    # Files, not pipes: a daemon that keeps the command's output open would keep us waiting for the end of a pipe.
    with TemporaryFile() as source, TemporaryFile() as out, TemporaryFile() as err:
        source.write(stdin.encode())
        source.seek(0)
        try:
            popen = subprocess.Popen(
                argv, stdin=source, stdout=out, stderr=err, env=environment(env), start_new_session=True
            )
        except OSError as error:
            raise TestbedError(f"{host}: `{command}` cannot be started: {error.strerror}.") from error
        try:
            ended = wait_for(popen, timeout)
        except BaseException:  # Ctrl-C: the command is in a session of its own and would not get it
            (kill or kill_group)(popen)
            popen.wait()
            raise
        if not ended:
            (kill or kill_group)(popen)
            popen.wait()
            raise TestbedError(f"{host}: `{command}` did not end within {timeout:g} s.")
        completed = Completed(tuple(shown), popen.returncode, _text(out), _text(err))
    if check:
        require_success(completed, host)
    return completed


def open_process(pid: int, host: str) -> int:
    """A file descriptor of a process of this machine."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        raise TestbedError(f"{host}: process {pid} cannot be opened: {error.strerror}.") from error


def require_success(completed: Completed, host: str) -> None:
    """Raise a `TestbedError` that quotes what a failed command said."""
    if completed.exit_status != 0:
        command = " ".join(completed.argv)
        raise TestbedError(f"{host}: `{command}` failed with status {completed.exit_status}: {_quote(completed)}")


def start_subprocess(
    argv: Sequence[str], host: str, env: Mapping[str, str] | None, log: Path | None
) -> "subprocess.Popen[bytes]":
    """Start `argv` in a session of its own, its output appended to `log` or thrown away."""
    try:
        with (log or Path(os.devnull)).open("ab") as output:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(env),
                start_new_session=True,
            )
    except OSError as error:
        raise TestbedError(f"{host}: `{' '.join(argv)}` cannot be started: {error}.") from error


def wait_for(popen: "subprocess.Popen[bytes]", timeout: float) -> bool:
    """Whether it ended within `timeout` seconds. Waits for the event; `Popen.wait` with a timeout would poll."""
    descriptor = os.pidfd_open(popen.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ended = bool(poll.poll(timeout * 1000))
    finally:
        os.close(descriptor)
    if ended:
        popen.wait()
    return ended


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of commands: ours, output in English for the parsers, and a PATH with the system tools."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    path += [folder for folder in SYSTEM_PATH if folder not in path]
    return {**os.environ, "LC_ALL": "C", "PATH": os.pathsep.join(filter(None, path)), **(extra or {})}


def fate(status: int) -> str:
    """An exit status in words, negative for the signal that ended the process: `was killed by SIGKILL`."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-status}"


def kill_group(popen: "subprocess.Popen[bytes]") -> None:
    """SIGKILL the process group that `popen` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)


def copy(source: Path, target: Path, host: str) -> None:
    """Copy the content of a file; `TestbedError` when either end cannot be opened."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise TestbedError(f"{host}: cannot copy {source} to {target}: {error.strerror or error}.") from error


def read_text(path: Path, shown: str, host: str) -> str:
    """Content of a text file; `TestbedError` calls it `shown`."""
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise TestbedError(f"{host}: cannot read {shown}: {error.strerror or error}.") from error


def fetch_socket(argv: Sequence[str], kind: SocketKind, host: str, kill: Kill | None = None) -> socket.socket:
    """The socket that `argv`, told the kind, hands over on its standard input; see socket_opener.py."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs, TemporaryFile() as err:
            try:
                popen = subprocess.Popen(
                    [*argv, kind],
                    stdin=theirs.fileno(),
                    stdout=err,
                    stderr=err,
                    env=environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise TestbedError(f"{host}: no socket: {argv[0]}: {error.strerror}.") from error
            if not wait_for(popen, SOCKET_TIMEOUT_S):
                (kill or kill_group)(popen)
                popen.wait()
            said = _text(err).strip().splitlines() or ["it was not opened in time"]
        _, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    if not descriptors:
        raise TestbedError(f"{host}: no socket: {said[-1].rstrip('.')}.")
    # Told what it is: a socket of AF_XDP does not answer the questions that Python would find out by.
    return socket.socket(socket_opener.FAMILIES[kind], socket.SOCK_RAW, 0, fileno=descriptors[0])


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _quote(completed: Completed) -> str:
    lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    return " | ".join(lines[-QUOTED_LINES:]) or "it printed nothing."
