"""The command-line tools of an OVS instance, each pointed at its own files, and readers of what they print."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ctbench.dut.base import CpuUse, LookUps
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host

#: The bridge with the two ports, in an instance of our own.
BRIDGE = "br0"
#: Seconds for a command. The first port makes DPDK touch all of its memory, which takes seconds without hugepages.
COMMAND_TIMEOUT_S = 60.0


class OvsControl:
    """Runs ovs-vsctl, ovs-ofctl and ovs-appctl against one instance of the host."""

    def __init__(
        self, host: Host, installation: OvsInstallation, folder: str, *, rundir: str = "", bridge: str = BRIDGE
    ) -> None:
        """`folder` is ours, and all of an instance of our own is in it; `rundir` is where one that runs already has its
        sockets."""
        self.host = host
        self.installation = installation
        self.folder = folder
        self.bridge = bridge
        self._rundir = rundir or folder
        #: Keeps every OVS program in `folder` (the manuals' ENVIRONMENT and FILES sections), and DPDK's runtime
        #: files as well (RUNTIME_DIRECTORY, eal_filesystem.c).
        self.environment = dict.fromkeys(
            ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"), folder
        )
        if rundir:
            self.environment = {"OVS_RUNDIR": rundir}

    @property
    def database_socket(self) -> str:
        return f"{self._rundir}/db.sock"

    @property
    def pidfile(self) -> str:
        return f"{self._rundir}/ovs-vswitchd.pid"

    @property
    def vswitchd(self) -> str:
        """What ovs-appctl(8) calls ovs-vswitchd: our own one's socket, or the name of the one in its rundir."""
        return f"{self.folder}/ovs-vswitchd.ctl" if self._rundir == self.folder else "ovs-vswitchd"

    def vsctl(self, *arguments: str) -> str:
        """ovs-vsctl(8); returns once ovs-vswitchd has taken the change over, unless told `--no-wait`."""
        return self._run("ovs-vsctl", f"--db=unix:{self.database_socket}", *arguments)

    def appctl(self, *arguments: str) -> str:
        return self._run("ovs-appctl", "-t", self.vswitchd, *arguments)

    def ofctl(self, *arguments: str) -> str:
        return self._run("ovs-ofctl", *arguments)

    def pmds(self) -> "dict[int, PmdStatistics]":
        return parse_pmd_statistics(self.appctl("dpif-netdev/pmd-stats-show"))

    def ports(self) -> "dict[int, PortCounters]":
        return parse_ports(self.ofctl("-O", "OpenFlow14", "dump-ports", self.bridge))

    def flow_differences(self, flows: str) -> list[str]:
        """Lines of `ovs-ofctl diff-flows`: `-` is in the host's file `flows` only, `+` in the switch only."""
        argv = [self.installation.tool("ovs-ofctl"), "diff-flows", flows, self.bridge]
        done = self.host.run(argv, COMMAND_TIMEOUT_S, check=False, env=self.environment)
        # Status 2 says that there are differences, other than 0 that they could not be compared.
        return [] if done.exit_status == 0 else (done.stdout or done.stderr).strip().splitlines()

    def other_config(self) -> dict[str, str]:
        """Options of the Open_vSwitch table."""
        return dict(self.column("Open_vSwitch", ".", "other_config"))

    def column(self, table: str, record: str, name: str) -> Any:
        return self.columns(table, record, name)[name]

    def columns(self, table: str, record: str, *names: str) -> dict[str, Any]:
        """Columns of one database record: sets as lists, maps as dicts, RFC 7047 section 5.1."""
        return self.rows(table, [record], *names)[record]

    def rows(self, table: str, records: Sequence[str], *names: str) -> dict[str, dict[str, Any]]:
        """The same of several records, in their order."""
        text = self.vsctl("--format=json", f"--columns={','.join(names)}", "list", table, *records)
        found = json.loads(text)
        return {
            record: {heading: _plain(value) for heading, value in zip(found["headings"], row, strict=True)}
            for record, row in zip(records, found["data"], strict=True)
        }

    def _run(self, tool: str, *arguments: str) -> str:
        argv = [self.installation.tool(tool), *arguments]
        return self.host.run(argv, COMMAND_TIMEOUT_S, env=self.environment).stdout


