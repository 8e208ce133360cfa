"""The YAML model of Open vSwitch as a DUT."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ctbench.base.identifiers import HostKey, PathText
from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.port_config import MemifPorts, PciPorts, VethPorts
from ctbench.hosts.config import SANDBOX


def _check_prefix(prefix: str) -> str:
    if prefix != "distribution" and not prefix.startswith("/"):
        raise ValueError(
            f'{quoted(prefix)} is no installation of Open vSwitch.\n  Expected "distribution" or the absolute path '
            'that it was configured with (--prefix), for example "/opt/ovs-3.3".'
        )
    return prefix


class OvsInstall(YamlModel):
    """Which Open vSwitch."""

    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: Annotated[PathText, AfterValidator(_check_prefix)]
    #: true: set up the instance that runs on the host already (the system's), and put back what it had afterwards.
    #: false: start a private instance next to it, which ends with the run.
    manage: bool = False


class OvsDpdkConfig(YamlModel):
    """Open vSwitch with DPDK as the DUT."""

    type: Literal["ovs-dpdk"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself; or an entry of `hosts`.
    host: HostKey
    ovs: OvsInstall
    ports: Annotated[MemifPorts | VethPorts | PciPorts, Field(discriminator="kind")]
    #: Memory of DPDK, MiB.
    memory_mb: int = Field(ge=256, le=65536)
    #: `auto`: hugepages that are free, else ordinary pages; `never`: ordinary pages.
    hugepages: Literal["auto", "never"]

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == SANDBOX) == (self.ports.kind == "pci"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with memif or veth, or a lab's host with pci."
            )
        if self.ovs.manage and self.host == SANDBOX:
            raise ValueError("ovs.manage: true does not go with host: sandbox, which has an instance of its own.")
        return self
