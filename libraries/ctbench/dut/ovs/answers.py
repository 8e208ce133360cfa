"""Commands to Open vSwitch, and the readers of their answers: every command, and every form of an answer since 2.17.

The answer itself decides how it is read, never the version number. `tests/data/ovs` has answers of real builds. A
reader raises `Unread` for a text that it does not know: a None in place of a number would look like a setting that is
not as it was asked for.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, TypeVar

from ctbench.base.quantities import MOST
from ctbench.dut.abilities import Revalidation, TableEntry
from ctbench.dut.base import CpuUse, LookUps, PortCounters
from ctbench.dut.table import read_entries

Answer = TypeVar("Answer")
_Answer_co = TypeVar("_Answer_co", covariant=True)


class Unread(ValueError):
    """An answer of an unknown form; its text is the line, or what is missing."""


@dataclass(frozen=True)
class Command(Generic[_Answer_co]):
    """A command of one of the tools, and the reader of its answer."""

    words: tuple[str, ...]
    read: Callable[[str], _Answer_co]
    tool: Literal["ovs-appctl", "ovs-ofctl", "ovs-vsctl"] = "ovs-appctl"

    def __str__(self) -> str:
        return f"{self.tool} {' '.join(self.words)}"


@dataclass
class PmdStatistics:
    """The statistics of one PMD thread since `pmd-stats-clear`: dpif-netdev/pmd-perf-show, ovs-vswitchd(8)."""

    packets_received: int = 0
    recirculations: int = 0
    hardware_hits: int = 0
    simple_match_hits: int = 0
    emc_hits: int = 0
    smc_hits: int = 0
    megaflow_hits: int = 0
    upcalls: int = 0
    failed_upcalls: int = 0
    packets_per_output_batch: float = 0.0
    idle_cycles: int = 0
    #: Cycles of iterations that found packets, to a cycle for each packet.
    processing_cycles: int = 0
    #: Since when it counts.
    seconds: float = 0.0

    @property
    def processing_percent(self) -> float:
        cycles = self.idle_cycles + self.processing_cycles
        return 100 * self.processing_cycles / cycles if cycles else 0.0

    @property
    def cycles_per_second(self) -> float | None:
        """Rate of the cycle counter. Cycles and time are both Open vSwitch's own, so that the duration of the command
        does not matter. None where the time is too short, or a PMD thread that was stopped counted backwards: that
        looks like 10^18 a second."""
        rate = (self.idle_cycles + self.processing_cycles) / self.seconds if self.seconds else 0.0
        return rate if 0 < rate < _MOST_CYCLES_PER_S else None


#: No CPU counts so many cycles in a second.
_MOST_CYCLES_PER_S = 1e11
#: A number of pmd-perf-show: `  - EMC hits:          1234  ( 12.3 %)`.
_PERF_LINE = re.compile(r"^  (?:- )?([A-Za-z][\w ]*?(?: \(us\))?): *(\d+)(.*)$", re.MULTILINE)
#: Where a packet was found, by what pmd-perf-show calls it.
_FOUND_IN = {
    "PHWOL hits": "hardware_hits",
    "Simple Match hits": "simple_match_hits",
    "EMC hits": "emc_hits",
    "SMC hits": "smc_hits",
    "Megaflow hits": "megaflow_hits",
    "Upcalls": "upcalls",
    "Lost upcalls": "failed_upcalls",
}


def _read_pmds(text: str) -> dict[int, PmdStatistics]:
    """Return CPU of each PMD thread -> its statistics; without the main thread, which Open vSwitch 4.0 shows too."""
    found = {}
    for said in re.split(r"^Time: ", text, flags=re.MULTILINE)[1:]:
        if thread := re.search(r"^pmd thread numa_id -?\d+ core_id (\d+):$", said, re.MULTILINE):
            found[int(thread[1])] = _read_pmd(said)
    if text.strip() and "\nTime: " not in f"\n{text}":
        raise Unread(_first_line(text))
    return found


def _read_pmd(said: str) -> PmdStatistics:
    """Return the statistics of one thread. It reports nothing in the first millisecond, and look-ups only after a
    packet."""
    seconds = float(_find(r"^Measurement duration: ([\d.]+) s$", said, "Measurement duration"))
    if not seconds:
        return PmdStatistics()
    numbers = {name: (int(number), rest) for name, number, rest in _PERF_LINE.findall(said)}
    received, per_packet = _number(numbers, "Rx packets")
    used, _ = _number(numbers, "Used TSC cycles")
    if not received:
        _, share = _number(numbers, "busy iterations")
        # Until 3.1 a thread without a queue divides by 0: `-nan %`, or `nan %` by another C library.
        percent = _find(r"([\d.]+|-?nan) %", share, f"busy iterations{share}")
        busy = 0.0 if "nan" in percent else float(percent) / 100
        return PmdStatistics(
            seconds=seconds, processing_cycles=round(busy * used), idle_cycles=round((1 - busy) * used)
        )
    statistics = PmdStatistics(received, _number(numbers, "Datapath passes")[0] - received, seconds=seconds)
    for label, name in _FOUND_IN.items():
        setattr(statistics, name, _number(numbers, label)[0])
    statistics.processing_cycles = received * int(_find(r"(\d+) cycles/pkt", per_packet, f"Rx packets{per_packet}"))
    statistics.idle_cycles = max(0, used - statistics.processing_cycles)
    if batches := numbers.get("Tx batches", (0, ""))[0]:
        statistics.packets_per_output_batch = _number(numbers, "Tx packets")[0] / batches
    return statistics


def _number(numbers: Mapping[str, tuple[int, str]], name: str) -> tuple[int, str]:
    """Return the number behind a name, and the rest of its line."""
    if name not in numbers:
        raise Unread(f"no line {name!r}")
    return numbers[name]


def _read_queues(text: str) -> dict[int, list[tuple[str, int]]]:
    """Return CPU of each PMD thread -> (port, receive queue) that it polls, without those of the main thread."""
    threads = re.findall(r"^pmd thread numa_id -?\d+ core_id (\d+):\n((?:[ \t].*\n?)*)", text, re.MULTILINE)
    if text.strip() and not threads:
        raise Unread(_first_line(text))
    found: dict[int, list[tuple[str, int]]] = {}
    for core, lines in threads:
        ports = [line for line in lines.splitlines() if line.lstrip().startswith("port:")]
        queues = [(line, re.match(r"\s+port:\s+(\S+)\s+queue-id:\s+(\d+)", line)) for line in ports]
        if unknown := [line for line, queue in queues if queue is None]:
            raise Unread(unknown[0])
        found[int(core)] = [(queue[1], int(queue[2])) for _, queue in queues if queue]
    return found


def _read_bond_members(text: str) -> dict[str, bool]:
    """Return member of a bond -> whether it is in use."""
    return {member: state == "enabled" for member, state in _find_all(r"^member (\S+): (\w+)", text)}


def _read_devices(text: str) -> dict[str, dict[str, str]]:
    """Return port -> what its device says of itself."""
    ports = _find_all(r"^\s+(\S+) \d+/\d+: \(\S+?(?:: ([^)]*))?\)$", text)
    return {port: dict(item.split("=", 1) for item in said.split(", ") if "=" in item) for port, said in ports}


#: What an interface of DPDK is configured to, each number by its names: that since 3.2 or 3.3, and that before. The
#: queues that are configured are told by the database since 3.3, where dpif/show tells those that are asked for.
_SETUP = {
    "rx_queues": (("status", "n_rxq"), ("shown", "configured_rx_queues")),
    "tx_queues": (("status", "n_txq"), ("shown", "configured_tx_queues")),
    "rx_descriptors": (("shown", "n_rxq_desc"), ("shown", "configured_rxq_descriptors")),
    "tx_descriptors": (("shown", "n_txq_desc"), ("shown", "configured_txq_descriptors")),
}


def device_setup(interface: str, shown: Mapping[str, str], status: Mapping[str, str]) -> dict[str, int]:
    """Return the configuration of an interface, from `dpif/show` and the column `status` of its row in the database."""
    said = {"shown": shown, "status": status}
    found = {}
    for name, places in _SETUP.items():
        numbers = [number for where, key in places if (number := said[where].get(key, "")).isdigit()]
        if not numbers:
            raise Unread(f"{interface}: neither {' nor '.join(key for _, key in places)} among {dict(shown)}")
        found[name] = int(numbers[0])
    return found


def _read_ports(text: str) -> dict[int, PortCounters]:
    """Return OpenFlow port number -> counters, custom statistics included."""
    if not text.startswith("OFPST_PORT reply"):
        raise Unread(_first_line(text))
    ports: dict[int, PortCounters] = {}
    for block in re.split(r"^  port +", text, flags=re.MULTILINE)[1:]:
        number, _, rest = block.partition(":")
        if not number.isdigit():
            continue  # LOCAL
        rx, _, tx = rest.partition("tx pkts=")
        custom = re.findall(r"(\w+)=(\d+)", tx.partition("CUSTOM Statistics")[2])
        drops = {name: int(value) for name, value in custom if _is_loss(name)}
        queues = {
            name.removesuffix("_packets"): int(value) for name, value in custom if re.match(r"rx_q\d+_packets$", name)
        }
        if not custom:  # else these two are sums of those
            lost = (("rx_dropped", rx), ("tx_dropped", tx))
            drops = {name: int(_find(r"drop=(\d+)", said, block)) for name, said in lost}
        received, sent = _find(r"rx pkts=(\d+)", rx, block), _find(r"^(\d+)", tx, block)
        ports[int(number)] = PortCounters(int(received), int(sent), drops, queues)
    return ports


def _is_loss(name: str) -> bool:
    """True for counters of netdev-dpdk and of DPDK's ethdev that count lost packets, but not of single queues, which
    repeat them."""
    return not re.match(r"[rt]x_q\d+_", name) and bool(re.search(r"drop(s|ped)?$|missed|errors$", name))


def _read_zone_policies(text: str) -> dict[int, dict[str, int]]:
    """Return zone -> timeout policy in seconds, as the database has it; empty where no zone has one."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"Zone:(\d+), Timeout Policies:(.*)$", line)
        if match is None:
            raise Unread(line)
        found[int(match[1])] = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", match[2])}
    return found


