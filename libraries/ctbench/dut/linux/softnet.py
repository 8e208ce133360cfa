"""On which CPUs the kernel received packets: /proc/net/softnet_stat, one line per CPU, counted in packets."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Readable in every network namespace; counts those of all.
SOFTNET = "/proc/net/softnet_stat"
#: Columns of softnet_seq_show (net-procfs.c), hexadecimal.
PROCESSED, DROPPED, CPU = 0, 1, 12
#: Share of the DUT's packets that may be received elsewhere, and packets below which nothing is said: the host's
#: own network is in the counters too.
ELSEWHERE_LIMIT = 0.02
NOISE_PACKETS = 1000


@dataclass(frozen=True)
class SoftnetCounters:
    """Packets that a CPU received, and those that found its backlog full."""

    processed: int
    dropped: int


def parse_softnet(text: str) -> dict[int, SoftnetCounters]:
    """CPU -> counters. Kernels before 5.10 do not name the CPU: there it is the number of the line."""
    counters = {}
    for number, line in enumerate(text.splitlines()):
        columns = [int(column, 16) for column in line.split()]
        cpu = columns[CPU] if len(columns) > CPU else number
        counters[cpu] = SoftnetCounters(columns[PROCESSED], columns[DROPPED])
    return counters


def received_since(before: Mapping[int, SoftnetCounters], now: Mapping[int, SoftnetCounters]) -> dict[int, int]:
    """CPU -> packets received since `before`; the counters are 32 bits wide."""
    nothing = SoftnetCounters(0, 0)
    return {cpu: (now[cpu].processed - before.get(cpu, nothing).processed) % (1 << 32) for cpu in now}


def elsewhere(received: Mapping[int, int], expected: int, cpus: Collection[int]) -> dict[int, int]:
    """CPU -> packets that it received although it is none of the DUT's `cpus`; empty when all is well.

    `expected`: how often the DUT's packets are received. The counters do not tell whose packets they were: a host whose
    own network is as busy as this is no place to measure either.
    """
    others = {cpu: count for cpu, count in received.items() if cpu not in cpus and count}
    return others if sum(others.values()) > max(NOISE_PACKETS, ELSEWHERE_LIMIT * expected) else {}
