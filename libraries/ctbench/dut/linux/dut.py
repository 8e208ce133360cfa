"""The common part of a Linux router and a Linux bridge: links, CPUs, and the kernel's settings and counters."""

import re
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import chain
from typing import Any

from ctbench.base.errors import CtbenchError, MissingResource, TestbedError
from ctbench.base.network import own_macs
from ctbench.dut.abilities import Accounts, Done, FullSaid, TableEntry
from ctbench.dut.base import CpuUse, Dut, DutCounts, Ports, Problem, ask, differing, do_all
from ctbench.dut.linux import health as link_health
from ctbench.dut.linux.found import Found
from ctbench.dut.linux.links import SETTINGS, CardLinks, busy_cpus, describe, own_address, read_counters, unstack
from ctbench.dut.linux.netfilter import (
    ConntrackTable,
    LinuxConntrackKeys,
    Netfilter,
    Sysctls,
    findings,
    increase,
)
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.instance import FOLDER, OvsDaemons
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.rulesets import Ruleset, find_ruleset
from ctbench.dut.table import dump, read_accounts, read_entries
from ctbench.dut.topology import Topology
from ctbench.dut.veth import IpRoute, Links, VethLinks
from ctbench.hosts.base import Host
from ctbench.hosts.machine import BOOT, STAT, Machine, Placement, read_files
from ctbench.hosts.sandbox import Sandbox

#: Programs -> the package that has them (Debian, Ubuntu).
PROGRAMS = {"ip": "iproute2", "bridge": "iproute2", "ethtool": "ethtool", "nft": "nftables", "conntrack": "conntrack",
            "iptables-restore": "iptables", "sysctl": "procps"}  # fmt: skip
#: Seconds: see `LinuxDut.sweeps_within`.
_GC_BIAS_S = 5.0
#: Kernel settings of a DUT of either kind, as paths below /proc/sys, where the kernel has them: a bridge passes no
#: packet to iptables, and the kernel sends none of its own on new interfaces.
COMMON_SYSCTLS = {
    **{f"net/bridge/bridge-nf-call-{tool}": "0" for tool in ("iptables", "ip6tables", "arptables")},
    "net/ipv6/conf/default/disable_ipv6": "1",
}


def kernel_build(host: Host) -> str:
    """Return the release of a host's kernel, and when it was built."""
    return host.run(["uname", "-rv"]).stdout.strip()


