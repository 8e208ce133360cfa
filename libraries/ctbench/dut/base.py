"""The Dut interface, what passes between a DUT, the testbed and a trial, and what a DUT that failed is asked."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import socket
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.quantities import Count, Real
from ctbench.dut.abilities import Accounts, ControlPlane, Done, FullSaid, TableEntry, ThreadSamples
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host

#: What a DUT calls its ports by: numbers, or names.
Port = TypeVar("Port", int, str)
#: Seconds that every DUT remembers a TCP connection that was closed, as in the measurements published in 2022.
CLOSED_S = 1
#: Frames that a receive queue holds at least.
LEAST_QUEUE = 64
#: Share of a trial that a PMD thread may wait for its CPU. Those that had theirs for themselves were seen to wait 0.01
#: to 0.03 % (a virtual machine with two CPUs).
MOST_WAITING = 0.01


#: What a problem is, for programs.
ProblemCode = Literal[
    "not-set-up", "unreachable", "interface-gone", "interface-replaced", "logged-error",
    "logged-stall", "stood-still", "cpu-taken", "cpu-quota", "generator-cpu-taken", "generator-rings-full",
    "lost-packets", "lost-connections", "other-cpus", "tracked", "unnamed",
]  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Something about the DUT that makes a trial worthless or doubtful."""

    #: `fatal`: nothing more can be measured (the DUT restarted, …); `stalled`: the DUT stood still by itself, so what
    #: was lost is its own loss, whatever else went on; `invalid`: this trial says nothing, another may; `disturbed`:
    #: neither does it, unless more was lost than that explains; `warning`: said in the record.
    severity: Literal["fatal", "stalled", "invalid", "disturbed", "warning"]
    #: One sentence.
    text: str
    #: Where others had a CPU of the DUT meanwhile: for which share of the trial (the most of any CPU).
    cpu_taken: float | None = None
    #: Where it is known what else was lost: so many frames.
    frames: Annotated[int | None, Field(exclude=True), SkipJsonSchema()] = None
    #: The reason, in one word; records have the sentence alone.
    code: Annotated[ProblemCode, Field(exclude=True), SkipJsonSchema()] = "unnamed"


@dataclass(frozen=True)
class Ports:
    """How the traffic generator reaches the DUT's two ports, client side first, or its pairs of them.

    The testbed hands it from the DUT to the generator, so that the two need not know each other.
    """

    #: What the ends of links are: of `memif` the path of a UNIX socket of the DUT, which is the server, of `interface`
    #: a name, of `pci` an address. Of `cable` there are none: the generator joins its two ports by itself.
    kind: Literal["memif", "interface", "pci", "cable"]
    #: The client's end of each link, and the server's: of the first pair of ports, of further pairs, or of the further
    #: links of a bond.
    links: tuple[tuple[str, str], ...]
    #: Rings that the generator offers per port towards the DUT: the DUT's receive queues.
    rx_queues: int
    #: Rings that the DUT transmits on, all of which the generator polls: PMD threads + 1 for OVS.
    tx_queues: int
    #: Entries per ring.
    ring_size: int = 2048
    #: Pairs of ports, each a link; where it is one, further links are a bond's.
    pairs: int = 1
    #: Of each pair, client's first: MAC addresses that their frames go to; none where the DUT bridges, and they go to
    #: the other end.
    macs: tuple[tuple[str, str], ...] = ()
    #: Of each pair, addresses for which the generator's ports answer ARP besides those of the profile: the DUT's next
    #: hops.
    next_hops: tuple[tuple[str, str], ...] = ()
    #: CPUs of the DUT on which frames are handed to it (`interface`), receive queues shared evenly among them.
    cpus: tuple[int, ...] = ()
    #: Opens a socket, not bound, in the network namespace of the generator's interfaces (`interface`): a raw packet
    #: socket without a protocol, or one of AF_XDP.
    open_socket: Callable[[Literal["packet", "xdp"]], socket] | None = None


