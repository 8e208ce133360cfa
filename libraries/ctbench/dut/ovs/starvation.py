"""Whether PMD threads had to wait for their CPUs, which other processes then had: such a loss is not Open vSwitch's."""

from collections.abc import Mapping

from ctbench.dut.base import MOST_WAITING, Problem
from ctbench.hosts.base import Host

#: Prints thread ID and nanoseconds that it was ready to run and did not: schedstat's second field (Linux,
#: Documentation/scheduler/sched-stats.rst). A kernel without it prints nothing.
_READ = """
for task in /proc/"$1"/task/*; do
    read -r name <"$task/comm" && case $name in
    pmd*) read -r ran waited slices <"$task/schedstat" && echo "${task##*/} $waited" ;;
    esac
done
"""


def read_waited(host: Host, pid: int) -> dict[int, int]:
    """Nanoseconds that each PMD thread has waited for its CPU so far, by thread ID."""
    printed = host.run(["sh", "-c", _READ, "sh", str(pid)], check=False).stdout
    return {int(thread): int(waited) for thread, waited in map(str.split, printed.splitlines())}


def starvation_problem(before: Mapping[int, int], now: Mapping[int, int], seconds: float) -> Problem | None:
    """Whether a PMD thread that was there before waited for more than `MOST_WAITING` of these seconds."""
    waited = max((now[thread] - before[thread] for thread in before.keys() & now.keys()), default=0)
    share = waited / 1e9 / seconds
    if share <= MOST_WAITING:
        return None
    return Problem("disturbed", f"Other processes took {share * 100:.1f} % of a PMD CPU of the DUT.")