class LinuxDut(Dut):
    """Base of the router and the bridge. The DUT is the host's own network namespace, and its devices are made again
    for each topology."""

    #: For the record, and in messages.
    kind = ""
    #: By nf_conntrack_core.c: GC_SCAN_INTERVAL_MAX.
    sweep_s = 60.0
    #: Families of rulesets that it knows.
    families: tuple[str, ...] = ()
    #: The topmost devices, client side first.
    _devices: tuple[str, ...] = ()

    def __init__(
        self,
        host: Host,
        machine: Machine,
        placement: Callable[[Topology], Placement],
        *,
        interfaces: tuple[str, ...] | None = None,
        card_ring: int | None = None,
        card_offloads: bool = True,
        frames: int = 16384,
        steer: bool = False,
        pairs: int = 1,
        macs: Sequence[tuple[str, str]] = (),
        conntrack: LinuxConntrackKeys | None = None,
    ) -> None:
        """`machine`: `read_machine(host)`. `placement`: returns the CPUs of a topology, or raises `MissingResource`.
        `interfaces`: a lab's network cards, client side first, with receive rings of `card_ring` frames (None:
        unchanged), and their offloads off unless `card_offloads`. None makes veth pairs for `pairs` pairs of ports,
        whose links hold `frames` frames towards the DUT; `steer`: for a generator that has no threads on the DUT's
        CPUs. `macs`: Ethernet addresses of the generator's ends, of each pair; none: its own of veth pairs.
        `conntrack`: the keys of a testbed file."""
        self._host = host
        self._machine = machine
        self.placement = placement
        self._conntrack = conntrack or LinuxConntrackKeys()
        self._frames = frames
        self._macs = tuple(chain(*(macs or map(own_macs, range(pairs)))))
        self._ip = IpRoute(host)
        self._found = Found()
        self._links: Links = (
            CardLinks(self._ip, self._found, interfaces, card_ring, offloads=card_offloads)
            if interfaces
            else VethLinks(self._ip, pairs=pairs, steer=steer)
        )
        self._sysctls = Sysctls(host, self._found)
        self._netfilter = Netfilter(host)
        self._table = ConntrackTable(host)
        self._versions: dict[str, str] = {}
        self._applied: tuple[Topology, Placement] | None = None
        self._asked_sysctls: dict[str, str] = {}
        #: Whether the host has anything of ours.
        self._touched = False
        #: The boot of the host (`BOOT`) in which that was set up.
        self._boot = ""
        self._start: link_health.LinkReading | None = None
        self._trial: link_health.LinkReading | None = None
        #: What `health` read last.
        self._last: link_health.LinkReading | None = None

    def apply(self, topology: Topology) -> Ports:
        placement = self._real_cpus(self.placement(topology))
        self._ruleset_of(topology)
        self._require_programs()
        boot = self._host.read(BOOT)
        if (not self._touched or boot != self._boot) and not any(self._links.peers):
            self._netfilter.require_none()
            if self._outlives_run:
                self._take_over()
        self._touched, self._boot = True, boot
        self._clear()
        try:
            self._set_sysctls(COMMON_SYSCTLS, where_known=True)
            self._links.make(topology.mtu, topology.rx_queues, placement.pmd)
            ipv6 = {f"net/ipv6/conf/{name}/disable_ipv6": "1" for name in self._links.interfaces}
            self._set_sysctls(ipv6, where_known=True)
            ports = self._configure(topology, placement)
            self._applied = (topology, placement)
            self.verify()
            self._table.flush()
            self._start = self._trial = self._read()
        except CtbenchError:
            with suppress(CtbenchError):  # what went wrong first says more
                self.restore()
            raise
        return ports

    def verify(self) -> None:
        """Read back the applied topology. Raise `TestbedError` with each difference, asked and found."""
        found = self._differences()
        if found:
            raise TestbedError(f"{self._host.name} is not set up as the topology asks: {'; '.join(found)}.")

    def flush_state(self) -> None:
        self._table.flush()

    def connections(self) -> int:
        return self._table.count()

    def fragments(self) -> int:
        """Return the IPv4 datagrams that are not complete, sockstat_seq_show in net/ipv4/proc.c."""
        found = re.search(r"^FRAG: inuse (\d+)", self._host.run(["cat", "/proc/net/sockstat"]).stdout, re.MULTILINE)
        return int(found[1]) if found else 0

    @property
    def shares_table(self) -> bool:
        """True: the namespaces of a kernel share one table."""
        return True

    def dump_connections(self) -> Done:
        return dump(self._host, ["conntrack", "-L"])

    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        return read_entries(self._host.run(["conntrack", "-L", *_of_zone(zone)]).stdout)

    def accounts(self) -> Accounts:
        return read_accounts(self._table.of_others())

    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        """Remove entries by conntrack(8)."""
        which = ["-D", *_of_zone(zone)] if entry or zone is not None else ["-F"]
        if entry:
            ends = {"p": entry.protocol, "s": entry.source, "d": entry.destination}
            ports = {"sport": entry.source_port, "dport": entry.destination_port}
            which += [word for name, value in ends.items() for word in (f"-{name}", value)]
            which += [f"--{name}={port}" for name, port in ports.items()]
        size, begun = self.connections(), time.monotonic()
        self._host.run(["conntrack", *which])
        return Done(time.monotonic() - begun, size)

    def table_memory(self) -> int | None:
        """Return the slabs that the kernel cannot reclaim, bytes. Any user may read their sum; only root, those of
        connections."""
        found = re.search(r"^SUnreclaim:\s+(\d+) kB", self._host.read("/proc/meminfo"), re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    def sweeps_within(self, timeout_s: float) -> float:
        """Return the seconds until gc_worker of nf_conntrack_core.c runs again: the mean of what the entries that it
        saw have left, their timeout at most. That mean begins with a hundred entries of 60 s, of which integer division
        leaves sqrt(100 x 60 s / HZ): 5 s with the usual 250 Hz."""
        return min(self.sweep_s, timeout_s + _GC_BIAS_S)

    def limit_now(self) -> int | None:
        return self._table.limit()

    def full_said(self) -> FullSaid:
        """Return the table's counters; the kernel's log is for its host's administrator."""
        counted = self._table.statistics()
        return FullSaid(counted.get("drop", 0), None, counted.get("early_drop", 0))

    def begin_trial(self) -> None:
        """Raise `TestbedError` where an interface is gone since the set-up: nothing tells of it later in the trial."""
        now = self._read()
        self._require_links(self._start or now, now)
        self._trial = now

    def health(self) -> list[Problem]:
        """Return the problems. Lost packets are warnings: a trial counts them as loss by itself."""
        if self._trial is None or self._applied is None:
            return [Problem("fatal", f"The {self.kind} is not set up.", code="not-set-up")]
        try:
            now = self._last = self._read()
        except TestbedError as error:
            return [Problem("fatal", f"The {self.kind} cannot be asked any more: {error}", code="unreachable")]
        problems = link_health.link_problems(self._trial, now)
        if problems:
            return problems
        _, placement = self._applied
        if not placement.oversubscribed:  # else nothing is measured anyway
            astray = link_health.placement_problem(
                self._trial, now, self._links.interfaces, placement.pmd, delivered=any(self._links.peers)
            )
            problems += [astray] if astray else []
        # Both ends of a veth pair may count the same packet, so the counts are not added.
        lost = ", ".join(f"{name} {count}" for name, count in link_health.new_drops(self._trial, now).items())
        problems += self._state_problems()
        if lost:
            problems.append(Problem("warning", f"Linux counted lost packets: {lost}.", code="lost-packets"))
        for text in findings(increase(self._trial.conntrack, now.conntrack)):
            problems.append(Problem("warning", text, code="lost-connections"))
        return problems

    def counts(self) -> DutCounts | None:
        if self._trial is None or self._last is None:
            return None
        return link_health.counted(self._trial, self._last, self._links.interfaces)

    def trouble(self) -> str:
        try:
            now = self._read()
        except TestbedError as error:
            return str(error)
        gone = link_health.link_problems(self._start, now) if self._start else []
        return gone[0].text if gone else ""

    def cpu_use(self) -> CpuUse | None:
        """Return the work of all CPUs of a lab's host, which has nothing else to do; None for veth pairs."""
        if self._trial is None or any(self._links.peers):
            return None
        now = self._read()
        self._require_links(self._trial, now)
        names = self._links.interfaces
        packets = sum(now.interfaces[name].rx_packets - self._trial.interfaces[name].rx_packets for name in names)
        seconds = now.at_s - self._trial.at_s
        busy = busy_cpus(self._trial.cpu_ticks, now.cpu_ticks, seconds)
        return CpuUse(busy, busy * seconds * 1e9 / packets if packets > 0 else None, "/proc/stat")

    def snapshot(self) -> dict[str, Any]:
        """Return the facts; without a set-up only those of the machine."""
        machine = {"kernel": self._machine.kernel, "machine": self._machine.as_record()}
        facts: dict[str, Any] = {"kind": self.kind, **machine, **self._versions}
        if self._applied is None or self._trial is None:
            return facts
        topology, placement = self._applied
        facts |= {"topology": topology.model_dump(), "placement": asdict(placement), "links": self._links.facts()}
        if trouble := self.trouble():
            return facts | {"trouble": trouble}
        now = self._read()
        received = link_health.received_since(self._trial.softnet, now.softnet)
        return facts | {
            "interfaces": describe(self._ip, {*self._links.interfaces, *self._tops()}),
            "sysctls": self._sysctls.read(self._asked_sysctls),
            "entries": self._table.count(),
            "received_on": {str(cpu): count for cpu, count in received.items()},
            **self._own_facts(),
        }

    def capture(self) -> dict[str, str]:
        return ask(self._host, link_health.QUESTIONS)

    # The kernel works in the time of what hands frames to it, so to pause it is up to the generator.

    def restore(self) -> None:
        if self._touched:
            self._clear()
            if self._outlives_run:
                self._netfilter.forget()
        self._touched = False

    @property
    def _outlives_run(self) -> bool:
        """True where rules and settings are a real host's, and stay there when a run is killed."""
        return not any(self._links.peers) and not isinstance(self._host, Sandbox)

    def _take_over(self) -> None:
        """End the Open vSwitch that a killed run left, whose PMD threads poll, and read what a killed run had found. Of
        that, cards of another testbed are left as they are, and those with an address: the host may use them now."""
        OvsDaemons(OvsControl(self._host, OvsInstallation(), FOLDER)).stop()
        self._unconfigure()  # the addresses of that run are none
        in_use = {link["ifname"] for link in self._ip.show("address", "show") if own_address(link)}
        self._found.read(self._host, set(self._links.interfaces) - in_use, SETTINGS.keys())

    def _ruleset_of(self, topology: Topology) -> Ruleset:
        """Return the topology's ruleset. Raise `ConfigError` with those of this DUT."""
        return find_ruleset(self.families, topology.ruleset, f"a {self.kind}")

    @abstractmethod
    def _configure(self, topology: Topology, placement: Placement) -> Ports:
        """Set up the topology on the links, which are down, and bring them up. Return the ports."""

    @abstractmethod
    def _unconfigure(self) -> None:
        """Remove those parts of `_configure` that exist."""

    def _own_facts(self) -> dict[str, Any]:
        return {}

    def _state_problems(self) -> list[Problem]:
        """Return problems of the table: connections that should not be tracked."""
        return []

    def _differences(self) -> list[str]:
        """Return one clause per difference, `what: asked …, found …`."""
        return differing(self._asked_sysctls, self._sysctls.read(self._asked_sysctls)) + self._links.differences()

    def _set_sysctls(self, values: Mapping[str, str], *, where_known: bool = False) -> None:
        """Set kernel settings, and remember them for the read-back; with `where_known`, except those that the kernel
        lacks."""
        found = self._sysctls.set(values)
        self._asked_sysctls |= {name: value for name, value in values.items() if name in found or not where_known}

    def _ports(self, topology: Topology, placement: Placement) -> Ports:
        return self._links.ports(topology, placement.pmd, len(placement.pmd), self._frames)

    def _real_cpus(self, placement: Placement) -> Placement:
        """Replace the pretended CPUs of an oversubscribed topology, which are for OVS alone, by CPUs of the machine."""
        if not placement.oversubscribed:
            return placement
        usable = self._machine.usable_cpus
        cpus = tuple(usable[index % len(usable)] for index in range(len(placement.pmd)))
        return Placement(placement.generator, cpus, placement.housekeeping, oversubscribed=True)

    def _require_programs(self) -> None:
        if self._versions:
            return
        found = self._host.run(["which", *PROGRAMS], check=False).stdout.split()
        there = {path.rpartition("/")[2] for path in found}
        missing = sorted({package for program, package in PROGRAMS.items() if program not in there})
        if missing:
            raise MissingResource(
                f"Programs of {', '.join(missing)} are not on {self._host.name}: run `./run setup`, or install them."
            )
        self._versions = {**self._netfilter.versions(), "program": kernel_build(self._host)}

    def _clear(self) -> None:
        """Remove what a topology set up. What cannot be removed leaves nothing else behind. Raise as `do_all`."""
        self._applied = self._start = self._trial = self._last = None
        self._asked_sysctls = {}
        do_all(
            (
                self._clear_rules,
                self._unconfigure,
                partial(unstack, self._ip),
                self._links.remove,
                self._sysctls.restore,
                partial(self._found.keep, self._host),
                self._table.flush,
            )
        )

    def _clear_rules(self) -> None:
        """Remove the rules. After a reboot they are the host's own: ours went with it."""
        if self._host.read(BOOT) == self._boot:
            self._netfilter.clear()

    def _read(self) -> link_health.LinkReading:
        files = read_files(self._host, STAT, link_health.SOFTNET)
        if len(files) < 2:
            raise TestbedError(f"{self._host.name}: of {STAT} and {link_health.SOFTNET} one cannot be read.")
        return link_health.LinkReading(
            read_counters(self._ip, self._links),
            link_health.parse_softnet(files[link_health.SOFTNET]),
            self._table.statistics(),
            tuple(map(int, files[STAT].splitlines()[0].split()[1:])),
            time.monotonic(),
        )

    def _require_links(self, before: link_health.LinkReading, now: link_health.LinkReading) -> None:
        if gone := link_health.link_problems(before, now):
            raise TestbedError(f"{self._host.name}: {gone[0].text}")

    def _tops(self) -> tuple[str, ...]:
        return self._devices


def _of_zone(zone: int | None) -> list[str]:
    """Return the words that tell conntrack(8) a zone; none for the whole table."""
    return [] if zone is None else ["-w", str(zone)]
