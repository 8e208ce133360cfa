"""A DUT that nothing is wrong with: what a trial asks of it, for DUTs of tests to inherit."""

from typing import Any

from ctbench.dut.base import Dut
from ctbench.dut.topology import Topology


class HealthyDut(Dut):
    """One that has nothing to say."""

    def apply(self, topology: Topology) -> None: ...

    def snapshot(self) -> dict[str, Any]:
        return {}