def _plain(value: Any) -> Any:
    match value:
        case ["map", pairs]:
            return {key: _plain(item) for key, item in pairs}
        case ["set", items]:
            return [_plain(item) for item in items]
        case _:
            return value


#: Severity and text of a log line; ovs-appctl(8), section Logging Commands: time|number|module|severity|message.
LOG_LINE = re.compile(r"^[^|]+\|\d+\|(?P<module>[^|]+)\|(?P<severity>EMER|ERR|WARN|INFO|DBG)\|(?P<message>.*)$")


def _said(label: str, default: float = 0) -> Any:
    """What `pmd-stats-show` calls it."""
    return field(default=default, metadata={"label": label})


@dataclass
class PmdStatistics:
    """What `pmd-stats-show` says of one PMD thread since `pmd-stats-clear`; ovs-vswitchd(8)."""

    packets_received: int = _said("packets received")
    recirculations: int = _said("packet recirculations")
    emc_hits: int = _said("emc hits")
    smc_hits: int = _said("smc hits")
    megaflow_hits: int = _said("megaflow hits")
    upcalls: int = _said("miss with success upcall")
    failed_upcalls: int = _said("miss with failed upcall")
    packets_per_output_batch: float = _said("avg. packets per output batch", 0.0)
    idle_cycles: int = _said("idle cycles")
    processing_cycles: int = _said("processing cycles")

    @property
    def processing_percent(self) -> float:
        cycles = self.idle_cycles + self.processing_cycles
        return 100 * self.processing_cycles / cycles if cycles else 0.0

    @property
    def cycles_per_packet(self) -> float:
        """Processing cycles per packet received; idle polling is not in it."""
        return self.processing_cycles / self.packets_received if self.packets_received else 0.0

    def as_record(self) -> dict[str, Any]:
        ratios = {"processing_percent": self.processing_percent, "cycles_per_packet": self.cycles_per_packet}
        return {**asdict(self), **ratios}


@dataclass
class PortCounters:
    """What `dump-ports` says of one port: packets, and every counter of lost ones by its name."""

    rx_packets: int = 0
    tx_packets: int = 0
    drops: dict[str, int] = field(default_factory=dict)


def _by_pmd(text: str) -> dict[int, str]:
    """CPU of each PMD thread -> the lines below its own; those of the main thread are left out."""
    found = re.findall(r"^pmd thread numa_id -?\d+ core_id (\d+):\n((?:[ \t].*\n?)*)", text, re.MULTILINE)
    return {int(core): lines for core, lines in found}


def parse_rxq_map(text: str) -> dict[int, list[tuple[str, int]]]:
    """CPU of each PMD thread -> (port, receive queue) that it polls, from `dpif-netdev/pmd-rxq-show`."""
    queue = re.compile(r"^\s+port:\s+(\S+)\s+queue-id:\s+(\d+)", re.MULTILINE)
    return {core: [(port, int(number)) for port, number in queue.findall(said)] for core, said in _by_pmd(text).items()}


def parse_pmd_statistics(text: str) -> dict[int, PmdStatistics]:
    """CPU of each PMD thread -> its statistics, from `dpif-netdev/pmd-stats-show`."""
    labels = {each.metadata["label"]: each.name for each in fields(PmdStatistics)}
    found = {}
    for core, lines in _by_pmd(text).items():
        statistics = found[core] = PmdStatistics()
        for label, number in re.findall(r"^\s+([^:\n]+):\s+([\d.]+)", lines, re.MULTILINE):
            if label in labels:
                setattr(statistics, labels[label], float(number) if "." in number else int(number))
    return found


def parse_cycle_rate(text: str) -> float | None:
    """Cycles per second that a PMD thread counts, from `dpif-netdev/pmd-perf-show`; None when it does not tell. Both
    the cycles and the time are OVS' own, so that it does not matter how long the command took. A PMD thread that was
    stopped counts backwards, which looks like 10^18 a second: that tells nothing."""
    seconds = re.search(r"^Measurement duration: ([\d.]+) s", text, re.MULTILINE)
    cycles = re.search(r"^  - Used TSC cycles: +(\d+)", text, re.MULTILINE)
    rate = int(cycles[1]) / float(seconds[1]) if seconds and cycles and float(seconds[1]) else None
    return rate if rate and rate < 1e11 else None  # no CPU counts so many


def parse_datapath_flows(text: str) -> int:
    """Flows of all datapaths, from `upcall/show`."""
    return sum(int(count) for count in re.findall(r"^\s*flows\s*: \(current (\d+)\)", text, re.MULTILINE))


