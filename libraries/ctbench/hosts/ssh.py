"""Another machine as a Host, over SSH: the suite installs nothing there, and leaves nothing there."""

import contextlib
import os
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from socket import socket

import paramiko
from SSHLibrary import SSHClient

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Completed, Host, Process, SocketKind
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_config import login_of
from ctbench.hosts.ssh_login import log_in, password_of

#: The functions, without their comments.
FUNCTIONS = "\n".join(
    line
    for line in Path(__file__).with_suffix(".sh").read_text().splitlines()
    if line.strip() and not line.lstrip().startswith("#")
)
#: What the login shell is given: the same whatever is run, so that any shell takes it and no list of processes tells.
BOOT = """exec {sudo}sh -c 'eval "$(head -c {size})"'"""
#: sudo(8) without a password; a process group for the command.
SUDO = "sudo -n -- setsid -w "
#: First word of a reply of ssh.sh.
MARKER = b"ctbench-reply "
#: Bytes a second that any useful connection carries.
LEAST_RATE = 64 * 1024
#: Seconds that the last lines of a command that ended may take to arrive. A daemon that it left behind holds its output
#: open.
LAST_LINES_S = 2.0


def script(function: str, argv: Sequence[str], env: Mapping[str, str] | None, *before: int) -> bytes:
    """Return the functions of ssh.sh and a call of one of them for a command, with `env` added to its environment."""
    command = [argv[0], "env", *(f"{key}={value}" for key, value in (env or {}).items()), *argv]
    line = shlex.join([function, *map(str, before), *command])
    return f"{FUNCTIONS}\n{line}\n".encode("utf-8", "surrogateescape")


def exit_status(status: int) -> int:
    """Turn a shell's status 128 + N of a command that signal N ended into -N."""
    return 128 - status if 128 < status <= 128 + 64 else status


class SshProcess(Process):
    """A command that runs as long as its channel is open."""

    def __init__(self, host: "SshHost", channel: paramiko.Channel, output: paramiko.ChannelFile, pid: int, log: Path):
        """`output`: the further output of the channel, for the file `log`."""
        self.pid = pid
        self._host = host
        self._channel = channel
        self._killed = False
        log.open("ab").close()  # it is there from the beginning, as with the hosts that write it themselves
        self._reader = threading.Thread(target=_keep, args=(output, log), daemon=True)
        self._reader.start()

    def is_running(self) -> bool:
        if not self._channel.exit_status_ready():
            return True
        self._reader.join(LAST_LINES_S)
        return False

    def stop(self, timeout: float = 5.0) -> int:
        if self.is_running():
            self._host.run(["kill", "-s", "TERM", str(self.pid)], check=False)
            self._killed = not self._channel.status_event.wait(timeout)
        self._host.end(self._channel)
        # The status is less than 0 where the connection was lost, or its shell was killed with it.
        killed = self._killed or self._channel.exit_status < 0
        return -9 if killed else exit_status(self._channel.exit_status)


def _keep(output: paramiko.ChannelFile, log: Path) -> None:
    with log.open("ab", buffering=0) as file:
        for line in output:
            file.write(line)


