"""Who had to share a CPU in a trial: PMD threads with other processes, the traffic generator with Open vSwitch.

A loss because of the first is not Open vSwitch's, and a generator that is late because of the second is not to blame.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ctbench.dut.base import MOST_WAITING, Problem
from ctbench.hosts.base import Host

#: Share of the generator's CPU above which it is said what else ran there: as many connections as may begin late. Seen:
#: nothing with packets, 0 to 3 % in trials of 2 s with 120 k new connections/s (a virtual machine with two CPUs).
MOST_SHARED = 0.02
#: Seconds of CPU time that say nothing: the questions before and after a trial are answered in less.
_ANSWERING_S = 0.02

#: Prints for each thread its kind, its ID, and how long it ran, and was ready to run and did not, in nanoseconds:
#: schedstat's first two fields (Linux, Documentation/scheduler/sched-stats.rst). A kernel without it prints nothing.
_READ = """
for task in /proc/"$1"/task/*; do
    read -r name <"$task/comm" && read -r ran waited slices <"$task/schedstat" || continue
    case $name in
    pmd*) echo "pmd ${task##*/} $ran $waited" ;;
    *) echo "other ${task##*/} $ran $waited" ;;
    esac
done
"""


@dataclass(frozen=True)
class ThreadTimes:
    """What the threads of ovs-vswitchd have done so far, in nanoseconds by thread ID."""

    #: How long each PMD thread waited for its CPU.
    waited: Mapping[int, int] = field(default_factory=dict)
    #: How long each of the other threads ran.
    others_ran: Mapping[int, int] = field(default_factory=dict)


def read_thread_times(host: Host, pid: int) -> ThreadTimes:
    """The times of all threads of a process now."""
    lines = [line.split() for line in host.run(["sh", "-c", _READ, "sh", str(pid)], check=False).stdout.splitlines()]
    return ThreadTimes(
        waited={int(thread): int(waited) for kind, thread, _, waited in lines if kind == "pmd"},
        others_ran={int(thread): int(ran) for kind, thread, ran, _ in lines if kind == "other"},
    )


def sharing_problems(before: ThreadTimes, now: ThreadTimes, seconds: float, *, with_generator: bool) -> list[Problem]:
    """What threads that were there before shared in these seconds: a PMD thread that waited for more than
    `MOST_WAITING` of them, and, where the other threads run on the generator's CPU, their share of it."""
    problems = []
    waited = max(_passed(before.waited, now.waited), default=0) / 1e9 / seconds
    if waited > MOST_WAITING:
        problems.append(Problem("disturbed", f"Other processes took {waited * 100:.1f} % of a PMD CPU of the DUT."))
    ran = sum(_passed(before.others_ran, now.others_ran)) / 1e9
    if with_generator and ran > max(_ANSWERING_S, MOST_SHARED * seconds):
        text = (
            f"Threads of OVS that are no PMD threads took {ran / seconds * 100:.0f} % of the traffic generator's CPU."
        )
        problems.append(Problem("warning", text))
    return problems


def _passed(before: Mapping[int, int], now: Mapping[int, int]) -> Iterator[int]:
    return (now[thread] - before[thread] for thread in before.keys() & now.keys())
