"""TRex joined to the DUTs of local-trex.yaml, with the real TRex: set TREX_HOME to the folder of t-rex-64."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.trex_server import needs_trex
from real_duts import skipping

from ctbench.base.yaml_files import load
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.hosts.local import LocalHost
from ctbench.measure.observation import Observation
from ctbench.measure.trial import TrialRunner
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile, load_profile

OVS = Topology(ruleset="conntrack")
ROUTER = Topology(datapath="linux-router", ruleset="nftables-stateful")
BRIDGE = Topology(datapath="linux-bridge", ruleset="forward")
#: Connections and packets per second: few enough for a busy machine.
FEW, FEW_PACKETS = 1000, 5000


@pytest.fixture
def testbed(able_machine: None, tmp_path: Path) -> Iterator[Testbed]:
    instance = Testbed(load("testbeds", "local-trex", TestbedConfig), tmp_path)
    yield instance
    instance.close()


def observed(testbed: Testbed, topology: Topology, profile_name: str, load_: float) -> Observation:
    """One trial on a fresh topology."""
    profile = load_profile(profile_name)
    needs_trex()
    with skipping():
        testbed.apply(topology, profile)
    return TrialRunner(testbed.dut, testbed.generator, profile, {"loss_ratio": 0.02}).offer(Rate(load_), 1.0)


@pytest.mark.parametrize("topology", [CABLE, OVS, ROUTER, BRIDGE], ids=lambda topology: topology.datapath)
def test_connections_complete_over_every_dut(testbed: Testbed, topology: Topology) -> None:
    seen = observed(testbed, topology, "short-lived", FEW)

    assert seen.trial.attempted >= 0.9 * FEW
    assert seen.trial.completed == seen.trial.attempted
    facts = json.loads(json.dumps(testbed.facts(), default=str))
    assert facts["generator"]["type"] == "trex"
    assert facts["generator"]["version"].startswith("v") and facts["generator"]["server"]["mode"] == "ASTF"
    assert [port["driver"] for port in facts["generator"]["ports"]] == ["net_af_packet"] * 2
    assert facts["machine"]["usable_cpus"]


@pytest.mark.parametrize("topology", [OVS, ROUTER], ids=lambda topology: topology.datapath)
def test_connections_are_held_and_answer_and_the_dut_counts_as_many(testbed: Testbed, topology: Topology) -> None:
    profile = load_profile("held")
    assert isinstance(profile, ConnectionProfile) and Hold in testbed.offers
    needs_trex()
    with skipping():
        testbed.apply(topology.model_copy(update={"timeout_s": 120}), profile)
    dut, generator = testbed.dut, testbed.generator

    with generator.hold(profile, Hold(FEW, FEW, asked_after_s=5)) as held:
        opened = held.open(FEW)
        entries = dut.connections()
        answered = held.ask()
        trial = held.trial()

    assert (opened.established, entries, answered.answered, dut.connections()) == (FEW, FEW, FEW, FEW)
    assert (trial.completed, trial.failed, trial.generator_limited) == (FEW, {}, "")


def test_nothing_is_left_on_the_machine(able_machine: None, tmp_path: Path) -> None:
    here = LocalHost()
    commands = (["ip", "-o", "link"], ["ip", "netns"], ["pgrep", "-c", "_t-rex-64"])
    before = [here.run(argv, check=False).stdout for argv in commands]
    testbed = Testbed(load("testbeds", "local-trex", TestbedConfig), tmp_path)
    needs_trex()

    observed(testbed, OVS, "short-lived", FEW)
    testbed.close()
    testbed.close()

    assert [here.run(argv, check=False).stdout for argv in commands] == before
