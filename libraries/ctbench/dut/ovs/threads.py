"""Threads of ovs-vswitchd: their CPUs, the CPU time that others took in a trial, and samples of where they spend
theirs."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import ThreadSamples
from ctbench.dut.base import MOST_WAITING, Problem, wait_until
from ctbench.dut.ovs.elf import Program
from ctbench.hosts import thread_samples
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement, cpu_ranges, parse_cpu_list

#: Name that dpif-netdev gives a PMD thread: its CPU is in it.
PMD_NAME = re.compile(r"pmd-c(\d+)/")
#: The thread of DPDK's interrupts (before 23.11, and since), of which memif's connections are one kind. It unmaps the
#: rings of a peer that has gone, and a PMD thread that it interrupted while it read them dies (memif_disconnect and
#: eth_memif_rx of DPDK 22.11): it may not be where one polls.
_INTERRUPTS = re.compile(r"(eal|dpdk)-intr")


@dataclass(frozen=True)
class Thread:
    tid: int
    name: str
    cpus: tuple[int, ...]

    @property
    def pmd_cpu(self) -> int | None:
        """The CPU that a PMD thread polls on; None for any other thread."""
        match = PMD_NAME.match(self.name)
        return int(match[1]) if match else None

    def wanted(self, placement: Placement) -> tuple[int, ...]:
        """Return the CPUs that the thread may run on."""
        if self.pmd_cpu is not None:
            return (self.pmd_cpu,)
        return placement.of_links if _INTERRUPTS.match(self.name) else placement.housekeeping


def read_threads(host: Host, pid: int) -> list[Thread]:
    found = host.run(
        ["find", f"/proc/{pid}/task", "-maxdepth", "2", "-name", "status",
         "-exec", "grep", "-H", "-E", "^(Name|Cpus_allowed_list):", "{}", "+"],
        check=False,  # a thread may end between the two
    )  # fmt: skip
    return parse_threads(found.stdout)


def parse_threads(text: str) -> list[Thread]:
    """Return the threads in lines `/proc/PID/task/TID/status:FIELD:<tab>VALUE`; proc(5)."""
    fields: dict[int, dict[str, str]] = {}
    for path, name, value in re.findall(r"^(\S+?/status):(\w+):\t(.*)$", text, re.MULTILINE):
        fields.setdefault(int(path.split("/")[-2]), {})[name] = value
    return [
        Thread(tid, found["Name"], parse_cpu_list(found["Cpus_allowed_list"])) for tid, found in sorted(fields.items())
    ]


def misplaced(threads: Iterable[Thread], placement: Placement) -> list[Thread]:
    """Return the threads that are not where `placement` wants them. An oversubscribed DUT has none: with a pretended
    NUMA layout OVS leaves the PMD threads to the scheduler."""
    if placement.oversubscribed:
        return []
    return [thread for thread in threads if not set(thread.cpus) <= set(thread.wanted(placement))]


def keep_off_pmd_cpus(host: Host, pid: int, placement: Placement) -> None:
    """Move all but the PMD threads to their own CPUs. DPDK starts some threads on any CPU, and a thread on a PMD's CPU
    takes packets away from it. PMD threads place themselves."""
    threads = [thread for thread in misplaced(read_threads(host, pid), placement) if thread.pmd_cpu is None]
    if not threads:
        return
    move = "while [ $# -gt 0 ]; do taskset -p -c $1 $2; shift 2; done"
    moves = [part for each in threads for part in (cpu_ranges(each.wanted(placement)), str(each.tid))]
    host.run(["sh", "-c", move, "sh", *moves], check=False)  # what stays where it was is found by who looks


#: Share of the generator's CPU above which it is said what else ran there: as many connections as may begin late. Seen:
#: nothing with packets, 0 to 3 % in trials of 2 s with 120 k new connections/s (a virtual machine with two CPUs).
MOST_SHARED = 0.02
#: Seconds of CPU time that say nothing: the questions before and after a trial are answered in less.
_ANSWERING_S = 0.02
#: Nanoseconds of a clock tick of /proc/stat, on every architecture that Linux has today; time(7), USER_HZ.
TICK_NS = 10_000_000

#: Seconds without a break in which a PMD thread neither runs nor waits for its CPU, above which OVS stood still.
LEAST_STILL_S = 0.2

#: Prints what is known of the threads of a process.
_READ = Path(__file__).with_name("thread_times.sh").read_text()
#: Words of its line of a PMD thread; fewer of one that ended meanwhile.
_OF_PMD = 6
#: Columns of a CPU in /proc/stat, proc(5): work for devices, and what a hypervisor gave to others. The kernel counts
#: neither to the thread that was there meanwhile.
_TAKEN = (6, 7, 8)


@dataclass(frozen=True)
class ThreadTimes:
    """Times of ovs-vswitchd's threads so far, in nanoseconds by thread ID (`slept`: a count)."""

    #: How long each PMD thread waited for its CPU.
    waited: Mapping[int, int] = field(default_factory=dict)
    #: How long each of the other threads ran.
    others_ran: Mapping[int, int] = field(default_factory=dict)
    #: How long each PMD thread ran, or had its CPU taken by the machine itself.
    had: Mapping[int, int] = field(default_factory=dict)
    #: How often each PMD thread gave up its CPU by itself.
    slept: Mapping[int, int] = field(default_factory=dict)


