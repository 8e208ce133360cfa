"""Talks to a QEMU that runs: a line of JSON each way (docs/interop/qmp-spec.txt of QEMU)."""

import json
import socket
from pathlib import Path
from typing import Any

from ctbench.base.errors import TestbedError

#: Seconds that an answer may take: QEMU does not answer while it reads a part of a state.
_PATIENCE_S = 20.0


class Monitor:
    """The monitor of a QEMU, which listens on a socket soon after its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._unread = b""

    def ask(self, command: str, **arguments: Any) -> dict[str, Any] | None:
        """The answer; None where QEMU does not listen yet, or has ended. `TestbedError` where it refuses."""
        try:
            if self._socket is None:
                self._connect()
            return self._ask(command, arguments)
        except OSError:
            self.close()
            return None

    def close(self) -> None:
        """Let go of it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> None:
        self._socket, self._unread = socket.socket(socket.AF_UNIX), b""
        self._socket.settimeout(_PATIENCE_S)
        self._socket.connect(str(self._path))
        self._line()  # its greeting
        self._ask("qmp_capabilities", {})

    def _ask(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._socket is not None
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            said = self._line()  # events are between
            if "error" in said:
                raise TestbedError(f"QEMU refuses `{command}`: {said['error'].get('desc', said['error'])}.")
            if "return" in said:
                found: dict[str, Any] = said["return"]
                return found

    def _line(self) -> dict[str, Any]:
        assert self._socket is not None
        while b"\n" not in self._unread:
            if not (more := self._socket.recv(4096)):
                raise ConnectionResetError
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found
