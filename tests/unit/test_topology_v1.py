"""Topologies in records of version 1, where what the ports are is a part of the ruleset's name."""

import pytest
from hypothesis import given
from pydantic import TypeAdapter, ValidationError

from ctbench.dut.topology import Topology
from ctbench.results.topology_v1 import RecordedTopology, read, write

from .test_topology import TOPOLOGIES

pytestmark = pytest.mark.unit

RECORDED: TypeAdapter[Topology] = TypeAdapter(RecordedTopology)


@pytest.mark.parametrize(
    ("datapath", "ruleset", "topology"),
    [
        ("ovs-dpdk", "conntrack", Topology()),
        ("ovs-dpdk", "bond-vlan", Topology(ruleset="normal", ports="bond-vlan")),
        ("linux-router", "vlan", Topology(datapath="linux-router", ruleset="forward", ports="vlan")),
        ("linux-bridge", "bond", Topology(datapath="linux-bridge", ruleset="forward", ports="bond")),
        ("linux-router", "notrack", Topology(datapath="linux-router", ruleset="iptables-notrack")),
        ("ovs-dpdk", "conntrack-normal+bond", Topology(ruleset="conntrack-normal", ports="bond")),
    ],
)
def test_a_record_says_a_topology_in_the_words_of_version_1(datapath: str, ruleset: str, topology: Topology) -> None:
    written = {"datapath": datapath, "ruleset": ruleset, "pmd_cpus": 1, "rx_queues": 1}

    assert RECORDED.validate_python(written) == topology
    assert write(topology)["ruleset"] == ruleset


@given(TOPOLOGIES)
def test_what_is_written_is_read_again(topology: Topology) -> None:
    assert RECORDED.validate_json(RECORDED.dump_json(topology)) == topology


@pytest.mark.parametrize("odd", [None, [], "x", 1, {"cpus": 1}, {"ports": "bond"}, {"ruleset": []}, {"pmd_cpus": "1"}])
def test_what_is_no_topology_is_refused(odd: object) -> None:
    with pytest.raises(ValidationError):
        RECORDED.validate_python(odd, strict=True)


def test_the_keys_are_those_of_version_1() -> None:
    assert list(write(Topology())) == [
        "datapath", "pmd_cpus", "rx_queues", "rx_descriptors", "ruleset", "mtu", "emc_insert_inv_prob", "smc",
    ]  # fmt: skip
    assert read(write(Topology())) == Topology().model_dump(exclude={"ports"})
