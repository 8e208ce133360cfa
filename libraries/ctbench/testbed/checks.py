"""Whether this machine can measure at all, found out before any test runs, each answer one sentence."""

from ctbench.dut.registry import KINDS
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.registry import SOURCES


def check_machine(testbed: TestbedConfig) -> None:
    """Raise MissingResource with the first thing that this machine lacks of what `testbed` needs of it, in the order in
    which to fix it. What other hosts lack, they say when they are set up (and `./run doctor` before)."""
    SOURCES[testbed.generator.type].require(testbed.generator)
    here = [dut for dut in testbed.duts if dut.host == SANDBOX]
    for dut in here:
        KINDS[dut.type].require(dut)
    if here:
        check_namespaces()


def check_namespaces() -> None:
    """Make a sandbox and end it; a refusal says what to do."""
    Sandbox().close()
