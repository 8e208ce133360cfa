"""The connector of the software traffic generator."""

from dataclasses import replace
from functools import cached_property, partial
from socket import socket
from typing import Any

from ctbench.base.errors import CtbenchError, MissingResource, TestbedError
from ctbench.base.network import own_macs
from ctbench.dut import cable
from ctbench.dut.base import Dut, Ports
from ctbench.hosts.base import Host, SocketKind
from ctbench.hosts.config import LOCAL
from ctbench.hosts.machine import Placement
from ctbench.testbed.connectors.connector import Connector
from ctbench.traffic.generator import Side
from ctbench.traffic.software import SoftwareTrafficGenerator
from ctgen import Cable, Ends, Interfaces, Link, Memif


class SoftwareConnector(Connector):
    """The connector of the software traffic generator, which runs in this process."""

    pairs = True
    offers = SoftwareTrafficGenerator.offers

    @cached_property
    def generator(self) -> SoftwareTrafficGenerator:
        return SoftwareTrafficGenerator(self._placement().generator)

    def cable(self) -> tuple[Dut, Host]:
        """Return a cable; the generator joins its two ports itself."""
        return cable.CableDut(), self._hosts.host(LOCAL)

    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int, side: Side = "tested") -> None:
        """Connect the generator. `host` is not used: the ports name paths and sockets of this machine."""
        self.generator.cpus = placement.generator or self.generator.cpus
        try:
            self.generator.connect(self._link(ports, placement, frame_bytes), side)
        except CtbenchError:  # not to one side of a pair alone
            self.generator.close()
            raise

    def _link(self, ports: Ports, placement: Placement, frame_bytes: int) -> Link:
        shared: dict[str, Any] = {
            "rx_queues": ports.rx_queues, "tx_queues": ports.tx_queues, "ring_size": ports.ring_size,
            "frame_bytes": frame_bytes, "ends": tuple(_ends(ports, pair) for pair in range(ports.pairs)),
        }  # fmt: skip
        if ports.kind == "cable":
            return Cable(**shared)
        if ports.kind == "memif":
            return Memif(paths=ports.links, threads=len(placement.pmd), **shared)
        if ports.open_socket is None:
            ports = self._over_cards(ports)
        if set(ports.cpus) & set(placement.generator) and not placement.oversubscribed:
            raise MissingResource(
                "Over veth the software traffic generator hands frames to Open vSwitch in a thread that polls, and no "
                "CPU is left for it: a CPU more is needed, or ports of kind memif."
            )
        return Interfaces(
            names=tuple(ports.links),
            open_socket=partial(_opened, ports),
            cpus=ports.cpus,
            **shared,
        )

    def _over_cards(self, ports: Ports) -> Ports:
        """Replace ports on network cards by the interfaces of this machine that lead to them. Raise `MissingResource`
        where the testbed file names none."""
        ends = getattr(self._testbed.generator, "interfaces", None)
        if ends is None:
            raise MissingResource(
                f"Testbed {self._testbed.name} has network cards as ports; the software traffic generator reaches them "
                "over generator.interfaces, which the testbed file does not name."
            )
        opened = self._hosts.host(LOCAL).open_socket
        return replace(ports, kind="interface", links=tuple(ends.pairs), cpus=(), open_socket=opened)

    def close(self) -> None:
        self.generator.close()

    disconnect = close


def _ends(ports: Ports, pair: int) -> Ends:
    """Return the addresses of one pair of the generator's ports."""
    macs, next_hops = (of_pairs[pair] if of_pairs else ("", "") for of_pairs in (ports.macs, ports.next_hops))
    return Ends(own_macs(pair), macs, next_hops)


def _opened(ports: Ports, kind: SocketKind) -> socket:
    """Open a socket of the DUT's; raise OSError instead of `TestbedError`, as the generator expects."""
    assert ports.open_socket
    try:
        return ports.open_socket(kind)
    except TestbedError as error:
        raise OSError(str(error)) from error
