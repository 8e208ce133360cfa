"""What connects a traffic generator to the ports of a DUT; the two know nothing of each other."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from ctbench.dut.base import Dut, Ports
from ctbench.hosts.base import Host
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Placement
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.generator import Side, TrafficGenerator
from ctbench.traffic.loads import Load


class Connector(ABC):
    """A generator, connected to one DUT at a time, or to two where it `pairs`."""

    #: Whether it can be connected to two DUTs at once: the generator is a `PairedGenerator` then.
    pairs: ClassVar[bool] = False
    #: Kinds of loads that the generator can be asked for, known before it is connected.
    offers: ClassVar[frozenset[type[Load]]]

    def __init__(
        self, testbed: TestbedConfig, hosts: HostPool, placement: Callable[[], Placement], log_folder: Path
    ) -> None:
        """Nothing is started yet. `placement`: who runs where when the generator measures itself over a cable;
        `log_folder` gets the generator's logs."""
        self._testbed, self._hosts, self._placement, self._log_folder = testbed, hosts, placement, log_folder

    @property
    @abstractmethod
    def generator(self) -> TrafficGenerator:
        """The generator; connected, if `connect` was the last thing that happened."""

    @abstractmethod
    def cable(self) -> tuple[Dut, Host]:
        """A cable between its two ports in the place of a DUT, which shows the generator's ceiling, and the host that
        it is on. `MissingResource` where its ports cannot be connected with each other."""

    @abstractmethod
    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int, side: Side = "tested") -> None:
        """Connect it to the ports of the DUT on `host`, for frames of up to `frame_bytes`. `side`: where it `pairs`, of
        two side by side on this machine, the one that was set up first being the tested one. `MissingResource` where it
        cannot reach them."""

    def disconnect(self) -> None:
        """Let go of the DUT, which may then go away. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """What the record says of the generator."""
        return dict(self.generator.snapshot())

    @abstractmethod
    def close(self) -> None:
        """End the generator. May be called twice."""