class SshHost(Host):
    """A machine across the network, as the user that logs in, or as root with `sudo`.

    It is connected at the first use, and again at the next use after the connection was lost, which ended the commands
    there. Any method raises `TestbedError` when it cannot be connected, and when the connection is lost meanwhile.
    """

    def __init__(self, name: str, config: SshConfig) -> None:
        """`config`: entry `name` of the testbed's hosts. Raise `ConfigError` when the environment lacks a password that
        it names."""
        self.name = name
        self._entry = config
        #: With what ssh(1) makes of it, once it is connected.
        self._config = config
        password_of(name, config)
        self._client: SSHClient | None = None
        #: `on_connect` runs commands, for which others have to wait.
        self._lock = threading.RLock()
        self._silent = False
        self._started: list[SshProcess] = []

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        # The working directory is that of the login.
        given = stdin.encode()
        channel = self._open(script("run", argv, env, len(given)), given)
        try:
            channel.settimeout(timeout)
            reply = channel.makefile("rb").read()
        except TimeoutError as error:
            if not self.end(channel):
                raise self._lost(error) from None
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` did not end within {timeout:g} s.") from None
        else:
            (status, size), content = self._understood(channel, argv, reply)
        finally:
            self.end(channel)
        printed, complaint = (part.decode(errors="replace") for part in (content[:size], content[size:]))
        return Completed(exit_status(status), printed, complaint)

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> SshProcess:
        # It ends with the connection. Its log is written as it prints.
        channel = self._open(script("start", argv, env))
        with contextlib.ExitStack() as failed:
            failed.callback(self.end, channel)
            channel.settimeout(self._config.connect_timeout_s)
            output = channel.makefile("rb")
            try:
                reply = next((line for line in output if MARKER in line), b"")
            except TimeoutError as error:
                raise self._lost(error) from None
            (pid,), _ = self._understood(channel, argv, reply)
            channel.settimeout(None)
            failed.pop_all()
        process = SshProcess(self, channel, output, pid, log or Path(os.devnull))
        self._started.append(process)
        return process

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        raise MissingResource(
            f"{self.name}: a socket of another machine cannot be had: the software traffic generator needs a DUT with "
            "`host: sandbox`, and one across the network needs TRex."
        )

    def close(self) -> None:
        """End every command that was started here, and disconnect. May be called twice."""
        while self._started:
            with contextlib.suppress(TestbedError):
                self._started.pop().stop()
        self.disconnect()

    def disconnect(self) -> None:
        client, self._client = self._client, None
        if client:
            client.close()

    def end(self, channel: paramiko.Channel) -> bool:
        """Close a channel, which ends its command. Return whether the host confirmed the end in time."""
        with contextlib.suppress(OSError):
            channel.shutdown_write()
        ended: bool = channel.status_event.wait(self._config.connect_timeout_s)
        channel.close()
        return ended

    def _open(self, text: bytes, stdin: bytes = b"") -> paramiko.Channel:
        """Return a channel in which a shell was given `text`, and `stdin` for it. Connect first where that is
        needed."""
        self._connect()
        boot = BOOT.format(sudo=SUDO if self._is_sudoer() else "", size=len(text))
        with self._answering(len(text + stdin)), contextlib.ExitStack() as failed:
            transport = self._transport()
            if transport is None:  # another thread has let go of it
                raise self._lost()
            channel: paramiko.Channel = transport.open_session()
            failed.callback(channel.close)
            channel.exec_command(boot)
            with contextlib.suppress(OSError):  # it may end before it has heard all
                channel.sendall(text + stdin)
            failed.pop_all()
        return channel

    def _connect(self) -> None:
        """Log in, unless connected. Raise `TestbedError` with why that is not possible, or what `on_connect`
        refused."""
        with self._lock:
            if self._is_up():
                return
            self.disconnect()
            self._silent = False
            login = login_of(self.name, self._entry)
            self._config = login.config
            self._client = log_in(self.name, login)
            if self.on_connect:
                self.on_connect()

    def _is_up(self) -> bool:
        """True where the host is connected, as paramiko knows without asking it."""
        transport = self._transport()
        return bool(transport and transport.is_active())

    @contextlib.contextmanager
    def _answering(self, bytes_: int) -> Iterator[None]:
        """Limit the time of the block to that of an answer, and of `bytes_` to be carried: paramiko itself waits for
        some answers without end. Turn its exceptions into a `TestbedError`."""
        timer = threading.Timer(self._config.connect_timeout_s + bytes_ / LEAST_RATE, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except paramiko.ChannelException as error:
            raise TestbedError(
                f"{self.name}: sshd allows no more sessions on this connection ({error.text}): raise MaxSessions of "
                "sshd_config(5) there."
            ) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, TimeoutError) and self._is_up():
                raise  # of a channel that ended early, not of the connection
            raise self._lost(error) from None
        finally:
            timer.cancel()

    def _lost(self, error: BaseException | None = None) -> TestbedError:
        """Disconnect, and return the exception for a broken connection. Whether the host carried out the command is not
        known. The next use connects again."""
        transport = self._transport()
        error = (transport.get_exception() if transport else None) or error
        if self._silent or isinstance(error, TimeoutError):
            reason = "the host does not answer any more"
        elif error is None or isinstance(error, EOFError) or not str(error):
            reason = "the host ended it or is gone"
        else:
            reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        self.disconnect()
        return TestbedError(f"{self.name}: the SSH connection was lost: {reason}.")

    def _transport(self) -> paramiko.Transport | None:
        client = self._client
        return client.client.get_transport() if client else None

    def _give_up(self) -> None:
        self._silent = True
        if transport := self._transport():
            transport.close()

    def _is_sudoer(self) -> bool:
        return self._config.sudo and self._config.user != "root"

    def _understood(self, channel: paramiko.Channel, argv: Sequence[str], reply: bytes) -> tuple[list[int], bytes]:
        """Return the numbers in the first line of a reply, and the rest. Raise `TestbedError` where the shell did not
        run the command."""
        if channel.closed and not channel.eof_received:  # the end was not said
            raise self._lost()
        _, marker, said = reply.partition(MARKER)
        words, _, content = said.partition(b"\n")
        if words == b"absent":
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` cannot be started: No such file or directory.")
        if marker:
            return [int(word) for word in words.split()], content
        lines = channel.makefile_stderr("rb").read().decode(errors="replace").split("\n")
        reason = next((line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "it printed nothing")
        user = self._config.user
        if self._is_sudoer():
            raise TestbedError(
                f"{self.name}: {user} could not become root with sudo ({reason}): allow it in sudoers(5) without a "
                "password (NOPASSWD)."
            )
        raise TestbedError(f"{self.name}: the shell of {user} ended early ({reason}).")
