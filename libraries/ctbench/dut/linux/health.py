"""Problems of a Linux DUT since a trial began, found by the kernel's counters."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from ctbench.dut.base import KERNEL_LOG, DutCounts, PortCounters, Problem, counts_since, drops_since
from ctbench.dut.linux.netfilter import KEPT, increase
from ctbench.hosts.machine import cpu_ranges

#: Readable in every network namespace; counts those of all.
SOFTNET = "/proc/net/softnet_stat"
#: Columns of softnet_seq_show (net-procfs.c), hexadecimal.
PROCESSED, DROPPED, CPU = 0, 1, 12
#: Share of the DUT's packets that may be received elsewhere, and packets below which nothing is said: the host's
#: own network is in the counters too.
ELSEWHERE_LIMIT = 0.02
NOISE_PACKETS = 1000


#: CPU -> packets that it received, and those that found its backlog full.
Softnet = Mapping[int, tuple[int, int]]


def parse_softnet(text: str) -> Softnet:
    """Return the counters by CPU. Kernels before 5.10 do not name the CPU: there it is the number of the line."""
    counters = {}
    for number, line in enumerate(text.splitlines()):
        columns = [int(column, 16) for column in line.split()]
        cpu = columns[CPU] if len(columns) > CPU else number
        counters[cpu] = columns[PROCESSED], columns[DROPPED]
    return counters


def received_since(before: Softnet, now: Softnet) -> dict[int, int]:
    """Return CPU -> packets received since `before`; the counters are 32 bits wide."""
    return {cpu: (received - before.get(cpu, (0, 0))[0]) % (1 << 32) for cpu, (received, _) in now.items()}


@dataclass(frozen=True)
class LinkReading:
    interfaces: Mapping[str, PortCounters]
    softnet: Softnet
    conntrack: Mapping[str, int]
    #: Columns of /proc/stat's `cpu` line, clock ticks, and when it was read, seconds of a monotonic clock.
    cpu_ticks: tuple[int, ...]
    at_s: float


def link_problems(before: LinkReading, now: LinkReading) -> list[Problem]:
    """Return the interfaces that are gone, or others of that name, as problems."""
    gone = [name for name in before.interfaces if name not in now.interfaces]
    again = [name for name, each in now.interfaces.items() if before.interfaces.get(name, each).index != each.index]
    return [
        *(Problem("fatal", f"The interface {name} is gone.", code="interface-gone") for name in gone),
        *(Problem("fatal", f"The interface {name} was created again.", code="interface-replaced") for name in again),
    ]


def new_drops(before: LinkReading, now: LinkReading) -> dict[str, int]:
    """Return `<interface>.<counter>` -> packets lost since `before`, and `cpu<number>.backlog` -> packets that found a
    CPU's queue of received packets full; zeros are left out."""
    lost = drops_since(before.interfaces, now.interfaces, {name: name for name in now.interfaces})
    for cpu, (_, dropped) in now.softnet.items():
        if dropped > (known := before.softnet.get(cpu, (0, 0))[1]):
            lost[f"cpu{cpu}.backlog"] = dropped - known
    return lost


def counted(before: LinkReading, now: LinkReading, interfaces: Sequence[str]) -> DutCounts | None:
    """Return the counts since `before` of the DUT's `interfaces`, client side first, and of its table; None where an
    interface is gone."""
    if not {*interfaces} <= before.interfaces.keys() & now.interfaces.keys():
        return None
    sides = dict(zip(interfaces, cycle(("client", "server")), strict=False))
    table = increase(before.conntrack, now.conntrack)
    return replace(
        counts_since(before.interfaces, now.interfaces, sides),
        dropped=sum(new_drops(before, now).values()),
        conntrack={name: table[name] for name in KEPT if name in table},
    )


def placement_problem(
    before: LinkReading, now: LinkReading, interfaces: Collection[str], cpus: Collection[int], *, delivered: bool
) -> Problem | None:
    """Return a problem where the DUT worked on CPUs that are not its own. The kernel receives a packet once at one of
    the DUT's `interfaces`, and with `delivered` once more at the other end of a veth pair. The counters do not tell the
    DUT's packets from others: a host whose own network is as busy as this cannot be measured on either."""
    expected = 0
    for name in interfaces:
        first, last = before.interfaces[name], now.interfaces[name]
        expected += last.rx_packets - first.rx_packets
        expected += (last.tx_packets - first.tx_packets) if delivered else 0
    received = received_since(before.softnet, now.softnet)
    astray = {cpu: count for cpu, count in received.items() if cpu not in cpus and count}
    others = sum(astray.values())
    if others <= max(NOISE_PACKETS, ELSEWHERE_LIMIT * expected):
        return None
    share = 100 * min(1.0, others / max(expected, 1))
    return Problem(
        "invalid",
        f"{share:.1f} % of the DUT's packets, or as many of others, were processed on CPU "
        f"{cpu_ranges([*astray])}, which is not the DUT's: its own are {cpu_ranges([*cpus])}.",
        code="other-cpus",
    )


#: What a Linux DUT that failed is asked.
QUESTIONS: Mapping[str, Sequence[str]] = {
    "links": ("ip", "-s", "-s", "-d", "link", "show"),
    "routes": ("ip", "route", "show", "table", "all"),
    "neighbours": ("ip", "neighbour", "show"),
    "bridge": ("bridge", "-s", "vlan", "show"),
    "nftables": ("nft", "list", "ruleset"),
    "iptables": ("iptables-save", "-c"),
    "ip6tables": ("ip6tables-save", "-c"),
    "conntrack-count": ("conntrack", "-C"),
    "conntrack-statistics": ("conntrack", "-S"),
    "conntrack-settings": ("sysctl", "-a", "-r", "^net[.]netfilter[.]nf_conntrack"),
    "softnet": ("cat", "/proc/net/softnet_stat"),
    "memory": ("cat", "/proc/meminfo"),
    **KERNEL_LOG,
}
