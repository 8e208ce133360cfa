"""Processes of Open vSwitch: which one it is, whether it lives, and that it can be paused."""

import contextlib
import os
import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ctbench.base.errors import MissingResource, TestbedError
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


def read_stat(host: Host, pid: int) -> Stat | None:
    """State of a process; None when there is none."""
    text = host.run(["cat", f"/proc/{pid}/stat"], check=False).stdout
    return parse_stat(text) if text else None


def parse_stat(text: str) -> Stat:
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


#: Seconds that a stopped process gets to go on: so long, and the trial that it stood still in tells of it.
GO_ON_TIMEOUT_S = 10.0
#: States of proc(5) in which a process was stopped: by a signal, by a debugger.
STOPPED = "Tt"
#: Prints /proc/PID/stat of those processes in its first argument that are there, and `gone FILE` for each file that is
#: not.
_LOOK = """
for pid in $1; do cat "/proc/$pid/stat" 2>/dev/null; done
shift
for file; do [ -e "$file" ] || echo "gone $file"; done
"""


def find_trouble(
    host: Host,
    processes: Mapping[str, ProcessIdentity],
    files: Collection[str],
    paused: Collection[str] = (),
) -> str:
    """One sentence on the first that is found: the host cannot be asked, a process (by its program's name) is dead, it
    is stopped and does not go on although it is not `paused`, files of these are gone. Empty where all is
    well."""
    deadline = time.monotonic() + GO_ON_TIMEOUT_S
    while True:
        try:
            stats, gone = _look(host, processes, files)
        except TestbedError as error:
            return str(error)
        for name, process in processes.items():
            if not is_alive(process, stats.get(process.pid)):
                return f"{name} (process {process.pid}) {host.how_ended(process.pid) or 'died'}."
        running = {name: each for name, each in processes.items() if name not in paused}
        stopped = [(name, each) for name, each in running.items() if stats[each.pid].state in STOPPED]
        if not stopped:
            more = f" and {len(gone) - 1} more of its files are" if len(gone) > 1 else " is"
            return f"Open vSwitch cannot be reached any more: {gone[0]}{more} gone." if gone else ""
        if time.monotonic() > deadline:
            name, process = stopped[0]
            state = f"is stopped (state {stats[process.pid].state})"
            return f"{name} (process {process.pid}) {state} and did not go on within {GO_ON_TIMEOUT_S:g} s."
        time.sleep(POLL_S)


def is_alive(process: ProcessIdentity, stat: Stat | None) -> bool:
    """Whether it is the process, and neither dead, nor a zombie, nor about to become one."""
    if stat is None or stat.start_ticks != process.start_ticks:
        return False
    return stat.state not in "ZX" and not stat.is_ending


def _look(
    host: Host, processes: Mapping[str, ProcessIdentity], files: Collection[str]
) -> tuple[dict[int, Stat], list[str]]:
    pids = " ".join(str(process.pid) for process in processes.values())
    lines = host.run(["sh", "-c", _LOOK, "sh", pids, *files], check=False).stdout.splitlines()
    gone = [line.removeprefix("gone ") for line in lines if line.startswith("gone ")]
    stats = {int(line.split()[0]): parse_stat(line) for line in lines if not line.startswith("gone ")}
    return stats, gone


class Pause:
    """Stops and continues one process of a host. A signal is sent by its descriptor: in some microseconds, and never to
    another process that got its ID."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process: tuple[int, int] | None = None
        self._since = 0.0
        #: Seconds that it was stopped for in all, up to its last `end`.
        self.seconds = 0.0
        #: Whether it is stopped now.
        self.lasts = False

    def begin(self, pid: int) -> None:
        """Stop a process. Nothing happens where it has died, or is stopped already. `MissingResource` where it is on
        another machine."""
        if self.lasts:
            return
        if self._process is None or self._process[0] != pid:
            self.forget()
            with contextlib.suppress(TestbedError):  # `trouble` finds what has died
                descriptor = self._host.open_process(pid)
                if descriptor is None:
                    raise MissingResource(
                        f"{self._host.name}: a process there cannot be paused for another one within microseconds: two"
                        " DUTs stand side by side only on this machine."
                    )
                self._process = pid, descriptor
        if self._process and self._send(signal.SIGSTOP):
            self.lasts, self._since = True, time.monotonic()

    def end(self) -> None:
        if self.lasts:
            self._send(signal.SIGCONT)
            self.lasts = False
            self.seconds += time.monotonic() - self._since

    def forget(self) -> None:
        self.end()
        if self._process:
            os.close(self._process[1])
        self._process, self.seconds = None, 0.0

    def _send(self, number: signal.Signals) -> bool:
        assert self._process
        try:
            signal.pidfd_send_signal(self._process[1], number)
        except ProcessLookupError:
            return False
        return True
