"""How the testbed joins its traffic generator to the ports of a DUT; the two know nothing of each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Ports
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement
from ctbench.traffic.generator import TrafficGenerator

if TYPE_CHECKING:
    from ctbench.traffic.software.generator import SoftwareTrafficGenerator


class Joint(Protocol):
    """A generator, joined to one DUT at a time."""

    @property
    def generator(self) -> TrafficGenerator:
        """The generator; joined, if `join` was the last thing that happened."""

    def join(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        """Join it to the ports of the DUT on `host`, for frames of up to `frame_bytes`. `MissingResource` where it
        cannot reach them."""

    def part(self) -> None:
        """Let go of the DUT, which may then go away. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """What the record says of the generator."""

    def close(self) -> None:
        """End the generator. May be called twice."""


class SoftwareJoint:
    """The software traffic generator, in this process."""

    def __init__(self, generator_cpus: tuple[int, ...], testbed: str) -> None:
        """`testbed`: its name, for messages."""
        # It comes with the compiler numba: half a second that a dry run, or a run with TRex, need not wait.
        from ctbench.traffic.software.generator import SoftwareTrafficGenerator  # noqa: PLC0415

        self._generator = SoftwareTrafficGenerator(generator_cpus)
        self._testbed = testbed

    @property
    def generator(self) -> "SoftwareTrafficGenerator":
        """See `Joint.generator`."""
        return self._generator

    def join(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        """See `Joint.join`; `host` does not matter, the ports come with paths and sockets of this machine."""
        if ports.kind == "cable":
            self._generator.connect_cable(ports.rx_queues, ports.ring_size, frame_bytes)
            return
        if ports.kind == "memif":
            self._generator.connect(
                Path(ports.client), Path(ports.server), rx_queues=ports.rx_queues, tx_queues=ports.tx_queues,
                ring_size=ports.ring_size, frame_bytes=frame_bytes, more=ports.more,
            )  # fmt: skip
            return
        if ports.kind != "interface" or ports.open_socket is None:
            raise MissingResource(
                f"Testbed {self._testbed} has network cards as ports; the software traffic generator reaches only "
                "ports of kind memif and veth."
            )
        shared = set(ports.cpus) & set(placement.generator)
        if shared and not placement.oversubscribed:
            raise MissingResource(
                "Over veth the software traffic generator hands frames to Open vSwitch in a thread that polls, and no "
                "CPU is left for it: a CPU more is needed, or ports of kind memif."
            )
        self._generator.connect_interfaces(
            ports.client, ports.server, open_socket=ports.open_socket, rx_queues=ports.rx_queues,
            rx_rings=ports.tx_queues, ring_size=ports.ring_size, frame_bytes=frame_bytes,
            client_mac=ports.client_mac, server_mac=ports.server_mac,
            client_next_hop=ports.client_next_hop, server_next_hop=ports.server_next_hop, cpus=ports.cpus,
        )  # fmt: skip

    def part(self) -> None:
        """See `Joint.part`."""
        self._generator.disconnect()

    def facts(self) -> dict[str, Any]:
        """See `Joint.facts`."""
        return dict(self._generator.snapshot())

    def close(self) -> None:
        """See `Joint.close`."""
        self._generator.close()
