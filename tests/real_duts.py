"""Real DUTs on whatever machine there is, and what one counted at its two ports."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.linux.health import new_drops as linux_drops
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.health import new_drops, since
from ctbench.dut.ovs.ruleset import SIDES
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import read_machine
from ctbench.testbed.cpus import AUTO, plan_cpus

AnyDut = TypeVar("AnyDut", OvsDpdkDut, LinuxRouterDut, LinuxBridgeDut)


def on_shared_cpus(kind: type[AnyDut], host: Host, **options: Any) -> AnyDut:
    """A DUT whose topologies may have more CPUs than the machine: every one can be applied anywhere."""
    machine = read_machine(host)
    return kind(host, machine, lambda topology: plan_cpus(AUTO, machine, topology.cpus, shared=True), **options)


def set_up(dut: AnyDut, topology: Topology) -> Iterator[AnyDut]:
    """The body of a fixture: skips where the machine lacks what the topology needs, and restores the DUT."""
    try:
        dut.apply(topology)
    except MissingResource as error:
        pytest.skip(str(error))
    yield dut
    dut.restore()  # the PMD threads of Open vSwitch would go on polling


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
    before, ports = dut._trial.ports, dut.control.ask(answers.PORTS, dut.control.bridge)
    found = Counted(new_drops(before, ports))
    for port, counters in ports.items():
        if port in SIDES:
            found.rx_packets[SIDES[port]] += since(before[port].rx_packets, counters.rx_packets)
            found.tx_packets[SIDES[port]] += since(before[port].tx_packets, counters.tx_packets)
    return found


def hand_over(dut: OvsDpdkDut, port: int, frame: bytes) -> None:
    """Hand OVS a packet. One that it outputs is counted as a failed transmission where no generator is connected."""
    dut.control.ofctl("packet-out", dut.control.bridge, f"in_port={port},packet={frame.hex()},actions=table")