def read_thread_times(host: Host, pid: int) -> ThreadTimes:
    said = host.run(["sh", "-c", _READ, "sh", str(pid)], check=False).stdout
    lines = [line.split() for line in said.splitlines()]
    taken = {line[0][3:]: sum(int(line[column]) for column in _TAKEN) for line in lines if line[0].startswith("cpu")}
    pmds = [line for line in lines if line[0] == "pmd" and len(line) == _OF_PMD]
    had = {}
    for _, thread, ran, _, _, name in pmds:
        cpu = PMD_NAME.match(name)
        had[int(thread)] = int(ran) + (taken.get(str(int(cpu[1])), 0) if cpu else 0) * TICK_NS
    return ThreadTimes(
        waited={int(thread): int(waited) for _, thread, _, waited, *_ in pmds},
        others_ran={int(line[1]): int(line[2]) for line in lines if line[0] == "other"},
        had=had,
        slept={int(thread): int(slept) for _, thread, _, _, slept, _ in pmds},
    )


#: Seconds that the other threads get to give the memory of a large table back, and between two looks at them.
_RESTED_TIMEOUT_S, _LOOK_S = 15.0, 0.1
#: Share of its time above which they are at work.
_AT_WORK = 0.1


def await_rest(host: Host, pid: int) -> bool:
    """Wait until the threads other than PMD threads rest. Return whether they did. A thread of its own (lib/ovs-rcu.c)
    frees deleted connections later; it may run on the CPU of a PMD thread."""
    ran, at = read_thread_times(host, pid).others_ran, time.monotonic()

    def rest() -> bool:
        nonlocal ran, at
        before, since = ran, at
        ran, at = read_thread_times(host, pid).others_ran, time.monotonic()
        return sum(_passed(before, ran)) / 1e9 <= _AT_WORK * (at - since)

    time.sleep(_LOOK_S)
    return wait_until(rest, _RESTED_TIMEOUT_S, _LOOK_S)


def stood_still(before: ThreadTimes, now: ThreadTimes, seconds: float) -> float:
    """Return the seconds in which no PMD thread ran although none had to wait: the process was stopped, or all of them
    slept. Return 0 where that was in short pieces, as when they wait for each other: a thread that gave its CPU up n
    times slept at least an n-th of the time at once."""
    still = []
    for thread in before.had.keys() & now.had.keys():
        ran = (now.had[thread] - before.had[thread] + now.waited[thread] - before.waited[thread]) / 1e9
        times = max(1, now.slept[thread] - before.slept[thread])
        still.append(seconds - ran if (seconds - ran) / times >= LEAST_STILL_S else 0.0)
    return min(still, default=0.0)


def sharing_problems(before: ThreadTimes, now: ThreadTimes, seconds: float, placement: Placement) -> list[Problem]:
    """Return the problems of these seconds, of threads that existed before: OVS stood still; a PMD thread waited for
    more than `MOST_WAITING` of them, for other threads than those of OVS that share its CPU; other threads of OVS,
    where they run on the generator's CPU, took a share of it."""
    problems = []
    if still := stood_still(before, now, seconds):
        text = f"stood still for {still:.1f} s: its PMD threads did not run, although their CPUs were free."
        problems.append(Problem("stalled", f"Open vSwitch {text}", code="stood-still"))
    ran = sum(_passed(before.others_ran, now.others_ran)) / 1e9
    own = ran if set(placement.housekeeping) & set(placement.pmd) else 0.0
    waited = (max(_passed(before.waited, now.waited), default=0) / 1e9 - own) / seconds
    if waited > MOST_WAITING:
        text = f"Other processes took {waited * 100:.1f} % of a PMD CPU of the DUT."
        problems.append(Problem("disturbed", text, cpu_taken=waited, code="cpu-taken"))
    if set(placement.housekeeping) == set(placement.generator) and ran > max(_ANSWERING_S, MOST_SHARED * seconds):
        text = f"Other threads of OVS than PMD threads took {ran / seconds * 100:.0f} % of the traffic generator's CPU."
        problems.append(Problem("warning", text, code="generator-cpu-taken"))
    return problems


