"""Another machine as a Host, over SSH: nothing is installed there, and nothing of ours stays."""

import contextlib
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from socket import socket
from typing import NoReturn

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Completed, Host, Process, SocketKind
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_login import LEAST_RATE, ConnectionLost, SshConnection

#: The functions, without their comments.
FUNCTIONS = "\n".join(
    line
    for line in Path(__file__).with_suffix(".sh").read_text().splitlines()
    if line.strip() and not line.lstrip().startswith("#")
)
#: What the login shell is given: the same whatever is run, so that any shell takes it and no list of processes tells.
#: Lines before the nonce are passed over: the password, where sudo did not ask for it.
BOOT = """exec {sudo}sh -c 'while IFS= read -r line && [ "$line" != {nonce} ]; do :; done; eval "$(head -c {size})"'"""
#: sudo(8): never from its cache, so that it either reads the password or needs none; a process group for the command.
SUDO_WITH_PASSWORD = "sudo -k -S -p '' -- setsid "
SUDO = "sudo -n -- setsid "
#: Bytes read at once, and of a log in one call.
CHUNK = 1 << 16
LOG_CHUNK = 16 << 20


def call(function: str, *arguments: str | int) -> str:
    """A line of shell that calls a function of ssh.sh."""
    return shlex.join([function, *map(str, arguments)])


def new_nonce() -> str:
    """What replies are known by."""
    return secrets.token_hex(8)


def script(nonce: str, line: str, env: Mapping[str, str] | None = None) -> bytes:
    """The functions and a call of one of them. Commands get `env` on top of their environment, and only they have their
    input and output redirected: what the shell says of their end is not theirs."""
    assignments = shlex.join(f"{key}={value}" for key, value in (env or {}).items())
    environment = f'in_environment() {{ (exec env {assignments} "$@" <"$input" >>"$output" 2>>"$errors"); }}'
    text = f"nonce={nonce}\n{FUNCTIONS}\n{environment}\n{line}\n"
    return text.encode("utf-8", "surrogateescape")


class EndedEarly(TestbedError):
    """The other end said less than it should have."""


class Conversation:
    """One call: what it is told, and what it says."""

    def __init__(
        self,
        connection: SshConnection,
        line: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        nonce: str | None = None,
    ) -> None:
        """`line`: what `call` made; `stdin` is its input; `nonce` what its replies begin with."""
        self._connection = connection
        self._nonce = nonce or new_nonce()
        self._unread = bytearray()
        self._sudo, before = _sudo(connection)
        text = script(self._nonce, line, env)
        told = f"{before}{self._nonce}\n".encode() + text + stdin
        self._channel = connection.command(BOOT.format(sudo=self._sudo, nonce=self._nonce, size=len(text)))
        try:
            with connection.answering(len(told)):
                self._channel.sendall(told)
                self._channel.shutdown_write()
        except OSError:
            pass  # it ended before it had heard all: `reply` finds out what it said

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, TestbedError), self._connection.answering():
            self._channel.close()

    def reply(self, timeout: float | None = None) -> list[str]:
        """The words of the next reply, waited for `timeout` seconds (None: as long as a host may take to answer).
        `TimeoutError` when the time is up, `EndedEarly` when no reply comes any more, `ConnectionLost`."""
        deadline = time.monotonic() + (self._connection.config.connect_timeout_s if timeout is None else timeout)
        while True:
            line, found, rest = self._unread.partition(b"\n")
            if not found:
                try:
                    self._unread += self._receive(deadline - time.monotonic()) or self._ended()
                except TimeoutError as error:
                    if timeout is None:
                        raise self._connection.lost(error) from None
                    raise
            else:
                self._unread = rest
                nonce, *words = line.decode(errors="replace").split(" ")
                if nonce == self._nonce:
                    return words

    def content(self, size: int) -> bytes:
        """The next `size` bytes."""
        while len(self._unread) < size:
            try:
                self._unread += self._receive(self._connection.config.connect_timeout_s) or self._ended()
            except TimeoutError as error:
                raise self._connection.lost(error) from None
        content, self._unread = bytes(self._unread[:size]), self._unread[size:]
        return content

    def _receive(self, timeout: float) -> bytes:
        self._channel.settimeout(max(timeout, 0.0))
        return bytes(self._channel.recv(CHUNK))

    def _ended(self) -> NoReturn:
        if not self._channel.eof_received:  # the end was not said
            raise self._connection.lost()
        connection = self._connection
        said = [line for line in (self._unread + self._complaints()).decode(errors="replace").splitlines() if line]
        reason = said[-1].rstrip(".") if said else "it printed nothing"
        if self._sudo:
            raise EndedEarly(
                f"{connection.name}: {connection.config.user} could not become root with sudo ({reason}): allow it in "
                "sudoers(5), without a password or with the one that password_env names."
            )
        raise EndedEarly(f"{connection.name}: the shell of {connection.config.user} ended early ({reason}).")

    def _complaints(self) -> bytes:
        said = b""
        with contextlib.suppress(TimeoutError):
            while piece := self._channel.recv_stderr(CHUNK):
                said += piece
        return said


