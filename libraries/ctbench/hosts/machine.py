"""What a machine is, for the record, and which of its CPUs do what in a measurement."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ctbench.base.errors import MissingResource
from ctbench.hosts.base import Host

#: Files of proc(5) and sysfs that hold the facts.
STATUS = "/proc/self/status"
OS_RELEASE = "/etc/os-release"
NODES = "/sys/devices/system/node"
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
HUGEPAGES = "/sys/kernel/mm/hugepages"
TRANSPARENT_HUGEPAGES = "/sys/kernel/mm/transparent_hugepage"
TOPOLOGY = "/sys/devices/system/cpu"
#: CPUs that `ovs-vswitchd --dummy-numa` pretends: as many as the largest published topology has PMD threads.
PRETENDED_CPUS = 8


@dataclass(frozen=True)
class Hugepages:
    """Hugepages of one size: kB each, how many the administrator reserved, and how many of them are free."""

    size_kb: int
    total: int
    free: int


@dataclass(frozen=True)
class Machine:
    """What the record says of a machine."""

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

    def as_record(self) -> dict[str, Any]:
        """The facts as JSON can hold them."""
        return {**asdict(self), "numa": {str(node): cpus for node, cpus in self.numa.items()}}


@dataclass(frozen=True)
class Placement:
    """Which CPUs do what. Generator and PMD threads share none, unless `oversubscribed`."""

    generator: tuple[int, ...]
    #: CPUs of the PMD threads; with `oversubscribed` the CPUs that OVS is made to believe in.
    pmd: tuple[int, ...]
    #: CPUs of the DUT's other threads.
    housekeeping: tuple[int, ...]
    #: More threads than CPUs, for functional tests: rates of such a run are not measured.
    oversubscribed: bool = False

    @property
    def pmd_mask(self) -> str:
        """`other_config:pmd-cpu-mask` of ovs-vswitchd.conf.db(5)."""
        return hex(sum(1 << cpu for cpu in self.pmd))


def read_machine(host: Host) -> Machine:
    """Collect the facts through `host`; what a kernel does not offer is left out or `none`."""
    lscpu = _fields(host.run(["lscpu"]).stdout)
    huge = [f"{TRANSPARENT_HUGEPAGES}/{name}" for name in ("enabled", "defrag", "shmem_enabled")]
    files = read_files(host, STATUS, OS_RELEASE, GOVERNOR, *huge)
    usable = parse_cpu_list(_fields(files[STATUS])["Cpus_allowed_list"])
    release = _fields(files.get(OS_RELEASE, ""), "=")
    nodes = read_files(host, "-r", "--include=cpulist", NODES)
    siblings = read_files(host, *(f"{TOPOLOGY}/cpu{cpu}/topology/thread_siblings_list" for cpu in usable))
    return Machine(
        cpu_model=lscpu.get("Model name", "unknown"),
        usable_cpus=usable,
        cores=_cores(usable, siblings.values()),
        numa={int(path.split("/")[-2][4:]): parse_cpu_list(text) for path, text in sorted(nodes.items())},
        kernel=host.run(["uname", "-r"]).stdout.strip(),
        distribution=release.get("PRETTY_NAME", "unknown").strip('"'),
        virtualisation=lscpu.get("Hypervisor vendor", "none"),
        mitigations={Path(path).name: text for path, text in sorted(read_files(host, "-r", VULNERABILITIES).items())},
        governor=files.get(GOVERNOR, "none"),
        hugepages=read_hugepages(host),
        transparent_hugepages={Path(path).name: _chosen(files[path]) for path in huge if path in files},
    )


def read_hugepages(host: Host) -> tuple[Hugepages, ...]:
    """Hugepages of every size that the kernel offers, as they are now."""
    files = read_files(host, "-r", HUGEPAGES)
    sizes = sorted({int(match[1]) for path in files if (match := re.search(r"/hugepages-(\d+)kB/", path))})
    return tuple(
        Hugepages(
            size,
            total=int(files[f"{HUGEPAGES}/hugepages-{size}kB/nr_hugepages"]),
            free=int(files[f"{HUGEPAGES}/hugepages-{size}kB/free_hugepages"]),
        )
        for size in sizes
    )


def place(machine: Machine, pmd_cpus: int, *, generator_cpus: int = 1, oversubscribed: bool = False) -> Placement:
    """Give CPUs to the generator, to `pmd_cpus` PMD threads, and to the rest of the DUT's threads.

    The generator's CPUs do not depend on `pmd_cpus`. PMD threads get whole cores before they get the second
    thread of a core, and a thread of the generator's own core comes last. Housekeeping gets a CPU that is left over,
    else the generator's. `MissingResource` says what is needed and what is there; with `oversubscribed` all CPUs
    are shared by all, and OVS is made to believe in enough of them (`pretended_numa`).
    """
    usable = machine.usable_cpus
    if oversubscribed:
        return Placement(usable[:generator_cpus], tuple(range(pmd_cpus)), usable, oversubscribed=True)
    need = generator_cpus + pmd_cpus
    if need > len(usable):
        raise MissingResource(
            f"{pmd_cpus} PMD CPU(s) and {generator_cpus} for the traffic generator need {need} CPUs; "
            f"this machine has {len(usable)} usable."
        )
    generator = usable[:generator_cpus]
    siblings = {cpu for core in machine.cores if set(core) & set(generator) for cpu in core}
    second = {cpu for core in machine.cores for cpu in core[1:]}
    others = sorted(usable[generator_cpus:], key=lambda cpu: (cpu in siblings, cpu in second, cpu))
    pmd, left = others[:pmd_cpus], others[pmd_cpus:]
    return Placement(generator, tuple(sorted(pmd)), tuple(left[-1:]) or generator[:1])


def pretended_numa(pmd_cpus: int) -> str:
    """Value of `ovs-vswitchd --dummy-numa`: CPUs, all of node 0, that OVS is made to believe in."""
    return ",".join("0" * max(PRETENDED_CPUS, pmd_cpus))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPUs of a kernel list such as `0-3,8`; cpuset(7), List format."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def format_cpu_list(cpus: Sequence[int]) -> str:
    """CPUs as taskset(1) takes them."""
    return ",".join(map(str, cpus))


def read_files(host: Host, *paths: str) -> dict[str, str]:
    """Path -> content of the files that exist and can be read, in one command whatever their number. With `-r` and the
    like among `paths`, as grep(1) takes them."""
    contents: dict[str, str] = {}
    # --null: a path of sysfs may have colons, as PCI addresses do.
    for line in host.run(["grep", "--null", "-H", "-s", "", *paths], check=False).stdout.splitlines():
        path, _, text = line.partition("\0")
        contents[path] = f"{contents[path]}\n{text}" if path in contents else text
    return contents


def _fields(text: str, separator: str = ":") -> dict[str, str]:
    return {key.strip(): value.strip() for key, _, value in (line.partition(separator) for line in text.splitlines())}


def _cores(usable: Sequence[int], siblings: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Groups of usable CPUs that share a core, from the kernel's lists of siblings."""
    groups = {tuple(cpu for cpu in parse_cpu_list(text) if cpu in usable) for text in siblings}
    return tuple(sorted(groups)) or tuple((cpu,) for cpu in usable)


def _chosen(text: str) -> str:
    """The value in brackets of `always [madvise] never`."""
    match = re.search(r"\[(\S+)\]", text)
    return match[1] if match else text


def reserve_command(hugepages: Sequence[Hugepages], megabytes: int) -> str:
    """What an administrator types so that `megabytes` of hugepages are free, or why that cannot be."""
    smallest = min(hugepages, key=lambda pages: pages.size_kb, default=None)
    if smallest is None:
        return "this kernel has no hugepages"
    in_use = smallest.total - smallest.free
    return f"sysctl vm.nr_hugepages={in_use + -(-megabytes * 1024 // smallest.size_kb)}"
