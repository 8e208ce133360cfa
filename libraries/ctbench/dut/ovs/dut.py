"""OVS-DPDK as device under test: one ovs-vswitchd, which is set up for one topology after the other and read back."""

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import FLOWS_ALLOWED, Done, FullSaid, TableEntry, ThreadSamples
from ctbench.dut.base import CpuUse, Dut, DutCounts, LookUps, Ports, Problem, ask, wait_until
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.bridge import Bridge, await_bonds, differing_threads
from ctbench.dut.ovs.control import OvsControl, running_facts
from ctbench.dut.ovs.control_plane import OvsControlPlane, require_cpus, require_handlers
from ctbench.dut.ovs.dpdk import Devices, MemifDevices, Memory, choose_memory, dpdk_options, require_room
from ctbench.dut.ovs.fit import program_of, require_programs
from ctbench.dut.ovs.health import Counters, TrialStart, counted, questions
from ctbench.dut.ovs.instance import FOLDER, OvsDaemons, ProcessIdentity
from ctbench.dut.ovs.ruleset import BridgeRules, read_rules
from ctbench.dut.ovs.settings import TABLE, OvsInstallation
from ctbench.dut.ovs.threads import await_rest, keep_off_pmd_cpus, read_threads, sample_pmd
from ctbench.dut.ovs.zone_policies import ZonePolicies
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.table import dump, empty
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine, Placement, pretended_numa, read_hugepages

#: Device that the LOCAL port of a `netdev` bridge needs; only root can open it on some distributions.
TUN = "/dev/net/tun"
#: Seconds that OVS gets to take over a topology.
SETTLE_TIMEOUT_S = 15.0
#: Seconds that it takes to empty a table whose memory is given back for so long that it matters: some 800 000 entries.
#: After 660 000 nothing was lost. The two of a pair, with 200 000 each, take 0.6 s.
LARGE_FLUSH_S = 0.8
#: Seconds between two sweeps of the connection table, where a release does not tell: lib/conntrack.c until 3.1.
SWEEP_S = 20.0
#: Seconds that a killed OVS gets to give its memory back.
ENDING_TIMEOUT_S = 5.0


Answer = TypeVar("Answer")
Given = ParamSpec("Given")


def awake(method: Callable[Concatenate[Any, Given], Answer]) -> Callable[Concatenate[Any, Given], Answer]:
    """Let a paused DUT answer: resume it for the call of this method, then pause it again."""

    @wraps(method)
    def asked(self: Any, /, *given: Given.args, **named: Given.kwargs) -> Answer:
        paused = self.paused
        self.resume()
        try:
            return method(self, *given, **named)
        finally:
            if paused:
                self.pause()

    return asked


