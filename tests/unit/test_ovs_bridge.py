"""What OVS' interfaces stand on and what is loaded: device arguments, rulesets, ports, and what is refused."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.dut.ovs.bridge import Bridge
from ctbench.dut.ovs.control_plane import OvsControlPlane
from ctbench.dut.ovs.dpdk import Devices, MemifDevices, PciDevices, VethDevices
from ctbench.dut.ovs.ruleset import NUMBERS, BridgeRules, all_flows, read_rules
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.hosts.machine import Placement

PLACEMENT = Placement((0,), (1,), (2,))
PLAIN, BOND = read_rules(catalogue()["ovs", "normal"], "plain"), read_rules(catalogue()["ovs", "normal"], "bond")
CARDS = ["0000:18:00.2", "0000:18:00.3", "0000:3b:00.0", "0000:3b:00.1"]
LIMITS = "Limit                     Soft Limit           Hard Limit           Units     \n{}\nMax processes 1 1 p\n"


def veth(frames: int = 1024, memlock: str = "unlimited") -> VethDevices:
    line = f"Max locked memory         {memlock}            {memlock}            bytes"
    said = {("cat", "/proc/self/limits"): Completed(0, LIMITS.format(line), "")}
    return VethDevices(Mock(run=lambda argv: said[tuple(argv)]), frames)


def test_rings_that_may_not_be_locked_are_refused_and_a_larger_mtu_takes_more() -> None:
    veth(1024, memlock=str(8 << 20)).require(Topology(), PLAIN, "22.11.1")
    with pytest.raises(MissingResource) as refusal:
        veth(4096, memlock=str(8 << 20)).require(Topology(), PLAIN, "22.11.1")
    assert "need 32 MiB of locked memory (ports.ring_size 4096, MTU 1500), and 8 MiB are allowed" in str(refusal.value)
    assert "take ring_size 1024" in str(refusal.value)
    with pytest.raises(MissingResource, match=r"need 64 MiB .* MTU 9000"):
        veth(1024, memlock=str(8 << 20)).require(Topology(mtu=9000), PLAIN, "22.11.1")
    assert ",framesz=16384,framecnt=1024,blocksz=16384" in veth().devargs("port0", Topology(mtu=9000))


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (veth(), "4 network ports; over veth OVS has two: bonds need memif"),
        (PciDevices(CARDS[:2]), "needs 4 network ports; OVS has 2 on this testbed"),
    ],
)
def test_bonds_need_four_links(devices: Devices, said: str) -> None:
    devices.require(Topology(), PLAIN, "22.11.1")
    with pytest.raises(MissingResource, match=said):
        devices.require(Topology(), BOND, "22.11.1")


def test_cards_are_client_and_server_side_in_turn() -> None:
    devices = PciDevices(CARDS)

    assert [devices.devargs(f"port{number}", Topology()) for number in range(4)] == CARDS
    ports = devices.ports(Topology(cpus=2), BOND, PLACEMENT)
    assert (ports.kind, ports.links) == ("pci", (tuple(CARDS[:2]), tuple(CARDS[2:])))
    assert devices.ports(Topology(), PLAIN, PLACEMENT).links == (tuple(CARDS[:2]),)
    assert json.dumps(devices.facts())


NORMAL, CONNTRACK = catalogue()["ovs", "normal"], catalogue()["ovs", "conntrack"]


def read(folder: Path, ports: str) -> BridgeRules:
    (folder / "vlan.ports").write_text(ports)
    return read_rules(NORMAL, "vlan", folder)


def test_flows_have_no_ranges_and_over_bonds_no_links_in_the_end() -> None:
    assert all_flows("nw_src=16.0.0.{9..10} tp_src={1..2} actions=drop\nactions=drop\n").splitlines() == [
        *(f"nw_src=16.0.0.{ip} tp_src={port} actions=drop" for ip in (9, 10) for port in (1, 2)),
        "actions=drop",
    ]
    # Ranges of one name go together.
    assert all_flows("ct_zone={n=1..2},tp_src={1..2} actions=ct(commit,zone={n=1..2})").splitlines() == [
        f"ct_zone={zone},tp_src={port} actions=ct(commit,zone={zone})" for zone in (1, 2) for port in (1, 2)
    ]
    assert BridgeRules("actions=ct(table={n=1..2},zone={n=1..2})").zones == (1, 2)
    with pytest.raises(ConfigError, match=r"conntrack\.flows: names single links \(.*port0"):
        read_rules(CONNTRACK, "bond")


def test_a_limit_of_a_zone_that_the_flows_do_not_name_is_refused() -> None:
    flows = "tcp actions=ct(commit,zone=10)"
    BridgeRules(flows, zone_limits={10: 5}).require_known()
    with pytest.raises(ConfigError, match="zone_limits names zone 7, and the flows track in 10"):
        BridgeRules(flows, zone_limits={7: 5, 10: 5}).require_known()


@pytest.mark.parametrize(
    ("flows", "named"),
    [
        ("tcp actions=ct(commit,zone=NXM_NX_REG6[0..15])", "zone=NXM_NX_REG6[0..15]"),
        ("tcp actions=ct(table=0,zone=reg13[0..15],nat)", "zone=reg13[0..15]"),
        ("tcp actions=ct(table=4)\ntable=3 actions=output:port1", "table 4"),
        ("table=1 tcp actions=ct(table=0)", "table 0"),
        ("tcp actions=goto_table:2", "table 2"),
        ("tcp actions=output:port2", "port2"),
        ("# tcp actions=output:port1\n", "no flows"),
    ],
)
def test_what_flows_name_and_is_not_there_is_refused(flows: str, named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BridgeRules(flows, source="mine.flows").require_known()
    assert str(refused.value).startswith("mine.flows: ") and named in str(refused.value).splitlines()[0]


def test_ports_have_the_columns_of_their_file_and_bonds_two_links(tmp_path: Path) -> None:
    client, server = read(tmp_path, "# a comment\nport0 vlan_mode=trunk trunks=100\n\nport1 tag=7\n").ports
    assert (client.name, client.interfaces, client.columns) == (
        "port0",
        ("port0",),
        {"vlan_mode": "trunk", "trunks": "100"},
    )
    assert server.columns == {"tag": "7"} and not server.is_bond
    ruleset = read_rules(NORMAL, "bond-vlan")
    assert ruleset.bonds == ("bond0", "bond1")
    assert ruleset.interfaces == ("port0", "port1", "port2", "port3") == tuple(NUMBERS)[:4]
    assert ruleset.ports[0].columns["other_config:bond-rebalance-interval"] == "0"


@pytest.mark.parametrize(
    "ports",
    [
        "", "port0\n", "port1\nport0\n", "port0\nport1\nport2\n", "port0\neth1\n", "bond0 port0 port2\nport1\n",
        "bond0 port0 port1\nbond1 port2 port3\n", "vlan_mode=trunk\nport1\n",
    ],
)  # fmt: skip
def test_ports_that_are_not_the_two_sides_say_what_is_expected(tmp_path: Path, ports: str) -> None:
    with pytest.raises(ConfigError, match=r"vlan\.ports has the ports .* Expected two lines, the clients' side first"):
        read(tmp_path, ports)


@pytest.mark.parametrize(
    ("version", "crashes"),
    [("21.11.0", True), ("21.11.2", True), ("21.11.3", False), ("22.11.11", False), ("none", False)],
)
def test_a_dpdk_that_crashes_on_unequal_rings_is_refused_where_they_would_be(version: str, crashes: bool) -> None:
    devices = MemifDevices(Mock(), "/run/x")
    devices.require(Topology(cpus=1, rx_queues=2), PLAIN, version)
    devices.require(Topology(cpus=3, rx_queues=4), PLAIN, version)
    says = rf"DPDK {version} crashes .* 1 PMD CPU\(s\) work with 2 RX queues there"
    with pytest.raises(MissingResource, match=says) if crashes else nullcontext():
        devices.require(Topology(cpus=1, rx_queues=1), PLAIN, version)


#: What ovs-vsctl ends with since 3.6 where a port could not be opened.
FAILED = "sandbox: `ovs-vsctl add-port` failed with status 65: could not open network device port0"


@pytest.mark.parametrize(
    ("fails", "errors", "said"),
    [
        (True, ["No such device", []], "OVS cannot open port0: No such device. Is a package missing"),
        (False, [[], "Invalid argument"], "OVS cannot open port1: Invalid argument. Is a package missing"),
        (True, [[], []], FAILED),
        (True, None, FAILED),
    ],
    ids=["since 3.6", "before", "of something else", "and cannot be asked"],
)
def test_a_port_that_cannot_be_opened_is_named_with_its_error(fails: bool, errors: Any, said: str) -> None:
    def rows(*_: object) -> dict[str, dict[str, Any]]:
        if errors is None:
            raise TestbedError("no answer")
        return {name: {"error": error} for name, error in zip(("port0", "port1"), errors, strict=True)}

    control = Mock(bridge="br0", rows=rows, vsctl=Mock(side_effect=TestbedError(FAILED) if fails else None))
    with pytest.raises(TestbedError) as raised:
        Bridge(control, "netdev", PciDevices(CARDS)).configure(Topology(), PLACEMENT, PLAIN)
    assert str(raised.value).startswith(said)


def test_many_ports_that_go_in_one_transaction_get_more_time_than_one() -> None:
    control = Mock()
    OvsControlPlane(control).delete_ports([f"stay{number}" for number in range(257)])
    said = [call.args for call in control.vsctl.call_args_list]
    assert [(words[0], words.count("del-port")) for words in said] == [("--timeout=30", 256), ("--timeout=5", 1)]


def test_what_is_left_to_normal_learns_addresses_and_a_comment_that_names_it_does_not() -> None:
    known = {name: read_rules(ruleset, "plain") for (family, name), ruleset in catalogue().items() if family == "ovs"}
    assert {name for name, rules in known.items() if rules.learns} == {"normal", "conntrack-normal"}
    assert "normal" in known["conntrack"].flows
