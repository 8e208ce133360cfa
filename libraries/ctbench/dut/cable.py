"""A cable in the place of a DUT: the generator's two ports joined directly, which shows the generator's ceiling."""

from typing import Any

from ctbench.dut.base import CpuUse, DutCounters, Ports, Problem
from ctbench.dut.topology import Topology

#: The topology of a cable: it forwards, and has one queue.
CABLE = Topology(datapath="cable", ruleset="none")


class Cable:
    """Implements `ctbench.dut.base.Dut`: there is nothing to set up, to flush or to go wrong."""

    def apply(self, topology: Topology) -> Ports:
        """The generator makes both ends by itself."""
        return Ports("cable", "", "", topology.rx_queues, topology.rx_queues, topology.rx_descriptors)

    def flush_state(self) -> None:
        """A cable has no state."""

    def connections(self) -> int:
        """A cable tracks nothing."""
        return 0

    def begin_trial(self) -> None:
        """A cable does not change."""

    def health(self) -> list[Problem]:
        """A cable is healthy."""
        return []

    def trouble(self) -> str:
        """A cable does not break."""
        return ""

    def counters(self) -> DutCounters:
        """A cable counts nothing."""
        return DutCounters()

    def cpu_use(self) -> CpuUse | None:
        """A cable needs no CPU."""
        return None

    def snapshot(self) -> dict[str, Any]:
        """What the record says of it."""
        return {"kind": "cable"}

    def pause(self) -> None:
        """A cable takes no CPU."""

    def resume(self) -> None:
        """A cable takes no CPU."""

    def restore(self) -> None:
        """There is nothing to restore."""
