"""What `./run prove` plants takes effect in the real ovs-vswitchd, and in no other beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.small_testbed import small

from ctbench.base.yaml_files import load
from ctbench.cli.prove import FAULTS, did, plant
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pair import Setup
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import load_profile

#: Alone: what a fault adds to the time of a thread is compared with what was asked for.
SHORT = load_profile("short-lived")
#: Longer than what is between two stalls.
SLICE_S = 0.25


@pytest.fixture
def testbed(able_machine: None, tmp_path: Path) -> Iterator[Testbed]:
    made = Testbed(small(load("testbeds", "local", TestbedConfig)), tmp_path / "testbed")
    yield made
    made.close()


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "nothing"])
def test_a_fault_takes_effect(name: str, testbed: Testbed, tmp_path: Path) -> None:
    fault, prefix = FAULTS[name], tmp_path / "planted"
    plant(fault, OvsInstallation.at("distribution"), prefix)
    testbed.apply_pair(Setup(Topology(), str(prefix)), Setup(Topology()), SHORT)
    assert testbed.pair
    order: list[Side] = ["tested", "other"] * 4
    slices = testbed.pair.run_slices(order, SLICE_S)
    testbed.close()
    found = did(prefix)
    assert fault.effect(found), found
    completed = {side: sum(part.completed for part in slices if part.side == side) for side in ("tested", "other")}
    assert completed["tested"] and completed["other"]
    match name.partition("-")[0]:
        case "slower":
            # Others that run on the CPU meanwhile make it longer, never shorter.
            share = found["added"] / (found["busy"] + found["added"])
            assert share * 1000 >= 0.9 * fault.defines["SLOWER"]
        case "losses":
            assert found["lost"] == found["connections"] // fault.defines["LOSE"]
