"""A host of the testbed as the doctor reads it: the demands of the testbed file, and the facts of the host."""

import time
from dataclasses import dataclass

from ctbench.dut.registry import KINDS, DutConfig
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX, SshConfig
from ctbench.hosts.connections import machine_of
from ctbench.hosts.local import SYSTEM_PATH
from ctbench.hosts.machine import CPU, FILES, NET, NODE, PCI, Card, Examined, HostFacts, read_files, read_machine
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.source import TrafficSource


@dataclass(frozen=True)
class HostPlan:
    """The demands of a testbed file on one host."""

    name: str
    #: How to get there; None for this machine.
    ssh: SshConfig | None
    duts: tuple[DutConfig, ...]
    #: The traffic generator, where it runs here.
    generator: TrafficSource | None
    #: CPUs that receive and forward, that generate, that do the rest; empty where the file says `auto`.
    forwarding: tuple[int, ...]
    generating: tuple[int, ...]
    others: tuple[int, ...]
    cards: tuple[Card, ...]

    @property
    def roles(self) -> str:
        """The roles of the host in the testbed, for the heading."""
        generator = [self.generator.title] if self.generator else []
        return ", ".join([*(dut.type for dut in self.duts), *generator])

    @property
    def generator_has_cards(self) -> bool:
        """True where a generator on this host sends through network cards."""
        return self.generator is not None and self.generator.has_cards

    @property
    def is_lab(self) -> bool:
        """True where this host measures real network cards, not the interfaces of a sandbox."""
        return self.generator_has_cards or any(dut.host != SANDBOX for dut in self.duts)

    @property
    def duts_poll(self) -> bool:
        """True where a DUT on this host has polling threads, each of which needs a CPU for itself."""
        return any(KINDS[dut.type].polls for dut in self.duts)

    @property
    def hugepages_mb(self) -> int:
        """The MiB of hugepages that the testbed file asks for on this host: one DUT is set up at a time."""
        generator = self.generator.hugepages_mb if self.generator else 0
        return generator + max((KINDS[dut.type].hugepages_mb(dut) for dut in self.duts), default=0)


def plan_hosts(testbed: TestbedConfig) -> list[HostPlan]:
    """Return the plans of the hosts with DUTs and with the generator, DUTs first; sandboxes belong to this machine."""
    names = [machine_of(host) for host in (*(dut.host for dut in testbed.duts), testbed.generator.host)]
    return [_plan(testbed, name) for name in dict.fromkeys(names)]


def _plan(testbed: TestbedConfig, name: str) -> HostPlan:
    duts = tuple(dut for dut in testbed.duts if machine_of(dut.host) == name)
    generator = testbed.generator if machine_of(testbed.generator.host) == name else None
    cpus = testbed.cpus
    given = () if cpus.generator == "auto" else tuple(cpus.generator)
    rest = () if cpus.housekeeping == "auto" or not duts else tuple(cpus.housekeeping)
    cards = [Card(dut.type, side, address) for dut in duts if dut.ports for side, address in dut.ports.cards]
    if generator:
        generating, others = generator.own_cpus
        rest, given = rest + others, generating if generating or others else given
        cards += generator.cards
    return HostPlan(
        name=name,
        ssh=testbed.hosts.get(name),
        duts=duts,
        generator=generator,
        forwarding=tuple(sorted(cpus.pmd_named)) if duts else (),
        generating=given if generator else (),
        others=rest,
        cards=tuple(cards),
    )


#: Below `CPU` and `NODE`: files of each CPU and of each NUMA node.
CPU_FILES = ("thread_siblings_list", "scaling_governor", "affected_cpus")
NODE_FILES = ("nr_hugepages", "free_hugepages")
#: Files of a PCI device, and of a network interface.
PCI_FILES = ("numa_node", "vendor")
NET_FILES = ("address", "carrier", "speed", "device/numa_node")


@dataclass(frozen=True)
class Site(Examined):
    """The facts of one host, with its plan."""

    plan: HostPlan


def read_site(host: Host, plan: HostPlan) -> Site:
    """Read what the checks judge, in a few commands. Raise `TestbedError` where the host cannot be reached."""
    machine = read_machine(host)
    links = _links(host, plan)
    facts = HostFacts(machine, links=links)
    interfaces = [name for card in plan.cards if (name := facts.interface(card))]
    paths = [f"{PCI}/{card.address}/{name}" for card in plan.cards if card.is_pci for name in PCI_FILES]
    paths += [f"{NET}/{interface}/{name}" for interface in interfaces for name in NET_FILES]
    before = time.time()
    seconds = float(host.run(["date", "+%s.%N"]).stdout)
    after = time.time()
    return Site(
        host,
        plan.ssh,
        HostFacts(
            machine,
            files=read_files(host, *FILES, *paths) | _tree(host, CPU, CPU_FILES) | _tree(host, NODE, NODE_FILES),
            links=links,
            programs=_programs(host),
            uid=int(host.run(["id", "-u"]).stdout),
            clock_ahead_s=seconds - (before + after) / 2,
            clock_exact_s=(after - before) / 2,
        ),
        plan,
    )


def _tree(host: Host, folder: str, names: tuple[str, ...]) -> dict[str, str]:
    return read_files(host, "-r", *(f"--include={name}" for name in names), folder)


def _links(host: Host, plan: HostPlan) -> dict[str, str]:
    """Return the drivers, IOMMU groups and interfaces of the cards, by path in sysfs."""
    folders = [f"{PCI}/{card.address}/" if card.is_pci else f"{NET}/{card.address}/device/" for card in plan.cards]
    if not folders:
        return {}
    found = host.run(["find", *folders, "-maxdepth", "3", "(", "-type", "l", "-o", "-path", "*/net/*", ")",
                      "-printf", "%p\\t%l\\n"], check=False)  # fmt: skip
    pairs = (line.partition("\t") for line in found.stdout.splitlines())
    return {path.replace("//", "/"): target.rsplit("/", 1)[-1] for path, _, target in pairs}


def _programs(host: Host) -> frozenset[str]:
    found = host.run(["find", "-H", *SYSTEM_PATH, "-maxdepth", "1", "-printf", "%f\\n"], check=False)
    return frozenset(found.stdout.split("\n"))