class OvsDpdkDut(Dut):
    """A private Open vSwitch: everything that it starts and writes is in `FOLDER` of the host. The system's Open
    vSwitch is never touched."""

    kind = "ovs-dpdk"
    families = ("ovs",)

    def __init__(
        self,
        host: Host,
        machine: Machine,
        placement: Callable[[Topology], Placement],
        *,
        installation: OvsInstallation | None = None,
        devices: Devices | None = None,
        log_folder: Path | None = None,
        memory_mb: int = 1024,
        hugepages: bool = True,
        options: Sequence[str] = (),
        dpdk_extra: Sequence[str] = (),
    ) -> None:
        """`machine`: `read_machine(host)`, read before any thread is pinned. `placement`: returns the CPUs of a
        topology, or raises `MissingResource`; an oversubscribed one runs any topology on any machine. `devices`: the
        devices of its ports; memif where none are given. `log_folder`: folder for copies of ovs-vswitchd's log.
        `options`, `dpdk_extra`: further words for it, and for DPDK."""
        self._host = host
        self._machine = machine
        self._installation = installation or OvsInstallation()
        self._devices: Devices = devices or MemifDevices(host, FOLDER)
        self._log_folder = log_folder
        self._memory_mb = memory_mb
        self._hugepages = hugepages
        self._options, self._dpdk_extra = tuple(options), tuple(dpdk_extra)
        self.placement = placement
        self.control = OvsControl(host, self._installation, FOLDER)
        self._instance = OvsDaemons(self.control, log_folder)
        self._bridge: Bridge | None = None
        self._started_for = ("", 0)
        self._memory: Memory | None = None
        self._version: dict[str, str] = {}
        self._applied: tuple[Topology, BridgeRules, Placement] | None = None
        self._trial: TrialStart | None = None
        #: What the ports had counted when `health` was asked last.
        self._ports: Counters = {}

    def apply(self, topology: Topology) -> Ports:
        """Set up `topology`. ovs-vswitchd keeps running from topology to topology, unless the MTU or the pretended NUMA
        changes."""
        self.resume()
        placement = self.placement(topology)
        ruleset = find_ruleset(self.families, topology.ruleset, "Open vSwitch")
        rules = read_rules(ruleset, topology.ports, pairs=self._devices.pairs)
        self._require(topology, rules)
        require_cpus(topology, placement)
        numa = pretended_numa(topology.cpus) if placement.oversubscribed else ""
        # An MTU has buffers of its own, and in memory that another one's have left full of holes OVS may fail to make
        # them ("Failed to create memory pool"). A fresh one also makes as many of them every time.
        fixed = (numa, topology.mtu)
        if self._bridge is None or fixed != self._started_for or self._instance.vswitchd() is None:
            self._bridge = self._start(placement, numa)
            self._started_for = fixed
        self._applied = None
        try:
            bridge = self._bridge
            bridge.configure(topology, placement, rules)
            self._applied = (topology, rules, placement)
            # OVS answers ovs-vsctl before its datapath has followed; what differs in the end is an error.
            if not wait_until(lambda: not bridge.differences(topology, placement, rules), SETTLE_TIMEOUT_S):
                self.verify()
            keep_off_pmd_cpus(self._host, pid := self._running().pid, placement)
            require_handlers(topology, read_threads(self._host, pid), self._version["version"])
            if differing_threads(self.control, pid, placement):
                self.verify()
            if rules.commits:
                self.flush_state()  # what another topology left would be taken for the probe's
                bridge.policies.check()
            self.control.ask(answers.PMDS)  # what is asked after trials is tried before the first one
            self.control.ask(answers.REVALIDATION)
            self._begin_trial()
        except TestbedError:
            self._bridge = None  # whatever state it is in: the next topology gets a fresh one
            with suppress(TestbedError):
                self._instance.save_log()
            raise
        return self._devices.ports(topology, rules, placement)

    @property
    def learns(self) -> bool:
        return self._applied is not None and self._applied[1].learns

    def verify(self) -> None:
        """Read back the applied topology. Raise `TestbedError` with each difference, asked and found."""
        if self._bridge is None or self._applied is None:
            raise TestbedError("No topology is applied.")
        topology, rules, placement = self._applied
        found = differing_threads(self.control, self._running().pid, placement)
        found += self._bridge.differences(topology, placement, rules)
        if found:
            raise TestbedError(f"OVS is not set up as the topology asks: {'; '.join(found)}.")

    @awake
    def begin_trial(self) -> None:
        """Clear the PMD threads' statistics. First wait until all links of bonds are in use: OVS notices the generator
        with a delay, and until then drops what comes."""
        if self._applied:
            await_bonds(self.control, self._applied[1].bonds, SETTLE_TIMEOUT_S)
        self._begin_trial()

    @awake
    def health(self) -> list[Problem]:
        """Return the problems since `begin_trial`. Lost packets are warnings: a trial counts them as loss by itself.
        Packets that found the generator's rings full are not the DUT's loss."""
        if self._trial is None:
            return [Problem("fatal", "ovs-vswitchd is not set up.", code="not-set-up")]
        placement = self._applied[2] if self._applied else None
        try:
            if not (trouble := self.trouble()):
                self._ports = self.control.ask(answers.PORTS, self.control.bridge)
                return self._trial.problems(placement, self._ports, self._devices.kind)
        except TestbedError:  # one that was killed while it was asked: the answer breaks off before its process ends
            if not wait_until(lambda: bool(self.trouble()), ENDING_TIMEOUT_S):
                raise
            trouble = self.trouble()
        with suppress(TestbedError):
            self._instance.save_log()
        return self._trial.fatal(trouble)

    def counts(self) -> DutCounts | None:
        if self._trial is None:
            return None
        return counted(self._trial.ports, self._ports, self._devices.kind)

    def trouble(self) -> str:
        return self._instance.trouble(self._devices.sockets(self._applied[1]) if self._applied else ())

    def crashed(self) -> bool:
        return self._instance.crashed()

    @awake
    def snapshot(self) -> dict[str, Any]:
        """Return the facts; a dead ovs-vswitchd lacks those that only a running one tells."""
        facts: dict[str, Any] = {
            "kind": self.kind,
            **self._version,
            **({"packages": list(packages.names)} if (packages := self._installation.packages) else {}),
            "vswitchd": self._installation.vswitchd_path,
            **({"options": list(self._options)} if self._options else {}),
            "machine": self._machine.as_record(),
            "memory": self._memory.as_record() if self._memory else {},
            "devices": self._devices.facts(),
        }
        if self._bridge is None or self._applied is None:
            return facts
        topology, _, placement = self._applied
        facts |= {
            "topology": topology.model_dump(),
            "datapath_type": self._bridge.datapath_type,
            "placement": asdict(placement),
            "conntrack": TABLE.of(topology).model_dump() | {"timeout_policy": self._bridge.policies.found},
        }
        if trouble := self.trouble():
            return facts | {"trouble": trouble}
        try:
            if limits := self._bridge.policies.limits():
                facts["conntrack"]["zone_limits"] = {str(zone): each for zone, each in limits.items()}
            pid = self._running().pid
            return facts | {"pid": pid, **running_facts(self.control)}
        except TestbedError as error:
            return facts | {"trouble": str(error)}

    @awake
    def capture(self) -> dict[str, str]:
        return ask(self._host, questions(self.control, self._instance.log), self.control.environment)

    @property
    def control_plane(self) -> OvsControlPlane:
        if self._bridge is None:
            raise TestbedError("No topology is applied.")
        return self._bridge.control_plane.of_process(self._running().pid)

    def restart(self) -> None:
        """Restart ovs-vswitchd as ovs-ctl(8) does, and load the flows again. Set again as well what else the database
        does not keep, or not for the datapath (zone_policies.py)."""
        if self._bridge is None or self._applied is None:
            raise TestbedError("No topology is applied.")
        topology, rules, placement = self._applied
        self._instance.restart()
        self._bridge.policies = ZonePolicies(self.control, self._bridge.datapath_type)
        self._bridge.configure(topology, placement, rules)
        keep_off_pmd_cpus(self._host, self._running().pid, placement)
        self._begin_trial()

    def restore(self) -> None:
        """End the daemons and remove their folder; keep their log."""
        self.resume()
        with suppress(TestbedError):  # the daemons end even where their log is lost
            self._instance.save_log()
        self._bridge = self._applied = self._trial = None
        self._instance.stop()
        self._devices.remove()

    @awake
    def flush_state(self) -> None:
        """Empty the table; after a large one wait until its memory is freed: a trial right after a table of 2.4 million
        entries lost half of its connections."""
        begun = time.monotonic()
        empty(lambda: self.control.ask(answers.FLUSH), self.connections)
        if time.monotonic() - begun > LARGE_FLUSH_S:
            await_rest(self._host, self._running().pid)

    @awake
    def connections(self) -> int:
        return self.control.ask(answers.CONNECTIONS)

    @awake
    def fragments(self) -> int:
        return self.control.ask(answers.FRAGMENTS)

    @awake
    def longest_timeout_s(self) -> float | None:
        return max((each.timeout_s for each in self.control.ask(answers.ENTRIES)), default=None)

    @awake
    def dump_connections(self) -> Done:
        """Print a line of dpctl/dump-conntrack for each entry that has not expired."""
        argv = [self._installation.tool("ovs-appctl"), "-t", self.control.vswitchd, answers.ENTRIES.words[0]]
        return dump(self._host, argv, self.control.environment)

    @awake
    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        return self.control.ask(answers.ENTRIES, *_of_zone(zone))

    @awake
    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        """Remove entries by dpctl/flush-conntrack, ovs-vswitchd(8)."""
        words = _of_zone(entry.zone if entry else zone)
        if entry:
            number = {"tcp": 6, "udp": 17}[entry.protocol]
            words += [
                f"ct_nw_src={entry.source},ct_nw_dst={entry.destination},ct_nw_proto={number},"
                f"ct_tp_src={entry.source_port},ct_tp_dst={entry.destination_port}"
            ]
        size, begun = self.connections(), time.monotonic()
        self.control.ask(answers.FLUSH, *words)
        return Done(time.monotonic() - begun, size)

    @awake
    def table_memory(self) -> int | None:
        """Return the anonymous memory of ovs-vswitchd, bytes, swapped or not: exact to the page, as /proc/PID/status is
        not on many CPUs."""
        pages = self._host.run(["cat", f"/proc/{self._running().pid}/smaps_rollup"], check=False).stdout
        found = re.findall(r"^(?:Anonymous|Swap):\s+(\d+) kB", pages, re.MULTILINE)
        return sum(map(int, found)) * 1024 if found else None

    @property
    @awake
    def sweep_s(self) -> float:
        return self.control.ask(answers.SWEEP) if self.control.offers(answers.SWEEP) else SWEEP_S

    @awake
    def limit_now(self) -> int | None:
        return self.control.ask(answers.TABLE_LIMIT)

    @awake
    def full_said(self) -> FullSaid:
        counted = self.control.ask(answers.TABLE_FULL)
        return FullSaid(counted, sum("table" in line and "full" in line for line in self._instance.logged_since()))

    def limit_table(self, entries: int) -> None:
        """Set the limit of the table; entries beyond it stay. Call it only while the DUT is not paused."""
        self.control.ask(answers.SET_TABLE_LIMIT, str(entries))

    @awake
    def cpu_use(self) -> CpuUse | None:
        """Return the CPU use; None for a dead OVS. Ask at the end of a trial: the time after it counts as idle."""
        if self._instance.vswitchd() is None:
            return None
        return answers.cpu_use(self.control.ask(answers.PMDS).values())

    @awake
    def look_ups(self) -> LookUps | None:
        """Return the flow look-ups; None for a dead OVS."""
        if self._instance.vswitchd() is None:
            return None
        return answers.look_ups(self.control.ask(answers.PMDS).values(), self.control.ask(answers.REVALIDATION).flows)

    @awake
    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Sample the PMD thread of the lowest CPU."""

        def cycles(cpu: int) -> tuple[int, int]:
            pmd = self.control.ask(answers.PMDS)[cpu]
            return pmd.processing_cycles, pmd.idle_cycles

        return sample_pmd(self._host, self._running().pid, seconds, cycles)

    @awake
    def forget_flows(self) -> None:
        self.control.ask(answers.FORGET_FLOWS)
        self.control.ask(answers.SET_FLOW_LIMIT, str(FLOWS_ALLOWED))

    @awake
    def upcalls(self) -> tuple[int, int]:
        pmds = self.control.ask(answers.PMDS).values()
        return sum(pmd.upcalls for pmd in pmds), sum(pmd.failed_upcalls for pmd in pmds)

    @property
    def paused(self) -> bool:
        return self._instance.paused.lasts

    def pause(self) -> None:
        """Stop ovs-vswitchd, whose PMD threads poll."""
        self._instance.pause()

    def resume(self) -> None:
        self._instance.paused.end()

    def _running(self) -> ProcessIdentity:
        process = self._instance.vswitchd()
        if process is None:
            raise TestbedError(f"ovs-vswitchd died: {self._instance.last_errors()}.")
        return process

    def _require(self, topology: Topology, rules: BridgeRules) -> None:
        if not self._version:
            if self._installation.packages:
                self._installation.packages.lay_over(self._host)
            self._version = require_programs(self._host, self._installation)
            self.control.release, self.control.kept_in = self._version["version"], self._log_folder
        self._devices.require(topology, rules, self._version["dpdk_version"])

    def _start(self, placement: Placement, numa: str) -> Bridge:
        self._instance.save_log()
        self._bridge = self._applied = self._trial = None
        # Permission bits do not tell: a sandbox's root has no rights on the host's devices. Copying nothing opens it.
        opened = self._host.run(["dd", f"if={TUN}", f"of={TUN}", "count=0", "conv=notrunc,nocreat"], check=False)
        kind = "netdev" if opened.exit_status == 0 else "dummy"
        options = ["--enable-dummy"] if kind == "dummy" else []
        options += [f"--dummy-numa={numa}"] if numa else []
        options += self._options
        other_config = {"pmd-cpu-mask": placement.pmd_mask, **self._dpdk_options(placement)}
        self._instance.start(other_config, options, placement)
        self._version["program"] = program_of(self._host, self._installation)
        return Bridge(self.control, kind, self._devices)

    def _dpdk_options(self, placement: Placement) -> dict[str, str]:
        """Return the options of the Open_vSwitch table that DPDK needs to start. Ports take buffers from the memory of
        their NUMA node: cards have to be where their PMD threads are, and devices that are none are of node 0
        (netdev-dpdk.c, SOCKET0)."""
        cards = self._devices.kind == "pci"
        nodes = self._machine.nodes_of(placement.pmd) if cards else (0,)
        of_nodes = {node: read_hugepages(self._host, node) for node in nodes}
        self._memory = choose_memory(
            read_hugepages(self._host), self._memory_mb, allowed=self._hugepages, of_nodes=of_nodes
        )
        require_room(self._host.name, self._host.read("/proc/meminfo"), self._memory)
        asked = dpdk_options(self._memory, nodes, cards=cards)
        return asked | {"dpdk-extra": " ".join([asked["dpdk-extra"], *self._dpdk_extra])}

    def _begin_trial(self) -> None:
        self._trial = TrialStart.now(
            self._instance, self._running(), self.control.ask(answers.PORTS, self.control.bridge)
        )
        self.control.ask(answers.CLEAR_PMDS)


def _of_zone(zone: int | None) -> list[str]:
    """Return the word that names a zone in commands of the connection table; none for all of it."""
    return [] if zone is None else [f"zone={zone}"]
