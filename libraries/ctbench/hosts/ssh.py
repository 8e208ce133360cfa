"""Another machine as a Host, over SSH: nothing is installed there, and nothing of ours stays."""

import contextlib
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from socket import socket

import paramiko

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Completed, Host, Process, SocketKind
from ctbench.hosts.config import SshConfig
from ctbench.hosts.local import Owner
from ctbench.hosts.ssh_login import ConnectionLost, SshConnection

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
#: Bytes read at once.
CHUNK = 1 << 16
#: Seconds until a file begins to come.
CONTENT_TIMEOUT_S = 60.0
#: Seconds that a job and its children may take to be gone, those that were asked, and then were killed, among it.
LONGEST_END_S = 30.0


def call(function: str, *arguments: str | int) -> str:
    """A line of shell that calls a function of ssh.sh."""
    return shlex.join([function, *map(str, arguments)])


def script(nonce: str, line: str, env: Mapping[str, str] | None = None) -> bytes:
    """The functions and a call of one of them. Commands get `env` on top of their environment, and only they have their
    input and output redirected: what the shell says of their end is not theirs."""
    assignments = shlex.join(f"{key}={value}" for key, value in (env or {}).items())
    environment = f'in_environment() {{ (exec env {assignments} "$@" <"$input" >>"$output" 2>>"$errors"); }}'
    text = f"nonce={nonce}\n{FUNCTIONS}\n{environment}\n{line}\n"
    return text.encode("utf-8", "surrogateescape")


def exit_status(status: int) -> int:
    """What a shell calls 128 + N was ended by signal N, which we call -N."""
    return 128 - status if 128 < status <= 128 + 64 else status


