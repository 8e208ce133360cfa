"""The connection table on the real OVS-DPDK and the real kernel: counts that are equal to the connection, a limit,
and timeouts that are read back."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from real_duts import tried
from unit.simulated import floor_of

from ctbench.base.errors import MissingResource
from ctbench.base.paths import RULESETS
from ctbench.base.yaml_files import load
from ctbench.dut import rulesets
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign, ControlPlaneSettings, TableTrials
from ctbench.measure.procedure import Bench, Outcome, Scripted
from ctbench.measure.procedures import restart, table_memory
from ctbench.measure.procedures.accounting import ACCOUNTING
from ctbench.measure.procedures.table_limits import TABLE_CAPACITY, TABLE_FULL
from ctbench.measure.procedures.timeout_policy import TIMEOUT_POLICY
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import Profile, load_profile
from ctgen import plan

#: Entries are counted, not measured: others may use the machine as well.
pytestmark = [pytest.mark.beside_others, pytest.mark.usefixtures("resting", "any_packets")]

PROFILE = load_profile("held")
OVS = Topology(timeout_s=120)
ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful", timeout_s=120)
HOW = TableTrials.model_validate({"opened_per_s": "20k", "hold": "100ms"})
CONNECTIONS = 5000


def measured(procedure: Scripted, made: Bench) -> Outcome:
    """What it finds: what others left too little of the machine for is measured again."""
    return tried(lambda: procedure.run(made), lambda found: found.limited_by != "generator" and bool(found.verdicts))


def bench(
    testbed: Testbed, topology: Topology, how: TableTrials = HOW, profile: Profile = PROFILE, **limits: float
) -> Bench:
    testbed.apply(topology, profile)
    quick = load("campaigns", "quick", Campaign).model_copy(update={"table": how})
    return Bench(testbed.dut, testbed.generator, floor_of(profile, **limits), quick, topology=topology)


@pytest.mark.parametrize("topology", [OVS, ROUTER], ids=["ovs-dpdk", "linux-router"])
def test_the_dut_counts_as_many_as_are_open_at_every_step(testbed: Testbed, topology: Topology) -> None:
    found = measured(TABLE_CAPACITY, bench(testbed, topology, held_connections=CONNECTIONS))
    assert found.limited_by != "fault", found.reason
    assert [(each.moment, each.found) for each in found.evidence.table[-4:]] == [
        ("before", 0),
        ("opened", CONNECTIONS),
        ("held", CONNECTIONS),
        ("answered", CONNECTIONS),
    ]


def test_the_memory_of_an_entry_is_read_and_used_again(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_memory, "FILLED", 4 * CONNECTIONS)  # some of them had a place before
    found = measured(table_memory.TABLE_MEMORY, bench(testbed, OVS, memory_per_connection=600.0, memory_kept=100.0))
    assert [each.kept for each in found.verdicts.values()] == [True, True], found.reason
    assert found.figures["memory_per_connection"].value > 150


@pytest.mark.parametrize(("timeout_s", "kept"), [(5, True), (60, False)])
def test_the_datapath_tells_the_timeout_that_it_was_given(testbed: Testbed, timeout_s: int, kept: bool) -> None:
    """A timeout that was set otherwise than is promised is missed."""
    found = measured(TIMEOUT_POLICY, bench(testbed, Topology(timeout_s=timeout_s), longest_timeout=4.9))
    assert found.verdicts["longest_timeout"].kept is kept, found.reason


@pytest.mark.parametrize("accounts", [True, False])
def test_what_the_kernel_counts_is_what_was_sent_and_a_kernel_that_counts_nothing_is_missed(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, accounts: bool
) -> None:
    monkeypatch.setattr(rulesets, "_added", {})
    rules = Path(shutil.copy(RULESETS / "nftables" / "stateful.nft", tmp_path / "counted.nft"))
    rules.with_suffix(".yaml").write_text(f"title: Counted\ntracks: true\naccounts: {accounts}\n")
    topology = ROUTER.model_copy(update={"ruleset": rulesets.add_ruleset(rules).name})
    found = measured(ACCOUNTING, bench(testbed, topology, uncounted=0.0, offloaded=0.01, forgotten_when_idle=0.0))
    kept = {"uncounted": accounts, "offloaded": False, "forgotten_when_idle": True}
    assert {name: each.kept for name, each in found.verdicts.items()} == kept, found.reason


def test_a_flowtable_counts_and_hands_back_or_the_kernel_is_said_to_have_none(testbed: Testbed) -> None:
    topology = ROUTER.model_copy(update={"ruleset": "nftables-flowtable"})
    limits = {"uncounted": 0.0, "offloaded": 0.99, "forgotten_when_idle": 0.0}
    try:
        made = bench(testbed, topology, **limits)
    except MissingResource as error:
        assert "CONFIG_NF_FLOW_TABLE" in str(error)
        return
    found = measured(ACCOUNTING, made)
    assert {name: each.kept for name, each in found.verdicts.items()} == dict.fromkeys(limits, True), found.reason


def test_a_full_table_refuses_goes_on_and_recovers(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "REPLY_TIMEOUT_S", 2.0)  # none may be lost that has room
    topology = OVS.model_copy(update={"max_connections": 2000})
    found = measured(TABLE_FULL, bench(testbed, topology, recovery_time=30.0))
    assert found.verdicts["recovery_time"].kept is True, found.reason
    assert [each.found for each in found.evidence.table[-4:]] == [0, 2000, 2000, 3000]


def test_open_vswitch_is_restarted_and_connections_go_on(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With half of the load, and for a quarter of the time, that a row has."""
    monkeypatch.setattr(restart, "HELD", CONNECTIONS)
    load = ControlPlaneSettings.model_validate({"alone_duration": "500ms", "connections": CONNECTIONS})
    limits = {"recovery_time": 30.0, "forgotten_by_restart": 0.001}
    made = bench(testbed, OVS, **limits, loss_ratio=0.2)
    made = replace(made, campaign=made.campaign.model_copy(update={"control_plane": load}))
    found = measured(restart.RESTART, made)
    if found.limited_by == "generator":
        pytest.skip(f"This machine was too busy to measure it: {found.reason}")
    assert {name: each.kept for name, each in found.verdicts.items()} == dict.fromkeys(limits, True), found.reason
    testbed.apply(OVS, PROFILE)  # which would fail if its timeouts were not in effect any more


def test_timeouts_are_read_back_and_those_of_the_next_topology_are_its_own(testbed: Testbed) -> None:
    testbed.apply(OVS.model_copy(update={"timeout_s": 7}), PROFILE)
    assert set(testbed.dut.snapshot()["conntrack"]["timeouts"].values()) == {7}
    testbed.apply(Topology(), PROFILE)  # which would fail if it were not what it asks for
    assert testbed.dut.snapshot()["conntrack"]["timeouts"]["tcp_established"] == 30
    testbed.apply(ROUTER.model_copy(update={"timeout_s": 7}), PROFILE)
    found = {
        name: value
        for name, value in testbed.dut.snapshot()["sysctls"].items()
        if re.search("nf_conntrack_(udp|tcp)_timeout", name)
    }
    assert len(found) == 12 and set(found.values()) == {"7"}


def test_the_kernels_limit_is_its_hosts(testbed: Testbed) -> None:
    with pytest.raises(MissingResource, match="it is its host's"):
        testbed.apply(ROUTER.model_copy(update={"max_connections": 1000}), PROFILE)
