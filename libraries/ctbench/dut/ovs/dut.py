"""OVS-DPDK as device under test: one ovs-vswitchd that is brought from topology to topology and read back."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.base import DutCounters, Ports, Problem
from ctbench.dut.capture import ask
from ctbench.dut.control_plane import Done
from ctbench.dut.ovs.answers import OvsAnswers
from ctbench.dut.ovs.bonds import await_bonds
from ctbench.dut.ovs.bridge import Bridge
from ctbench.dut.ovs.capture import questions
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.control_plane import OvsControlPlane
from ctbench.dut.ovs.counters import counters_since
from ctbench.dut.ovs.daemons import OvsDaemons
from ctbench.dut.ovs.facts import running_facts
from ctbench.dut.ovs.installation import read_versions, require_installation
from ctbench.dut.ovs.instance import POLL_S
from ctbench.dut.ovs.memory import Memory, dpdk_options, memory_on
from ctbench.dut.ovs.parse import PortCounters, parse_ports
from ctbench.dut.ovs.pause import awake
from ctbench.dut.ovs.ports import Devices, MemifDevices
from ctbench.dut.ovs.readback import differences, differing_threads
from ctbench.dut.ovs.revalidators import require_cpus
from ctbench.dut.ovs.ruleset import BridgeRules, read_rules
from ctbench.dut.ovs.settings import OvsConntrackSettings, OvsInstallation
from ctbench.dut.ovs.system import SystemOvs, system_control
from ctbench.dut.ovs.threads import keep_off_pmd_cpus
from ctbench.dut.ovs.trial_watch import TrialWatch
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine, Placement, pretended_numa

#: Folder on the host of an instance of our own, and of what we have besides the system's.
FOLDER, BESIDE_SYSTEM = "/run/ctbench/ovs", "/run/ctbench/ovs-system"
#: Device that the LOCAL port of a `netdev` bridge needs; only root can open it on some distributions.
TUN = "/dev/net/tun"
#: Seconds that OVS gets to take over a topology.
SETTLE_TIMEOUT_S = 15.0


class OvsDpdkDut(OvsAnswers):
    """Implements `ctbench.dut.base.Dut`. Everything that an instance of our own starts and writes is in `FOLDER` of the
    host; the system's is touched only where `system` says so."""

    kind = "ovs-dpdk"
    families = ("ovs",)

    def __init__(
        self,
        host: Host,
        machine: Machine,
        placement: Callable[[Topology], Placement],
        *,
        installation: OvsInstallation | None = None,
        conntrack: OvsConntrackSettings | None = None,
        devices: Devices | None = None,
        system: bool = False,
        rulesets: Path = RULESETS,
        log_folder: Path | None = None,
        memory_mb: int = 1024,
        hugepages: bool = True,
    ) -> None:
        """`machine` is `read_machine(host)`, read before anybody pins threads. `placement` says which CPUs a topology
        uses, or raises `MissingResource`; an oversubscribed one runs any topology on any machine. `devices`: what its
        ports are; memif where none are given. `system`: set up the instance that runs on the host, and put it back.
        ovs-vswitchd's log is copied to `log_folder`."""
        self._machine = machine
        self._installation = installation or OvsInstallation()
        self._conntrack = conntrack or OvsConntrackSettings()
        self._devices: Devices = devices or MemifDevices(host, FOLDER)
        self._system = system
        self._rulesets = rulesets
        self._log_folder = log_folder
        self._memory_mb = memory_mb
        self._hugepages = hugepages
        self.placement = placement
        own = OvsControl(host, self._installation, FOLDER)
        control = system_control(host, self._installation, BESIDE_SYSTEM) if system else own
        cards = self._devices.kind == "pci"
        super().__init__(host, control, SystemOvs(control, cards=cards) if system else OvsDaemons(own))
        self._bridge: Bridge | None = None
        self._started_for = ("", 0)
        self._memory: Memory | None = None
        self._version: dict[str, str] = {}
        self._applied: tuple[Topology, BridgeRules, Placement] | None = None
        self._watch = TrialWatch(host, self._instance, self._log)
        self._counted_from: dict[int, PortCounters] = {}

    def apply(self, topology: Topology) -> Ports:
        """See `Dut.apply`. ovs-vswitchd keeps running from topology to topology, unless the MTU is another one."""
        self.resume()
        placement = self.placement(topology)
        ruleset = find_ruleset(self.families, topology.ruleset, "Open vSwitch", self._rulesets)
        rules = read_rules(ruleset, topology.ports)
        self._require(topology, rules)
        require_cpus(topology, placement)
        numa = pretended_numa(topology.cpus) if placement.oversubscribed else ""
        # An MTU has buffers of its own, and in memory that another one's have left full of holes OVS may fail to make
        # them ("Failed to create memory pool"). A fresh one also makes as many of them every time.
        fixed = (numa, topology.mtu)
        if self._bridge is None or fixed != self._started_for or self._instance.vswitchd() is None:
            self._bridge = self._start(placement, numa)
            self._started_for, self._empty_memory = fixed, 0
        self._applied = None
        try:
            self._bridge.configure(topology, placement, rules)
            keep_off_pmd_cpus(self._host, self._running().pid, placement)
            self._applied = (topology, rules, placement)
            self._wait_until_settled()
            self._counted_from = self._read_ports()
            self._empty_memory = self._empty_memory or self._resident()
            self._begin_trial()
        except TestbedError:
            self._bridge = None  # whatever state it is in: the next topology gets a fresh one
            with suppress(TestbedError):
                self._save_log()
            raise
        return self._devices.ports(topology, rules, placement)

    def links(self) -> list[tuple[str, str]]:
        """How the generator reaches the links of the applied topology, client side first: a memif socket, an interface
        or a PCI address for each end. Rulesets with bonds have two links, all others one."""
        if self._applied is None:
            raise TestbedError("No topology is applied.")
        topology, rules, placement = self._applied
        ports = self._devices.ports(topology, rules, placement)
        return [(ports.client, ports.server), *ports.more]

    def verify(self) -> None:
        """Read back the applied topology; `TestbedError` names each difference, asked and found."""
        found = self._differences()
        if found:
            raise TestbedError(f"OVS is not set up as the topology asks: {'; '.join(found)}.")

    @awake
    def begin_trial(self) -> None:
        """See `Dut.begin_trial`; clears the PMD threads' statistics. Waits until all links of bonds are in use: OVS
        sees with a delay that the generator has come, and until then drops what comes."""
        if self._applied:
            await_bonds(self.control, self._applied[1].bonds, SETTLE_TIMEOUT_S)
        self._begin_trial()

    @awake
    def health(self) -> list[Problem]:
        """See `Dut.health`. Lost packets are warnings: a trial counts them as loss by itself. But those that found the
        generator's rings full are no loss of the DUT."""
        if not self._watch.has_begun:
            return [Problem("fatal", "ovs-vswitchd is not set up.")]
        if fatal := self._watch.fatal(self.trouble()):
            with suppress(TestbedError):
                self._save_log()
            return fatal
        placement = self._applied[2] if self._applied else None
        return self._watch.problems(placement, self._read_ports(), self._devices.kind)

    def trouble(self) -> str:
        """See `Dut.trouble`."""
        return self._instance.trouble(self._devices.sockets(self._applied[1]) if self._applied else ())

    @awake
    def counters(self) -> DutCounters:
        """See `Dut.counters`; immediate, not what ovs-vswitchd writes to its database every 5 s."""
        return counters_since(self._counted_from, self._read_ports())

    @awake
    def snapshot(self) -> dict[str, Any]:
        """See `Dut.snapshot`; without what only a running ovs-vswitchd can say when it is dead."""
        facts: dict[str, Any] = {
            "kind": self.kind,
            **self._version,
            "vswitchd": self._instance.binary,
            "system": self._system,
            "machine": self._machine.as_record(),
            "memory": self._memory.as_record() if self._memory else {"kind": "as OVS had it"},
            "devices": self._devices.facts(),
        }
        if self._bridge is None or self._applied is None:
            return facts
        topology, _, placement = self._applied
        facts |= {
            "topology": topology.model_dump(),
            "datapath_type": self._bridge.datapath_type,
            "placement": asdict(placement),
            "conntrack": self._conntrack.of(topology).model_dump(),
        }
        if trouble := self.trouble():
            return facts | {"trouble": trouble}
        try:
            return facts | {"pid": self._running().pid, **running_facts(self.control)}
        except TestbedError as error:
            return facts | {"trouble": str(error)}

    @awake
    def capture(self) -> dict[str, str]:
        """See `Dut.capture`."""
        return ask(self._host, questions(self.control, self._instance.log))

    @property
    def control_plane(self) -> OvsControlPlane:
        """See `ctbench.dut.control_plane.ControlPlaneDut`."""
        if self._bridge is None:
            raise TestbedError("No topology is applied.")
        return OvsControlPlane(self.control, self._bridge.idle_ports, self._running().pid)

    @awake
    def dump_connections(self) -> Done:
        """See `ctbench.dut.control_plane.DumpingDut`."""
        return self.control_plane.dump_connections()

    def restore(self) -> None:
        """See `Dut.restore`: the daemons end, their folder goes, their log is kept."""
        self.resume()
        with suppress(TestbedError):  # a lost log is no reason to leave the daemons
            self._save_log()
        self._bridge = self._applied = None
        self._watch.forget()
        self._instance.stop()
        self._devices.remove()

    def _require(self, topology: Topology, rules: BridgeRules) -> None:
        if not self._version:
            require_installation(self._host, self._installation)
            self._version = read_versions(self._host, self._instance.binary)
        self._devices.require(topology, rules, self._version["dpdk_version"])

    def _start(self, placement: Placement, numa: str) -> Bridge:
        if self._system and numa:
            raise MissingResource("CPUs can be shared (oversubscribe) only by an OVS of the run's own: manage: false.")
        self._save_log()
        self._bridge = self._applied = None
        self._watch.forget()
        kind = "netdev" if self._system or self._can_open(TUN) else "dummy"
        options = ["--enable-dummy"] if kind == "dummy" else []
        options += [f"--dummy-numa={numa}"] if numa else []
        other_config = {"pmd-cpu-mask": placement.pmd_mask, **self._dpdk_options()}
        self._instance.start(other_config, options, placement.housekeeping)
        bridge = Bridge(self.control, kind, self._conntrack, self._devices)
        bridge.create()
        return bridge

    def _dpdk_options(self) -> dict[str, str]:
        """Options of the Open_vSwitch table that DPDK needs to come up; none where it is up already and stays so."""
        self._memory = None
        if self._instance.keeps_dpdk():
            return {}
        self._memory = memory_on(self._host, self._memory_mb, hugepages=self._hugepages)
        return dpdk_options(self._memory, cards=self._devices.kind == "pci")

    def _can_open(self, device: str) -> bool:
        # Permission bits do not tell: a sandbox's root is nobody to the host's devices. Copying nothing opens it.
        argv = ["dd", f"if={device}", f"of={device}", "count=0", "conv=notrunc,nocreat"]
        return self._host.run(argv, check=False).exit_status == 0

    def _wait_until_settled(self) -> None:
        """OVS answers ovs-vsctl before its datapath has followed; what differs in the end is an error."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while self._differences():
            if time.monotonic() > deadline:
                self.verify()
            time.sleep(POLL_S)

    def _differences(self) -> list[str]:
        if self._bridge is None or self._applied is None:
            raise TestbedError("No topology is applied.")
        topology, rules, placement = self._applied
        found = differing_threads(self.control, self._running().pid, placement)
        return found + differences(self.control, self._bridge, topology, rules, placement, self._conntrack.of(topology))

    def _begin_trial(self) -> None:
        self._watch.begin(self._running(), self._read_ports())
        self.control.appctl("dpif-netdev/pmd-stats-clear")

    def _read_ports(self) -> dict[int, PortCounters]:
        return parse_ports(self.control.ofctl("-O", "OpenFlow14", "dump-ports", self.control.bridge))

    def _save_log(self) -> None:
        if self._log_folder:
            self._instance.save_log(self._log_folder)
