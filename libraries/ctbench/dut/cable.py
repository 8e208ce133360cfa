"""A cable in the place of a DUT: the generator's two ports joined directly, which shows the generator's ceiling."""

from typing import Any

from ctbench.dut.at_rest import AtRest
from ctbench.dut.base import Ports
from ctbench.dut.topology import Topology

#: The topology of a cable: it forwards, and has one queue.
CABLE = Topology(datapath="cable", ruleset="none")


class Cable(AtRest):
    """Implements `ctbench.dut.base.Dut`: there is nothing to set up, to flush or to go wrong."""

    def apply(self, topology: Topology) -> Ports:
        """The generator makes both ends by itself."""
        return Ports("cable", "", "", topology.rx_queues, topology.rx_queues, topology.rx_descriptors)

    def snapshot(self) -> dict[str, Any]:
        """What the record says of it."""
        return {"kind": "cable"}
