"""Stand-ins for QEMU, its monitor, and the host where it runs."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.hosts.base import Completed


class Ending:
    """A QEMU that says something on the serial line and ends; it is found running so many times less one."""

    def __init__(self, host: "QemuDouble", argv: Sequence[str], log: Path) -> None:
        (serial,) = (word.removeprefix("file:") for word in argv if word.startswith("file:"))
        (given,) = (word.partition("file=")[2] for word in argv if word.startswith("name=opt/ctbench/given"))
        host.local_path(serial).write_text(host.says)
        host.given.append(host.local_path(given).read_bytes())
        log.write_text(host.complains)
        self._host, self._left = host, host.looks
        host.running += 1
        host.most = max(host.most, host.running)
        self.pid = 1

    def is_running(self) -> bool:
        self._left -= 1
        return self._left > 0

    def stop(self, timeout: float = 5.0) -> int:
        self._host.running -= 1
        return self._host.status


class QemuDouble:
    """A host where QEMU runs, and how much memory is free there. Its /run is the folder for temporary files."""

    name = "double"

    def __init__(self, status: int = 0, says: str = "done\n", complains: str = "", free_kb: int = 2**22) -> None:
        self.status, self.says, self.complains, self.free_kb = status, says, complains, free_kb
        self.running = self.most = 0
        self.looks = 4
        #: What machines were given, and what was said to their monitors.
        self.given: list[bytes] = []
        self.asked: list[str] = []
        #: How the saving of a state ends, and what QEMU says of it.
        self.saving: dict[str, str] = {"status": "completed"}
        self.refuses = ""

    def local_path(self, remote: str) -> Path:
        assert remote.startswith("/run")
        return Path(tempfile.gettempdir(), remote.removeprefix("/run").lstrip("/"))

    def start(self, argv: Sequence[str], *, log: Path) -> Ending:
        return Ending(self, argv, log)

    def read(self, remote: str) -> str:
        return f"MemTotal:  9 kB\nMemAvailable:   {self.free_kb} kB\n"

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        return Completed(0, "QEMU emulator version 7.2.22 (Debian)\n", "")


class MonitorDouble:
    """The monitor of a machine that waits, and whose state can be saved."""

    def __init__(self, host: QemuDouble) -> None:
        self._host, self._status, self._saving = host, "guest-panicked", dict[str, str]()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._host.asked.append(command)
        if command == self._host.refuses:
            raise TestbedError(f"QEMU refuses `{command}`: no.")
        if command == "migrate":
            self._host.local_path(arguments["uri"].removeprefix("exec:cat >")).write_bytes(b"a state")
            self._status, self._saving = "postmigrate", self._host.saving
        return {"query-status": {"status": self._status}, "query-migrate": self._saving}.get(command, {})

    def close(self) -> None:
        pass
