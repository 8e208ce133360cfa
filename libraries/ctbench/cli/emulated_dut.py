"""The emulated machine of a testbed, for what is no test: to keep its image, to look into its functions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctbench.dut.counting import OpenedDut
from ctbench.dut.kind import Surroundings
from ctbench.dut.registry import KINDS, abilities
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig


@contextmanager
def emulated_dut(testbed: TestbedConfig) -> Iterator[OpenedDut]:
    """The DUT, in a sandbox that ends with it; nothing is booted yet."""
    sandbox = Sandbox()
    try:
        config = next(dut for dut in testbed.duts if "instructions" in abilities(dut.type))
        around = Surroundings(
            sandbox, read_machine(sandbox), _nowhere, Path(), lambda: ("", ""), generator_carries=False
        )
        dut = KINDS[config.type].build(config, around)
        assert isinstance(dut, OpenedDut), "its kind says so"
        yield dut
    finally:
        sandbox.close()


def _nowhere(_topology: Topology) -> Placement:
    raise AssertionError("an emulated machine is not placed")
