"""Whether this machine can measure at all, found out before any test runs, each answer one sentence."""

import platform

from ctbench.base.errors import MissingResource
from ctbench.dut.registry import KINDS
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig


def check_machine(testbed: TestbedConfig) -> None:
    """Raise MissingResource with the first thing that this machine lacks of what `testbed` needs of it, in the order in
    which to fix it. What other hosts lack, they say when they are set up (and `./run doctor` before)."""
    if testbed.generator.type == "software":
        check_cpu()
    here = [dut for dut in testbed.duts if dut.host == SANDBOX]
    for dut in here:
        KINDS[dut.type].require(dut)
    if here:
        check_namespaces()


def check_cpu(machine: str | None = None) -> None:
    """The generator's memif code relies on x86-64's ordering of stores."""
    machine = machine or platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise MissingResource(
            f"This is a {machine} machine, and the software traffic generator works on x86-64 only:"
            " measure on an x86-64 machine."
        )


def check_namespaces() -> None:
    """Make a sandbox and end it; a refusal says what to do."""
    Sandbox().close()
