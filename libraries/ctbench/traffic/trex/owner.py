"""Who started a TRex server: written down on its host, so that a later run knows whether it may end it."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """A process of a machine that cannot be mistaken for one that got its ID later."""

    machine: str
    #: Boot of the machine, and when the process started, clock ticks since then (proc(5), /proc/PID/stat).
    boot: str
    ticks: str
    pid: str

    def __str__(self) -> str:
        return f"ctbench process {self.pid} of {self.machine} ({self.boot} {self.ticks})"

    def is_gone(self) -> bool:
        """Whether it has ended for sure. Of another machine nobody knows."""
        return self.machine == socket.gethostname() and (self.boot != _boot() or self.ticks != _ticks(self.pid))

    @classmethod
    def myself(cls) -> "Owner":
        """This process."""
        return cls(socket.gethostname(), _boot(), _ticks(str(os.getpid())), str(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """What `str` made, None when it is something else."""
        match text.replace("(", "").replace(")", "").split():
            case ["ctbench", "process", pid, "of", machine, boot, ticks]:
                return cls(machine, boot, ticks, pid)
        return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _ticks(pid: str) -> str:
    """Empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
