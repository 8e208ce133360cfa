"""What a DUT counted at its two ports since it was set up, or since a trial began, in packets."""

from dataclasses import dataclass, field

from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.health import new_drops as linux_drops
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.ovs.health import new_drops, since
from ctbench.dut.ovs.ruleset import SIDES


@dataclass
class Counted:
    """Packets by side (`client`, `server`), and packets that were dropped by the name that the DUT gives them."""

    drops: dict[str, int]
    rx_packets: dict[str, int] = field(default_factory=lambda: {"client": 0, "server": 0})
    tx_packets: dict[str, int] = field(default_factory=lambda: {"client": 0, "server": 0})


def counted(dut: OvsDpdkDut | LinuxDut) -> Counted:
    """Of Open vSwitch since the last `begin_trial` (`apply` is one too), of Linux since `apply`."""
    if isinstance(dut, LinuxDut):
        assert dut._start is not None
        now = dut._read()
        found = Counted(linux_drops(dut._start, now))
        for side, name in zip(("client", "server"), dut._links.interfaces, strict=True):
            found.rx_packets[side] = now.interfaces[name].rx_packets - dut._start.interfaces[name].rx_packets
            found.tx_packets[side] = now.interfaces[name].tx_packets - dut._start.interfaces[name].tx_packets
        return found
    assert dut._trial is not None
    before, ports = dut._trial.ports, dut._read_ports()
    found = Counted(new_drops(before, ports))
    for port, counters in ports.items():
        if port in SIDES:
            found.rx_packets[SIDES[port]] += since(before[port].rx_packets, counters.rx_packets)
            found.tx_packets[SIDES[port]] += since(before[port].tx_packets, counters.tx_packets)
    return found
