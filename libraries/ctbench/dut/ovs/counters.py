"""What OVS counted at its interfaces, summed over those of a side."""

from collections.abc import Mapping

from ctbench.dut.base import DutCounters
from ctbench.dut.ovs.parse import PortCounters
from ctbench.dut.ovs.ruleset import SIDES

#: OpenFlow port -> counters.
Counters = Mapping[int, PortCounters]


def counters_since(before: Counters, now: Counters) -> DutCounters:
    """What was counted since `before`; packets lost only where they are not zero."""
    counted = DutCounters(_packets(), _packets(), new_drops(before, now))
    for port, side in SIDES.items():
        if port in now:
            counted.rx_packets[side] += since(before[port].rx_packets, now[port].rx_packets)
            counted.tx_packets[side] += since(before[port].tx_packets, now[port].tx_packets)
    return counted


def new_drops(before: Counters, now: Counters) -> dict[str, int]:
    """`<side>.<counter>` -> packets lost at the interfaces of a side since `before`; only those that are not zero."""
    drops: dict[str, int] = {}
    for port, counters in now.items():
        if port not in before or port not in SIDES:  # no packet of the load passes it
            continue
        for counter, value in counters.drops.items():
            lost = since(before[port].drops.get(counter, 0), value)
            if lost:
                name = f"{SIDES[port]}.{counter}"
                drops[name] = drops.get(name, 0) + lost
    return drops


def since(before: int, now: int) -> int:
    """Increase of a counter that starts again at 0 when a port's device is created again."""
    return now - before if now >= before else now


def _packets() -> dict[str, int]:
    return dict.fromkeys(SIDES.values(), 0)
