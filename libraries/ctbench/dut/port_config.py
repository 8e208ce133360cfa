"""The YAML models of the ports of a DUT."""

from typing import Annotated, Literal, Protocol, Self

from pydantic import AfterValidator, Field, model_validator

from ctbench.base.identifiers import Interface, PciAddress
from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel


class PortSettings(Protocol):
    """What `ports` of a DUT in a testbed file says, whatever the kind."""

    @property
    def kind(self) -> str:
        """Which kind."""

    @property
    def speed_gbit(self) -> float | None:
        """Speed of the cards, Gbit/s; None: not known, or no cards."""

    @property
    def cards(self) -> list[tuple[str, str]]:
        """Its network cards: the side (`client`, `server` or `more`), and the PCI address or the interface."""


def _check_ring_size(size: int) -> int:
    if size & (size - 1) or not 64 <= size <= 16384:
        raise ValueError(f"{size} is not a size of a ring.\n  Expected a power of two from 64 to 16384.")
    return size


RingSize = Annotated[int, AfterValidator(_check_ring_size)]


class _VirtualPorts(YamlModel):
    """Ports without a network card. Implements `PortSettings`."""

    @property
    def speed_gbit(self) -> float | None:
        """As fast as the CPUs."""
        return None

    @property
    def cards(self) -> list[tuple[str, str]]:
        """None."""
        return []


class MemifPorts(_VirtualPorts):
    """Two shared-memory ports: no NIC, no root."""

    kind: Literal["memif"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


class VethPorts(_VirtualPorts):
    """Two veth pairs: no NIC, no root. OVS reads them through af_packet."""

    kind: Literal["veth"]
    #: Frames that a link holds towards the DUT, shared evenly by its receive queues.
    ring_size: RingSize


class InterfacePorts(YamlModel):
    """Two network cards of a lab's host. Implements `PortSettings`."""

    kind: Literal["interfaces"]
    #: The interface towards the clients, and towards the servers.
    client: Interface
    server: Interface
    #: Speed of the cards, Gbit/s; None: not known. A load that they cannot carry is then said before the first trial.
    speed_gbit: float | None = Field(None, ge=0.01, le=10_000)

    @property
    def cards(self) -> list[tuple[str, str]]:
        """See `PortSettings.cards`."""
        return [("client", self.client), ("server", self.server)]

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.client == self.server:
            raise ValueError(f"client and server are both {quoted(self.client)}.\n  Expected two interfaces.")
        return self


class PciPorts(YamlModel):
    """Two network cards that DPDK drives. Implements `PortSettings`."""

    kind: Literal["pci"]
    #: PCI address of the card towards the clients, and towards the servers; with bonds, those of the second link too.
    client: PciAddress
    server: PciAddress
    more: list[PciAddress] = Field(default_factory=list)
    #: Speed of the cards, Gbit/s; None: not known. A load that they cannot carry is then said before the first trial.
    speed_gbit: float | None = Field(None, ge=0.01, le=10_000)

    @property
    def cards(self) -> list[tuple[str, str]]:
        """See `PortSettings.cards`."""
        return [("client", self.client), ("server", self.server), *(("more", address) for address in self.more)]

    @model_validator(mode="after")
    def _differ(self) -> Self:
        every = [self.client, self.server, *self.more]
        if len(set(every)) < len(every) or len(self.more) % 2:
            raise ValueError(f"{every} are no pairs of network cards.\n  Expected each address once, in pairs.")
        return self


class InnerPorts(_VirtualPorts):
    """Two ports that only a traffic source within the same machine reaches."""

    kind: Literal["inner"] = "inner"
