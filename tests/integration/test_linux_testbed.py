"""The testbed goes from one DUT to the next, and only one of them stands at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import load_profile

pytestmark = pytest.mark.beside_others

OVS = Topology(ruleset="forward")
ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful")
BRIDGE = Topology(datapath="linux-bridge", ruleset="forward")


@pytest.fixture
def testbed(able_machine: None, tmp_path: Path) -> Iterator[Testbed]:
    instance = Testbed(load("testbeds", "local", TestbedConfig), tmp_path)
    yield instance
    instance.close()


def test_every_dut_gives_way_to_the_next(testbed: Testbed) -> None:
    testbed.apply(OVS, load_profile("short-lived"))
    ovs = testbed.dut
    assert ovs.snapshot()["pid"]

    testbed.apply(ROUTER, load_profile("short-lived"))
    assert "pid" not in ovs.snapshot()
    assert testbed.dut.snapshot()["kind"] == "linux-router"
    assert testbed.dut.health() == []
    router = testbed.dut

    testbed.apply(BRIDGE, load_profile("short-lived"))
    assert testbed.dut.snapshot()["kind"] == "linux-bridge"
    assert "interfaces" not in router.snapshot()

    testbed.apply(OVS, load_profile("short-lived"))
    assert testbed.dut.snapshot()["pid"]
