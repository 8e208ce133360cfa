"""The shipped local testbed with half of its memory for DPDK, all of which is touched at each start of Open vSwitch:
a second for 1024 MiB. What the buffers in the other half are for, these tests do not send."""

import re
from pathlib import Path

from ctbench.base.paths import ROOT
from ctbench.testbed.config import TestbedConfig

MEMORY_MB = 512


def small(testbed: TestbedConfig) -> TestbedConfig:
    """The testbed with so little memory."""
    duts = [dut.model_copy(update={"memory_mb": MEMORY_MB}) if dut.type == "ovs-dpdk" else dut for dut in testbed.duts]
    return testbed.model_copy(update={"duts": duts})


def write_small(path: Path, *, oversubscribe: bool = False) -> None:
    """Write the shipped local testbed with so little memory to a file."""
    text = (ROOT / "variables" / "testbeds" / "local.yaml").read_text()
    settings = {"memory_mb": str(MEMORY_MB), "oversubscribe": str(oversubscribe).lower()}
    for key, value in settings.items():
        text, number = re.subn(rf"^( *{key}: ).*$", rf"\g<1>{value}", text, flags=re.MULTILINE)
        assert number == 1, key
    path.write_text(text)
