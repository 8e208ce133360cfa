"""The facts of a machine for the record and the doctor, the CPU placement of a measurement, and the doctor's rows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ctbench.base.errors import CtbenchError
from ctbench.hosts.base import Host
from ctbench.hosts.config import SshConfig
from ctbench.hosts.limits import NO_LIMITS, Limits, read_limits

#: Files of proc(5) and sysfs that hold the facts.
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
STATUS = "/proc/self/status"
OS_RELEASE = "/etc/os-release"
#: Another one at each boot; random(4).
BOOT = "/proc/sys/kernel/random/boot_id"
VULNERABILITIES = f"{CPU}/vulnerabilities"
GOVERNOR = f"{CPU}/cpu0/cpufreq/scaling_governor"
HUGEPAGES = "/sys/kernel/mm/hugepages"
TRANSPARENT_HUGEPAGES = "/sys/kernel/mm/transparent_hugepage"


@dataclass(frozen=True)
class Hugepages:
    """Hugepages of one size: kB each, how many the administrator reserved, and how many of these are free."""

    size_kb: int
    total: int
    free: int


@dataclass(frozen=True)
class Machine:
    """The facts of a machine that a record holds."""

    cpu_model: str
    #: CPUs that a process started through the host may use (sched_getaffinity(2)).
    usable_cpus: tuple[int, ...]
    #: Hardware threads of each core, one group per core, among the usable CPUs.
    cores: tuple[tuple[int, ...], ...]
    #: CPUs of each NUMA node.
    numa: dict[int, tuple[int, ...]]
    kernel: str
    distribution: str
    #: The hypervisor, or `none`.
    virtualisation: str
    #: Vulnerability -> what the kernel does about it.
    mitigations: dict[str, str]
    #: Frequency governor of CPU 0; `none` where the guest of a hypervisor has none.
    governor: str
    hugepages: tuple[Hugepages, ...]
    #: Transparent hugepages: setting -> the value in force.
    transparent_hugepages: dict[str, str]
    #: Of the control group that its processes are in.
    limits: Limits = NO_LIMITS
    #: Vendor, family and model of its CPU, which tell kinds apart that have one name in a virtual machine:
    #: `AuthenticAMD family 26 model 2`; empty where lscpu(1) does not tell all three.
    cpu_kind: str = ""

    @property
    def limited(self) -> str:
        """A clause on the limits of the machine's control group, for a message about a shortage; empty without any."""
        return f", and its control group has {self.limits}" if self.limits != NO_LIMITS else ""

    def nodes_of(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """Return the NUMA nodes that have any of these CPUs; node 0 where none is known to."""
        wanted = set(cpus)
        return tuple(sorted(node for node, its in self.numa.items() if wanted.intersection(its))) or (0,)

    def as_record(self) -> dict[str, Any]:
        """Return the facts as JSON can hold them."""
        return {**asdict(self), "numa": {str(node): cpus for node, cpus in self.numa.items()}}


@dataclass(frozen=True)
class Placement:
    """The CPUs of the generator, of the PMD threads and of the DUT's other threads. Generator and PMD threads share
    none, unless `oversubscribed`."""

    generator: tuple[int, ...]
    #: CPUs of the PMD threads; with `oversubscribed` the CPUs that OVS is made to believe in.
    pmd: tuple[int, ...]
    #: CPUs of the DUT's other threads.
    housekeeping: tuple[int, ...]
    #: More threads than CPUs, for functional tests: rates of such a run are not measured.
    oversubscribed: bool = False

    @property
    def of_links(self) -> tuple[int, ...]:
        """CPUs for the work that a network card would do itself: those of `housekeeping` without a PMD thread, else
        those of the generator, else all of `housekeeping`."""
        return tuple(cpu for cpu in self.housekeeping if cpu not in self.pmd) or self.generator or self.housekeeping

    @property
    def pmd_mask(self) -> str:
        """Value of `other_config:pmd-cpu-mask`, ovs-vswitchd.conf.db(5)."""
        return hex(sum(1 << cpu for cpu in self.pmd))


def read_machine(host: Host) -> Machine:
    """Read the facts through `host`; a fact that the kernel does not offer is left out or `none`."""
    lscpu = _fields(host.run(["lscpu"]).stdout)
    huge = [f"{TRANSPARENT_HUGEPAGES}/{name}" for name in ("enabled", "defrag", "shmem_enabled")]
    files = read_files(host, STATUS, OS_RELEASE, GOVERNOR, ISOLATED, *huge)
    usable = parse_cpu_list(_fields(files[STATUS])["Cpus_allowed_list"])
    if apart := files.get(ISOLATED, "").strip():  # they are for who asks for them, and may have them
        asked = host.run(["taskset", "-c", apart, "cat", STATUS], check=False).stdout
        usable = tuple(sorted({*usable, *parse_cpu_list(_fields(asked).get("Cpus_allowed_list", ""))}))
    release = _fields(files.get(OS_RELEASE, ""), "=")
    nodes = read_files(host, "-r", "--include=cpulist", NODE)
    siblings = read_files(host, *(f"{CPU}/cpu{cpu}/topology/thread_siblings_list" for cpu in usable))
    return Machine(
        cpu_model=lscpu.get("Model name", "unknown"),
        usable_cpus=usable,
        cores=_cores(usable, siblings.values()),
        numa={int(path.split("/")[-2][4:]): parse_cpu_list(text) for path, text in sorted(nodes.items())},
        kernel=host.run(["uname", "-r"]).stdout.strip(),
        distribution=release.get("PRETTY_NAME", "unknown").strip('"'),
        virtualisation=_hypervisor(lscpu),
        mitigations={Path(path).name: text for path, text in sorted(read_files(host, "-r", VULNERABILITIES).items())},
        governor=files.get(GOVERNOR, "none"),
        hugepages=read_hugepages(host),
        transparent_hugepages={Path(path).name: _chosen(files[path]) for path in huge if path in files},
        limits=read_limits(partial(read_files, host)),
        cpu_kind=_cpu_kind(lscpu),
    )


def _cpu_kind(lscpu: Mapping[str, str]) -> str:
    told = [lscpu.get(name, "") for name in ("Vendor ID", "CPU family", "Model")]
    return "{} family {} model {}".format(*told) if all(told) else ""


def _hypervisor(lscpu: Mapping[str, str]) -> str:
    """Return the hypervisor. lscpu(1) names some; of others it shows only the CPU's flag."""
    flagged = "hypervisor" in lscpu.get("Flags", "").split()
    return lscpu.get("Hypervisor vendor") or ("a hypervisor that lscpu does not know" if flagged else "none")


def read_hugepages(host: Host, node: int | None = None) -> tuple[Hugepages, ...]:
    """Return the hugepages of every size that the kernel offers, as they are now; those of a NUMA node where one is
    given, none where the kernel does not tell."""
    folder = _hugepages_of(node)
    files = read_files(host, "-r", folder)
    sizes = sorted({int(match[1]) for path in files if (match := re.search(r"/hugepages-(\d+)kB/", path))})
    return tuple(
        Hugepages(
            size,
            total=int(files[f"{folder}/hugepages-{size}kB/nr_hugepages"]),
            free=int(files[f"{folder}/hugepages-{size}kB/free_hugepages"]),
        )
        for size in sizes
    )


def _hugepages_of(node: int | None) -> str:
    return HUGEPAGES if node is None else f"{NODE}/node{node}/hugepages"


def pretended_numa(pmd_cpus: int) -> str:
    """Return the value of `ovs-vswitchd --dummy-numa`: CPUs, all of node 0, that OVS is made to believe in. There are
    at least as many as the largest published topology has."""
    return ",".join("0" * max(8, pmd_cpus))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs of a kernel list such as `0-3,8`; cpuset(7), List format."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def read_files(host: Host, *paths: str) -> dict[str, str]:
    """Return path -> content of the files that can be read and are not empty, by one command whatever their number.
    `paths` may hold options of grep(1) such as `-r`."""
    contents: dict[str, str] = {}
    # --null: a path of sysfs may have colons, as PCI addresses do.
    for line in host.run(["grep", "--null", "-H", "-s", "", *paths], check=False).stdout.splitlines():
        path, _, text = line.partition("\0")
        contents[path] = f"{contents[path]}\n{text}" if path in contents else text
    return contents


def _fields(text: str, separator: str = ":") -> dict[str, str]:
    return {key.strip(): value.strip() for key, _, value in (line.partition(separator) for line in text.splitlines())}


def _cores(usable: Sequence[int], siblings: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of usable CPUs that share a core, from the kernel's lists of siblings."""
    groups = {tuple(cpu for cpu in parse_cpu_list(text) if cpu in usable) for text in siblings}
    return tuple(sorted(groups)) or tuple((cpu,) for cpu in usable)


def _chosen(text: str) -> str:
    """Return the value in brackets of `always [madvise] never`."""
    match = re.search(r"\[(\S+)\]", text)
    return match[1] if match else text


def reserve_command(hugepages: Sequence[Hugepages], megabytes: int, node: int | None = None) -> str:
    """Return the command by which an administrator reserves `megabytes` of free hugepages, or why that cannot be. With
    a NUMA node, `hugepages` are its own; without one, the kernel spreads them over all nodes."""
    smallest = min(hugepages, key=lambda pages: pages.size_kb, default=None)
    if smallest is None:
        return "this kernel has no hugepages"
    in_use = smallest.total - smallest.free
    number = in_use + -(-megabytes * 1024 // smallest.size_kb)
    # Not vm.nr_hugepages: that is of the kernel's default size, which may be another one.
    return f"echo {number} >{_hugepages_of(node)}/hugepages-{smallest.size_kb}kB/nr_hugepages"


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
NF_CONNTRACK_BUCKETS = "/proc/sys/net/netfilter/nf_conntrack_buckets"
#: What the doctor reads on each host.
FILES = (ONLINE, ISOLATED, NOHZ_FULL, CGROUP_ISOLATED, CMDLINE, STAT, TUNED, NOIOMMU, NF_CONNTRACK_MAX,
         NF_CONNTRACK_BUCKETS)  # fmt: skip
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
        """True where DPDK drives the card, False where the kernel does."""
        return ":" in self.address


@dataclass(frozen=True)
class HostFacts:
    """The facts that the doctor read on a host."""

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
        """Return the kernel's interface of a card; empty where another driver has the card."""
        if not card.is_pci:
            return card.address
        # A virtio card is a device below the PCI device.
        place = re.compile(rf"{PCI}/{card.address}/(?:virtio\d+/)?net/([^/]+)")
        return next((found[1] for path in self.links if (found := place.fullmatch(path))), "")

    def device(self, card: Card) -> str:
        """Return the folder of the card's device in sysfs."""
        return f"{PCI}/{card.address}" if card.is_pci else f"{NET}/{card.address}/device"

    def mac(self, card: Card) -> str:
        """Return the MAC address of a card as the kernel shows it; empty where the kernel does not have the card."""
        interface = self.interface(card)
        return self.files.get(f"{NET}/{interface}/address", "") if interface else ""


@dataclass(frozen=True)
class Examined:
    """A host that the doctor examines."""

    host: Host
    #: How to get there; None for this machine.
    ssh: SshConfig | None
    facts: HostFacts


#: `unknown`: not known, or not needed here; nothing to be judged.
State = Literal["ok", "bad", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One row of the doctor: what it checked, what it found, and what fixes it."""

    state: State
    #: A few words, such as `hugepages`.
    what: str
    #: What was found, and for what is bad, what was expected.
    found: str
    #: The command that fixes it, or what to do in words; what is unknown may have an advice.
    remedy: str = ""


def ok(what: str, found: str) -> Finding:
    """Make a row of state `ok`."""
    return Finding("ok", what, found)


def bad(what: str, found: str, remedy: str) -> Finding:
    """Make a row of state `bad`."""
    return Finding("bad", what, found, remedy)


def refused(what: str, error: CtbenchError) -> Finding:
    """Make a row of state `bad` from an error, whose sentence ends in `with:` and the command that corrects it, if
    there is one."""
    said, _, command = str(error).rpartition(" with: ")
    return bad(what, said or command, command if said else "see the sentence")


def unknown(what: str, found: str, advice: str = "") -> Finding:
    """Make a row of state `unknown`. `advice`: an optional improvement."""
    return Finding("unknown", what, found, advice)


#: Words in /etc/os-release's PRETTY_NAME of distributions without grubby.
DEBIAN = ("Debian", "Ubuntu")


def is_debian(facts: HostFacts) -> bool:
    return any(name in facts.machine.distribution for name in DEBIAN)


def kernel_arguments(facts: HostFacts, arguments: str) -> str:
    """Return the command that adds arguments to the kernel's command line."""
    if is_debian(facts):
        return f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{arguments} /' /etc/default/grub && update-grub && reboot"
    return f'grubby --update-kernel=ALL --args="{arguments}" && reboot'


def install(facts: HostFacts, packages: Iterable[str]) -> str:
    """Return the command that installs packages, whose names are the same on nearly all distributions."""
    tool = "apt-get install" if is_debian(facts) else "dnf install"
    return f"{tool} {' '.join(sorted(set(packages)))}"


def cpu_ranges(cpus: Sequence[int]) -> str:
    """Return CPUs as the kernel writes them: `1-11,13`."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)
