"""The YAML models of the devices under test: Open vSwitch and the Linux kernel, and their ports."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ctbench.base.names_of_things import HostKey, Interface, PathText, PciAddress
from ctbench.config import Settings
from ctbench.host_config import SANDBOX
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


RingSize = Annotated[int, AfterValidator(_check_ring_size)]


class OvsInstall(Settings):
    """Which Open vSwitch."""

    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: Annotated[PathText, AfterValidator(_check_prefix)]
    #: true: set up the instance that runs on the host already (the system's), and put back what it had afterwards.
    #: false: start a private instance beside it, which ends with the run.
    manage: bool = False


class MemifPorts(Settings):
    """Two shared-memory ports: no NIC, no root."""

    kind: Literal["memif"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


class VethPorts(Settings):
    """Two veth pairs: no NIC, no root. OVS reads them through af_packet."""

    kind: Literal["veth"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


class InterfacePorts(Settings):
    """Two network cards of a lab's host."""

    kind: Literal["interfaces"]
    #: The interface towards the clients, and towards the servers.
    client: Interface
    server: Interface
    #: Speed of the cards, Gbit/s; None: not known. A load that they cannot carry is then said before the first trial.
    speed_gbit: float | None = Field(None, ge=0.01, le=10_000)

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.client == self.server:
            raise ValueError(f"client and server are both {quoted(self.client)}.\n  Expected two interfaces.")
        return self


class PciPorts(Settings):
    """Two network cards that DPDK drives."""

    kind: Literal["pci"]
    #: PCI address of the card towards the clients, and towards the servers; with bonds, those of the second link too.
    client: PciAddress
    server: PciAddress
    more: list[PciAddress] = Field(default_factory=list)
    #: Speed of the cards, Gbit/s; None: not known. A load that they cannot carry is then said before the first trial.
    speed_gbit: float | None = Field(None, ge=0.01, le=10_000)

    @model_validator(mode="after")
    def _differ(self) -> Self:
        every = [self.client, self.server, *self.more]
        if len(set(every)) < len(every) or len(self.more) % 2:
            raise ValueError(f"{every} are no pairs of network cards.\n  Expected each address once, in pairs.")
        return self


class OvsDpdkConfig(Settings):
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


class LinuxConfig(Settings):
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


DutConfig = Annotated[OvsDpdkConfig | LinuxConfig, Field(discriminator="type")]
