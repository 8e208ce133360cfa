"""The Host interface: how commands reach a machine. A DUT does not know which kind of host it is on."""

from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Literal

from ctbench.base.errors import TestbedError

#: Raw packet socket (AF_PACKET) without a protocol, or one of AF_XDP.
SocketKind = Literal["packet", "xdp"]
#: Seconds that a file may take to be copied.
COPY_TIMEOUT_S = 60.0
#: How many of the last lines of stderr (or stdout) an error message quotes.
QUOTED_LINES = 5


@dataclass(frozen=True)
class Completed:
    """The result of a command that ended."""

    exit_status: int
    stdout: str
    stderr: str


class Process(ABC):
    """A command that runs in the background."""

    #: Process ID as the host's own commands see it.
    pid: int

    @abstractmethod
    def is_running(self) -> bool:
        """True while the command runs."""

    @abstractmethod
    def stop(self, timeout: float = 5.0) -> int:
        """Send SIGTERM to the command, and after `timeout` seconds SIGKILL to its whole group. Return its exit status,
        negative for the signal that ended it."""


class Host(ABC):
    """A place where commands run. No shell strings; always a timeout.

    Every method raises `TestbedError` when the host cannot be reached or the time is up.
    """

    #: What to call it in messages, for example `sandbox` or `dut.lab.example`.
    name: str
    #: Done whenever the host has been connected, before what that was for: which fails with what this raises.
    on_connect: Callable[[], None] | None = None

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 30.0,
        *,
        check: bool = True,
        stdin: str = "",
        env: dict[str, str] | None = None,
    ) -> Completed:
        """Run `argv`, wait at most `timeout` seconds. With `check`, a non-zero status is a `TestbedError`
        that names the command, its status and the last lines of its stderr. `env` adds to the environment."""
        completed = self._run(argv, timeout, stdin, env)
        if check and completed.exit_status != 0:
            lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
            said = " | ".join(lines[-QUOTED_LINES:]) or "it printed nothing."
            raise TestbedError(f"{self.name}: `{' '.join(argv)}` failed with status {completed.exit_status}: {said}")
        return completed

    @abstractmethod
    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        """Run `argv` to its end, whatever its status."""

    @abstractmethod
    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> Process:
        """Start `argv` in the background, with its output in `log` on this machine, or discarded. The command ends with
        `close` at the latest."""

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the host. The file travels as base64, because the output of commands is text."""
        content = b64decode(self.run(["base64", remote], COPY_TIMEOUT_S).stdout)
        try:
            local.write_bytes(content)
        except OSError as error:
            raise TestbedError(f"{self.name}: cannot copy {remote} to {local}: {error.strerror or error}.") from error

    def read(self, remote: str) -> str:
        """Return the content of a small text file, as commands on the host see it (below /proc and /sys too)."""
        return self.run(["cat", remote]).stdout

    @abstractmethod
    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        """Open an unbound socket in the host's network namespace, or in one that ip-netns(8) made there. Raise
        `MissingResource` where that is not allowed, or the host is across the network."""

    def ended_with(self, pid: int) -> int | None:
        """Return the exit status of a daemon of the host that ended, negative for the signal that ended it. Return None
        where it is not known, as for a child of the machine's first process."""
        return None

    def local_pid(self, pid: int) -> int | None:
        """Return the ID on this machine of the host's process `pid`; None where the host is another machine. A sandbox
        raises `TestbedError` where no process has this ID."""
        return None

    def local_path(self, remote: str) -> Path | None:
        """Return the path on this machine of the host's file or socket `remote`; None where there is none (SSH)."""
        return None

    def disconnect(self) -> None:
        """Close the connection where there is one, and end what was started over it; the next command connects
        again."""

    @abstractmethod
    def close(self) -> None:
        """End every command that was started here, and release the host. May be called twice."""