def differing(asked: Mapping[str, Any], found: Mapping[str, Any], of: str = "") -> list[str]:
    """A clause for each thing (`of` something) that was read back and is not as asked, `what: asked …, found …`."""
    read = ((f"{what} of {of}" if of else what, value, found.get(what)) for what, value in asked.items())
    return [f"{what}: asked {value}, found {got}" for what, value, got in read if value != got]


def wait_until(done: Callable[[], bool], timeout_s: float, poll_s: float = 0.05) -> bool:
    """Look again and again; whether it was so before the time was up."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


@contextmanager
def blaming_the_dead(trouble: Callable[[], str]) -> Iterator[None]:
    """Name a DUT that died, as its `trouble` does, where what noticed it raises a `TestbedError`: a command to the DUT,
    or the generator that lost it, says less."""
    try:
        yield
    except TestbedError as error:
        if said := trouble():
            raise TestbedError(said) from error
        raise


def queue_size(frames: int, rx_queues: int) -> int:
    """Frames that each of `rx_queues` queues holds of the `frames` of its link: a power of two. The queues share what a
    link holds: a topology with more of them is not given more time to answer."""
    return max(LEAST_QUEUE, frames >> (rx_queues - 1).bit_length())


@dataclass(frozen=True)
class CpuUse:
    """What a trial cost the DUT's CPUs."""

    #: CPUs' worth of work, softirq included: 1.0 is one CPU that never waits.
    busy_cpus: Real
    #: CPU time for one packet forwarded, nanoseconds; None where no packet was counted.
    ns_per_packet: Real | None
    #: How it was measured, for the record: `link threads`, `PMD cycles`, `/proc/stat`.
    source: str
    #: Cycles that one of its CPUs counts per second, and how many CPUs it has; None where it is not known.
    hertz: Real | None = None
    cpus: Count | None = None


@dataclass(frozen=True)
class LookUps:
    """Where Open vSwitch found what to do with packets in a trial. Each is looked up once, and once more each time
    that it comes back from connection tracking."""

    packets: Count
    recirculations: Count
    #: Found in the exact match cache, in the signature match cache, and among the datapath's flows.
    emc_hits: Count
    smc_hits: Count
    megaflow_hits: Count
    #: Not found: the rules were asked, and had an answer or had none.
    upcalls: Count
    failed_upcalls: Count
    #: Flows of the datapath, at the end.
    datapath_flows: Count
    #: Found by a card, and by the look-up for flows that match on a port and little more.
    hardware_hits: Count = 0
    simple_match_hits: Count = 0


@dataclass(frozen=True)
class DutCounts:
    """What a DUT's own counters say of a trial: frames at its ports, by the side that these lead to, `client` and
    `server`; and what became of entries in its connection table."""

    #: Frames that its ports received; empty where what it did not take in time is not among its counters.
    received: Mapping[str, Count]
    sent: Mapping[str, Count]
    #: Frames that it says it dropped, at whichever port; two of its counters may have the same one.
    dropped: Count = 0
    #: Frames received by each queue that it counts apart: `client.rx_q0`.
    queues: Mapping[str, Count] = field(default_factory=dict)
    #: Of a Linux kernel, by the names of conntrack(8): `insert_failed`, `drop`, `early_drop`, `clash_resolve`, ...
    conntrack: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True)
class PortCounters:
    """What was counted at one port so far: packets, lost ones by the name of their counter, and packets received by
    queue (`rx_q0`) where its device counts them."""

    rx_packets: int = 0
    tx_packets: int = 0
    drops: Mapping[str, int] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    #: Number of the interface, where that is another one when it was created again.
    index: int = 0


def since(before: int, now: int) -> int:
    """Increase of a counter that starts again at 0 when a port's device is created again."""
    return now - before if now >= before else now


def drops_since(
    before: Mapping[Port, PortCounters], now: Mapping[Port, PortCounters], names: Mapping[Port, str]
) -> dict[str, int]:
    """`<name>.<counter>` -> packets lost since `before` at the ports that have this name; only those that are not
    zero."""
    lost = Counter[str]()
    for port in sorted(before.keys() & now.keys() & names.keys()):
        for counter, value in now[port].drops.items():
            lost[f"{names[port]}.{counter}"] += since(before[port].drops.get(counter, 0), value)
    return dict(+lost)


