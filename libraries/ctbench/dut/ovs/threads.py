"""Where the threads of ovs-vswitchd run: PMD threads on the CPUs of the mask, all others off them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement, format_cpu_list, parse_cpu_list

#: Name that dpif-netdev gives a PMD thread: its CPU is in it.
PMD_NAME = re.compile(r"pmd-c(\d+)/")


@dataclass(frozen=True)
class Thread:
    """A thread of ovs-vswitchd and the CPUs that it may run on."""

    tid: int
    name: str
    cpus: tuple[int, ...]

    @property
    def pmd_cpu(self) -> int | None:
        """The CPU that it polls on; None for a thread that is no PMD thread."""
        match = PMD_NAME.match(self.name)
        return int(match[1]) if match else None


def read_threads(host: Host, pid: int) -> list[Thread]:
    """All threads of a process."""
    found = host.run(
        ["find", f"/proc/{pid}/task", "-maxdepth", "2", "-name", "status",
         "-exec", "grep", "-H", "-E", "^(Name|Cpus_allowed_list):", "{}", "+"],
        check=False,  # a thread may end between the two
    )  # fmt: skip
    return parse_threads(found.stdout)


def parse_threads(text: str) -> list[Thread]:
    """Threads from lines `/proc/PID/task/TID/status:FIELD:<tab>VALUE`; proc(5)."""
    fields: dict[int, dict[str, str]] = {}
    for path, name, value in re.findall(r"^(\S+?/status):(\w+):\t(.*)$", text, re.MULTILINE):
        fields.setdefault(int(path.split("/")[-2]), {})[name] = value
    return [
        Thread(tid, found["Name"], parse_cpu_list(found["Cpus_allowed_list"])) for tid, found in sorted(fields.items())
    ]


def misplaced(threads: Iterable[Thread], placement: Placement) -> list[Thread]:
    """Threads that are not where `placement` wants them. An oversubscribed DUT's may be anywhere: with a pretended
    NUMA layout OVS leaves the PMD threads to the scheduler."""
    if placement.oversubscribed:
        return []
    return [
        thread
        for thread in threads
        if not set(thread.cpus) <= ({thread.pmd_cpu} if thread.pmd_cpu is not None else set(placement.housekeeping))
    ]


def keep_off_pmd_cpus(host: Host, pid: int, placement: Placement) -> None:
    """Move the threads that are no PMD threads to the housekeeping CPUs: DPDK starts some of its own everywhere, and
    what runs on a PMD's CPU takes packets away from it. PMD threads place themselves."""
    for thread in misplaced(read_threads(host, pid), placement):
        if thread.pmd_cpu is None:
            host.run(["taskset", "-p", "-c", format_cpu_list(placement.housekeeping), str(thread.tid)])
