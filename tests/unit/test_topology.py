"""The one name of a topology."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.dut.topology import Topology

TOPOLOGIES = st.builds(
    Topology,
    datapath=st.sampled_from(["ovs-dpdk", "linux-router"]),
    ruleset=st.sampled_from(["conntrack", "iptables-snat"]),
    cpus=st.integers(1, 64),
    rx_queues=st.integers(1, 64),
    ports=st.sampled_from(["plain", "bond", "bond-vlan"]),
    mtu=st.integers(576, 9000),
    rx_descriptors=st.integers(64, 16384),
    emc_insert_inv_prob=st.none() | st.integers(0, 100),
    smc=st.none() | st.booleans(),
)


def test_a_key_names_what_is_not_the_default() -> None:
    assert Topology(ruleset="nat", cpus=8, rx_queues=4).key == "ovs-dpdk/nat/8cpu-4rxq"
    assert Topology(ruleset="normal", ports="bond", mtu=9000).key == "ovs-dpdk/normal/1cpu-1rxq/ports=bond/mtu=9000"
    assert Topology(emc_insert_inv_prob=0, smc=True).key.endswith("1rxq/emc_insert_inv_prob=0/smc=true")


@given(TOPOLOGIES)
def test_a_key_names_one_topology_and_no_other(topology: Topology) -> None:
    assert Topology.parse(topology.key) == topology


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", '"" is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES'),
        ("ovs-dpdk/conntrack", "is not a topology"),
        ("ovs-dpdk/conntrack/0cpu-1rxq", "cpus is 0.\n  Expected greater than or equal to 1"),
        ("ovs-dpdk/conntrack/1cpu-65rxq", "rx_queues is 65.\n  Expected less than or equal to 64"),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mut=9000", '"mut" is not an option of a topology.\n  Expected ports, mtu, '),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mtu=big", 'mtu is "big"'),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mtu=1500", 'Expected "ovs-dpdk/conntrack/1cpu-1rxq".'),
        ("ovs-dpdk/normal/1cpu-1rxq/mtu=9000/ports=bond", 'Expected "ovs-dpdk/normal/1cpu-1rxq/ports=bond/mtu=9000".'),
        ("ovs-dpdk/conntrack/01cpu-1rxq", 'Expected "ovs-dpdk/conntrack/1cpu-1rxq".'),
    ],
)
def test_a_key_that_names_none_says_what_is_expected(key: str, expected: str) -> None:
    with pytest.raises(ValueError) as refusal:
        Topology.parse(key)
    assert expected in str(refusal.value)
