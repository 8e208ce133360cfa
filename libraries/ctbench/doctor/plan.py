"""What a testbed file asks of each of its hosts."""

from dataclasses import dataclass

from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.port_config import InterfacePorts, PciPorts
from ctbench.dut.registry import DutConfig
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.connections import machine_of
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.config import TrexGeneratorConfig, TrexPort

#: What this machine is called in the table; as a host of the testbed file, its sandboxes included.
THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class Card:
    """A network card that the testbed file names."""

    #: `generator` or the type of the DUT, and which of its ports: `client`, `server` or `more`.
    owner: str
    side: str
    #: PCI address in full, or the name of the interface.
    address: str

    @property
    def is_pci(self) -> bool:
        """Whether DPDK drives it; else the kernel does."""
        return ":" in self.address


@dataclass(frozen=True)
class HostPlan:
    """What one host has to be able to do."""

    name: str
    #: How to get there; None for this machine.
    ssh: SshConfig | None
    duts: tuple[DutConfig, ...]
    #: TRex, where it runs here.
    trex: TrexGeneratorConfig | None
    #: Whether the software generator runs here.
    software: bool
    #: CPUs that receive and forward, that generate, that do the rest; empty where the file says `auto`.
    forwarding: tuple[int, ...]
    generating: tuple[int, ...]
    others: tuple[int, ...]
    cards: tuple[Card, ...]

    @property
    def roles(self) -> str:
        """What it is in the testbed, for the heading."""
        generator = ["TRex"] if self.trex else ["software generator"] if self.software else []
        return ", ".join([*(dut.type for dut in self.duts), *generator])

    @property
    def is_lab(self) -> bool:
        """Whether real network cards are measured here, not what a sandbox makes."""
        trex = self.trex is not None and self.trex.host != SANDBOX
        return trex or any(dut.host != SANDBOX for dut in self.duts)

    @property
    def ovs(self) -> OvsDpdkConfig | None:
        """The DUT that is an Open vSwitch, if it is here."""
        return next((dut for dut in self.duts if isinstance(dut, OvsDpdkConfig)), None)


def plan_hosts(testbed: TestbedConfig) -> list[HostPlan]:
    """The hosts that DUTs and the generator are on, DUTs first; sandboxes belong to this machine."""
    generator = testbed.generator
    trex = generator if generator.type == "trex" else None
    names = [_machine(dut.host) for dut in testbed.duts]
    names.append(_machine(trex.host) if trex else THIS_MACHINE)
    return [_plan(testbed, trex, name) for name in dict.fromkeys(names)]


def pci_address(text: str) -> str:
    """A PCI address in full; TRex takes `18:00.2` as well."""
    return text if text.count(":") == 2 else f"0000:{text}"


def _machine(host: str) -> str:
    machine = machine_of(host)
    return THIS_MACHINE if machine == LOCAL else machine


def _plan(testbed: TestbedConfig, trex: TrexGeneratorConfig | None, name: str) -> HostPlan:
    duts = tuple(dut for dut in testbed.duts if _machine(dut.host) == name)
    here = trex if trex and _machine(trex.host) == name else None
    software = trex is None and name == THIS_MACHINE
    cpus = testbed.cpus
    pmd = cpus.pmd if isinstance(cpus.pmd, dict) else {0: [] if cpus.pmd == "auto" else cpus.pmd}
    given = [] if cpus.generator == "auto" else cpus.generator
    rest = [] if cpus.housekeeping == "auto" or not duts else list(cpus.housekeeping)
    if here and here.cpus:  # master thread, latency thread, data plane threads
        rest, given = rest + here.cpus[:2], here.cpus[2:]
    return HostPlan(
        name=name,
        ssh=testbed.hosts.get(name),
        duts=duts,
        trex=here,
        software=software,
        forwarding=tuple(sorted({cpu for cpus in pmd.values() for cpu in cpus})) if duts else (),
        generating=tuple(given) if here or software else (),
        others=tuple(rest),
        cards=tuple([card for dut in duts for card in _dut_cards(dut)] + (_trex_cards(here) if here else [])),
    )


def _dut_cards(dut: DutConfig) -> list[Card]:
    ports = dut.ports
    if not isinstance(ports, PciPorts | InterfacePorts):
        return []
    more = ports.more if isinstance(ports, PciPorts) else []
    sides = [("client", ports.client), ("server", ports.server), *(("more", address) for address in more)]
    return [Card(dut.type, side, address) for side, address in sides]


def _trex_cards(trex: TrexGeneratorConfig) -> list[Card]:
    return [
        Card("generator", side, pci_address(port.interface) if ":" in port.interface else port.interface)
        for side, port in (("client", trex.client), ("server", trex.server_port))
        if _is_card(port) and trex.host != SANDBOX
    ]


def _is_card(port: TrexPort) -> bool:
    return bool(port.interface) and "--vdev" not in port.interface
