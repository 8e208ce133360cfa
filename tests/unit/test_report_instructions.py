"""The chart of what packets cost in instructions, and their history."""

import pytest

from ctbench.report.charts.draw import draw
from ctbench.report.charts.history import history_charts
from ctbench.report.charts.instructions import instruction_charts
from ctbench.report.charts.model import Share
from ctbench.results.record import Record

from .counted import counted_record
from .simulated import made_up_packet_record

pytestmark = pytest.mark.unit


def counted(ruleset: str, instructions: float, image: str = "a1", ports: str = "plain") -> Record:
    return counted_record(ruleset, [instructions], image=image, ports=ports)


def shares(*costs: tuple[str, float] | tuple[str, float, str]) -> dict[str, Share]:
    (chart,) = instruction_charts([counted(*each[:2], ports=(*each, "plain")[2]) for each in costs])  # type: ignore[misc]
    assert draw(chart).startswith("<svg")
    return {share.label: share for share in chart.shares}


def test_a_bar_is_made_of_what_its_topology_adds_to_a_simpler_one() -> None:
    found = shares(
        ("iptables-snat", 4600), ("forward", 1400), ("iptables-stateful", 3800), ("iptables-10-rules", 4500),
        ("ovs-forward", 1700), ("ovs-conntrack", 4600), ("ovs-nat", 5200), ("ovs-user-forward", 9000),
        ("ovs-user-nat", 9900),
    )  # fmt: skip
    assert {label: share.note for label, share in found.items()} == {
        "Plain forwarding": "",
        "Open vSwitch (kernel), forwarding": "",
        "Open vSwitch (userspace), forwarding": "",
        # Not upon the kernel's datapath, which is other code.
        "Open vSwitch (userspace), conntrack and SNAT": "",
        "Stateful iptables": "forwarding 1,400.0 + conntrack and its rules 2,400.0",
        "Stateful iptables, 10 rules more": "forwarding 1,400.0 + conntrack and its rules 2,400.0 + more rules 700.0",
        "Open vSwitch (kernel), conntrack": "forwarding 1,700.0 + conntrack and its rules 2,900.0",
        "SNAT, iptables": "forwarding 1,400.0 + conntrack and its rules 2,400.0 + NAT 800.0",
        "Open vSwitch (kernel), conntrack and SNAT": "forwarding 1,700.0 + conntrack and its rules 2,900.0 + NAT 600.0",
    }
    for share in found.values():
        assert sum(part.share for part in share.parts) == pytest.approx(share.share)


def test_bonds_stand_upon_the_same_topology_without_them() -> None:
    both = shares(("forward", 2500, "vlan"), ("forward", 3300, "bond-vlan"))["Plain forwarding, Bond and VLAN"]
    assert both.note == "not divided 2,500.0 + bonds, VLANs 800.0"
    assert shares(("forward", 1400), ("forward", 2200, "bond"))["Plain forwarding, Bond"].note == (
        "forwarding 1,400.0 + bonds, VLANs 800.0"
    )


def test_what_takes_a_shortcut_or_builds_upon_nothing_that_was_counted_is_of_one_piece() -> None:
    found = shares(("forward", 1400), ("nftables-flowtable", 620), ("ovs-conntrack", 4600), ("no-such-ruleset", 1))
    assert [(share.label, len(share.parts), share.note) for share in found.values()] == [
        ("no-such-ruleset", 1, ""),
        ("Flowtable, nftables", 1, ""),
        ("Plain forwarding", 1, ""),
        ("Open vSwitch (kernel), conntrack", 1, ""),
    ]
    assert found["Flowtable, nftables"].parts[0].style == "part-whole"


def test_topologies_stand_from_the_cheapest_on() -> None:
    (chart,) = instruction_charts(
        [counted("iptables-stateful", 3000), counted("forward", 1000), counted("bridge", 400)]
    )
    assert [(share.label, share.text) for share in chart.shares] == [
        ("Learning bridge", "400.0"),
        ("Plain forwarding", "1,000.0"),
        ("Stateful iptables", "3,000.0"),
    ]
    assert chart.shares[0].share == pytest.approx(400 / 3000)
    assert chart.caption.startswith("Stateful iptables costs most, 3,000.0 instructions; Learning bridge least, 13.3 %")
    assert [item.text for item in chart.legend] == ["forwarding", "conntrack and its rules"]


def test_machines_are_not_mixed_and_a_single_topology_is_no_chart() -> None:
    assert instruction_charts([counted("forward", 1000), counted("bridge", 400, "b2")]) == []


def test_rates_are_in_no_such_chart() -> None:
    assert instruction_charts([made_up_packet_record(), made_up_packet_record()]) == []


def test_the_history_of_instructions_is_over_what_they_were_counted_of() -> None:
    builds = [("6.1.0-50-cloud-amd64", "distribution"), ("6.1.0-56-cloud-amd64", "/opt/ovs-3.3")]
    (chart,) = history_charts(
        [[counted_record("forward", [1400], kernel=kernel, ovs=prefix) for kernel, prefix in builds]]
    )
    assert chart.x.labels == ("6.1.0-50", "6.1.0-56 ovs-3.3")
