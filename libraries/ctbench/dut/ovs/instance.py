"""A running Open vSwitch, the run's own or the system's: its daemon and its log."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ctbench.dut.ovs.control import OvsControl
from ctbench.hosts.base import Host

#: Seconds between two looks at something that changes by itself.
POLL_S = 0.05


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken for another one that got its ID later."""

    pid: int
    #: When it started, clock ticks since boot; proc(5), field 22 of /proc/PID/stat.
    start_ticks: int


#: Flag of a process that is about to end, linux/sched.h: its memory is freed while it still looks alive.
PF_EXITING = 0x4


@dataclass(frozen=True)
class Stat:
    """Fields 3, 20 and 22 of /proc/PID/stat, and a flag of field 9, proc(5)."""

    state: str
    threads: int
    start_ticks: int
    is_ending: bool = False


class Instance(Protocol):
    """An Open vSwitch that a DUT works with."""

    control: OvsControl

    def keeps_dpdk(self) -> bool:
        """Whether it has DPDK up already, with memory of its own, and will keep it so."""

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], cpus: tuple[int, ...]) -> None:
        """Bring it up with `other_config` of the Open_vSwitch table, its threads on `cpus` (PMD threads choose
        theirs)."""

    def stop(self) -> None:
        """Leave the host as it was found. May be called twice."""

    @property
    def binary(self) -> str:
        """Path of ovs-vswitchd on the host."""

    @property
    def log(self) -> str:
        """Path of ovs-vswitchd's log on the host."""

    def vswitchd(self) -> ProcessIdentity | None:
        """The running ovs-vswitchd; None when it is dead, or a zombie."""

    def pause(self) -> None:
        """Stop ovs-vswitchd with all its threads (SIGSTOP). `MissingResource` where it is not ours to stop, or on
        another machine; nothing happens where it has died."""

    def resume(self) -> None:
        """Let it go on (SIGCONT), where `pause` stopped it."""

    @property
    def paused(self) -> bool:
        """Whether `pause` stopped it."""

    @property
    def paused_s(self) -> float:
        """Seconds that it was paused for since it started, up to its last `resume`."""

    def trouble(self, files: Collection[str] = ()) -> str:
        """What of it is dead, stopped or gone, `files` among it, as one sentence; empty where nothing is."""

    def save_log(self, folder: Path) -> None:
        """Copy what this run has of ovs-vswitchd's log to `folder` of this machine, as evidence."""


class VswitchdLog:
    """The log of an instance's ovs-vswitchd."""

    def __init__(self, host: Host, instance: Instance) -> None:
        self._host = host
        self._instance = instance

    def size(self) -> int:
        """Bytes in it."""
        return int(self._host.run(["stat", "-c", "%s", self._instance.log]).stdout)

    def since(self, offset: int) -> list[str]:
        """Its lines from byte `offset` on; none when it went with its process."""
        return self._host.run(["tail", "-c", f"+{offset + 1}", self._instance.log], check=False).stdout.splitlines()

    def excerpt(self) -> str:
        """Its last errors, for a message."""
        lines = [line for line in self.since(0) if re.search(r"\|(ERR|EMER|WARN)\|", line)]
        return " | ".join(line.split("|", 2)[-1] for line in lines[-3:]) or "its log holds no error"


def dpdk_is_up(control: OvsControl) -> bool:
    """Whether ovs-vswitchd reports that DPDK is up."""
    return bool(control.columns("Open_vSwitch", ".", "dpdk_initialized")["dpdk_initialized"])


def read_stat(host: Host, pid: int) -> Stat | None:
    """State of a process; None when there is none."""
    text = host.run(["cat", f"/proc/{pid}/stat"], check=False).stdout
    return parse_stat(text) if text else None


def parse_stat(text: str) -> Stat:
    """The content of /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()  # from the third field on; the name before may hold spaces
    return Stat(fields[0], int(fields[17]), int(fields[19]), bool(int(fields[6]) & PF_EXITING))


def identify(host: Host, pidfile: str, mark: str) -> ProcessIdentity | None:
    """The process that `pidfile` names; None when it is gone, or is another one: `mark` has to be in its command
    line, as the ID of a daemon that a crash left behind may be another's by now."""
    pid = host.run(["cat", pidfile], check=False).stdout.strip()
    if not pid:
        return None
    stat = read_stat(host, int(pid))
    command = host.run(["cat", f"/proc/{pid}/cmdline"], check=False).stdout
    if stat is None or stat.state in "ZX" or mark not in command:
        return None
    return ProcessIdentity(int(pid), stat.start_ticks)


def quoted(value: str) -> str:
    """A string as ovs-vsctl(8) takes it whatever it holds, section Database Values."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def other_config_settings(values: dict[str, str]) -> list[str]:
    """Columns of the Open_vSwitch table as ovs-vsctl(8) sets them."""
    return [f"other_config:{key}={quoted(value)}" for key, value in values.items()]
