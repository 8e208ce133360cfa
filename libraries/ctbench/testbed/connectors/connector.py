"""The interface of connectors, which join a traffic generator to the ports of a DUT: neither has to know the other."""

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
        """Start nothing yet. `placement` returns the CPUs for a measurement over a cable; `log_folder` gets the
        generator's logs."""
        self._testbed, self._hosts, self._placement, self._log_folder = testbed, hosts, placement, log_folder

    @property
    @abstractmethod
    def generator(self) -> TrafficGenerator:
        """The generator, which is connected to a DUT between `connect` and `disconnect`."""

    @abstractmethod
    def cable(self) -> tuple[Dut, Host]:
        """Return a cable between the generator's two ports, which takes the place of a DUT to measure the generator's
        ceiling, and the cable's host. Raise `MissingResource` where the two ports cannot be joined."""

    @abstractmethod
    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int, side: Side = "tested") -> None:
        """Connect the generator to the ports of the DUT on `host`, for frames of up to `frame_bytes`. `side`: the side
        of a pair, where the connector `pairs`; the side that is connected first is `tested`. Raise `MissingResource`
        where the ports are out of reach."""

    def disconnect(self) -> None:
        """Release the DUT, which may then be removed. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """Return the generator's facts for the record."""
        return dict(self.generator.snapshot())

    @abstractmethod
    def close(self) -> None:
        """End the generator. May be called twice."""
