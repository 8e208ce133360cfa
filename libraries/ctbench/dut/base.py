"""The Dut interface, the types that a DUT, the testbed and a trial exchange, and the questions to a DUT that failed."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import socket
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ctbench.base.errors import CtbenchError, MissingResource, TestbedError
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
    """A condition of the DUT that makes a trial worthless or doubtful."""

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
    """The ports of the DUT as the traffic generator reaches them: two, client side first, or several pairs of them.

    The testbed hands them from the DUT to the generator, so that the two need not know each other.
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


def do_all(steps: Iterable[Callable[[], object]]) -> None:
    """Do every step, also after one that fails. Raise the first error in the end."""
    errors = []
    for step in steps:
        try:
            step()
        except CtbenchError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def differing(asked: Mapping[str, Any], found: Mapping[str, Any], of: str = "") -> list[str]:
    """Return a clause for each setting (`of` something) that was read back and is not as asked, `what: asked …, found
    …`."""
    read = ((f"{what} of {of}" if of else what, value, found.get(what)) for what, value in asked.items())
    return [f"{what}: asked {value}, found {got}" for what, value, got in read if value != got]


def wait_until(done: Callable[[], bool], timeout_s: float, poll_s: float = 0.05) -> bool:
    """Poll until `done` is true. Return False where the time is up first."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


@contextmanager
def blaming_the_dead(trouble: Callable[[], str]) -> Iterator[None]:
    """Name a DUT that died, by its `trouble`, in place of a `TestbedError` of the block: a command to the DUT, or the
    generator that lost it, says less."""
    try:
        yield
    except TestbedError as error:
        if said := trouble():
            raise TestbedError(said) from error
        raise


def queue_size(frames: int, rx_queues: int) -> int:
    """Return the frames that each of `rx_queues` queues holds of the `frames` of its link, a power of two. The queues
    share the frames of the link, so that a topology with more queues is not given more time to answer."""
    return max(LEAST_QUEUE, frames >> (rx_queues - 1).bit_length())


@dataclass(frozen=True)
class CpuUse:
    """The CPU time of the DUT in a trial."""

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
    """The flow look-ups of Open vSwitch in a trial, by where they found the flow. Each packet is looked up once, and
    again each time that it comes back from connection tracking."""

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
    """The DUT's own counters of a trial: frames at its ports, by side (`client`, `server`), and statistics of the
    entries in its connection table."""

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
    """The counters of one port so far: packets, lost packets by counter, and packets received by queue (`rx_q0`) where
    the device counts them."""

    rx_packets: int = 0
    tx_packets: int = 0
    drops: Mapping[str, int] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    #: Number of the interface, where that is another one when it was created again.
    index: int = 0


def since(before: int, now: int) -> int:
    """Return the increase of a counter that starts again at 0 when a port's device is created again."""
    return now - before if now >= before else now


def drops_since(
    before: Mapping[Port, PortCounters], now: Mapping[Port, PortCounters], names: Mapping[Port, str]
) -> dict[str, int]:
    """Return `<name>.<counter>` -> packets lost since `before` at the ports with this name; zeros are left out."""
    lost = Counter[str]()
    for port in sorted(before.keys() & now.keys() & names.keys()):
        for counter, value in now[port].drops.items():
            lost[f"{names[port]}.{counter}"] += since(before[port].drops.get(counter, 0), value)
    return dict(+lost)


