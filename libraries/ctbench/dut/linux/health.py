"""What went wrong with a Linux DUT since a trial began, judged by the kernel's counters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ctbench.dut.base import Problem
from ctbench.dut.linux.links import InterfaceCounters
from ctbench.dut.linux.softnet import SoftnetCounters, elsewhere, received_since
from ctbench.hosts.machine import format_cpu_list


@dataclass(frozen=True)
class Reading:
    """The counters that a trial's health is judged by, at one moment."""

    interfaces: Mapping[str, InterfaceCounters]
    softnet: Mapping[int, SoftnetCounters]
    conntrack: Mapping[str, int]
    #: Columns of /proc/stat's `cpu` line, clock ticks, and when it was read, seconds of a monotonic clock.
    cpu_ticks: tuple[int, ...]
    at_s: float


def link_problems(before: Reading, now: Reading) -> list[Problem]:
    """Interfaces that are gone, or others under the same name."""
    found = []
    for name, counters in before.interfaces.items():
        after = now.interfaces.get(name)
        if after is None:
            found.append(Problem("fatal", f"The interface {name} is gone."))
        elif after.index != counters.index:
            found.append(Problem("fatal", f"The interface {name} was created again."))
    return found


def new_drops(before: Reading, now: Reading) -> dict[str, int]:
    """`<interface>.<counter>` -> packets lost since `before`, and `cpu<number>.backlog` -> those that found a CPU's
    queue of received packets full; only those that are not zero."""
    drops = {}
    for name, counters in now.interfaces.items():
        earlier = before.interfaces[name].drops if name in before.interfaces else {}
        for counter, value in counters.drops.items():
            drops[f"{name}.{counter}"] = value - earlier.get(counter, 0)
    for cpu, softnet in now.softnet.items():
        drops[f"cpu{cpu}.backlog"] = softnet.dropped - before.softnet[cpu].dropped if cpu in before.softnet else 0
    return {name: count for name, count in drops.items() if count > 0}


def placement_problem(
    before: Reading, now: Reading, interfaces: Collection[str], cpus: Collection[int], *, delivered: bool
) -> Problem | None:
    """Whether the DUT worked on CPUs that are not its own. A packet is received once at one of the DUT's `interfaces`,
    and with `delivered` once more, by the kernel at the other end of a veth pair."""
    expected = 0
    for name in interfaces:
        first, last = before.interfaces[name], now.interfaces[name]
        expected += last.rx_packets - first.rx_packets
        expected += (last.tx_packets - first.tx_packets) if delivered else 0
    astray = elsewhere(received_since(before.softnet, now.softnet), expected, cpus)
    if not astray:
        return None
    share = 100 * min(1.0, sum(astray.values()) / max(expected, 1))
    return Problem(
        "invalid",
        f"{share:.1f} % of the DUT's packets, or as many of others, were processed on CPU "
        f"{format_cpu_list(sorted(astray))}, which is not the DUT's: its own are {format_cpu_list(sorted(cpus))}.",
    )
