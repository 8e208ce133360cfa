"""Limits of control groups on a host's processes, as containers have them: cgroups(7), versions 1 and 2."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Path -> content of the files that are there, of those that are asked for.
Read = Callable[..., Mapping[str, str]]
#: Which groups a process is in, and where groups are found; proc(5).
GROUPS, MOUNTS = "/proc/self/cgroup", "/proc/self/mountinfo"
#: Files of a group: the limit of version 2, and of version 1.
QUOTA, QUOTA_1, PERIOD_1 = "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"
MEMORY, MEMORY_1 = "memory.max", "memory.limit_in_bytes"
TASKS = "pids.max"
CPUSET, CPUSET_1 = "cpuset.cpus.effective", "cpuset.effective_cpus"
#: The CPUs of the machine, as a group's are written; cpuset(7), List format.
ONLINE = "/sys/devices/system/cpu/online"
#: And how long threads of a group were stopped as its time was used up; there by name, with the unit in seconds.
STAT = "cpu.stat"
_STOPPED = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
#: And how many of its processes were killed as it had no memory left; in it, by name.
KILLED = ("memory.events", "memory.oom_control")
#: A run takes so much besides the DUTs' memory, MiB, and has so many processes and threads: 430 and 21 were seen, with
#: one PMD thread.
LEAST_MB, LEAST_TASKS = 512, 32
#: Version 1 says that there is no limit of memory with the largest number that there is.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class Limits:
    """The limits of a host's processes; None means no limit."""

    #: CPUs' worth of time.
    cpus: float | None = None
    memory_mb: int | None = None
    #: Processes and threads.
    tasks: int | None = None
    #: Which CPUs, as `0-3,8`; empty: all.
    cpuset: str = ""

    def __str__(self) -> str:
        parts = [f"the time of {self.cpus:.3g} CPUs (cpu.max)"] if self.cpus is not None else []
        parts += [f"{self.memory_mb} MiB of memory (memory.max)"] if self.memory_mb is not None else []
        parts += [f"{self.tasks} processes and threads (pids.max)"] if self.tasks is not None else []
        parts += [f"the CPUs {self.cpuset} (cpuset.cpus)"] if self.cpuset else []
        return ", ".join(parts) or "no limit"


#: Of a machine without control groups, or whose groups limit nothing.
NO_LIMITS = Limits()


def read_limits(read: Read) -> Limits:
    """Return the limits of the process that `read` runs in: the least of its group and the groups around it, and the
    CPU set of the innermost group."""
    folders = list(_folders(read))
    names = (QUOTA, QUOTA_1, PERIOD_1, MEMORY, MEMORY_1, TASKS, CPUSET, CPUSET_1)
    files = read(ONLINE, *(f"{folder}/{name}" for folder in folders for name in names))
    memory = [*_numbers(files, folders, MEMORY), *_numbers(files, folders, MEMORY_1)]
    return Limits(
        cpus=min((cpus for folder in folders if (cpus := _cpus(files, folder))), default=None),
        memory_mb=min((limit >> 20 for limit in memory if limit < _NO_LIMIT), default=None),
        tasks=min(_numbers(files, folders, TASKS), default=None),
        cpuset=_cpuset(files, folders),
    )


def stopped_s() -> float:
    """Return how long threads of this process' groups were throttled so far because their CPU time was used up, in
    seconds, all CPUs together."""
    text = "".join(_read_here(*_stats_here()).values())
    return sum(unit * int(count) for name, unit in _STOPPED.items() for count in re.findall(rf"{name} (\d+)", text))


def killed_for_memory() -> bool:
    """True where a process of this process' groups was killed since this one began, because they had no memory
    left."""
    return limits_here().memory_mb is not None and _kills() > _KILLS_BEFORE


def limits_here() -> Limits:
    """Return the limits of this process."""
    return read_limits(_read_here)


@cache
def _stats_here() -> tuple[str, ...]:
    """Return the files `cpu.stat` of those groups of this process that have a limit of time."""
    folders = list(_folders(_read_here))
    files = _read_here(*(f"{folder}/{name}" for folder in folders for name in (QUOTA, QUOTA_1, PERIOD_1)))
    return tuple(f"{folder}/{STAT}" for folder in folders if _cpus(files, folder))


def _read_here(*paths: str) -> dict[str, str]:
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = Path(path).read_text()
    return found


def _folders(read: Read) -> Iterator[str]:
    """Yield the folders of the groups of the reading process, from the outermost to its own, as far as they are
    visible."""
    said = read(GROUPS, MOUNTS)
    ours = [line.split(":", 2) for line in said.get(GROUPS, "").splitlines()]
    for line in said.get(MOUNTS, "").splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, *_, options = after.split()  # the source between them may be empty
        for _, controllers, group in ours if kind in ("cgroup", "cgroup2") else ():
            if (kind == "cgroup2") == (not controllers) and set(controllers.split(",")) <= {"", *options.split(",")}:
                # A container without a namespace of groups sees its own where another is mounted.
                inner = group.removeprefix(root.rstrip("/")) if f"{group}/".startswith(f"{root.rstrip('/')}/") else ""
                parts = [part for part in inner.split("/") if part]
                yield from ("/".join([point, *parts[:count]]) for count in range(len(parts) + 1))


def _cpus(files: Mapping[str, str], folder: str) -> float | None:
    """Return a group's limit of CPU time, in CPUs; None: no limit."""
    quota, period = [*files.get(f"{folder}/{QUOTA}", "").split(), "", ""][:2]
    quota = quota or files.get(f"{folder}/{QUOTA_1}", "").strip()
    period = period or files.get(f"{folder}/{PERIOD_1}", "").strip()
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _cpuset(files: Mapping[str, str], folders: list[str]) -> str:
    """Return the CPU set of the innermost group that has one; empty where it is all CPUs."""
    texts = (files.get(f"{folder}/{name}", "").strip() for folder in folders for name in (CPUSET, CPUSET_1))
    innermost = ([text for text in texts if text] or [""])[-1]
    return innermost if innermost != files.get(ONLINE, "").strip() else ""


def _numbers(files: Mapping[str, str], folders: list[str], name: str) -> list[int]:
    texts = (files.get(f"{folder}/{name}", "").strip() for folder in folders)
    return [int(text) for text in texts if text.isdigit()]


def _kills() -> int:
    """Return how many processes of this process' groups, and of those within, were killed for memory so far."""
    files = _read_here(*(f"{folder}/{name}" for folder in _folders(_read_here) for name in KILLED))
    return sum(int(number) for text in files.values() for number in re.findall(r"\boom_kill (\d+)", text))


_KILLS_BEFORE = _kills()
