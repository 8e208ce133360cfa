"""Whose jobs are whose on a host that several runs may use: what a crashed one left is told from what is at work."""

import os
import secrets
from pathlib import Path

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
