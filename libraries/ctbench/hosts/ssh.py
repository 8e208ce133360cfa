"""Another machine as a Host, over SSH: nothing is installed there, and nothing of ours stays."""

import contextlib
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from socket import socket

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Completed, SocketKind
from ctbench.hosts.config import SshConfig
from ctbench.hosts.local import require_success
from ctbench.hosts.ssh_connection import ConnectionLost, SshConnection
from ctbench.hosts.ssh_files import get_file, put_file
from ctbench.hosts.ssh_process import SshProcess, exit_status
from ctbench.hosts.ssh_remote import Conversation, call, new_nonce, script
from ctbench.hosts.ssh_session import is_left_over, new_session_name

#: Seconds that a left-over of a crashed run gets to end when it is asked to.
END_TIMEOUT_S = 5
#: Seconds that all of a session gets to be gone, those that were asked, and then were killed, among it.
LONGEST_END_S = 30.0


class SshHost:
    """A machine across the network, as the user that logs in, or as root with `sudo`.

    Connected at the first use, and again at the next one after the connection was lost. Any method raises
    `TestbedError` when it cannot be, and when it is lost meanwhile.
    """

    def __init__(self, name: str, config: SshConfig, jump: SshConfig | None = None) -> None:
        """`config` is entry `name` of the testbed's hosts, `jump` the one that it goes through. Raises `ConfigError`
        when the environment lacks a password that they name."""
        self._name = name
        self._connection = SshConnection(name, config, jump)
        self._session_name = new_session_name()
        self._session: str | None = None
        #: Commands whose end was not seen because the connection was lost.
        self._unfinished: list[str] = []
        self._started: list[SshProcess] = []
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self._name

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 30.0,
        *,
        check: bool = True,
        stdin: str = "",
        env: dict[str, str] | None = None,
    ) -> Completed:
        """Run `argv` and wait; see `ctbench.hosts.base.Host.run`. The working directory is that of the login. What it
        prints beyond 16 MiB is an error that names a file of this machine with all of it."""
        command, given = " ".join(argv), stdin.encode()
        session, nonce = self._ready(), new_nonce()
        line, job = call("run", session, len(given), *argv), _job(session, nonce)
        with Conversation(self._connection, line, env, given, nonce) as said:
            self._started_job(said, command, job)
            try:
                _, status, *sizes = said.reply(timeout)
                out, err = (said.output(int(size)) for size in sizes)
            except ConnectionLost:
                self._unfinished.append(job)
                raise
            except TimeoutError:
                self._end(job)
                raise TestbedError(f"{self.name}: `{command}` did not end within {timeout:g} s.") from None
            except BaseException:  # Ctrl-C: it is in a session of its own and would not get it
                with contextlib.suppress(TestbedError):
                    self._end(job)
                raise
        for printed in (out, err):
            if isinstance(printed, Path):
                raise TestbedError(
                    f"{self.name}: `{command}` printed {printed.stat().st_size / 2**20:.0f} MiB, more than is read "
                    f"into memory: all of it is in {printed} on this machine."
                )
        completed = Completed(tuple(argv), exit_status(int(status)), _text(out), _text(err))
        if check:
            require_success(completed, self.name)
        return completed

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> SshProcess:
        """Start `argv` in the background; it outlives a lost connection, and `close` ends it. What it prints is
        appended to `log` whenever one asks whether it runs, and at its end."""
        if log is not None:
            log.open("ab").close()
        session, nonce = self._ready(), new_nonce()
        output = "/dev/null" if log is None else "$1/out"
        job_script = script(nonce, f'background "$1" "{output}" {shlex.join(argv)}', env)
        line, job = call("start", session, len(job_script), *argv), _job(session, nonce)
        with Conversation(self._connection, line, stdin=job_script, nonce=nonce) as said:
            pid = self._started_job(said, " ".join(argv), job)
        process = SshProcess(self._talk, pid, job, log)
        self._started.append(process)
        return process

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the host, with its mode."""
        self._ready()
        put_file(self, self._connection, local, remote)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the host, with its mode."""
        self._ready()
        get_file(self, self._connection, remote, local)

    def read(self, remote: str) -> str:
        """Content of a small text file, as commands on the host see it."""
        done = self.run(["cat", "--", remote], check=False)
        if done.exit_status != 0:
            reason = done.stderr.strip().rpartition(": ")[2]
            raise TestbedError(f"{self.name}: cannot read {remote}: {reason}.")
        return done.stdout

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        """None can be had across the network."""
        raise MissingResource(
            f"{self.name}: a socket of another machine cannot be had: the software traffic generator needs a DUT with "
            "`host: sandbox`, and one across the network needs TRex."
        )

    def how_ended(self, pid: int) -> str:
        """Nobody can tell: a daemon is a child of that machine's first process."""
        return ""

    def open_process(self, pid: int) -> None:
        """None: its processes are on another machine."""

    def local_path(self, remote: str) -> None:
        """None: its files are on another machine."""

    def clean_leftovers(self) -> list[str]:
        """End what runs that crashed left on the host, and forget them; the command lines of what still ran. Done by
        itself when the host is connected for the first time."""
        with self._lock:
            return self._end_sessions(self._open_session())

    def close(self) -> None:
        """End what was started here, let nothing stay, and let go of the host. May be called twice. What cannot be
        ended because the host cannot be reached any more is left to the next run."""
        with self._lock:
            if self._session is not None:
                with contextlib.suppress(TestbedError):
                    while self._started:
                        self._started.pop().stop()
                with contextlib.suppress(TestbedError):
                    self._end_sessions([self._ready()])
            self._session = None
            self._connection.close()

    def _ready(self) -> str:
        """Connect where that is needed; the folder of our jobs."""
        with self._lock:
            if self._session is None:
                self.clean_leftovers()
            elif not self._connection.is_up:
                self._open_session()
                while self._unfinished:
                    self._end(self._unfinished.pop())
            assert self._session
            return self._session

    def _open_session(self) -> list[str]:
        """Tell the host that we are there; the sessions that crashed runs left."""
        self._connection.open()
        left: list[str] = []
        with Conversation(self._connection, call("open_session", self._session_name)) as said:
            while (words := said.reply()) != ["done"]:
                match words:
                    case ["session", path]:
                        self._session = path
                    case ["other", state, path] if is_left_over(path, connected=state == "connected"):
                        left.append(path)
                    case ["refused", path]:
                        raise TestbedError(
                            f"{self.name}: {path}, where our state is to be kept, belongs to somebody else: remove it."
                        )
        return left

    def _end_sessions(self, sessions: Sequence[str]) -> list[str]:
        ended: list[str] = []
        if sessions:
            with Conversation(self._connection, call("end_sessions", END_TIMEOUT_S, *sessions)) as said:
                while (words := said.reply(LONGEST_END_S * len(sessions))) != ["done"]:
                    ended.append(" ".join(words[1:]).strip())
        return ended

    def _talk(self, line: str) -> Conversation:
        self._ready()
        return Conversation(self._connection, line)

    def _started_job(self, said: Conversation, command: str, job: str) -> int:
        """Process ID of a job that begins."""
        try:
            words = said.reply()
        except ConnectionLost:  # whether it began is not known
            self._unfinished.append(job)
            raise
        if words[0] == "absent":
            raise TestbedError(f"{self.name}: `{command}` cannot be started: No such file or directory.")
        return int(words[1])

    def _end(self, job: str) -> None:
        """Kill a job, with all of its process group; when the host does not answer, as soon as it does."""
        try:
            with Conversation(self._connection, call("drop_job", job)) as said:
                said.reply(LONGEST_END_S)
        except (ConnectionLost, TimeoutError) as error:
            self._unfinished.append(job)
            raise self._connection.lost(error) from None


def _job(session: str, nonce: str) -> str:
    """Folder of the job that a call begins, as new_job of ssh_remote.sh names it."""
    return f"{session}/job.{nonce}"


def _text(printed: bytes | Path) -> str:
    return printed.decode(errors="replace") if isinstance(printed, bytes) else ""
