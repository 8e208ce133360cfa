"""The Host interface: how commands reach a machine. A DUT does not know which kind of host it is on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Literal, Protocol

#: Raw packet socket (AF_PACKET) without a protocol, or one of AF_XDP.
SocketKind = Literal["packet", "xdp"]


@dataclass(frozen=True)
class Completed:
    """A command that ended."""

    argv: tuple[str, ...]
    exit_status: int
    stdout: str
    stderr: str


class Process(Protocol):
    """A command that was started and not waited for."""

    @property
    def pid(self) -> int:
        """Process ID as the host's own commands see it."""

    def is_running(self) -> bool:
        """Whether it has not ended yet."""

    def stop(self, timeout: float = 5.0) -> int:
        """Ask it to end (SIGTERM), insist after `timeout` seconds (SIGKILL); return its exit status."""


class Host(Protocol):
    """A place where commands run. No shell strings; always a timeout.

    Every method raises `TestbedError` when the host itself cannot be reached or the time is up.
    """

    @property
    def name(self) -> str:
        """What to call it in messages, for example `sandbox` or `dut.lab.example`."""

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

    def start(self, argv: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None) -> Process:
        """Start `argv` in the background; its output goes to `log` on this machine, else nowhere."""

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the host."""

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the host."""

    def read(self, remote: str) -> str:
        """Content of a small text file, as commands on the host see it (below /proc and /sys too)."""

    def open_socket(self, kind: SocketKind, namespace: str = "") -> socket:
        """Open a socket, not bound, in the host's network namespace, or in one that ip-netns(8) made there.
        `MissingResource` where we may not; a host across the network has none to give."""

    def how_ended(self, pid: int) -> str:
        """How a daemon of the host ended, which nobody here waits for: `was killed by SIGKILL`, `ended with status 1`;
        empty where nobody can tell."""

    def open_process(self, pid: int) -> int | None:
        """A file descriptor of a process of the host, pidfd_open(2), for signals that take no time; None where it is on
        another machine. `TestbedError` where no process has this ID."""

    def local_path(self, remote: str) -> Path | None:
        """Where this machine finds the host's file or socket `remote`, None where it cannot (SSH)."""

    def close(self) -> None:
        """End what was started here and let go of the host. May be called twice."""
