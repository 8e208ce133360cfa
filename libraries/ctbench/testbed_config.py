"""The YAML model of a testbed: what the DUTs are, what generates the traffic, which CPUs each gets.

A further kind of DUT, port or generator is one more class with another `type` (`kind`) in the union below it.
"""

import re
from collections import Counter
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
        raise ValueError(f"{size} is no size of a ring.\n  Expected a power of two from 64 to 16384.")
    return size


def _check_interface(name: str) -> str:
    if not re.fullmatch(r"[^\s/]{1,15}", name):
        raise ValueError(f'{quoted(name)} is no name of a network interface.\n  Expected one such as "ens1f0".')
    return name


def _check_cpus(cpus: list[int]) -> list[int]:
    if not cpus or min(cpus) < 0 or len(set(cpus)) < len(cpus):
        raise ValueError(f"{cpus} is no list of CPUs.\n  Expected each CPU number once, for example [2, 3].")
    return cpus


RingSize = Annotated[int, AfterValidator(_check_ring_size)]
Interface = Annotated[str, AfterValidator(_check_interface)]
CpuList = Annotated[list[int], AfterValidator(_check_cpus)]


class OvsInstall(Settings):
    """Which Open vSwitch."""

    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: Annotated[str, AfterValidator(_check_prefix)]


class MemifPorts(Settings):
    """Two shared-memory ports: no NIC, no root."""

    kind: Literal["memif"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


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


class VethPorts(Settings):
    """Two veth pairs: no NIC, no root."""

    kind: Literal["veth"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


class InterfacePorts(Settings):
    """Two network cards of a lab's host."""

    kind: Literal["interfaces"]
    #: The interface towards the clients, and towards the servers.
    client: Interface
    server: Interface

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.client == self.server:
            raise ValueError(f"client and server are both {quoted(self.client)}.\n  Expected two interfaces.")
        return self


class LinuxConfig(Settings):
    """The Linux kernel as the DUT: as a router or as a bridge."""

    type: Literal["linux-router", "linux-bridge"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself, as root.
    host: Literal["sandbox", "local"]
    ports: Annotated[VethPorts | InterfacePorts, Field(discriminator="kind")]

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == "sandbox") != (self.ports.kind == "veth"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with veth, or local with interfaces."
            )
        return self


class SoftwareGeneratorConfig(Settings):
    """The software traffic generator of this repository."""

    type: Literal["software"]


DutConfig = Annotated[OvsDpdkConfig | LinuxConfig, Field(discriminator="type")]
GeneratorConfig = SoftwareGeneratorConfig


def _check_duts(duts: list[DutConfig]) -> list[DutConfig]:
    if not duts:
        raise ValueError("there is no DUT.\n  Expected at least one.")
    twice = [kind for kind, count in Counter(dut.type for dut in duts).items() if count > 1]
    if twice:
        raise ValueError(f"{quoted(twice[0])} stands twice.\n  Expected each type of DUT once.")
    return duts


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
    """A testbed: a traffic generator and one DUT or several, one of which is joined to it by two links at a time."""

    __test__ = False  # not a pytest class

    name: Name
    #: One sentence for the report.
    description: str = ""
    #: A topology's datapath says which it is for: its `type`.
    duts: Annotated[list[DutConfig], AfterValidator(_check_duts)]
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
