"""What the files of a ruleset say, and what is said of one that is wrong."""

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.ovs.installation import refuse_unequal_rings
from ctbench.dut.ovs.ruleset import LINKS, PLAIN_PORTS, BridgeRules, number_ports, read_rules
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import PortSetup, Topology

pytestmark = pytest.mark.unit


NORMAL, CONNTRACK = catalogue()["ovs", "normal"], catalogue()["ovs", "conntrack"]


def read(folder: Path, ports: str) -> BridgeRules:
    (folder / "vlan.ports").write_text(ports)
    return read_rules(NORMAL, "vlan", folder)


@pytest.mark.parametrize("setup", [setup for setup in get_args(PortSetup) if setup != "plain"])
def test_every_set_up_of_ports_ships(setup: PortSetup) -> None:
    rules = read_rules(NORMAL, setup)

    assert bool(rules.bonds) == ("bond" in setup)
    assert ("trunks" in rules.ports[0].columns) == ("vlan" in setup)


def test_ports_of_a_ruleset_get_their_numbers() -> None:
    assert number_ports("ip in_port=port0 actions=output:port1") == "ip in_port=1 actions=output:2"
    assert number_ports("in_port=port01") == "in_port=port01"


def test_plain_ports_are_two_links() -> None:
    rules = read_rules(CONNTRACK, "plain")

    assert CONNTRACK.file and (rules.flows, rules.ports) == (CONNTRACK.file.read_text(), PLAIN_PORTS)
    assert (rules.links, rules.interfaces, rules.bonds) == ((("port0", "port1"),), ("port0", "port1"), ())


def test_flows_that_name_links_are_refused_over_bonds() -> None:
    with pytest.raises(ConfigError, match=r"conntrack\.flows: names single links \(.*port0"):
        read_rules(CONNTRACK, "bond")


def test_ports_have_the_columns_of_their_file(tmp_path: Path) -> None:
    client, server = read(tmp_path, "# a comment\nport0 vlan_mode=trunk trunks=100\n\nport1 tag=7\n").ports

    assert (client.name, client.interfaces, client.columns) == (
        "port0", ("port0",), {"vlan_mode": "trunk", "trunks": "100"},
    )  # fmt: skip
    assert server.columns == {"tag": "7"} and not server.is_bond


def test_bonds_have_two_links() -> None:
    ruleset = read_rules(NORMAL, "bond-vlan")

    assert ruleset.bonds == ("bond0", "bond1")
    assert ruleset.links == LINKS and ruleset.interfaces == ("port0", "port1", "port2", "port3")
    assert ruleset.ports[0].columns["other_config:bond-rebalance-interval"] == "0"


@pytest.mark.parametrize(
    "ports",
    [
        "",
        "port0\n",
        "port1\nport0\n",
        "port0\nport1\nport2\n",
        "port0\neth1\n",
        "bond0 port0 port2\nport1\n",
        "bond0 port0 port1\nbond1 port2 port3\n",
        "vlan_mode=trunk\nport1\n",
    ],
)
def test_ports_that_are_not_the_two_sides_say_what_is_expected(tmp_path: Path, ports: str) -> None:
    with pytest.raises(ConfigError, match=r"vlan\.ports has the ports .* Expected two lines, the clients' side first"):
        read(tmp_path, ports)


@given(st.text(st.sampled_from("port0123bond =#\n"), max_size=60))
def test_any_text_for_ports_gives_two_sides_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.mktemp("ruleset")
    try:
        ruleset = read(folder, text)
    except ConfigError:
        return
    assert ruleset.links in (LINKS[:1], LINKS)


@pytest.mark.parametrize("version", ["21.11.0", "21.11.2"])
def test_a_dpdk_that_crashes_on_unequal_rings_is_refused_where_they_would_be(version: str) -> None:
    refuse_unequal_rings(version, Topology(cpus=1, rx_queues=2))
    refuse_unequal_rings(version, Topology(cpus=3, rx_queues=4))

    with pytest.raises(MissingResource, match=rf"DPDK {version} crashes .* 1 PMD CPU\(s\) work with 2 RX queues there"):
        refuse_unequal_rings(version, Topology(cpus=1, rx_queues=1))


@pytest.mark.parametrize("version", ["21.11.3", "21.11.9", "22.11.11", "none"])
def test_a_dpdk_that_does_not_crash_takes_any_topology(version: str) -> None:
    refuse_unequal_rings(version, Topology(cpus=1, rx_queues=1))
