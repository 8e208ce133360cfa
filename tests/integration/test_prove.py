"""What tools.prove plants takes effect in the real ovs-vswitchd, and in no other next to it."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from integration.small_testbed import small

from ctbench.base.yaml_files import load
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup
from ctbench.traffic.generator import Side
from ctbench.traffic.profiles import load_profile
from tools.prove import FAULTS, did, plant

#: Alone: what a fault adds to the time of a thread is compared with what was asked for.
SHORT = load_profile("short-lived")
#: Longer than what is between two stalls.
SLICE_S = 0.25
#: Two at a time, side by side.
TOGETHER = (("slower-10", "losses"), ("forgets", "stalls"), ("leaks", "nothing"))


@pytest.fixture
def testbed(able_machine: None, tmp_path: Path) -> Iterator[Testbed]:
    made = Testbed(small(load("testbeds", "local", TestbedConfig)), tmp_path / "testbed")
    yield made
    made.close()


def test_each_fault_is_tried() -> None:
    kinds = {name.partition("-")[0] for name in FAULTS}
    assert {"nothing", *(name.partition("-")[0] for name in chain.from_iterable(TOGETHER))} == kinds


@pytest.mark.parametrize("names", TOGETHER, ids="-and-".join)
def test_a_fault_takes_effect_in_the_build_that_has_it(
    names: tuple[str, str], testbed: Testbed, tmp_path: Path
) -> None:
    prefixes: dict[Side, Path] = {"tested": tmp_path / names[0], "other": tmp_path / names[1]}
    for name, prefix in zip(names, prefixes.values(), strict=True):
        plant(FAULTS[name], OvsInstallation.at("distribution"), prefix)
    tested, other = (Setup(Topology(), str(prefix)) for prefix in prefixes.values())
    testbed.apply_pair(tested, other, SHORT)
    order: list[Side] = [*prefixes] * 4
    slices = testbed.side_by_side.run_slices(order, SLICE_S)
    testbed.close()
    for name, (side, prefix) in zip(names, prefixes.items(), strict=True):
        fault, found = FAULTS[name], did(prefix)
        assert fault.effect(found), found
        assert sum(part.completed for part in slices if part.side == side)
        match name.partition("-")[0]:
            case "slower":
                # Others that run on the CPU meanwhile make it longer, never shorter.
                share = found["added"] / (found["busy"] + found["added"])
                assert share * 1000 >= 0.9 * fault.defines["SLOWER"]
            case "losses":
                assert found["lost"] == found["connections"] // fault.defines["LOSE"]
