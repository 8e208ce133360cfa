"""The YAML model of the Linux kernel as a DUT."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.identifiers import HostKey
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.port_config import InterfacePorts, VethPorts
from ctbench.hosts.config import SANDBOX


class LinuxConfig(YamlModel):
    """The Linux kernel as the DUT: as a router or as a bridge."""

    type: Literal["linux-router", "linux-bridge"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself, as root; or an entry of
    #: `hosts`.
    host: HostKey
    ports: Annotated[VethPorts | InterfacePorts, Field(discriminator="kind")]

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == SANDBOX) != (self.ports.kind == "veth"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with veth, or a lab's host with interfaces."
            )
        return self
