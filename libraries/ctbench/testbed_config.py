"""The YAML model of a testbed: what the DUT is, what generates the traffic, which CPUs each gets.

A further kind of DUT, port or generator is one more class with another `type` (`kind`), and the alias
below it becomes a union: `DutConfig = Annotated[OvsDpdkConfig | LinuxRouterConfig, Field(discriminator="type")]`.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ctbench.config import Name, Settings
from ctbench.units import quoted


def _check_prefix(prefix: str) -> str:
    if prefix != "distribution" and not prefix.startswith("/"):
        raise ValueError(
            f'{quoted(prefix)} is no installation of Open vSwitch.\n  Expected "distribution" or the absolute path '
            'that it was configured with (--prefix), for example "/opt/ovs-3.3".'
        )
    return prefix


def _check_ring_size(size: int) -> int:
    if size & (size - 1) or not 64 <= size <= 16384:
        raise ValueError(f"{size} is no size of a memif ring.\n  Expected a power of two from 64 to 16384.")
    return size


def _check_cpus(cpus: list[int]) -> list[int]:
    if not cpus or min(cpus) < 0 or len(set(cpus)) < len(cpus):
        raise ValueError(f"{cpus} is no list of CPUs.\n  Expected each CPU number once, for example [2, 3].")
    return cpus


CpuList = Annotated[list[int], AfterValidator(_check_cpus)]


class OvsInstall(Settings):
    """Which Open vSwitch."""

    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: Annotated[str, AfterValidator(_check_prefix)]


class MemifPorts(Settings):
    """Two shared-memory ports: no NIC, no root."""

    kind: Literal["memif"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: Annotated[int, AfterValidator(_check_ring_size)]


class OvsDpdkConfig(Settings):
    """Open vSwitch with DPDK as the DUT."""

    type: Literal["ovs-dpdk"]
    #: `sandbox`: namespaces of the run's own on this machine.
    host: Literal["sandbox"]
    ovs: OvsInstall
    ports: MemifPorts
    #: Memory of DPDK, MiB.
    memory_mb: int = Field(ge=256, le=65536)
    #: `auto`: hugepages that are free, else ordinary pages; `never`: ordinary pages.
    hugepages: Literal["auto", "never"]


class SoftwareGeneratorConfig(Settings):
    """The software traffic generator of this repository."""

    type: Literal["software"]


DutConfig = OvsDpdkConfig
GeneratorConfig = SoftwareGeneratorConfig


class CpuPlan(Settings):
    """Who runs where. `auto`: decided from the machine; the record says how."""

    generator: Literal["auto"] | CpuList
    #: A list: a topology with N PMD threads takes its first N. A mapping: a list for each number of PMD threads.
    pmd: Literal["auto"] | CpuList | dict[int, CpuList]
    #: Everything else of the DUT: the main thread, handlers, revalidators.
    housekeeping: Literal["auto"] | CpuList

    def pmd_for(self, count: int) -> list[int] | None:
        """CPUs for `count` PMD threads: None leaves the choice to the testbed, an empty list says that
        this testbed has none for that many."""
        if self.pmd == "auto":
            return None
        if isinstance(self.pmd, dict):
            return list(self.pmd.get(count, []))
        return self.pmd[:count] if len(self.pmd) >= count else []

    @model_validator(mode="after")
    def _counts_match(self) -> Self:
        for count, cpus in self.pmd.items() if isinstance(self.pmd, dict) else ():
            if len(cpus) != count:
                raise ValueError(
                    f"pmd.{count}: {cpus} are {len(cpus)} CPUs.\n  Expected as many as the key says: {count}."
                )
        return self


class TestbedConfig(Settings):
    """A testbed: a traffic generator and a DUT, joined by two links."""

    __test__ = False  # not a pytest class

    name: Name
    #: One sentence for the report.
    description: str = ""
    dut: DutConfig
    generator: GeneratorConfig
    cpus: CpuPlan
    #: Let CPUs be shared, to try a topology out that the machine is too small for. Nothing is measured then.
    oversubscribe: bool

    @model_validator(mode="after")
    def _generator_has_its_own_cpus(self) -> Self:
        pmd, generator = self.cpus.pmd, self.cpus.generator
        lists = list(pmd.values()) if isinstance(pmd, dict) else [pmd] if isinstance(pmd, list) else []
        used = {cpu for cpus in lists for cpu in cpus}
        shared = sorted(used.intersection(generator)) if isinstance(generator, list) else []
        if shared and not self.oversubscribe:
            raise ValueError(
                f"cpus: CPU {', '.join(str(cpu) for cpu in shared)} is given to the generator and to a PMD thread.\n"
                "  Expected CPUs of their own, or oversubscribe: true, with which nothing is measured."
            )
        return self
