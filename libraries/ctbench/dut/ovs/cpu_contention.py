"""Who had to share a CPU in a trial: PMD threads with other processes, the traffic generator with Open vSwitch.

A loss because of the first is not Open vSwitch's, and a generator that is late because of the second is not to blame.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ctbench.dut.base import MOST_WAITING, Problem
from ctbench.dut.ovs.threads import PMD_NAME
from ctbench.hosts.base import Host

#: Share of the generator's CPU above which it is said what else ran there: as many connections as may begin late. Seen:
#: nothing with packets, 0 to 3 % in trials of 2 s with 120 k new connections/s (a virtual machine with two CPUs).
MOST_SHARED = 0.02
#: Seconds of CPU time that say nothing: the questions before and after a trial are answered in less.
_ANSWERING_S = 0.02
#: Nanoseconds of a clock tick of /proc/stat, on every architecture that Linux has today; time(7), USER_HZ.
TICK_NS = 10_000_000

#: Seconds without a break in which a PMD thread neither runs nor waits for its CPU, above which OVS stood still.
LEAST_STILL_S = 0.2

#: Prints for each thread its kind, its ID, and how long it ran, and was ready to run and did not, in nanoseconds:
#: schedstat's first two fields (Linux, Documentation/scheduler/sched-stats.rst). A kernel without it prints nothing.
#: Of a PMD thread also its name, which has its CPU, and how often it gave its CPU up by itself (proc(5)). At last the
#: clock ticks of each CPU, proc(5), stat.
_READ = """
for task in /proc/"$1"/task/*; do
    read -r name <"$task/comm" && read -r ran waited slices <"$task/schedstat" || continue
    case $name in
    pmd*)
        while read -r key value; do
            case $key in voluntary_ctxt_switches:) slept=$value ;; esac
        done <"$task/status"
        echo "pmd ${task##*/} $ran $waited $slept $name" ;;
    *) echo "other ${task##*/} $ran $waited" ;;
    esac
done
grep "^cpu[0-9]" /proc/stat
"""
#: Columns of a CPU in /proc/stat, proc(5): work for devices, and what a hypervisor gave to others. The kernel counts
#: neither to the thread that was there meanwhile.
_TAKEN = (6, 7, 8)


@dataclass(frozen=True)
class ThreadTimes:
    """What the threads of ovs-vswitchd have done so far, in nanoseconds by thread ID."""

    #: How long each PMD thread waited for its CPU.
    waited: Mapping[int, int] = field(default_factory=dict)
    #: How long each of the other threads ran.
    others_ran: Mapping[int, int] = field(default_factory=dict)
    #: How long each PMD thread ran, or had its CPU taken by the machine itself.
    had: Mapping[int, int] = field(default_factory=dict)
    #: How often each PMD thread gave up its CPU by itself.
    slept: Mapping[int, int] = field(default_factory=dict)


def read_thread_times(host: Host, pid: int) -> ThreadTimes:
    """The times of all threads of a process now."""
    said = host.run(["sh", "-c", _READ, "sh", str(pid)], check=False).stdout
    lines = [line.split() for line in said.splitlines()]
    taken = {line[0][3:]: sum(int(line[column]) for column in _TAKEN) for line in lines if line[0].startswith("cpu")}
    pmds = [line for line in lines if line[0] == "pmd"]
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


def stood_still(before: ThreadTimes, now: ThreadTimes, seconds: float) -> float:
    """Seconds of these in which no PMD thread ran although none had to wait: the process was stopped, or all of them
    slept. 0 where that was in short pieces, as when they wait for each other: a thread that gave its CPU up n times
    slept at least an n-th of the time at once."""
    still = []
    for thread in before.had.keys() & now.had.keys():
        ran = (now.had[thread] - before.had[thread] + now.waited[thread] - before.waited[thread]) / 1e9
        times = max(1, now.slept[thread] - before.slept[thread])
        still.append(seconds - ran if (seconds - ran) / times >= LEAST_STILL_S else 0.0)
    return min(still, default=0.0)


def sharing_problems(before: ThreadTimes, now: ThreadTimes, seconds: float, *, with_generator: bool) -> list[Problem]:
    """What is to be said of these seconds, of threads that were there before: that OVS stood still; that a PMD thread
    waited for more than `MOST_WAITING` of them; and, where the other threads run on the generator's CPU, their share
    of it."""
    problems = []
    if still := stood_still(before, now, seconds):
        text = (
            f"Open vSwitch stood still for {still:.1f} s: its PMD threads did not run, although their CPUs were free."
        )
        problems.append(Problem("stalled", text))
    waited = max(_passed(before.waited, now.waited), default=0) / 1e9 / seconds
    if waited > MOST_WAITING:
        text = f"Other processes took {waited * 100:.1f} % of a PMD CPU of the DUT."
        problems.append(Problem("disturbed", text, cpu_taken=waited))
    ran = sum(_passed(before.others_ran, now.others_ran)) / 1e9
    if with_generator and ran > max(_ANSWERING_S, MOST_SHARED * seconds):
        text = (
            f"Threads of OVS that are no PMD threads took {ran / seconds * 100:.0f} % of the traffic generator's CPU."
        )
        problems.append(Problem("warning", text))
    return problems


def _passed(before: Mapping[int, int], now: Mapping[int, int]) -> Iterator[int]:
    return (now[thread] - before[thread] for thread in before.keys() & now.keys())
