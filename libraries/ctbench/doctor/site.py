"""A host of the testbed as the doctor found it: how to reach it, what is asked of it, what was read there."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ctbench.doctor.plan import Card, HostPlan
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine, read_files, read_machine

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
PCI = "/sys/bus/pci/devices"
NET = "/sys/class/net"
#: CPUs that there are; that the scheduler leaves alone; that have no timer tick; isolated by cgroups.
ONLINE, ISOLATED, NOHZ_FULL = f"{CPU}/online", f"{CPU}/isolated", f"{CPU}/nohz_full"
CGROUP_ISOLATED = "/sys/fs/cgroup/cpuset.cpus.isolated"
CMDLINE, STAT = "/proc/cmdline", "/proc/stat"
#: Where tuned(8) keeps its profile.
TUNED = "/etc/tuned/active_profile"
NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
NF_CONNTRACK_MAX = "/proc/sys/net/netfilter/nf_conntrack_max"
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
class Facts:
    """What was read on a host."""

    machine: Machine
    #: Path -> content of the files that are there.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Symbolic link of a PCI device or an interface -> what it points to; a folder points nowhere.
    links: Mapping[str, str] = field(default_factory=dict)
    #: Names of the programs that are there.
    programs: frozenset[str] = frozenset()
    #: User ID that commands run with.
    uid: int = 0
    #: How far its clock is ahead of this machine's, and how exactly that is known, seconds.
    clock_ahead_s: float = 0.0
    clock_exact_s: float = 0.0

    def interface(self, card: Card) -> str:
        """The interface that the kernel has for a card; empty when another driver has it."""
        if not card.is_pci:
            return card.address
        folder = f"{PCI}/{card.address}/net/"
        return next((path.removeprefix(folder) for path in self.links if path.startswith(folder)), "")

    def device(self, card: Card) -> str:
        """Folder of the card's device in sysfs."""
        return f"{PCI}/{card.address}" if card.is_pci else f"{NET}/{card.address}/device"

    def mac(self, card: Card) -> str:
        """MAC address of a card as the kernel shows it; empty when the kernel does not have it."""
        interface = self.interface(card)
        return self.files.get(f"{NET}/{interface}/address", "") if interface else ""


@dataclass(frozen=True)
class Site:
    """One host of the testbed."""

    plan: HostPlan
    host: Host
    facts: Facts


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
