"""Calls of the functions of ssh_remote.sh on the other host, and the replies that come back."""

import contextlib
import secrets
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from ctbench.base.errors import TestbedError
from ctbench.hosts.ssh_connection import SshConnection

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
#: Bytes read at once, and how many of a command's output are kept in memory.
CHUNK = 1 << 16
LONGEST_OUTPUT = 16 << 20


def call(function: str, *arguments: str | int) -> str:
    """A line of shell that calls a function of ssh_remote.sh."""
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
        self._unread = b""
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

    def output(self, size: int) -> "bytes | Path":
        """The next `size` bytes: when they are more than fit into memory, a file of this machine with them."""
        if size <= LONGEST_OUTPUT:
            return b"".join(self._pieces(size))
        with tempfile.NamedTemporaryFile(prefix="ctbench-output-", delete=False) as file:
            for piece in self._pieces(size):
                file.write(piece)
        return Path(file.name)

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._unread[:size]
            self._unread = self._unread[size:]
            if not piece:
                try:
                    self._unread = self._receive(self._connection.config.connect_timeout_s) or self._ended()
                except TimeoutError as error:
                    raise self._connection.lost(error) from None
            size -= len(piece)
            yield piece

    def _receive(self, timeout: float) -> bytes:
        self._channel.settimeout(max(timeout, 0.0))
        return bytes(self._channel.recv(CHUNK))

    def _ended(self) -> NoReturn:
        if not self._channel.eof_received:  # nobody said that this is the end
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
    return SUDO_WITH_PASSWORD, f"{password.reveal()}\n"
