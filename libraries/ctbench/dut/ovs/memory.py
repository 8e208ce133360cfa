"""Where DPDK's memory comes from: hugepages that are free on the host, else ordinary pages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctbench.base.errors import MissingResource
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Hugepages, read_hugepages, reserve_command


@dataclass(frozen=True)
class Memory:
    """DPDK's memory, and what to type to get hugepages where there are none; DPDK guide, EAL parameters."""

    megabytes: int
    hugepages: bool
    #: What an administrator types; empty with hugepages.
    advice: str = ""

    @property
    def other_config(self) -> dict[str, str]:
        """Settings of the Open_vSwitch table, without what `eal_options` says."""
        return {"dpdk-socket-mem": str(self.megabytes)} if self.hugepages else {}

    @property
    def eal_options(self) -> str:
        """Part of `other_config:dpdk-extra`. `--in-memory` keeps hugepages anonymous, so that they are free again
        however the process ends; it does not go together with `--no-huge`, which needs `--legacy-mem` to have one
        contiguous area."""
        return "--in-memory" if self.hugepages else f"--no-huge --legacy-mem -m {self.megabytes}"

    def as_record(self) -> dict[str, Any]:
        """For the record."""
        kind = "hugepages" if self.hugepages else "no-huge"
        return {"kind": kind, "megabytes": self.megabytes, **({"advice": self.advice} if self.advice else {})}


def require_room(host: str, meminfo: str, memory: Memory) -> None:
    """Raise `MissingResource` where a host has not as much free memory, by its /proc/meminfo, proc(5): DPDK touches all
    of its own, and Linux would end it, or another process. Hugepages are free, or were not chosen."""
    known = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    free = int(known[1]) // 1024 if known else memory.megabytes
    if not memory.hugepages and free < memory.megabytes:
        raise MissingResource(
            f"Open vSwitch needs {memory.megabytes} MiB of memory for DPDK (memory_mb), and {host} has {free} MiB free:"
            " a pair side by side takes twice as much as one of them."
        )


def choose_memory(hugepages: Sequence[Hugepages], megabytes: int, *, allowed: bool = True) -> Memory:
    """Hugepages where `megabytes` of one size are free and they are `allowed`, else ordinary pages."""
    if not allowed:
        return Memory(megabytes, hugepages=False, advice="the testbed file forbids hugepages")
    for pages in hugepages:
        if pages.free * pages.size_kb >= megabytes * 1024:
            return Memory(megabytes, hugepages=True)
    return Memory(megabytes, hugepages=False, advice=reserve_command(hugepages, megabytes))


def memory_on(host: Host, megabytes: int, *, hugepages: bool) -> Memory:
    """The memory for DPDK on a host, as it is now; `MissingResource` where there is no room for it. `hugepages`:
    whether they may be taken."""
    memory = choose_memory(read_hugepages(host), megabytes, allowed=hugepages)
    require_room(host.name, host.read("/proc/meminfo"), memory)
    return memory


def dpdk_options(memory: Memory, *, cards: bool) -> dict[str, str]:
    """Options of the Open_vSwitch table with which DPDK comes up; `MissingResource` where network cards need more."""
    if cards and not memory.hugepages:
        raise MissingResource(f"A network card needs hugepages for DPDK: {memory.advice}")
    extra = memory.eal_options if cards else f"--no-pci {memory.eal_options}"
    return {"dpdk-init": "true", "dpdk-extra": extra, **memory.other_config}