def counts_since(
    before: Mapping[Port, PortCounters], now: Mapping[Port, PortCounters], sides: Mapping[Port, str]
) -> DutCounts:
    """Return the counts since `before` at the ports that lead to these sides."""
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
    """A device under test. The methods that a kind does not need, or cannot answer, have a default here; `Ability` in
    kind.py says which of them mean something for a kind."""

    @abstractmethod
    def apply(self, topology: Topology) -> Ports:
        """Set up `topology`, read back the DUT's settings, and raise `TestbedError` where they differ. Return its
        ports. Raise `MissingResource` when the testbed lacks what the topology needs. Restart a dead DUT."""

    def flush_state(self) -> None:
        """Empty the connection table and wait until it is empty. Raise `TestbedError` where entries stay."""

    def connections(self) -> int:
        """Return the entries in the connection table now."""
        return 0

    def table_memory(self) -> int | None:
        """Return the memory that holds the table, bytes: that of a process, or of the kernel of the whole machine.
        Return None where it cannot be read."""
        return None

    @property
    def sweep_s(self) -> float:
        """Seconds from one sweep of expiry to the next, at most: an entry may stay that long after its timeout."""
        return 0.0

    def sweeps_within(self, timeout_s: float) -> float:
        """Return the seconds between two sweeps, at most, where the table has long been full of entries that each
        expire `timeout_s` after their last packet."""
        return self.sweep_s

    def limit_now(self) -> int | None:
        """Return the limit of the table now, in entries; None where the DUT does not tell it."""
        return None

    def full_said(self) -> FullSaid:
        """Return the DUT's reports of a full table, since it was started."""
        return FullSaid(0, None)

    def limit_table(self, entries: int) -> None:
        """Set the limit of the table, in entries. Raise `MissingResource` where it cannot be changed."""
        raise MissingResource("The limit of this DUT's connection table cannot be changed.")

    def dump_connections(self) -> Done:
        """Print the connection table, as an operator does; `size`: its entries. Raise `TestbedError` where that
        fails."""
        raise TestbedError("This DUT does not print its connection table.")

    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        """Return the entries of the connection table, or of one zone. The table, or the zone, must be small."""
        raise TestbedError("This DUT does not list the entries of its connection table.")

    def accounts(self) -> Accounts:
        """Return the packet and byte counts of the table's entries. The table must be small."""
        raise TestbedError("The entries of this DUT's connection table count no packets.")

    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        """Remove one entry of the connection table, those of a zone, or all, as an operator does. `size`: the entries
        before."""
        raise TestbedError("No entry of this DUT's connection table can be removed.")

    @property
    def control_plane(self) -> ControlPlane | None:
        """Commands that the DUT answers while it forwards; None where it has no control plane."""
        return None

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Sample the DUT's first forwarding thread for `seconds` under load. Raise `TestbedError` where it cannot be
        sampled."""
        raise TestbedError("No thread of this DUT can be sampled.")

    def forget_flows(self) -> None:
        """Delete all flows of the datapath, and set their limit back to its first value."""

    def upcalls(self) -> tuple[int, int]:
        """Return the packets since `begin_trial` whose upcall made a flow, and those whose upcall failed."""
        return 0, 0

    @property
    def shares_table(self) -> bool:
        """True where two DUTs side by side share one hash table, so that the entries of one slow the other."""
        return False

    @property
    def learns(self) -> bool:
        """True where the DUT learns MAC addresses from the frames that it receives, and floods frames to unknown
        addresses."""
        return False

    def begin_trial(self) -> None:
        """Remember the counters that `health` and the trial's statistics are compared with. Cheap."""

    def health(self) -> list[Problem]:
        """Return the problems since `begin_trial`: a restart, new errors or "blocked" warnings, drops."""
        return []

    def counts(self) -> DutCounts | None:
        """Return the counters since `begin_trial`, as `health` read them last, without a command. None where there are
        none."""
        return None

    def trouble(self) -> str:
        """Return one sentence on what the DUT needs and is dead, stopped or gone; empty where nothing is, and before
        the first `apply`. A stopped process gets a few seconds to go on. Raise nothing."""
        return ""

    def crashed(self) -> bool:
        """True where the main process ended by a signal that a fault raises (SIGSEGV, SIGABRT and such)."""
        return False

    def cpu_use(self) -> CpuUse | None:
        """Return the work of the DUT's CPUs since `begin_trial`; None where the DUT cannot tell. A Linux DUT in the
        sandbox works in the time of the threads that carry its frames, and the trial counts that: `Trial.link`."""
        return None

    def look_ups(self) -> LookUps | None:
        """Return the flow look-ups of all packets since `begin_trial`; None where they are not known."""
        return None

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the DUT's part of the record: versions, masks, queue map, statistics since `begin_trial`. A DUT that
        is in trouble returns less."""

    def capture(self) -> dict[str, str]:
        """Return what an engineer needs of a DUT that failed, as it is now: text by name (`pmd-stats`, `log`), bounded
        in size and in time. The text of a silent program says so. Raise nothing."""
        return {}

    def pause(self) -> None:
        """Leave the DUT's CPUs to another DUT on the same CPUs, until `resume`. A question to the paused DUT resumes it
        for the answer. Raise `MissingResource` where it cannot pause; `trouble` finds a dead one."""

    def resume(self) -> None:
        """Continue after `pause`; do nothing where the DUT is not paused."""

    def restart(self) -> None:
        """Restart the DUT, as an operator does, with the same topology. Its counts of the trial so far are lost. Raise
        `TestbedError` where it does not come back."""
        raise TestbedError("This DUT is not restarted.")

    def fragments(self) -> int:
        """Return the fragments that now wait for the others of their datagram."""
        return 0

    def longest_timeout_s(self) -> float | None:
        """Return the longest remaining timeout of the table's entries, whole seconds, rounded down; None without an
        entry."""
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
    """Return the output of commands, by the name of the file that keeps it, each with its command in front, or the
    reason why there is none. Raise nothing: a command that fails does not prevent the others."""
    silent: set[str] = set()
    return {name: f"$ {' '.join(argv)}\n{_answer(host, argv, env, silent)}" for name, argv in questions.items()}


def _answer(host: Host, argv: Sequence[str], env: dict[str, str] | None, silent: set[str]) -> str:
    """Return the output of a command. `silent`: the programs that did not answer."""
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
    """Return `text`; where it is longer than `MOST` characters, without its middle, whose length is noted."""
    if len(text) <= MOST:
        return text
    half = MOST // 2
    return f"{text[:half]}\n(… {len(text) - 2 * half} characters left out …)\n{text[-half:]}"
