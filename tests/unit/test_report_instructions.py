"""The chart of what packets cost in instructions."""

import pytest

from ctbench.dut.topology import Topology
from ctbench.report.charts.draw import draw
from ctbench.report.charts.instructions import instruction_charts
from ctbench.results.figure import Figure
from ctbench.results.record import Record
from ctbench.traffic.profiles import load_profile

from .simulated import made_up_packet_record

pytestmark = pytest.mark.unit


def counted(ruleset: str, instructions: float, image: str = "a1") -> Record:
    record = made_up_packet_record()
    around = record.environment
    return record.model_copy(
        update={
            "metric": "instructions_per_packet",
            "topology": Topology(datapath="emulated", ruleset=ruleset),
            "profile": load_profile("udp-64-1flow"),
            "figures": {"instructions_per_packet": Figure(instructions, "instructions")},
            "environment": around.model_copy(update={"dut": around.dut.model_copy(update={"image": image})}),
        }
    )


def test_topologies_stand_from_the_cheapest_on_with_what_is_more_than_forwarding() -> None:
    (chart,) = instruction_charts(
        [counted("iptables-stateful", 3000), counted("forward", 1000), counted("bridge", 400)]
    )
    assert [(share.label, share.text) for share in chart.shares] == [
        ("Learning bridge", "400.0 · -600.0"),
        ("Plain forwarding", "1,000.0"),
        ("Stateful iptables", "3,000.0 · +2,000.0"),
    ]
    assert chart.shares[0].share == pytest.approx(400 / 3000)
    assert chart.caption.startswith("Stateful iptables costs most, 3,000.0 instructions; Learning bridge least, 13.3 %")
    assert draw(chart).startswith("<svg")


def test_machines_are_not_mixed_and_a_single_topology_is_no_chart() -> None:
    assert instruction_charts([counted("forward", 1000), counted("bridge", 400, "b2")]) == []


def test_rates_are_in_no_such_chart() -> None:
    assert instruction_charts([made_up_packet_record(), made_up_packet_record()]) == []
