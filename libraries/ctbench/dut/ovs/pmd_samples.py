"""Where the time of a PMD thread goes: its samples, by the functions of ovs-vswitchd and of its libraries."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ctbench.base.elf import Program
from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.threads import read_threads
from ctbench.dut.sampling import ThreadSamples
from ctbench.hosts import thread_samples
from ctbench.hosts.base import Host

#: Samples per second: of the kernel's clock, and of stopping the thread. Neither is a divisor of what OVS does in a
#: second. At 997 stops per second, a PMD thread was seen to do up to 17 % less; at 199, nothing could be seen.
HZ, STOPS_HZ = 997, 199
#: Where the symbols of stripped programs are, by the ID of the build (packages NAME-dbgsym, libc6-dbg).
DEBUG = "/usr/lib/debug/.build-id"
#: Functions that acquire or release a lock, or wait for one: of the C library, of OVS (lib/ovs-thread.c), of DPDK, and
#: of the kernel for them. Those that were marked in the article of 2022 are among them.
_LOCK = re.compile(
    r"(pthread_(mutex|rwlock|spin)_(\w*lock|\w*wait)|lll_(\w*lock|\w*wait|\w*wake)|^ovs_(mutex|rwlock|spin)_"
    r"|rte_\w*(spin|rw|ticket|mcs)lock|futex|native_queued_spin_lock)"
)


def is_lock(function: str) -> bool:
    """Whether a function is about a lock."""
    return bool(_LOCK.search(function))


def sample_pmd(
    host: Host, pid: int, seconds: float, cycles: Callable[[int], tuple[int, int]], *, stops: bool = False
) -> ThreadSamples:
    """Sample the PMD thread of the lowest CPU. `cycles`: those that the thread of a CPU has counted so far, for packets
    and idle. `stops`: not by the kernel's clock, even where that can be had."""
    pmds = [thread for thread in read_threads(host, pid) if thread.pmd_cpu is not None]
    if not pmds:
        raise TestbedError(f"{host.name}: ovs-vswitchd (process {pid}) has no PMD thread.")
    thread = min(pmds, key=lambda each: each.pmd_cpu or 0)
    source = Path(thread_samples.__file__).read_text()
    argv = ["python3", "-I", "-S", "-c", source, pid, thread.tid, seconds, HZ, STOPS_HZ, *(["stops"] if stops else [])]
    cpu = thread.pmd_cpu or 0
    before = cycles(cpu)
    said = host.run([str(each) for each in argv], seconds + 30.0).stdout
    worked, idle = (now - then for now, then in zip(cycles(cpu), before, strict=True))
    try:
        found = json.loads(said)
        functions = _by_function(host, found)
        return ThreadSamples(
            cpu=cpu, how=found["how"], hz=found["hz"], seconds=found["seconds"], ran_s=found["ran_s"],
            waited_s=found["waited_s"], functions=functions, locks=frozenset(filter(is_lock, functions)),
            busy=worked / max(1, worked + idle), lost=found["lost"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise TestbedError(f"{host.name}: what the samples of a PMD thread are cannot be read: {error}.") from error


def _by_function(host: Host, said: dict[str, Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    maps = [_mapped(line) for line in said["maps"]]
    with TemporaryDirectory(prefix="ctbench-") as folder:
        programs: dict[str, Program] = {}
        for address, times in said["user"]:
            found[_name(host, Path(folder), programs, maps, address)] += times
    for name, times in said["kernel"]:
        found[f"{name or '(no symbol)'} [kernel]"] += times
    return found


def _mapped(line: str) -> tuple[int, int, int, str]:
    """Begin, end, offset in the file, and the file: a line of /proc/PID/maps, proc(5)."""
    where, _, offset, _, _, *path = line.split(maxsplit=5)
    begin, _, end = where.partition("-")
    return int(begin, 16), int(end, 16), int(offset, 16), path[0] if path else ""


def _name(
    host: Host, folder: Path, programs: dict[str, Program], maps: Sequence[tuple[int, int, int, str]], address: int
) -> str:
    for begin, end, offset, path in maps:
        if begin <= address < end:
            if path.startswith("/"):
                if path not in programs:
                    programs[path] = _read(host, folder, path)
                return f"{programs[path].place(address - begin + offset) or '(no symbol)'} [{path.rpartition('/')[2]}]"
            return path or "(no file)"
    return "(no file)"


def _read(host: Host, folder: Path, path: str) -> Program:
    """A program of the host, with its symbols where they are installed. One that cannot be read has no names."""
    data = _fetch(host, folder, path)
    known = Program(data).build_id
    return Program(data, _fetch(host, folder, f"{DEBUG}/{known[:2]}/{known[2:]}.debug") if known else b"")


def _fetch(host: Host, folder: Path, path: str) -> bytes:
    try:
        host.get(path, folder / "file")
        return (folder / "file").read_bytes()
    except (TestbedError, OSError):
        return b""