def _read_zone_limits(text: str) -> dict[int, tuple[int, int]]:
    """Return zone -> entries that it may have, and those that it has; only zones that have a limit of their own."""
    if not text.startswith("default limit="):
        raise Unread(_first_line(text))
    found = re.findall(r"^zone=(\d+),limit=(\d+),count=(\d+)$", text, re.MULTILINE)
    return {int(zone): (int(limit), int(count)) for zone, limit, count in found}


def _read_revalidation(text: str) -> Revalidation:
    """Return the last revalidation of the only datapath."""
    flows = re.search(r"\(current (\d+)\).*\(limit (\d+)\)", text)
    duration = re.search(r"dump duration : (\d+)ms", text)
    if flows is None or duration is None:
        raise Unread("neither flows nor a dump duration" if text.strip() else "nothing")
    return Revalidation(int(duration[1]) / 1000, int(flows[1]), int(flows[2]))


def _read_entries(text: str) -> list[TableEntry]:
    """Return the entries of `dump-conntrack -s`."""
    if unknown := [line for line in text.splitlines() if ",timeout=" not in line]:
        raise Unread(unknown[0])
    return read_entries(text)


def _read_flows(text: str) -> list[str]:
    """Return the flows without their counters, each in the switch's own words, and without `reset_counts`: it tells the
    version of OpenFlow that added the flow, and nothing of what the flow does."""
    lines = [line.strip().replace("reset_counts ", "") for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _FLOWS_HEADING.match(line)]
    if unknown := [line for line in lines if "actions=" not in line]:
        raise Unread(unknown[0])
    return lines


