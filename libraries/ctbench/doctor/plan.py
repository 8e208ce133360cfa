"""What a testbed file asks of each of its hosts."""

from dataclasses import dataclass

from ctbench.dut.registry import KINDS, DutConfig
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.connections import machine_of
from ctbench.hosts.examination.facts import Card
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.registry import SOURCES, GeneratorConfig

#: What this machine is called in the table; as a host of the testbed file, its sandboxes included.
THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class HostPlan:
    """What one host has to be able to do."""

    name: str
    #: How to get there; None for this machine.
    ssh: SshConfig | None
    duts: tuple[DutConfig, ...]
    #: The traffic generator, where it runs here.
    generator: GeneratorConfig | None
    #: CPUs that receive and forward, that generate, that do the rest; empty where the file says `auto`.
    forwarding: tuple[int, ...]
    generating: tuple[int, ...]
    others: tuple[int, ...]
    cards: tuple[Card, ...]

    @property
    def roles(self) -> str:
        """What it is in the testbed, for the heading."""
        generator = [SOURCES[self.generator.type].title] if self.generator else []
        return ", ".join([*(dut.type for dut in self.duts), *generator])

    @property
    def generator_has_cards(self) -> bool:
        """Whether a generator here sends through network cards."""
        return self.generator is not None and SOURCES[self.generator.type].has_cards(self.generator)

    @property
    def generator_numa_node(self) -> int | None:
        """Where the testbed file says that the generator's cards are; None where it does not say, or that is not
        here."""
        return SOURCES[self.generator.type].numa_node(self.generator) if self.generator else None

    @property
    def is_lab(self) -> bool:
        """Whether real network cards are measured here, not what a sandbox makes."""
        return self.generator_has_cards or any(dut.host != SANDBOX for dut in self.duts)

    @property
    def duts_poll(self) -> bool:
        """Whether a DUT here has threads that poll, and want a CPU for themselves."""
        return any(KINDS[dut.type].polls for dut in self.duts)

    @property
    def hugepages_mb(self) -> int:
        """MiB of hugepages that the testbed file asks for on this host: one DUT is set up at a time."""
        generator = SOURCES[self.generator.type].hugepages_mb(self.generator) if self.generator else 0
        return generator + max((KINDS[dut.type].hugepages_mb(dut) for dut in self.duts), default=0)


def plan_hosts(testbed: TestbedConfig) -> list[HostPlan]:
    """The hosts that DUTs and the generator are on, DUTs first; sandboxes belong to this machine."""
    names = [_machine(host) for host in (*(dut.host for dut in testbed.duts), testbed.generator.host)]
    return [_plan(testbed, name) for name in dict.fromkeys(names)]


def _machine(host: str) -> str:
    machine = machine_of(host)
    return THIS_MACHINE if machine == LOCAL else machine


def _plan(testbed: TestbedConfig, name: str) -> HostPlan:
    duts = tuple(dut for dut in testbed.duts if _machine(dut.host) == name)
    generator = testbed.generator if _machine(testbed.generator.host) == name else None
    cpus = testbed.cpus
    pmd = cpus.pmd if isinstance(cpus.pmd, dict) else {0: [] if cpus.pmd == "auto" else cpus.pmd}
    given = () if cpus.generator == "auto" else tuple(cpus.generator)
    rest = () if cpus.housekeeping == "auto" or not duts else tuple(cpus.housekeeping)
    cards = [Card(dut.type, side, address) for dut in duts for side, address in dut.ports.cards]
    if generator:
        own = SOURCES[generator.type].own_cpus(generator)
        rest, given = rest + own.others, own.generating if own.generating or own.others else given
        cards += SOURCES[generator.type].cards(generator)
    return HostPlan(
        name=name,
        ssh=testbed.hosts.get(name),
        duts=duts,
        generator=generator,
        forwarding=tuple(sorted({cpu for cpus in pmd.values() for cpu in cpus})) if duts else (),
        generating=given if generator else (),
        others=rest,
        cards=tuple(cards),
    )