def _passed(before: Mapping[int, int], now: Mapping[int, int]) -> Iterator[int]:
    return (now[thread] - before[thread] for thread in before.keys() & now.keys())


#: Samples per second: no divisor of what OVS does in a second. At 997, a PMD thread was seen to do up to 17 % less; at
#: 199, nothing could be seen.
HZ = 199
#: Where the symbols of stripped programs are, by the ID of the build (packages NAME-dbgsym, libc6-dbg).
DEBUG = "/usr/lib/debug/.build-id"
#: Functions that acquire or release a lock, or wait for one: of the C library, of OVS (lib/ovs-thread.c), and of DPDK.
#: Those that were marked in the article of 2022 are among them.
_LOCK = re.compile(
    r"(pthread_(mutex|rwlock|spin)_(\w*lock|\w*wait)|lll_(\w*lock|\w*wait|\w*wake)|^ovs_(mutex|rwlock|spin)_"
    r"|rte_\w*(spin|rw|ticket|mcs)lock|futex)"
)


def sample_pmd(host: Host, pid: int, seconds: float, cycles: Callable[[int], tuple[int, int]]) -> ThreadSamples:
    """Sample the PMD thread of the lowest CPU. `cycles`: returns those that the thread of a CPU has counted so far, for
    packets and idle."""
    pmds = [thread for thread in read_threads(host, pid) if thread.pmd_cpu is not None]
    if not pmds:
        raise TestbedError(f"{host.name}: ovs-vswitchd (process {pid}) has no PMD thread.")
    thread = min(pmds, key=lambda each: each.pmd_cpu or 0)
    source = Path(thread_samples.__file__).read_text()
    argv = ["python3", "-I", "-S", "-c", source, pid, thread.tid, seconds, HZ]
    cpu = thread.pmd_cpu or 0
    before = cycles(cpu)
    said = host.run([str(each) for each in argv], seconds + 30.0).stdout
    worked, idle = (now - then for now, then in zip(cycles(cpu), before, strict=True))
    found = json.loads(said)
    functions = _by_function(host, found)
    return ThreadSamples(
        cpu=cpu,
        hz=HZ,
        seconds=found["seconds"],
        ran_s=found["ran_s"],
        waited_s=found["waited_s"],
        functions=functions,
        locks=frozenset(filter(_LOCK.search, functions)),
        busy=worked / max(1, worked + idle),
    )


def _by_function(host: Host, said: dict[str, Any]) -> Counter[str]:
    maps, found = [_mapped(line) for line in said["maps"]], Counter[str]()
    with TemporaryDirectory(prefix="ctbench-") as folder:
        program = cache(partial(_program, host, Path(folder)))
        for address, times in said["addresses"]:
            found[_name(program, maps, address)] += times
    return found


def _mapped(line: str) -> tuple[int, int, int, str]:
    """Return begin, end, offset in the file, and the file, of a line of /proc/PID/maps, proc(5)."""
    where, _, offset, _, _, *path = line.split(maxsplit=5)
    begin, _, end = where.partition("-")
    return int(begin, 16), int(end, 16), int(offset, 16), path[0] if path else ""


def _name(program: Callable[[str], Program], maps: Sequence[tuple[int, int, int, str]], address: int) -> str:
    begin, _, offset, path = next((each for each in maps if each[0] <= address < each[1]), (0, 0, 0, ""))
    if not path.startswith("/"):
        return path or "(no file)"
    return f"{program(path).place(address - begin + offset) or '(no symbol)'} [{path.rpartition('/')[2]}]"


def _program(host: Host, folder: Path, path: str) -> Program:
    """Return a program of the host, copied to a folder here, with its symbols where they are installed. An unreadable
    one has no names."""
    program = _fetch(host, folder, path)
    known = Program(program).build_id
    return Program(program, _fetch(host, folder, f"{DEBUG}/{known[:2]}/{known[2:]}.debug") if known else None)


def _fetch(host: Host, folder: Path, path: str) -> Path:
    copy = folder / path.replace("/", "_")
    with suppress(TestbedError, OSError):
        host.get(path, copy)
    return copy
