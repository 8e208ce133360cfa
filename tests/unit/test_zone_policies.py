"""Timeout policies of zones: how they are set, and what the datapath is asked. The answers are those of real builds."""

from collections.abc import Callable
from typing import Any

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import TableEntry
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.ruleset import BridgeRules
from ctbench.dut.ovs.zone_policies import ZonePolicies

POLICY, LONGER = {"udp_first": 1, "tcp_syn_sent": 1}, {"udp_first": 5, "tcp_syn_sent": 5}


def entry(protocol: str, zone: int, timeout_s: int) -> TableEntry:
    return TableEntry(protocol, "16.0.0.1", "48.0.0.1", 1234, 1234, zone, timeout_s)


#: What 3.1.0 and 3.7.1 have for the first packet after `add-zone-tp` with 1 s: the policy, and their default of 60 s.
KEPT, IGNORED = [entry("udp", 0, 0)], [entry("udp", 0, 59)]


class ControlReplay:
    """Writes down what ovs-vsctl is told, and replays what a real ovs-vswitchd had in its table after a packet."""

    bridge = "br0"

    def __init__(self, entries: Callable[[str], list[TableEntry]] = lambda _: [], connections: int = 0) -> None:
        self.told: list[str] = []
        self.packets: list[str] = []
        self._entries, self._connections = entries, connections

    def vsctl(self, *words: str) -> str:
        self.told.append(" ".join(words))
        return ""

    def ofctl(self, *words: str) -> str:
        if words[0] == "compose-packet":
            self.packets.append(words[1])
        return "00000000  02 00 00 00 00 ee 02 00-00 00 00 cc 08 00 45 00\n"

    def ask(self, command: answers.Command[Any]) -> Any:
        asked = {
            answers.ENTRIES: lambda: self._entries(self.packets[-1]),
            answers.CONNECTIONS: lambda: self._connections,
            answers.FLUSH: lambda: "",
        }
        return asked[command]()


def policies(control: ControlReplay) -> ZonePolicies:
    return ZonePolicies(control, "netdev")  # type: ignore[arg-type]


def test_a_policy_is_given_as_a_change_of_another_one_and_changed_in_place_later() -> None:
    zones = policies(control := ControlReplay())
    zones.set([0], POLICY, once=False)
    zones.set([0], POLICY, once=False)  # as it is already
    zones.set([0], LONGER, once=False)
    assert control.told == [
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=2 tcp_syn_sent=2",
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=1 tcp_syn_sent=1",
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=5 tcp_syn_sent=5",
    ]


def test_the_first_policy_of_a_zone_is_given_once_and_no_later_one_stands_on_it() -> None:
    zones = policies(control := ControlReplay())
    zones.set([0], POLICY, once=True)
    zones.set([0], POLICY, once=False)
    assert control.told == [
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=1 tcp_syn_sent=1",
        "-- --if-exists del-zone-tp netdev zone=0",
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=2 tcp_syn_sent=2",
        "-- --may-exist add-zone-tp netdev zone=0 udp_first=1 tcp_syn_sent=1",
    ]


def test_the_datapath_is_asked_whether_a_policy_has_an_effect() -> None:
    zones = policies(ControlReplay(lambda _: KEPT))
    zones.set([0], POLICY, once=False)
    zones.check()
    assert zones.found == {"set": "changed", "entries": ["udp in zone 0: 0 s left"]}

    zones = policies(ControlReplay(lambda _: IGNORED))
    zones.set([0], POLICY, once=False)
    with pytest.raises(TestbedError, match=r"zone 0 has no effect: asked 1 s .* udp packet has 59 s left"):
        zones.check()
    zones.set([0], POLICY, once=True)  # that is what is to be measured
    zones.check()
    assert zones.found == {"set": "once", "entries": ["udp in zone 0: 59 s left"]}


@pytest.mark.parametrize("found", [entry("udp", 3, 0), entry("udp", 0, 2), entry("icmp", 0, 0)])
def test_an_entry_of_another_zone_or_time_is_not_what_was_asked(found: TableEntry) -> None:
    zones = policies(ControlReplay(lambda _: [found]))
    zones.set([0], POLICY, once=False)
    with pytest.raises(TestbedError, match="has no effect"):
        zones.check()


def test_packets_are_tried_until_one_is_committed() -> None:
    def of_ipv6(packet: str) -> list[TableEntry]:
        return KEPT if ",udp6," in packet else []

    zones = policies(control := ControlReplay(of_ipv6))
    zones.set([0], POLICY, once=False)
    zones.check()
    assert (len(control.packets), zones.found["entries"]) == (3, ["udp in zone 0: 0 s left"])

    expired = policies(control := ControlReplay(connections=1))  # counted still, and not listed any more
    expired.set([0], POLICY, once=False)
    expired.check()
    assert len(control.packets) == 1


@pytest.mark.parametrize(
    ("flows", "zones", "commits"),
    [
        ("ip actions=ct(commit),output:port1", (0,), True),
        ("ip actions=ct(table=1,zone=5)\nip actions=ct(commit,nat(src=1.2.3.4),zone=5)", (5,), True),
        ("ip actions=ct(commit,zone=9),ct(commit,nat(src=1.2.3.4-1.2.3.9))", (0, 9), True),
        ("ip ct_state=-trk actions=ct(table=0)", (0,), False),
        ("in_port=port0 actions=output:port1", (0,), False),
        ("ip actions=ct(commit,zone=0x1f,exec(set_field:5->ct_mark)),output:port1", (31,), True),
        ("ip actions=ct(zone={4..6},table=0)", (4, 5, 6), False),
        ("# once ct(commit,zone=3)\nip actions=ct(zone=2,table=0) # not ct(commit,zone=4)", (2,), False),
    ],
)
def test_the_zones_are_those_of_the_rules(flows: str, zones: tuple[int, ...], commits: bool) -> None:
    rules = BridgeRules(flows)
    assert (rules.zones, rules.commits) == (zones, commits)
