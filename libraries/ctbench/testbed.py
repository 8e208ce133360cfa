"""The testbed: the object that holds a DUT and a traffic generator and joins them."""

from pathlib import Path
from typing import Any

from ctbench.dut.base import Dut, Ports, Topology
from ctbench.dut.cable import Cable
from ctbench.dut.linux import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut_config import LinuxConfig, MemifPorts, OvsDpdkConfig, VethPorts
from ctbench.errors import MissingResource, TestbedError
from ctbench.hosts.base import Host
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Machine, Placement, place, read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed_config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software.generator import SoftwareTrafficGenerator, largest_frame


class Testbed:
    """One DUT at a time and one generator. `apply` sets both up; `close` leaves nothing behind."""

    __test__ = False  # not a pytest class

    def __init__(self, config: TestbedConfig, output: Path) -> None:
        """Nothing is started before the first `apply`. Logs of the DUT go to `output`/dut."""
        self.config = config
        self._output = output
        self._machine: Machine | None = None
        #: One for each DUT: what a bridge leaves in a network namespace would slow a router down.
        self._hosts: list[Host] = []
        self._duts: dict[str, Dut] = {}
        self._generator: SoftwareTrafficGenerator | None = None
        self._joined: Dut | None = None
        #: The DUT that is set up, joined or not.
        self._standing: Dut | None = None

    @property
    def machine(self) -> Machine:
        """The machine that generates the traffic: of the local testbed, the DUT's too."""
        if self._machine is None:
            self._machine = read_machine(LocalHost())
        return self._machine

    @property
    def generator(self) -> SoftwareTrafficGenerator:
        """The traffic generator."""
        if self._generator is None:
            self._generator = SoftwareTrafficGenerator(self.placement(Topology()).generator)
        return self._generator

    @property
    def dut(self) -> Dut:
        """The DUT that was set up last."""
        if self._joined is None:
            raise TestbedError("No topology is applied yet.")
        return self._joined

    def placement(self, topology: Topology) -> Placement:
        """Who runs where: what the testbed file says, else what suits the machine. `MissingResource` when short."""
        cpus, shared = self.config.cpus, self.config.oversubscribe
        generator = None if cpus.generator == "auto" else tuple(cpus.generator)
        wanted = cpus.pmd_for(topology.pmd_cpus)
        if wanted == []:
            raise MissingResource(
                f"{topology.pmd_cpus} PMD CPUs are needed, and cpus.pmd of testbed {self.config.name} has no such list."
            )
        found = place(self.machine, topology.pmd_cpus, generator_cpus=len(generator or (0,)), oversubscribed=shared)
        if shared:
            return found
        return Placement(
            generator=generator or found.generator,
            pmd=tuple(wanted or found.pmd),
            housekeeping=found.housekeeping if cpus.housekeeping == "auto" else tuple(cpus.housekeeping),
        )

    def apply(self, topology: Topology, profile: ConnectionProfile | PacketProfile | None = None) -> None:
        """Set the DUT up as `topology` and join the generator to it, with buffers large enough for `profile`.

        Raises `MissingResource` when this testbed lacks what the topology needs, `TestbedError` when the DUT does
        not become what was asked for.
        """
        self._joined = None
        dut = self._dut(topology.datapath)
        if not isinstance(dut, Cable):  # which needs nothing that another DUT could take away
            self._make_way_for(dut)
        ports = dut.apply(topology)
        self._join(ports, largest_frame(profile) if profile else 1514)
        self._joined = dut

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the figures depend on: testbed file, DUT, generator, machine."""
        return {
            "testbed": self.config.model_dump(mode="json"),
            "dut": self._joined.snapshot() if self._joined else {},
            "generator": dict(self.generator.snapshot()),
            "machine": self.machine.as_record(),
        }

    def close(self) -> None:
        """Let go of everything. May be called twice."""
        if self._generator:
            self._generator.close()
        try:
            for dut in self._duts.values():
                dut.restore()
        finally:
            self._duts.clear()
            self._joined = self._standing = None
            while self._hosts:
                self._hosts.pop().close()

    def _make_way_for(self, dut: Dut) -> None:
        """Let another DUT go: its threads would take the CPUs that both are given."""
        if self._standing is not None and self._standing is not dut:
            self.generator.disconnect()
            self._standing.restore()
        self._standing = dut

    def _join(self, ports: Ports, frame_bytes: int) -> None:
        if ports.kind == "cable":
            self.generator.connect_cable(ports.rx_queues, ports.ring_size, frame_bytes)
            return
        if ports.kind == "memif":
            self.generator.connect(
                Path(ports.client), Path(ports.server), rx_queues=ports.rx_queues, tx_queues=ports.tx_queues,
                ring_size=ports.ring_size, frame_bytes=frame_bytes, more=ports.more,
            )  # fmt: skip
            return
        if ports.kind != "interface" or ports.open_socket is None:
            raise MissingResource(
                f"Testbed {self.config.name} has network cards as ports; the software traffic generator reaches only "
                "ports of kind memif and veth."
            )
        self.generator.connect_interfaces(
            ports.client, ports.server, open_socket=ports.open_socket, rx_queues=ports.rx_queues,
            rx_rings=ports.tx_queues, ring_size=ports.ring_size, frame_bytes=frame_bytes,
            client_mac=ports.client_mac, server_mac=ports.server_mac,
            client_next_hop=ports.client_next_hop, server_next_hop=ports.server_next_hop, cpus=ports.cpus,
        )  # fmt: skip

    def _dut(self, datapath: str) -> Dut:
        if datapath not in self._duts:
            self._duts[datapath] = self._new_dut(datapath)
        return self._duts[datapath]

    def _new_dut(self, datapath: str) -> Dut:
        if datapath == "cable":
            return Cable()
        for config in self.config.duts:
            if config.type == datapath:
                return self._linux(config) if isinstance(config, LinuxConfig) else self._ovs(config)
        known = ", ".join(config.type for config in self.config.duts)
        raise MissingResource(f"A DUT with datapath {datapath} is needed; testbed {self.config.name} has {known}.")

    def _new_host(self, kind: str) -> Host:
        self._hosts.append(Sandbox() if kind == "sandbox" else LocalHost())
        return self._hosts[-1]

    def _ovs(self, config: OvsDpdkConfig) -> Dut:
        prefix = config.ovs.prefix
        if not isinstance(config.ports, MemifPorts):
            raise MissingResource(f"OVS with ports of kind {config.ports.kind} is not there yet.")
        return OvsDpdkDut(
            self._new_host(config.host),
            self.machine,
            installation=OvsInstallation() if prefix == "distribution" else OvsInstallation(prefix=prefix),
            placement=self.placement,
            log_folder=self._output / "dut",
            memif_frames=config.ports.ring_size,
            memory_mb=config.memory_mb,
            hugepages=config.hugepages == "auto",
        )

    def _linux(self, config: LinuxConfig) -> Dut:
        new = LinuxRouterDut if config.type == "linux-router" else LinuxBridgeDut
        host, ports = self._new_host(config.host), config.ports
        if isinstance(ports, VethPorts):
            return new(host, self.machine, self.placement, frames=ports.ring_size)
        return new(host, self.machine, self.placement, interfaces=(ports.client, ports.server))
