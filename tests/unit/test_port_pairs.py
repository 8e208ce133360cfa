"""Several pairs of ports, from the testbed file to the page: what is set up for each, and whose losses are named."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.network import MOST_PORT_PAIRS
from ctbench.base.yaml_files import load, make
from ctbench.dut.linux import netfilter
from ctbench.dut.linux.forwarding import NETWORKS, networks
from ctbench.dut.ovs.ruleset import read_rules
from ctbench.dut.rulesets import catalogue
from ctbench.measure.observation import Observation
from ctbench.results.evidence import of_port_pairs
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.generator import PortPair
from ctbench.traffic.trex.config import trex_cfg
from ctbench.traffic.trex.source import TrexGeneratorConfig

from .simulated import LIMITS, made_up_trial, seen


def test_losses_are_named_where_not_all_pairs_have_them() -> None:
    def reason(*lost: int) -> str:
        pairs = [PortPair(attempted=1000, completed=1000 - count) for count in lost]
        trial = made_up_trial(load=1000.0, loss=0.3)
        return Observation(trial.model_copy(update={"port_pairs": pairs}), LIMITS).reason

    assert "on port pair" not in reason(300) + reason(160, 140)
    assert ", on port pair 2 of 4 (limit" in reason(0, 300, 0, 1)
    assert ", on port pair 1 and 3 of 4 (limit" in reason(150, 0, 150, 0)


def test_what_each_pair_did_is_shown_of_the_highest_load_that_was_held() -> None:
    def step(load: float, lost: int, **changes: Any) -> Any:
        pairs = [PortPair(attempted=100, completed=100), PortPair(attempted=100, completed=100 - lost)]
        made = seen(load=load, loss=0.3 if lost else 0.0)
        trial = made.trial.model_copy(update={"port_pairs": pairs, "duration_s": 1.0} | changes)
        return replace(made, trial=trial).as_record()

    held, higher, lost = step(100.0, 0), step(200.0, 0), step(400.0, 50)
    assert of_port_pairs([lost, higher, held]) == (
        "1: 100 connections/s, lost 0.000 %",
        "2: 100 connections/s, lost 0.000 %",
    )
    assert of_port_pairs([lost])[1] == "2: 50.0 connections/s, lost 50.0 %"
    assert of_port_pairs([step(100.0, 0, port_pairs=[])]) == ()
    packets = [PortPair(unit="packets", attempted=10, completed=9)] * 2
    assert of_port_pairs([step(100.0, 0, port_pairs=packets)])[0] == "1: lost 10.0 %"


def test_flows_that_name_ports_come_once_for_each_pair_with_its_addresses() -> None:
    plain = read_rules(catalogue()["ovs", "conntrack"], "plain")
    assert read_rules(catalogue()["ovs", "conntrack"], "plain", pairs=1) == plain
    rules = read_rules(catalogue()["ovs", "conntrack"], "plain", pairs=2)
    assert rules.interfaces == ("port0", "port1", "port2", "port3")
    assert [port.is_bond for port in rules.ports] == [False] * 4
    flows = [" ".join(flow.split()) for flow in rules.flows.splitlines()]
    assert flows.count("priority=1 ip ct_state=-trk actions=ct(table=0)") == 1
    assert "priority=1 ip ct_state=+trk+est in_port=port3 actions=output:port2" in flows
    assert len(flows) == 2 + 2 * 3
    each = read_rules(catalogue()["ovs", "rule-each"], "plain", pairs=2).flows
    assert "in_port=port2 nw_src=16.1.0.{0..255}" in each and "in_port=port0 nw_src=16.0.0.{0..255}" in each
    vlan = read_rules(catalogue()["ovs", "normal"], "vlan", pairs=2)
    assert [port.columns["trunks"] for port in vlan.ports] == ["100"] * 4
    with pytest.raises(MissingResource, match="Bonds need a testbed with one pair of ports; this one has 2"):
        read_rules(catalogue()["ovs", "normal"], "bond", pairs=2)


def test_rules_of_linux_that_name_interfaces_come_once_for_each_pair() -> None:
    rules = netfilter.read_rules(catalogue()["iptables", "iptables-stateful"], ("r0", "r1", "r2", "r3"))
    lines = rules.text.splitlines()
    for client, server in (("r0", "r1"), ("r2", "r3")):
        assert f"-A FORWARD -i {client} -o {server} -m conntrack --ctstate NEW -j ACCEPT" in lines
    assert (lines.count("*filter"), lines.count("COMMIT")) == (1, 1)


def test_a_router_has_networks_of_its_own_for_each_pair() -> None:
    assert networks(4, 1) == [*NETWORKS[4].values()]
    assert networks(4, 2)[2:] == [
        ("198.18.2.1/30", "198.18.2.2", "16.1.0.0/16"),
        ("198.18.3.1/30", "198.18.3.2", "48.1.0.0/16"),
    ]
    assert networks(6, 2)[2] == ("2001:2:0:3::1/64", "2001:2:0:3::2", "2001:2:0:16::1:0/112")
    every = [address for version in (4, 6) for address, _, _ in networks(version, MOST_PORT_PAIRS)]
    assert len({*every}) == len(every)


CARDS = {"kind": "pci", "client": "0000:18:00.0", "server": "0000:18:00.1"}
MORE = {"client": "0000:18:00.2", "server": "0000:18:00.3"}


def lab(cards: dict[str, Any], **generator: Any) -> TestbedConfig:
    made = load("testbeds", "example-trex-xeon", TestbedConfig).model_dump()
    made["duts"][0]["ports"] = cards
    made["generator"] |= {"more_pairs": [], "ports": [0, 1]} | generator
    return make(made, "mylab.yaml", TestbedConfig)


TREX_MORE = {
    "client": {"interface": "18:00.0", "mac": "04:3f:72:00:00:01"},
    "server_port": {"interface": "18:00.1", "mac": "04:3f:72:00:00:02"},
}


def test_the_shipped_testbed_has_two_pairs_and_a_lab_names_its_cards() -> None:
    assert [dut.ports and dut.ports.pairs for dut in load("testbeds", "local-2pairs", TestbedConfig).duts] == [2, 2]
    made = lab(CARDS | {"more_pairs": [MORE]}, more_pairs=[TREX_MORE], ports=[0, 1, 2, 3])
    (dut,) = made.duts
    assert dut.ports and dut.ports.pairs == 2
    assert [name for name, _ in dut.ports.cards] == ["client", "server", "client 2", "server 2"]


@pytest.mark.parametrize(
    ("ports", "generator", "said"),
    [
        (CARDS | {"more_pairs": [MORE | {"server": "0000:18:00.0"}]}, {}, "client and server 2 are both"),
        (CARDS | {"more": ["0000:18:00.4", "0000:18:00.5"], "more_pairs": [MORE]}, {}, "no more_pairs with them"),
        (CARDS | {"more_pairs": [MORE]}, {}, r"pairs of ports: 2, and of the generator: 1"),
        (CARDS | {"more_pairs": [MORE] * 4}, {}, "more_pairs"),
        (CARDS, {"more_pairs": [TREX_MORE], "ports": [0, 1]}, r"ports: \[0, 1\] are not 4 ports"),
    ],
)
def test_pairs_that_cannot_be_are_a_mistake(ports: dict[str, Any], generator: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        lab(ports, **generator)


def test_trex_gets_the_interfaces_of_all_pairs_and_threads_for_each() -> None:
    settings = {
        "type": "trex", "host": "local", "server": "start", "cores": 2, "cpus": [0, 1, 2, 3, 4, 5],
        "client": {"interface": "18:00.2", "dest_mac": "04:3f:72:00:00:04"},
        "server_port": {"interface": "18:00.3", "dest_mac": "04:3f:72:00:00:03"},
        "more_pairs": [{"client": {"interface": "18:00.0", "dest_mac": "04:3f:72:00:00:02"},
                        "server_port": {"interface": "18:00.1", "dest_mac": "04:3f:72:00:00:01"}}],
    }  # fmt: skip
    config = TrexGeneratorConfig.model_validate(settings)
    assert (config.ports, config.cpus_needed) == ([0, 1, 2, 3], 6)
    (content,) = yaml.safe_load(trex_cfg(config, 1 << 20))
    assert content["interfaces"] == ["18:00.2", "18:00.3", "18:00.0", "18:00.1"]
    assert [port["dest_mac"][-2:] for port in content["port_info"]] == ["04", "03", "02", "01"]
    assert content["c"] == 2
    assert [each["threads"] for each in content["platform"]["dual_if"]] == [[2, 3], [4, 5]]
    few = config.model_copy(update={"cpus": [0, 1, 2, 3]})
    with pytest.raises(ConfigError, match=r"too few for cores: 2 of each of 2 pairs\.\n  Expected 6"):
        trex_cfg(few)
