"""A host of the testbed as the doctor found it: how to reach it, what is asked of it, what was read there."""

import time
from dataclasses import dataclass

from ctbench.doctor.plan import HostPlan
from ctbench.hosts.base import Host
from ctbench.hosts.examination.facts import (
    CGROUP_ISOLATED,
    CMDLINE,
    CPU,
    ISOLATED,
    NET,
    NF_CONNTRACK_MAX,
    NODE,
    NOHZ_FULL,
    NOIOMMU,
    ONLINE,
    PCI,
    STAT,
    TUNED,
    Examined,
    Facts,
)
from ctbench.hosts.machine import read_files, read_machine

FILES = (ONLINE, ISOLATED, NOHZ_FULL, CGROUP_ISOLATED, CMDLINE, STAT, TUNED, NOIOMMU, NF_CONNTRACK_MAX)
#: Below `CPU` and `NODE`: files of each CPU and of each NUMA node.
CPU_FILES = ("thread_siblings_list", "scaling_governor", "affected_cpus")
NODE_FILES = ("nr_hugepages", "free_hugepages")
#: Files of a PCI device, and of a network interface.
PCI_FILES = ("numa_node",)
NET_FILES = ("address", "carrier", "speed", "device/numa_node")
#: Where programs are, for who is not root too.
PROGRAM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True)
class Site:
    """One host of the testbed."""

    plan: HostPlan
    host: Host
    facts: Facts

    @property
    def examined(self) -> Examined:
        """The host for the rows of a kind of DUT or of traffic source."""
        return Examined(self.host, self.plan.ssh, self.facts)


def read_site(host: Host, plan: HostPlan) -> Site:
    """Read what the checks judge, in a few commands. `TestbedError` when the host cannot be reached."""
    machine = read_machine(host)
    links = _links(host, plan)
    facts = Facts(machine, links=links)
    interfaces = [name for card in plan.cards if (name := facts.interface(card))]
    paths = [f"{PCI}/{card.address}/{name}" for card in plan.cards if card.is_pci for name in PCI_FILES]
    paths += [f"{NET}/{interface}/{name}" for interface in interfaces for name in NET_FILES]
    before = time.time()
    seconds = float(host.run(["date", "+%s.%N"]).stdout)
    after = time.time()
    return Site(
        plan,
        host,
        Facts(
            machine,
            files=read_files(host, *FILES, *paths) | _tree(host, CPU, CPU_FILES) | _tree(host, NODE, NODE_FILES),
            links=links,
            programs=_programs(host),
            uid=int(host.run(["id", "-u"]).stdout),
            clock_ahead_s=seconds - (before + after) / 2,
            clock_exact_s=(after - before) / 2,
        ),
    )


def _tree(host: Host, folder: str, names: tuple[str, ...]) -> dict[str, str]:
    return read_files(host, "-r", *(f"--include={name}" for name in names), folder)


def _links(host: Host, plan: HostPlan) -> dict[str, str]:
    """Drivers, IOMMU groups and interfaces of the cards."""
    folders = [f"{PCI}/{card.address}/" if card.is_pci else f"{NET}/{card.address}/device/" for card in plan.cards]
    if not folders:
        return {}
    found = host.run(["find", *folders, "-maxdepth", "2", "(", "-type", "l", "-o", "-path", "*/net/*", ")",
                      "-printf", "%p\\t%l\\n"], check=False)  # fmt: skip
    pairs = (line.partition("\t") for line in found.stdout.splitlines())
    return {path.replace("//", "/"): target.rsplit("/", 1)[-1] for path, _, target in pairs}


def _programs(host: Host) -> frozenset[str]:
    found = host.run(["find", "-H", *PROGRAM_FOLDERS, "-maxdepth", "1", "-printf", "%f\\n"], check=False)
    return frozenset(found.stdout.split("\n"))
