"""Files of flows of users' own, as people write them, and zones of connection tracking that they name: what counts is
what Open vSwitch makes of them."""

from collections import Counter
from collections.abc import Mapping

import pytest
from packets import SYN, tcp
from real_duts import hand_over

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.answers import ENTRIES, ZONE_LIMITS, ZONE_POLICIES
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.ruleset import BridgeRules
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 8080)


def load(dut: OvsDpdkDut, flows: str, limits: Mapping[int, int] | None = None) -> list[str]:
    """Have the bridge follow these flows; what is not as they ask."""
    dut.apply(Topology())
    topology, _, placement = dut._applied
    rules = BridgeRules(flows, source="mine.flows", zone_limits=limits or {})
    dut._bridge.configure(topology, placement, rules)
    dut._applied = topology, rules, placement
    return dut._bridge.differences(topology, placement, rules)


@pytest.mark.parametrize(
    "flows",
    [
        "table=0, priority=10, dl_type=0x0800, ct_state=-trk, action=ct(table=0)  # look it up\n\n",
        "tcp,nw_src=16.0.0.1/255.240.0.0,tp_dst=0x1f90 actions=set_field:2->reg1,mod_dl_dst:02:00:00:00:00:01,2\n",
        "add ip,importance=7,actions=load:5->NXM_NX_REG0[],output:NXM_NX_REG0[0..15]\n",
        "in_port=port0,ip,actions=ct(commit,exec(set_field:0x5->ct_mark),exec(load:1->NXM_NX_CT_LABEL[])),port1\n"
        "cookie=0x5, duration=3.1s, table=0, n_packets=4, n_bytes=8, idle_age=1, priority=7,arp actions=NORMAL\n",
        "ip actions=output:port1\nip actions=output:port1\n",
    ],
)
def test_correct_flows_are_taken_however_they_are_written(dut: OvsDpdkDut, flows: str) -> None:
    assert load(dut, flows) == []


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ("tp_dst=8080 actions=output:port1\n", "`tp_dst=8080` for `every packet`"),
        ("ip actions=output:port1\nip actions=output:port0\n", "`ip actions=output:2`"),
        ("ip actions=output:port1\ndelete ip\n", "of its 2 flows the bridge has 0"),
        ("ip actions=lost:3\n", "unknown action"),
        ("ip actions=group:7\n", "`ip actions=group:7` (OFPBAC_BAD_OUT_GROUP)"),
        ("ip actions=meter:3,output:port1\n", "OFPMMFC_INVALID_METER"),
    ],
)
def test_flows_that_do_not_come_into_effect_are_refused(dut: OvsDpdkDut, flows: str, said: str) -> None:
    with pytest.raises(TestbedError, match=r"mine\.flows: ") as refused:
        load(dut, flows)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_each_zone_that_flows_name_forgets_as_fast_as_zone_0(dut: OvsDpdkDut) -> None:
    actions = "ct(commit,zone=0x1f,table=1),ct(commit,zone=7),ct(commit,zone=8)"
    flows = f"priority=2,tcp,ct_state=-trk,actions={actions}\ntable=1,actions=2"
    assert load(dut, flows) == []
    policies = dut.control.ask(ZONE_POLICIES, dut.snapshot()["datapath_type"])
    assert {zone: policies[zone]["tcp_syn_sent"] for zone in (7, 8, 31)} == {7: 1, 8: 1, 31: 1}
    dut.flush_state()
    hand_over(dut, 1, tcp(CLIENT, SERVER, SYN, 100))
    assert {(each.zone, each.timeout_s <= 1) for each in dut.control.ask(ENTRIES)} == {(7, True), (8, True), (31, True)}


def test_a_zone_has_no_more_entries_than_its_limit(dut: OvsDpdkDut) -> None:
    limited = "priority=2,tcp,ct_state=-trk,actions=ct(commit,zone=7),ct(commit,zone=8)\ntable=1,actions=2"
    assert load(dut, limited, {7: 2}) == []
    dut.flush_state()
    for number in range(4):
        hand_over(dut, 1, tcp((CLIENT[0], 40000 + number), SERVER, SYN, 100))
    assert Counter(each.zone for each in dut.control.ask(ENTRIES)) == {7: 2, 8: 4}
    assert dut.snapshot()["conntrack"]["zone_limits"] == {"7": {"limit": 2, "entries": 2}}
    dut.control.appctl("dpctl/ct-set-limits", "zone=7,limit=3")
    with pytest.raises(TestbedError, match="limit of conntrack zone 7: asked 2, found 3"):
        dut.verify()
    dut.apply(Topology())
    assert (dut.control.ask(ZONE_LIMITS), "zone_limits" in dut.snapshot()["conntrack"]) == ({}, False)
