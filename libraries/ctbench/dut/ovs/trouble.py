"""What of an Open vSwitch is dead, stopped or gone: its processes, and the sockets that it is asked through."""

import time
from collections.abc import Collection, Mapping

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.instance import POLL_S, ProcessIdentity, Stat, parse_stat
from ctbench.hosts.base import Host

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
            state = stats[process.pid].state
            return (
                f"{name} (process {process.pid}) is stopped (state {state}) and did not go on within "
                f"{GO_ON_TIMEOUT_S:g} s."
            )
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