class SshProcess(Process):
    """A job of ssh.sh. Its log on this machine is brought up to date whenever one asks whether it runs."""

    def __init__(self, ask: Callable[..., bytes], pid: int, job: str, log: Path | None) -> None:
        """`ask` calls a function of ssh.sh on the host, connected again where that is needed."""
        self.pid = pid
        self._ask = ask
        self._job = job
        self._log = log
        self._fetched = 0
        self._status: int | None = None
        self._dropped = False

    def is_running(self) -> bool:
        if self._status is None:
            self._hear(self._ask(call("look", self._job, self._fetched)))
        return self._status is None

    def stop(self, timeout: float = 5.0) -> int:
        if not self._dropped:
            asked = call("stop", self._job, self._fetched, round(timeout * 20))
            self._hear(self._ask(asked, timeout + LONGEST_END_S))
            self._dropped = True
        return -9 if self._status is None else self._status

    def _hear(self, reply: bytes) -> None:
        """How it is, and what it printed meanwhile."""
        state, _, printed = reply.partition(b"\n")
        if self._log is not None and printed:
            with self._log.open("ab") as log:
                log.write(printed)
        self._fetched += len(printed)
        if state != b"running":
            self._status = exit_status(int(state))


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
        #: Says whose it is.
        self._session_name = f"{Owner.myself()} {secrets.token_hex(4)}"
        #: Folder of our jobs on the host.
        self._session: str | None = None
        self._started: list[SshProcess] = []
        self._lock = threading.RLock()

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        # The working directory is that of the login.
        status, printed, complaint = self._execute(argv, timeout, stdin.encode(), env)
        return Completed(status, printed.decode(errors="replace"), complaint)

    def _execute(
        self, argv: Sequence[str], timeout: float, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, str]:
        """Run `argv`: its status, what it printed, and what it complained of."""
        session, nonce = self._ready(), secrets.token_hex(8)
        try:
            reply = self._converse(call("run", session, len(stdin), *argv), timeout, stdin, env, nonce)
        except ConnectionLost:  # `open_session` ends it, once the host can be reached again
            raise
        except TimeoutError:
            self._drop(session, nonce)
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` did not end within {timeout:g} s.") from None
        except BaseException:  # Ctrl-C: it is in a session of its own and would not get it
            with contextlib.suppress(TestbedError):
                self._drop(session, nonce)
            raise
        status, printed = self._words(reply, argv)
        content = reply.partition(b"\n")[2]
        return exit_status(status), content[:printed], content[printed:].decode(errors="replace")

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> SshProcess:
        # It outlives a lost connection. What it prints comes whenever one asks whether it runs, and at its end.
        if log is not None:
            log.open("ab").close()
        session, nonce = self._ready(), secrets.token_hex(8)
        output = "/dev/null" if log is None else "$1/out"
        job_script = script(nonce, f'background "$1" "{output}" {shlex.join(argv)}', env)
        reply = self._ask(call("start", session, len(job_script), *argv), stdin=job_script, nonce=nonce)
        process = SshProcess(self._ask_again, self._words(reply, argv)[0], f"{session}/job.{nonce}", log)
        self._started.append(process)
        return process

    def _words(self, reply: bytes, argv: Sequence[str]) -> list[int]:
        """The numbers in the first line of the reply to a command."""
        words = reply.partition(b"\n")[0].split()
        if words == [b"absent"]:
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` cannot be started: No such file or directory.")
        return [int(word) for word in words]

    def _content(self, remote: str) -> bytes:
        status, printed, complaint = self._execute(["cat", "--", remote], CONTENT_TIMEOUT_S)
        if status != 0:  # with what cat(1) complained about
            raise OSError((complaint.strip().splitlines() or ["it printed nothing"])[-1].rpartition(": ")[2])
        return printed

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        raise MissingResource(
            f"{self.name}: a socket of another machine cannot be had: the software traffic generator needs a DUT with "
            "`host: sandbox`, and one across the network needs TRex."
        )

    def close(self) -> None:
        """End what was started here, let nothing stay, and let go of the host. May be called twice. What cannot be
        ended because the host cannot be reached any more is left to the next run."""
        with self._lock:
            if self._session is not None:
                with contextlib.suppress(TestbedError):
                    while self._started:
                        self._started.pop().stop()
                with contextlib.suppress(TestbedError):
                    self._ask(call("end_session", self._ready()), LONGEST_END_S)
            self._session = None
            self._connection.close()

    def _ready(self) -> str:
        """Connect where that is needed, which ends what runs that crashed left there; the folder of our jobs.

        A session without a connection is a left-over, unless its run goes on: that connects again when it needs to.
        This is known of runs on this machine."""
        with self._lock:
            if self._session is None or not self._connection.is_up:
                self._connection.open()
                said = self._ask(call("open_session", self._session_name), LONGEST_END_S).decode(errors="replace")
                (state, path), *alone = (line.split(" ", 1) for line in said.splitlines())
                if state == "refused":
                    raise TestbedError(
                        f"{self.name}: {path}, where our state is to be kept, belongs to another user: remove it."
                    )
                self._session = path
                for _, other in alone:
                    owner = Owner.parse(other.rpartition("/")[2].rpartition(" ")[0])
                    if owner is None or not owner.lives():
                        self._ask(call("end_session", other), LONGEST_END_S)
            return self._session

    def _drop(self, session: str, nonce: str) -> None:
        """Kill the job of a call, with all of its process group."""
        self._ask(call("drop_job", f"{session}/job.{nonce}"), LONGEST_END_S)

    def _ask_again(self, line: str, timeout: float | None = None) -> bytes:
        self._ready()
        return self._ask(line, timeout)

    def _ask(self, line: str, timeout: float | None = None, stdin: bytes = b"", nonce: str = "") -> bytes:
        """As `_converse`; a host that takes longer (None: than a host may take to answer) counts as lost."""
        try:
            patience = self._connection.config.connect_timeout_s
            return self._converse(line, patience if timeout is None else timeout, stdin, nonce=nonce)
        except TimeoutError as error:
            raise self._connection.lost(error) from None

    def _converse(
        self, line: str, timeout: float, stdin: bytes, env: Mapping[str, str] | None = None, nonce: str = ""
    ) -> bytes:
        """What a function of ssh.sh replies to a call (`line`), whose input is `stdin`.

        `TimeoutError` when no reply begins within `timeout` seconds, `ConnectionLost`, and `TestbedError` where the
        shell ends before that.
        """
        connection, nonce = self._connection, nonce or secrets.token_hex(8)
        patience = connection.config.connect_timeout_s
        marker = f"{nonce} ".encode()
        sudo, before = _sudo(connection)
        text = script(nonce, line, env)
        told = f"{before}{nonce}\n".encode() + text + stdin
        with connection.answering(len(told)):
            channel = connection.new_channel()
            channel.exec_command(BOOT.format(sudo=sudo, nonce=nonce, size=len(text)))
            with contextlib.suppress(OSError):  # it may end before it has heard all
                channel.sendall(told)
                channel.shutdown_write()

        said, deadline, ended = bytearray(), time.monotonic() + timeout, False
        try:
            while not ended:
                channel.settimeout(patience if marker in said else max(deadline - time.monotonic(), 0.0))
                piece = channel.recv(CHUNK)
                said += piece
                ended = not piece
            if not channel.eof_received:  # the end was not said
                raise connection.lost()
            if not channel.status_event.wait(patience) or channel.exit_status != 0 or marker not in said:
                raise self._ended_early(bytes(said), channel, sudo)
            return bytes(said.partition(marker)[2])
        except TimeoutError as error:
            if marker in said:
                raise connection.lost(error) from None
            raise
        finally:
            channel.close()

    def _ended_early(self, said: bytes, channel: paramiko.Channel, sudo: str) -> TestbedError:
        """What to raise where the shell did not do what it was told."""
        user = self._connection.config.user
        while piece := channel.recv_stderr(CHUNK):
            said += piece
        lines = [line for line in said.decode(errors="replace").splitlines() if line]
        reason = lines[-1].rstrip(".") if lines else "it printed nothing"
        if sudo:
            return TestbedError(
                f"{self.name}: {user} could not become root with sudo ({reason}): allow it in sudoers(5), without a "
                "password or with the one that password_env names."
            )
        return TestbedError(f"{self.name}: the shell of {user} ended early ({reason}).")


def _sudo(connection: SshConnection) -> tuple[str, str]:
    """What goes before the command, and what sudo is told ahead of it."""
    config, password = connection.config, connection.password
    if not config.sudo or config.user == "root":
        return "", ""
    if password is None or config.key:  # with a key, the password is that of the key
        return SUDO, ""
    return SUDO_WITH_PASSWORD, f"{password.get_secret_value()}\n"
