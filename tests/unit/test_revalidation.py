"""The revalidators of Open vSwitch beside a load: which rounds count, and how many of them a machine can have."""

from dataclasses import replace

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.control_plane import Revalidation
from ctbench.dut.ovs.revalidators import parse_upcalls, require_cpus
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement
from ctbench.measure.control_actions import Revalidate
from ctbench.measure.procedures.control_plane import REVALIDATION, SWEEP

from .control_double import FLOWS, FakePlane, measured

pytestmark = pytest.mark.unit


def test_the_last_round_of_the_revalidators_is_asked_for_and_a_lowered_flow_limit_is_said() -> None:
    dut = FakePlane(limit=150_000)
    found, verdict = measured(dut, REVALIDATION, FLOWS, revalidation_time="<= 1s")
    (record,) = found.control
    assert (record.metric, record.sizes, record.median) == ("revalidation_time", "flows", 0.1)
    assert record.remark == "the flow limit was lowered from 200000 to 150000"
    assert (verdict.word, dut.allowed, dut.forced) == ("met", 200_000, 0)


def test_a_round_that_may_have_begun_with_fewer_flows_does_not_count() -> None:
    answers = [Revalidation(0.001, 9_000, 200_000), Revalidation(0.002, 300, 200_000)]
    answers += [Revalidation(0.003, 10_000, 200_000), Revalidation(0.020, 10_000, 200_000)]
    plane = FakePlane()
    asked = iter(answers)
    plane.revalidation = lambda: next(asked)  # type: ignore[method-assign]
    action = Revalidate(plane)
    for _ in answers:
        action.sample()
    assert [(each.seconds, each.size) for each in action.rounds] == [
        (0.001, 9_000), (0.002, 300), (0.003, 300), (0.020, 10_000),
    ]  # fmt: skip


def test_a_sweep_forces_a_round_before_it_asks() -> None:
    dut = FakePlane()
    found, verdict = measured(dut, SWEEP, FLOWS, sweep_time="<= 50ms")
    assert (found.control[0].metric, dut.forced) == ("sweep_time", dut.done)
    assert found.control[0].remark == "the flow limit stayed at 200000"
    assert verdict.word == "missed"


def test_flows_that_are_not_in_the_datapath_say_nothing() -> None:
    _, verdict = measured(FakePlane(size=6), REVALIDATION, FLOWS, revalidation_time="<= 1s")
    assert (verdict.word, "with 8.0 k flows or more (6.0 at most)" in verdict.reason) == ("not measured", True)


def test_what_upcall_show_prints_is_read() -> None:
    printed = """netdev@ovs-netdev:
  flows         : (current 50000) (avg 43210) (max 50001) (limit 200000)
  dump duration : 107ms
  ufid enabled : true

  7: (keys 50000)
"""
    assert parse_upcalls(printed) == Revalidation(0.107, 50_000, 200_000)
    with pytest.raises(TestbedError, match="neither flows nor a dump duration"):
        parse_upcalls("")


def test_more_revalidators_than_cpus_for_them_are_more_than_this_machine_has() -> None:
    two = Placement((0,), (1,), (0,))
    require_cpus(Topology(), two)
    require_cpus(Topology(revalidators=1), two)
    require_cpus(Topology(revalidators=4), replace(two, oversubscribed=True))
    with pytest.raises(MissingResource, match="2 revalidators need 2 CPUs besides those of the PMD threads: here"):
        require_cpus(Topology(revalidators=2), two)
