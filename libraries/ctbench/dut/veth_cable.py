"""A veth pair in the place of a DUT: a cable for a generator that works on network interfaces, as TRex does."""

from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Ports
from ctbench.dut.cable import Cable
from ctbench.dut.iproute import IpRoute
from ctbench.dut.topology import Topology
from ctbench.dut.veth import (
    GENERATOR,
    OFFLOADS,
    VETH,
    make_generator_namespace,
    remove_generator_namespace,
    within_generator,
)
from ctbench.hosts.base import Host


class VethCable(Cable):
    """Implements `ctbench.dut.base.Dut`: both ends are the generator's, in its namespace."""

    def __init__(self, host: Host) -> None:
        self._ip = IpRoute(host)

    def apply(self, topology: Topology) -> Ports:
        """Lay the cable again."""
        (_, client), (_, server) = VETH["client"], VETH["server"]
        self.restore()
        make_generator_namespace(self._ip.host)
        size = f"mtu {topology.mtu}"
        self._ip.batch([f"link add {client} {size} type veth peer name {server} {size}"], GENERATOR)
        for end in (client, server):
            self._ip.host.run(within_generator("ethtool", "-K", end, *OFFLOADS))
        self._ip.batch((f"link set {end} arp off up" for end in (client, server)), GENERATOR)
        return Ports("interface", client, server, topology.rx_queues, topology.rx_queues, topology.rx_descriptors)

    def trouble(self) -> str:
        """See `Dut.trouble`: the sandbox is all that it needs."""
        try:
            self._ip.host.run(["true"])
        except TestbedError as error:
            return str(error)
        return ""

    def snapshot(self) -> dict[str, Any]:
        """See `Dut.snapshot`."""
        return {"kind": "cable", "links": "veth"}

    def restore(self) -> None:
        """See `Dut.restore`."""
        remove_generator_namespace(self._ip)
