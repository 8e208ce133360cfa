"""How the software traffic generator is connected to a DUT."""

from typing import TYPE_CHECKING, Any

from ctbench.base.errors import CtbenchError, MissingResource
from ctbench.dut.base import Dut, Ports
from ctbench.dut.cable import Cable
from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Placement
from ctbench.testbed.connectors.connector import Connector, ConnectorContext, ConnectorKind
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import Load
from ctbench.traffic.software.kind import SoftwareGeneratorConfig

if TYPE_CHECKING:
    from ctbench.traffic.software.generator import SoftwareTrafficGenerator


class SoftwareConnectorKind(ConnectorKind):
    def new(self, config: SoftwareGeneratorConfig, context: ConnectorContext) -> Connector:
        return SoftwareConnector(context.placement().generator, context.testbed)

    def cable(self, config: SoftwareGeneratorConfig, hosts: HostPool) -> tuple[Dut, Host]:
        """It makes both ends by itself."""
        return Cable(), hosts.host(LOCAL)


class SoftwareConnector(Connector):
    """The software traffic generator, in this process."""

    pairs = True

    def __init__(self, generator_cpus: tuple[int, ...], testbed: str) -> None:
        """`testbed`: its name, for messages."""
        # It comes with the compiler numba: half a second that a dry run, or a run with TRex, need not wait.
        from ctbench.traffic.software.generator import SoftwareTrafficGenerator  # noqa: PLC0415

        self._generator = SoftwareTrafficGenerator(generator_cpus)
        self._testbed = testbed

    @property
    def offers(self) -> frozenset[type[Load]]:
        return self._generator.offers

    @property
    def generator(self) -> "SoftwareTrafficGenerator":
        return self._generator

    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        """`host` does not matter, the ports come with paths and sockets of this machine."""
        self._connect(ports, placement, frame_bytes, "tested")

    def connect_pair(self, tested: Ports, other: Ports, placement: Placement, frame_bytes: int) -> None:
        self._connect(tested, placement, frame_bytes, "tested")
        try:
            self._connect(other, placement, frame_bytes, "other")
        except CtbenchError:
            self._generator.disconnect()
            raise

    def _connect(self, ports: Ports, placement: Placement, frame_bytes: int, side: Side) -> None:
        if ports.kind == "cable":
            self._generator.connect_cable(ports.rx_queues, ports.ring_size, frame_bytes, side)
            return
        from ctbench.testbed.connectors.software_wiring import interface_wiring, memif_wiring  # noqa: PLC0415

        if ports.kind == "memif":
            self._generator.connect(lambda: memif_wiring(ports, frame_bytes), side)
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
        self._generator.connect(lambda: interface_wiring(ports, frame_bytes, side), side)

    def disconnect(self) -> None:
        self._generator.disconnect()

    def facts(self) -> dict[str, Any]:
        return dict(self._generator.snapshot())

    def close(self) -> None:
        self._generator.close()
