"""A cable in the place of a DUT: the generator's two ports joined directly, which shows the generator's ceiling."""

from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Dut, Ports
from ctbench.dut.topology import Topology
from ctbench.dut.veth import (
    GENERATOR,
    OFFLOADS,
    IpRoute,
    make_generator_namespace,
    remove_generator_namespace,
    within_generator,
)
from ctbench.hosts.base import Host

#: The topology of a cable: it forwards, and has one queue.
CABLE = Topology(datapath="cable", ruleset="none")


class CableDut(Dut):
    """A direct link of the generator's two ports, which the generator makes itself: no set-up of a DUT, and no
    flush."""

    def apply(self, topology: Topology) -> Ports:
        return Ports("cable", (), topology.rx_queues, topology.rx_queues)

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "cable"}


class VethCable(CableDut):
    """A veth pair, for a generator that works on network interfaces, as TRex does. Both ends are the generator's, in
    its namespace."""

    def __init__(self, host: Host) -> None:
        self._ip = IpRoute(host)

    def apply(self, topology: Topology) -> Ports:
        client, server = "g0", "g1"
        self.restore()
        make_generator_namespace(self._ip.host)
        size = f"mtu {topology.mtu}"
        self._ip.batch([f"link add {client} {size} type veth peer name {server} {size}"], GENERATOR)
        for end in (client, server):
            self._ip.host.run(within_generator("ethtool", "-K", end, *OFFLOADS))
        self._ip.batch((f"link set {end} arp off up" for end in (client, server)), GENERATOR)
        return Ports("interface", ((client, server),), topology.rx_queues, topology.rx_queues)

    def trouble(self) -> str:
        try:
            self._ip.host.run(["true"])
        except TestbedError as error:
            return str(error)
        return ""

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "cable", "links": "veth"}

    def restore(self) -> None:
        remove_generator_namespace(self._ip)