_FLOWS_HEADING = re.compile(r"^\w+_FLOW reply")


def _read_count(text: str) -> int:
    if not text.strip().isdigit():
        raise Unread(_first_line(text))
    return int(text)


def _read_fragments(text: str) -> int:
    return int(_find(r"^\s*num frag: (\d+)$", text, text))


def _read_seconds(text: str) -> float:
    """Turn a number of milliseconds into seconds."""
    return _read_count(text) / 1000


def _read_commands(text: str) -> frozenset[str]:
    """Return the commands that an ovs-vswitchd knows."""
    found = frozenset(line.split()[0] for line in text.splitlines()[1:] if line.strip())
    if "list-commands" not in found:
        raise Unread(_first_line(text))
    return found


def _find(pattern: str, text: str, what: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Unread(_first_line(what))
    return found[1]


def _find_all(pattern: str, text: str) -> list[tuple[str, ...]]:
    """Return the groups of all matches. Raise `Unread` where there is none."""
    found = re.findall(pattern, text, re.MULTILINE)
    if not found:
        raise Unread(_first_line(text))
    return found


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "nothing")


#: What is asked. `-s` adds counters and timeouts, OpenFlow 1.4 custom statistics and all that a flow can have.
COMMANDS = Command(("list-commands",), _read_commands)
PMDS = Command(("dpif-netdev/pmd-perf-show",), _read_pmds)
QUEUES = Command(("dpif-netdev/pmd-rxq-show",), _read_queues)
DEVICES = Command(("dpif/show",), _read_devices)
BOND = Command(("bond/show",), _read_bond_members)
REVALIDATION = Command(("upcall/show",), _read_revalidation)
CONNECTIONS = Command(("dpctl/ct-get-nconns",), _read_count)
TABLE_LIMIT = Command(("dpctl/ct-get-maxconns",), _read_count)
FRAGMENTS = Command(("dpctl/ipf-get-status",), _read_fragments)
SWEEP = Command(("dpctl/ct-get-sweep-interval",), _read_seconds)
TABLE_FULL = Command(("coverage/read-counter", "conntrack_full"), _read_count)
ENTRIES = Command(("dpctl/dump-conntrack", "-s"), _read_entries)
PORTS = Command(("-O", "OpenFlow14", "dump-ports"), _read_ports, "ovs-ofctl")
FLOWS = Command(("-O", "OpenFlow14", "--no-stats", "--no-names", "dump-flows"), _read_flows, "ovs-ofctl")
ZONE_LIMITS = Command(("dpctl/ct-get-limits",), _read_zone_limits)
ZONE_POLICIES = Command(("list-zone-tp",), _read_zone_policies, "ovs-vsctl")
#: What is told, and answers nothing that is read.
_order = partial(Command[str], read=str)
CLEAR_PMDS = _order(("dpif-netdev/pmd-stats-clear",))
FLUSH = _order(("dpctl/flush-conntrack",))
SET_TABLE_LIMIT = _order(("dpctl/ct-set-maxconns",))
SET_ZONE_LIMITS = _order(("dpctl/ct-set-limits",))
FORGET_ZONE_LIMITS = _order(("dpctl/ct-del-limits",))
FORGET_FLOWS = _order(("revalidator/purge",))
SET_FLOW_LIMIT = _order(("upcall/set-flow-limit",))
FORGET_ADDRESSES = _order(("fdb/flush",))
#: What is kept of one that failed, by the name of its file; never read.
KEPT = {
    "pmd-stats": ("dpif-netdev/pmd-stats-show",),
    "pmd-rxq": QUEUES.words,
    "pmd-perf": PMDS.words,
    "upcall": REVALIDATION.words,
    "coverage": ("coverage/show",),
    "memory": ("memory/show",),
    "conntrack-count": CONNECTIONS.words,
    "conntrack-limit": TABLE_LIMIT.words,
    "conntrack-states": ("dpctl/ct-stats-show",),
    "datapath": ("dpctl/show", "-s"),
    "datapath-flows": ("dpctl/dump-flows", "-m"),
}