def counts_since(
    before: Mapping[Port, PortCounters], now: Mapping[Port, PortCounters], sides: Mapping[Port, str]
) -> DutCounts:
    """What was counted since `before` at the ports that lead to these sides."""
    received, sent = ({"client": 0, "server": 0} for _ in range(2))
    queues = Counter[str]()
    for port in before.keys() & now.keys() & sides.keys():
        side, first, last = sides[port], before[port], now[port]
        received[side] += since(first.rx_packets, last.rx_packets)
        sent[side] += since(first.tx_packets, last.tx_packets)
        for name, count in last.queues.items():
            queues[f"{side}.{name}"] += since(first.queues.get(name, 0), count)
    return DutCounts(received, sent, sum(drops_since(before, now, sides).values()), dict(queues))


class Dut(ABC):
    """A device under test. What a kind has nothing to do for, or to say to, it inherits from here; `Ability` in kind.py
    says what of it means something for a kind."""

    @abstractmethod
    def apply(self, topology: Topology) -> Ports | None:
        """Set up `topology`, then read back what the DUT says and raise `TestbedError` where it differs. None where
        its two ports are out of the generator's reach. Raises `MissingResource` when the testbed lacks what the
        topology needs. A dead DUT is restarted."""

    def flush_state(self) -> None:
        """Empty the connection table and wait until it is empty; `TestbedError` when it stays."""

    def connections(self) -> int:
        """Entries in the connection table now."""
        return 0

    def table_memory(self) -> int | None:
        """The memory that the table is part of, bytes: that of a process, or of the kernel of the whole machine. None
        where it cannot be read."""
        return None

    @property
    def sweep_s(self) -> float:
        """Seconds from one sweep of the table to the next, at most: an entry may stay so long beyond its timeout."""
        return 0.0

    def sweeps_within(self, timeout_s: float) -> float:
        """Seconds between two sweeps, at most, of a table that has been full of entries for a while, each of which goes
        `timeout_s` after its last packet."""
        return self.sweep_s

    def limit_now(self) -> int | None:
        """Entries that the table may have now; None where it does not say."""
        return None

    def full_said(self) -> FullSaid:
        """What it has said of its table that was full, since it was started."""
        return FullSaid(0, None)

    def limit_table(self, entries: int) -> None:
        """Let the table have so many entries from now on; `MissingResource` where that cannot be changed."""
        raise MissingResource("The limit of this DUT's connection table cannot be changed.")

    def dump_connections(self) -> Done:
        """Print the connection table, as an operator does; `size`: its entries. `TestbedError` where that fails."""
        raise TestbedError("This DUT does not print its connection table.")

    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        """The entries of the connection table, or those of one zone: for a table, or a zone, of few."""
        raise TestbedError("This DUT does not list the entries of its connection table.")

    def accounts(self) -> Accounts:
        """What the entries of the connection table count: for a table of few."""
        raise TestbedError("The entries of this DUT's connection table count no packets.")

    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        """Remove one entry of the connection table, those of a zone, or all, as an operator does; `size`: the entries
        that it had."""
        raise TestbedError("No entry of this DUT's connection table can be removed.")

    @property
    def control_plane(self) -> ControlPlane | None:
        """What can be done while it forwards; None where it has no control plane that can be asked."""
        return None

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Sample the first of its forwarding threads for so long, while a load lasts. `TestbedError` where nothing can
        sample it."""
        raise TestbedError("No thread of this DUT can be sampled.")

    def forget_flows(self) -> None:
        """Delete all flows of the datapath, and let it have as many as at first."""

    def upcalls(self) -> tuple[int, int]:
        """Packets since `begin_trial` for which a flow was made, and for which that failed."""
        return 0, 0

    @property
    def shares_table(self) -> bool:
        """Whether the entries of two side by side are in one hash table, so that those of the one slow the other."""
        return False

    @property
    def learns(self) -> bool:
        """Whether it forwards to the addresses that it has seen frames from, and floods what goes to others."""
        return False

    def begin_trial(self) -> None:
        """Remember what `health` and the statistics of the trial are compared with. Cheap."""

    def health(self) -> list[Problem]:
        """What went wrong since `begin_trial`: restarted, new errors or "blocked" warnings, drops."""
        return []

    def counts(self) -> DutCounts | None:
        """What its counters said since `begin_trial` when `health` read them last: no command is run for it. None where
        they say nothing."""
        return None

    def trouble(self) -> str:
        """What the DUT needs and is dead, stopped or gone, as one sentence; empty where nothing is, and before the
        first `apply`. What only stands still gets a few seconds to go on. Raises nothing of its own."""
        return ""

    def crashed(self) -> bool:
        """Whether its main process ended by a signal that a fault raises (SIGSEGV, SIGABRT and such)."""
        return False

    def cpu_use(self) -> CpuUse | None:
        """What the DUT's CPUs did since `begin_trial`; None where it cannot tell (a Linux DUT in the sandbox works in
        the time of the threads that carry its frames, and the trial counts that: `Trial.link`)."""
        return None

    def look_ups(self) -> LookUps | None:
        """Where it found what to do with all packets since `begin_trial`; None where it is not known."""
        return None

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """What the record says of the DUT: versions, masks, queue map, statistics since `begin_trial`; less of a DUT
        that is in trouble."""

    def capture(self) -> dict[str, str]:
        """What an engineer would want of a DUT that failed, as it is now: text by name (`pmd-stats`, `log`), bounded in
        size and in time. What does not answer says so; raises nothing of its own."""
        return {}

    def pause(self) -> None:
        """Leave the DUT's CPUs to another DUT that has them as well, until `resume`. Whatever it is asked meanwhile,
        it wakes up for. `MissingResource` where it cannot; what has died is found by `trouble`."""

    def resume(self) -> None:
        """Go on after `pause`; nothing where it was not paused."""

    def restart(self) -> None:
        """Start it again, as an operator does, and come back with the same topology; what it has told of a trial so far
        is forgotten. `TestbedError` where it does not."""
        raise TestbedError("This DUT is not restarted.")

    def fragments(self) -> int:
        """Fragments that wait for the others of their datagram now."""
        return 0

    def longest_timeout_s(self) -> float | None:
        """Seconds that the entry of the table that stays longest still stays without another packet; None without an
        entry. Whole seconds, rounded down."""
        return None

    def restore(self) -> None:
        """Leave the host as it was found. May be called twice."""


#: Seconds for an answer: who holds the first one back is not asked again.
TIMEOUT_S = 5.0
#: Characters kept of an answer, half of them from its beginning and half from its end.
MOST = 65536
#: What the host's kernel said meanwhile, whatever the DUT is; on many machines that is for root only.
KERNEL_LOG = {"dmesg": ("dmesg", "--ctime")}


def ask(host: Host, questions: Mapping[str, Sequence[str]], env: dict[str, str] | None = None) -> dict[str, str]:
    """What commands print, by the names of the files that it is kept in, each with its command in front; where one gave
    no answer, why. Raises nothing: one that fails keeps no other one away."""
    silent: set[str] = set()
    return {name: f"$ {' '.join(argv)}\n{_answer(host, argv, env, silent)}" for name, argv in questions.items()}


def _answer(host: Host, argv: Sequence[str], env: dict[str, str] | None, silent: set[str]) -> str:
    """Of a command; `silent`: the programs that did not answer."""
    if argv[0] in silent:
        return f"(not asked: {argv[0]} did not answer before)\n"
    try:
        done = host.run(argv, TIMEOUT_S, check=False, env=env)
    except TestbedError as error:
        silent.add(argv[0])
        return f"(no answer: {error})\n"
    said = shortened(done.stdout) + (f"\n(stderr) {shortened(done.stderr)}" if done.stderr.strip() else "")
    return said if done.exit_status == 0 else f"{said}\n(exit status {done.exit_status})\n"


def shortened(text: str) -> str:
    """`text` without its middle, which is counted, where it is longer than `MOST` characters."""
    if len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n(… {len(text) - 2 * half} characters left out …)\n{text[-half:]}"