def parse_bond_members(text: str) -> dict[str, bool]:
    """Member of a bond -> whether it is in use, from `bond/show`."""
    return {match[1]: match[2] == "enabled" for match in re.finditer(r"^member (\S+): (\w+)", text, re.MULTILINE)}


def parse_port_options(text: str) -> dict[str, dict[str, str]]:
    """Port -> what its device is configured to, from `dpif/show` (`configured_rx_queues`, …)."""
    ports = {}
    for match in re.finditer(r"^\s+(\S+) \d+/\d+: \(\S+?(?:: ([^)]*))?\)$", text, re.MULTILINE):
        ports[match[1]] = dict(item.split("=", 1) for item in (match[2] or "").split(", ") if "=" in item)
    return ports


def parse_ports(text: str) -> dict[int, PortCounters]:
    """OpenFlow port number -> counters, from `ovs-ofctl -O OpenFlow14 dump-ports` (custom statistics included)."""
    ports: dict[int, PortCounters] = {}
    for block in re.split(r"^  port +", text, flags=re.MULTILINE)[1:]:
        number, _, rest = block.partition(":")
        if not number.isdigit():
            continue  # LOCAL
        rx, _, tx = rest.partition("tx pkts=")
        counters = PortCounters(_count(r"rx pkts=(\d+)", rx), _count(r"^(\d+)", tx))
        custom = re.findall(r"(\w+)=(\d+)", tx.partition("CUSTOM Statistics")[2])
        counters.drops = {name: int(value) for name, value in custom if _is_loss(name)}
        if not custom:  # else these two are sums of those
            counters.drops = {"rx_dropped": _count(r"drop=(\d+)", rx), "tx_dropped": _count(r"drop=(\d+)", tx)}
        ports[int(number)] = counters
    return ports


def parse_zone_timeouts(text: str) -> dict[int, dict[str, int]]:
    """Zone -> timeout policy in seconds, from `ovs-vsctl list-zone-tp`."""
    return {
        int(match[1]): {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", match[2])}
        for match in re.finditer(r"^Zone:(\d+), Timeout Policies:(.*)$", text, re.MULTILINE)
    }


def _count(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def _is_loss(name: str) -> bool:
    """Counters of netdev-dpdk and of DPDK's ethdev that count lost packets; those of single queues repeat them."""
    return not re.match(r"[rt]x_q\d+_", name) and bool(re.search(r"drops?$|missed|errors$", name))


def cpu_use(statistics: Collection[PmdStatistics], cycles_per_second: float | None) -> CpuUse | None:
    """CPU use from the `statistics` of all PMD threads; None when they have received no packet.

    A PMD thread polls without end: of its CPU it uses the share of the cycles in which a poll found packets. The time
    for a packet needs the rate at which cycles are counted; None where it is not known."""
    packets = sum(pmd.packets_received for pmd in statistics)
    if not packets:
        return None
    cycles = sum(pmd.processing_cycles for pmd in statistics) / packets
    busy = sum(pmd.processing_percent for pmd in statistics) / 100
    each_ns = cycles / cycles_per_second * 1e9 if cycles_per_second else None
    return CpuUse(busy, each_ns, "PMD cycles", hertz=cycles_per_second, cpus=len(statistics))


def look_ups(statistics: Collection[PmdStatistics], datapath_flows: int) -> LookUps:
    """Where packets were found, summed over the PMD threads."""
    counted = ("recirculations", "emc_hits", "smc_hits", "megaflow_hits", "upcalls", "failed_upcalls")
    sums = {name: sum(getattr(pmd, name) for pmd in statistics) for name in counted}
    return LookUps(sum(pmd.packets_received for pmd in statistics), **sums, datapath_flows=datapath_flows)


def running_facts(control: OvsControl) -> dict[str, Any]:
    """Its settings, which PMD thread polls which queue, and what each of them has done."""
    queues = parse_rxq_map(control.appctl("dpif-netdev/pmd-rxq-show"))
    return {
        "other_config": control.other_config(),
        "rxq_map": {str(cpu): [f"{port}/{queue}" for port, queue in polled] for cpu, polled in queues.items()},
        "pmd": {str(cpu): pmd.as_record() for cpu, pmd in control.pmds().items()},
    }