def cpu_use(statistics: Collection[PmdStatistics]) -> CpuUse | None:
    """Return the CPU use of all PMD threads, by their `statistics`; None when they have received no packet.

    A PMD thread polls without end: of its CPU it uses the share of the cycles in which a poll found packets. The time
    per packet needs the rate of the cycle counter, and is None where that is not known."""
    packets = sum(pmd.packets_received for pmd in statistics)
    if not packets:
        return None
    cycles = sum(pmd.processing_cycles for pmd in statistics) / packets
    busy = sum(pmd.processing_percent for pmd in statistics) / 100
    rate = next((rate for pmd in statistics if (rate := pmd.cycles_per_second)), None)
    return CpuUse(busy, cycles / rate * 1e9 if rate else None, "PMD cycles", hertz=rate, cpus=len(statistics))


def look_ups(statistics: Collection[PmdStatistics], datapath_flows: int) -> LookUps | None:
    """Return the flow look-ups, summed over the PMD threads; None where the numbers are no counts (a PMD thread that
    was stopped has counted backwards)."""
    sums = {name: sum(getattr(pmd, name) for pmd in statistics) for name in ("recirculations", *_FOUND_IN.values())}
    packets = sum(pmd.packets_received for pmd in statistics)
    if not all(0 <= count <= MOST for count in (packets, *sums.values())):
        return None
    return LookUps(packets, datapath_flows=datapath_flows, **sums)
