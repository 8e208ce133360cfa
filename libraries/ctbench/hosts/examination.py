"""What the doctor reads on a host and says of it, where kinds of DUT and of traffic source can use it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctbench.hosts.base import Host
from ctbench.hosts.config import SshConfig
from ctbench.hosts.machine import Machine

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
#: Owner of the traffic generator's cards.
GENERATOR = "generator"


@dataclass(frozen=True)
class Card:
    """A network card that the testbed file names."""

    #: `generator` (`GENERATOR`) or the kind of DUT, and which of its ports: `client`, `server` or `more`.
    owner: str
    side: str
    #: PCI address in full, or the name of the interface.
    address: str

    @property
    def is_pci(self) -> bool:
        """Whether DPDK drives it; else the kernel does."""
        return ":" in self.address


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
class Examined:
    """A host that is looked at."""

    host: Host
    #: How to get there; None for this machine.
    ssh: SshConfig | None
    facts: Facts


#: `unknown`: not known, or not needed here; nothing to be judged.
State = Literal["ok", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what was found, and what fixes it."""

    state: State
    #: A few words, such as `hugepages`.
    what: str
    #: What was found, and for what is bad, what was expected.
    found: str
    #: The command that fixes it, or what to do in words; what is unknown may have an advice.
    remedy: str = ""


def ok(what: str, found: str) -> Finding:
    """All is well."""
    return Finding("ok", what, found)


def bad(what: str, found: str, remedy: str) -> Finding:
    """Something has to be fixed."""
    return Finding("bad", what, found, remedy)


def unknown(what: str, found: str, advice: str = "") -> Finding:
    """Not known, or not needed; `advice` for those who want to do better."""
    return Finding("unknown", what, found, advice)


#: Words in /etc/os-release's PRETTY_NAME of distributions without grubby.
DEBIAN = ("Debian", "Ubuntu")


def kernel_arguments(facts: Facts, arguments: str) -> str:
    """The command that adds arguments to the kernel's command line."""
    if any(name in facts.machine.distribution for name in DEBIAN):
        return f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{arguments} /' /etc/default/grub && update-grub && reboot"
    return f'grubby --update-kernel=ALL --args="{arguments}" && reboot'


def install(facts: Facts, packages: Iterable[str]) -> str:
    """The command that installs packages, which are called the same nearly everywhere."""
    tool = "apt-get install" if any(name in facts.machine.distribution for name in DEBIAN) else "dnf install"
    return f"{tool} {' '.join(sorted(set(packages)))}"


def cpu_ranges(cpus: Sequence[int]) -> str:
    """CPUs as the kernel writes them: `1-11,13`."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)