def _sudo(connection: SshConnection) -> tuple[str, str]:
    """What goes before the command, and what sudo is told ahead of it."""
    config, password = connection.config, connection.password
    if not config.sudo or config.user == "root":
        return "", ""
    if password is None or config.key:  # with a key, the password is that of the key
        return SUDO, ""
    return SUDO_WITH_PASSWORD, f"{password.get_secret_value()}\n"


#: Where a process and the kernel that it runs on are described; proc(5).
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def new_session_name() -> str:
    """A name that says who we are: kernel, namespace of process IDs, process, when it started; and a random end."""
    return f"{_kernel()}.{os.getpid()}.{_start_ticks(os.getpid())}.{secrets.token_hex(4)}"


def is_left_over(session: str, *, connected: bool) -> bool:
    """Whether the process that named this session has ended. One of another machine has when its connection
    is gone; for one of this machine we need not trust the other end to have noticed."""
    parts = session.rpartition("/")[2].split(".")
    if len(parts) != 5 or ".".join(parts[:2]) != _kernel() or not parts[2].isdigit():
        return not connected
    return _start_ticks(int(parts[2])) != parts[3]


def _kernel() -> str:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"{BOOT_ID.read_text().strip()}.{namespace}"


def _start_ticks(pid: int) -> str:
    """When a process started, clock ticks since boot; empty when there is none. Field 22 of /proc/PID/stat."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


#: Seconds between two looks at a command that was asked to end.
POLL_S = 0.05

#: Holds a conversation about a call.
Converse = Callable[[str], Conversation]


class SshProcess(Process):
    """A job of ssh.sh. Its log on this machine is brought up to date whenever one asks whether it runs."""

    def __init__(self, converse: Converse, pid: int, job: str, log: Path | None) -> None:
        self._converse = converse
        self.pid = pid
        self._job = job
        self._log = log
        self._fetched = 0
        self._status: int | None = None
        self._dropped = False

    def is_running(self) -> bool:
        if self._status is None:
            while self._look() == LOG_CHUNK:
                pass
        return self._status is None

    def stop(self, timeout: float = 5.0) -> int:
        if self.is_running():
            self._tell("ask_job")
            deadline = time.monotonic() + timeout
            while self.is_running() and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if self._status is None:
                self._tell("kill_job")
                self.is_running()
        if not self._dropped:
            self._tell("drop_job")
            self._dropped = True
        return -9 if self._status is None else self._status

    def _look(self) -> int:
        """Ask how it is, and fetch what it printed meanwhile: how many bytes that was."""
        with self._converse(call("look", self._job, self._fetched, LOG_CHUNK)) as said:
            state, *words = said.reply()
            printed = said.content(int(words[-1]))
        if self._log is not None and printed:
            with self._log.open("ab") as log:
                log.write(printed)
        self._fetched += len(printed)
        if state == "ended":
            self._status = exit_status(int(words[0]))
        return len(printed)

    def _tell(self, function: str) -> None:
        with self._converse(call(function, self._job)) as said:
            said.reply()


def exit_status(status: int) -> int:
    """What a shell calls 128 + N was ended by signal N, which we call -N."""
    return 128 - status if 128 < status <= 128 + 64 else status


#: Seconds that a left-over of a crashed run gets to end when it is asked to.
END_TIMEOUT_S = 5
#: Seconds that all of a session gets to be gone, those that were asked, and then were killed, among it.
LONGEST_END_S = 30.0


class SshHost(Host):
    """A machine across the network, as the user that logs in, or as root with `sudo`.

    Connected at the first use, and again at the next one after the connection was lost. Any method raises
    `TestbedError` when it cannot be, and when it is lost meanwhile.
    """

    def __init__(self, name: str, config: SshConfig, jump: SshConfig | None = None) -> None:
        """`config` is entry `name` of the testbed's hosts, `jump` the one that it goes through. Raises `ConfigError`
        when the environment lacks a password that they name."""
        self.name = name
        self._connection = SshConnection(name, config, jump)
        self._session_name = new_session_name()
        self._session: str | None = None
        #: Commands whose end was not seen because the connection was lost.
        self._unfinished: list[str] = []
        self._started: list[SshProcess] = []
        self._lock = threading.RLock()

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        # The working directory is that of the login.
        status, printed, complaint = self._execute(argv, timeout, stdin.encode(), env)
        return Completed(tuple(argv), status, printed.decode(errors="replace"), complaint)

    def _execute(
        self, argv: Sequence[str], timeout: float, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, str]:
        """Run `argv`: its status, what it printed, and what it complained of."""
        command = " ".join(argv)
        session, nonce = self._ready(), new_nonce()
        line, job = call("run", session, len(stdin), *argv), _job(session, nonce)
        with Conversation(self._connection, line, env, stdin, nonce) as said:
            self._started_job(said, command, job)
            try:
                _, status, printed, complained = said.reply(timeout)
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
            content = said.content(int(printed))
            return exit_status(int(status)), content, said.content(int(complained)).decode(errors="replace")

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> SshProcess:
        # It outlives a lost connection. What it prints comes whenever one asks whether it runs, and at its end.
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
        """Copy a file to the host, with its mode. It appears there when all of it has arrived."""
        with self._copying(local, remote):
            content, mode = local.read_bytes(), f"{local.stat().st_mode & 0o777:o}"
            timeout = 30 + len(content) / LEAST_RATE
            self._succeed(["install", "-T", "-m", mode, "--", "/dev/stdin", remote], timeout, content)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the host, with its mode."""
        with self._copying(remote, local):
            mode = int(self._succeed(["stat", "-L", "-c", "%a", "--", remote], 30), 8)
            local.write_bytes(self._succeed(["cat", "--", remote], 300))
            local.chmod(mode & 0o777)

    def _succeed(self, argv: Sequence[str], timeout: float, stdin: bytes = b"") -> bytes:
        """What a command prints; `OSError` with what it complained about, where it failed."""
        status, printed, complaint = self._execute(argv, timeout, stdin)
        if status != 0:
            raise OSError((complaint.strip().splitlines() or ["it printed nothing"])[-1].rpartition(": ")[2])
        return printed

    @contextlib.contextmanager
    def _copying(self, source: Path | str, target: Path | str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise TestbedError(f"{self.name}: cannot copy {source} to {target}: {reason}.") from None

    def read(self, remote: str) -> str:
        done = self.run(["cat", "--", remote], check=False)
        if done.exit_status != 0:
            reason = done.stderr.strip().rpartition(": ")[2]
            raise TestbedError(f"{self.name}: cannot read {remote}: {reason}.")
        return done.stdout

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        raise MissingResource(
            f"{self.name}: a socket of another machine cannot be had: the software traffic generator needs a DUT with "
            "`host: sandbox`, and one across the network needs TRex."
        )

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
    """Folder of the job that a call begins, as new_job of ssh.sh names it."""
    return f"{session}/job.{nonce}"
