"""What connects a traffic generator to the ports of a DUT; the two know nothing of each other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Dut, Ports
from ctbench.hosts.base import Host
from ctbench.hosts.config import SshConfig
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Placement
from ctbench.traffic.generator import TrafficGenerator
from ctbench.traffic.loads import Load


class Connector(ABC):
    """A generator, connected to one DUT at a time, or to two where it `pairs`."""

    #: Whether it can be connected to two DUTs at once.
    pairs: ClassVar[bool] = False

    @property
    @abstractmethod
    def offers(self) -> frozenset[type[Load]]:
        """Kinds of loads that the generator can be asked for, known before it is connected."""

    @property
    @abstractmethod
    def generator(self) -> TrafficGenerator:
        """The generator; connected, if `connect` was the last thing that happened."""

    @abstractmethod
    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        """Connect it to the ports of the DUT on `host`, for frames of up to `frame_bytes`. `MissingResource` where it
        cannot reach them."""

    def connect_pair(self, tested: Ports, other: Ports, placement: Placement, frame_bytes: int) -> None:
        """Connect it to the ports of two DUTs at once, side by side on this machine: the generator is a
        `PairedGenerator` then, and its `run_trial` offers to the tested one alone. `MissingResource` where that cannot
        be."""
        raise MissingResource(
            "Two DUTs side by side need the software traffic generator; this one offers to one at a time, so the DUT "
            "is reconfigured between trials."
        )

    def disconnect(self) -> None:
        """Let go of the DUT, which may then go away. May be called twice."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the record says of the generator."""

    @abstractmethod
    def close(self) -> None:
        """End the generator. May be called twice."""


@dataclass(frozen=True)
class ConnectorContext:
    """What the testbed gives a connector."""

    #: Name of the testbed, for messages.
    testbed: str
    hosts: HostPool
    #: How to log in to a host, by its name in the testbed file.
    ssh: Mapping[str, SshConfig]
    #: Who runs where when the generator measures itself over a cable.
    placement: Callable[[], Placement]
    #: Where logs of the generator go.
    log_folder: Path


class ConnectorKind(ABC):
    """What the registry knows of a kind of source."""

    @abstractmethod
    def new(self, config: Any, context: ConnectorContext) -> Connector:
        """A connector for its settings. Nothing is started yet."""

    @abstractmethod
    def cable(self, config: Any, hosts: HostPool) -> tuple[Dut, Host]:
        """A cable between its two ports in the place of a DUT, which shows the generator's ceiling, and the host that
        it is on. `MissingResource` where its ports cannot be connected with each other."""
