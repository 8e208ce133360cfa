"""What is applied to the real OVS-DPDK and read back, and what rulesets do besides what test_stateful_forwarding
shows. Each topology of the matrix: test_traffic_topologies."""

import json

import pytest
from packets import udp
from real_duts import counted, hand_over

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import Topology

pytestmark = pytest.mark.beside_others

ARP = bytes.fromhex("ffffffffffff 020000000001 0806 0001080006040001".replace(" ", "")) + bytes(38)
CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 8080)
DATAGRAM = udp(CLIENT, SERVER, b"data")


@pytest.mark.parametrize("ruleset", [name for family, name in catalogue() if family == "ovs"])
def test_every_ruleset_that_ships_is_taken_as_it_is_written(dut: OvsDpdkDut, ruleset: str) -> None:
    dut.apply(Topology(ruleset=ruleset))  # which reads back what Open vSwitch has: 200 000 flows of one of them


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("vsctl", "set Interface port0 options:n_rxq=3", "rx_queues of port0: asked 2, found 3"),
        ("vsctl", "set Interface port1 options:n_rxq_desc=512", "rx_descriptors of port1: asked 2048, found 512"),
        ("vsctl", "set Interface port0 mtu_request=2000", "MTU of port0: asked 1500, found 2000"),
        ("vsctl", "set Open_vSwitch . other_config:pmd-cpu-mask=0x3", "pmd-cpu-mask: asked 0x1, found 0x3"),
        ("vsctl", "set Open_vSwitch . other_config:n-handler-threads=3", "n-handler-threads: asked None, found 3"),
        ("vsctl", "del-zone-tp {datapath} zone=0", "timeouts of zone 0: asked .*, found {{}}"),
        ("appctl", "dpctl/ct-set-maxconns 1000", "conntrack limit: asked 5000000, found 1000"),
        ("ofctl", "add-flow br0 priority=7,actions=drop", r"flows of br0: .*\+priority=7 actions=drop"),
        ("ofctl", "del-flows br0 in_port=1", "flows of br0: .*-priority=1.*in_port=1"),
        ("vsctl", "set Port port0 trunks=100,200", "trunks of port0: asked 100, found 100,200"),
        ("vsctl", "clear Port port1 vlan_mode", "vlan_mode of port1: asked trunk, found None"),
    ],
)
def test_what_changes_behind_its_back_is_found(dut: OvsDpdkDut, tool: str, arguments: str, complaint: str) -> None:
    topology = Topology(ruleset="normal", ports="vlan") if " Port " in arguments else Topology(rx_queues=2)
    dut.apply(topology)  # which puts back what the test before has changed, or fails
    kind = dut.snapshot()["datapath_type"]

    getattr(dut.control, tool)(*arguments.format(datapath=kind).split())

    with pytest.raises(TestbedError, match=complaint.replace("{{}}", r"\{\}")):
        dut.verify()
    if "zone-tp" in arguments:  # set once per ovs-vswitchd, so put back by hand
        timeouts = [f"{name}={value}" for name, value in dut.snapshot()["conntrack"]["timeouts"].items()]
        dut.control.vsctl("add-zone-tp", kind, "zone=0", *timeouts)


def test_the_snapshot_can_be_written_down(dut: OvsDpdkDut) -> None:
    dut.apply(Topology())

    snapshot = json.loads(json.dumps(dut.snapshot()))

    assert snapshot["version"][0].isdigit() and snapshot["dpdk_version"][0].isdigit()
    assert snapshot["datapath_type"] in ("netdev", "dummy")
    assert snapshot["memory"]["kind"] == "hugepages" or "/nr_hugepages" in snapshot["memory"]["advice"]
    assert snapshot["placement"]["oversubscribed"] is True
    assert snapshot["pmd"]["0"]["packets_received"] == 0


@pytest.mark.parametrize("ruleset", ["forward", "conntrack", "conntrack-normal", "nat"])
def test_what_is_not_ip_is_dropped(dut: OvsDpdkDut, ruleset: str) -> None:
    dut.apply(Topology(ruleset=ruleset))
    hand_over(dut, 1, ARP)
    hand_over(dut, 2, ARP)
    assert counted(dut).drops == {}


def test_lost_packets_are_named_in_the_health_of_a_trial(dut: OvsDpdkDut) -> None:
    dut.apply(Topology(ruleset="forward"))
    hand_over(dut, 1, DATAGRAM)
    dut.begin_trial()
    assert dut.health() == []

    hand_over(dut, 1, DATAGRAM)

    (problem,) = dut.health()
    assert (problem.severity, problem.code) == ("disturbed", "generator-rings-full")
    assert "1 packets there (server.ovs_tx_failure_drops)" in problem.text
