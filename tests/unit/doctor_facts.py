"""Made-up facts of hosts for the doctor's unit tests, after those of the 2022 article's lab."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctbench.base.yaml_files import load
from ctbench.doctor.site import HostPlan, Site, plan_hosts
from ctbench.hosts.base import Completed
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import CMDLINE, CPU, ISOLATED, NET, NODE, ONLINE, PCI, HostFacts, Hugepages, Machine
from ctbench.testbed.config import TestbedConfig

CARDS = ("0000:18:00.2", "0000:18:00.3")
#: 12 cores: CPU n and n+12 are the hyper-threads of one.
XEON = Machine(
    cpu_model="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", usable_cpus=(0, 12), cores=((0, 12),),
    numa={0: tuple(range(24))}, kernel="5.14.0", distribution="Red Hat Enterprise Linux 9.1 (Plow)",
    virtualisation="none", mitigations={}, governor="performance", hugepages=(Hugepages(1 << 20, 32, 32),),
    transparent_hugepages={},
)  # fmt: skip


def xeon_files() -> dict[str, str]:
    """What the kernel of the article's hosts shows once they are set up."""
    files = {
        ONLINE: "0-23",
        ISOLATED: "1-11,13-23",
        CMDLINE: "BOOT_IMAGE=/vmlinuz intel_iommu=on iommu=pt hugepagesz=1G hugepages=32",
        f"{NODE}/node0/hugepages/hugepages-1048576kB/nr_hugepages": "32",
        f"{NODE}/node0/hugepages/hugepages-1048576kB/free_hugepages": "32",
        f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages": "0",
        f"{NODE}/node0/hugepages/hugepages-2048kB/free_hugepages": "0",
    }
    for cpu in range(24):
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{cpu % 12},{cpu % 12 + 12}"
        files[f"{CPU}/cpufreq/policy{cpu}/scaling_governor"] = "performance"
        files[f"{CPU}/cpufreq/policy{cpu}/affected_cpus"] = str(cpu)
    return files | {f"{PCI}/{card}/numa_node": "0" for card in CARDS}


def vfio_links() -> dict[str, str]:
    """Both cards bound to vfio-pci, in IOMMU groups of their own."""
    links = {f"{PCI}/{card}/driver": "vfio-pci" for card in CARDS}
    return links | {f"{PCI}/{card}/iommu_group": str(40 + number) for number, card in enumerate(CARDS)}


def xeon_facts(
    machine: Mapping[str, Any] | None = None, files: Mapping[str, str] | None = None, **changes: Any
) -> HostFacts:
    """Facts of a host of the article, with changes."""
    made = HostFacts(replace(XEON, **(machine or {})), xeon_files() | dict(files or {}), vfio_links())
    return replace(made, **changes)


def kernels_card(
    facts: HostFacts, card: str, interface: str, mac: str, *, driver: str = "i40e", up: bool = True, below: str = ""
) -> HostFacts:
    """The same with a card in the kernel's hands. `below`: of a device below the PCI device, `virtio1/`."""
    links = {**facts.links, f"{PCI}/{card}/driver": driver, f"{PCI}/{card}/{below}net/{interface}": ""}
    files = {
        **facts.files,
        f"{NET}/{interface}/address": mac,
        f"{NET}/{interface}/carrier": "1" if up else "0",
        f"{NET}/{interface}/speed": "10000",
    }
    return replace(facts, links=links, files=files)


def example(**changes: Any) -> TestbedConfig:
    """The example testbed, with keys changed."""
    return TestbedConfig.model_validate(load("testbeds", "example-trex-xeon", TestbedConfig).model_dump() | changes)


def plans(testbed: TestbedConfig | None = None) -> dict[str, HostPlan]:
    """What is asked of each host, by its name."""
    return {plan.name: plan for plan in plan_hosts(testbed or example())}


class ReplayedHost(LocalHost):
    """A host that answers commands from a list: beginning of the command (or `read` and a path) -> its
    output; others fail without a word."""

    def __init__(self, answers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.answers = dict(answers or {})

    @property
    def name(self) -> str:
        return "dut"

    def _run(self, argv: Sequence[str], timeout: float, stdin: str, env: Mapping[str, str] | None) -> Completed:
        command = " ".join(argv)
        found = (output for beginning, output in self.answers.items() if command.startswith(beginning))
        output = next(found, None)
        return Completed(0 if output is not None else 1, output or "", "")

    def local_path(self, remote: str) -> Path:
        return Path("/nonexistent") / remote.lstrip("/")


def site(plan: HostPlan, facts: HostFacts | None = None, answers: Mapping[str, str] | None = None) -> Site:
    """A host as the doctor found it."""
    return Site(ReplayedHost(answers), plan.ssh, facts or xeon_facts(), plan)
