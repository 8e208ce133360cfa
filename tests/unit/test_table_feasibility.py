"""How many connections can be held is said before the first is opened: by host, memory, timeout and clients."""

from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.linux.netfilter import LinuxConntrackSettings
from ctbench.dut.ovs.settings import OvsConntrackSettings
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.promises import PROMISES
from ctbench.results.metrics import METRICS
from ctbench.run.feasibility import Bound, FeasibilityCase, check_table
from ctbench.run.plan import plan
from ctbench.sla.floor import Floor
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import ConnectionProfile, load_profile

pytestmark = pytest.mark.unit

OVS = Topology(timeout_s=120)
ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful", timeout_s=120)
HELD = load_profile("held")
assert isinstance(HELD, ConnectionProfile)


def bounds(
    tmp_path: Path, promised: float, topology: Topology = OVS, free_mib: int = 20_000, held: bool = True,
    profile: ConnectionProfile = HELD, testbed: str = "local",
) -> list[Bound]:  # fmt: skip
    limit, meminfo = tmp_path / "nf_conntrack_max", tmp_path / "meminfo"
    limit.write_text("262144\n")
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {free_mib * 1024} kB\n")
    metric = METRICS["held_connections"]
    floor = Floor(topology.key, profile, source="", metric=metric, thresholds={})
    case = FeasibilityCase(
        load("testbeds", testbed, TestbedConfig), load("campaigns", "quick", Campaign), topology, profile, floor
    )
    return check_table(case, promised, held=held, table=limit, meminfo=meminfo)


def test_what_fits_is_bounded_by_the_clients_the_timeout_and_the_memory_of_both(tmp_path: Path) -> None:
    found = bounds(tmp_path, 100_000)
    assert [round(bound.rate) for bound in found] == sorted(round(bound.rate) for bound in found)
    # 119.7 s at 100k/s for opening and asking, with a tenth to spare; the limit of OVS is for the measurement to find.
    assert round(found[0].rate) == 5_386_500 and "forgotten after 120 s" in found[0].text


def test_a_generator_that_holds_fewer_is_said_before_the_run(tmp_path: Path) -> None:
    assert bounds(tmp_path, 100_000, testbed="local-trex")[0].rate == 100_000
    assert bounds(tmp_path, 1_000_000, testbed="local-trex", held=False)[0].rate > 1_000_000
    with pytest.raises(MissingResource, match=r"testbed local-trex holds 100\.0 k connections \(max_held\), and the"):
        bounds(tmp_path, 100_001, testbed="local-trex")


def test_memory_that_does_not_suffice_is_said_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=r"has 512 MiB of free memory, enough for 838\.9 k connections"):
        bounds(tmp_path, 1_000_000, free_mib=512)
    assert bounds(tmp_path, 100_000, free_mib=512)[0].rate == pytest.approx(512 * 2**20 / (64 + 512) * 0.9)


def test_the_limit_of_the_host_skips_a_floor_above_it_and_bounds_one_below(tmp_path: Path) -> None:
    assert bounds(tmp_path, 250_000, ROUTER)[0].rate == 262_144
    with pytest.raises(MissingResource, match=r"a limit of the host's, and the floor is 300\.0 k\. An administrator"):
        bounds(tmp_path, 300_000, ROUTER)


def test_a_timeout_that_is_too_short_and_too_few_clients_are_mistakes_of_the_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(?s)forgotten after 30 s.*longer timeout_s"):
        bounds(tmp_path, 2_000_000, Topology())
    with pytest.raises(ConfigError, match="more client_ips"):
        bounds(tmp_path, 100_000, profile=ConnectionProfile(name="few", client_ips=1))
    assert bounds(tmp_path, 0, Topology(timeout_s=1), held=False)[0].rate > 1_000_000  # nothing is held


def test_timeouts_and_the_limit_of_a_topology_replace_those_of_the_settings() -> None:
    asked = OVS.model_copy(update={"timeout_s": 5, "max_connections": 10_000})
    ovs, linux = OvsConntrackSettings().of(asked), LinuxConntrackSettings().of(asked)
    assert set(ovs.timeouts.values()) == set(linux.timeouts.values()) == {5}
    assert ovs.max_connections == linux.max_connections == 10_000
    # The eleven of the measurements of 2017, and that of a closed connection.
    assert len(linux.timeouts) == 12 and "tcp_timeout_unacknowledged" in linux.timeouts
    assert OvsConntrackSettings().of(Topology()) == OvsConntrackSettings()
    key = "ovs-dpdk/conntrack/1cpu-1rxq/timeout_s=5/max_connections=10000"
    assert asked.key == key and Topology.parse(key) == asked


@pytest.mark.parametrize("name", [each.name for each in PROMISES.values() if each.about == "table"])
def test_each_question_about_the_table_has_its_procedure_and_its_metric(name: str) -> None:
    promise = PROMISES[name]
    metric = plan(promise, load("campaigns", "quick", Campaign), OVS, HELD).main.metric(HELD)
    assert metric.of_table and metric.role == "promise" and promise.holds
    with pytest.raises(MissingResource):
        plan(promise, load("campaigns", "builds", Campaign), OVS, HELD)
