"""What the main thread of ovs-vswitchd does now, as seen from this machine within microseconds."""

import os
import re
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.dut.control_plane import ThreadLook
from ctbench.hosts.base import Host

#: States of proc(5) in which a thread waits: for an event, in poll(2).
_WAITS = "SI"


class MainThread:
    """The main thread of a process of a host."""

    def __init__(self, host: Host, pid: int) -> None:
        self._folder = _folder(host, pid)

    def look(self) -> ThreadLook | None:
        """What it does; None where it is on another machine. `TestbedError` where it is gone."""
        if self._folder is None:
            return None
        try:
            ran, _, _ = (self._folder / "schedstat").read_text().split()
            state = (self._folder / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError) as error:
            raise TestbedError("The main thread of ovs-vswitchd is gone.") from error
        return ThreadLook(int(ran) / 1e9, state in _WAITS)


def _folder(host: Host, pid: int) -> Path | None:
    """Its folder in /proc of this machine, whatever it is called on the host: proc(5), /proc/PID/fdinfo of a pidfd."""
    descriptor = host.open_process(pid)
    if descriptor is None:
        return None
    try:
        known = re.search(r"^Pid:\s+(\d+)$", Path(f"/proc/self/fdinfo/{descriptor}").read_text(), re.MULTILINE)
    finally:
        os.close(descriptor)
    return Path(f"/proc/{known[1]}/task/{known[1]}") if known else None
