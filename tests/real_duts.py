"""Real DUTs on whatever machine there is, and what one counted at its two ports."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import counts_since, drops_since
from ctbench.dut.linux.dut import LinuxDut
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.linux.health import counted as linux_counted
from ctbench.dut.linux.health import new_drops as linux_drops
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.ruleset import SIDES
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import read_machine
from ctbench.testbed.cpus import AUTO, plan_cpus
from ctbench.traffic.generator import Trial

Made = TypeVar("Made")
AnyDut = TypeVar("AnyDut", OvsDpdkDut, LinuxRouterDut, LinuxBridgeDut)


def on_shared_cpus(kind: type[AnyDut], host: Host, **options: Any) -> AnyDut:
    """A DUT whose topologies may have more CPUs than the machine: every one can be applied anywhere."""
    machine = read_machine(host)
    return kind(host, machine, lambda topology: plan_cpus(AUTO, machine, topology.cpus, shared=True), **options)


def set_up(dut: AnyDut, topology: Topology) -> Iterator[AnyDut]:
    """The body of a fixture: skips where the machine lacks what the topology needs, and restores the DUT."""
    with skipping():
        dut.apply(topology)
    yield dut
    dut.restore()  # the PMD threads of Open vSwitch would go on polling


@dataclass
class Counted:
    """Packets by side (`client`, `server`), and packets that were dropped by the name that the DUT gives them."""

    drops: dict[str, int]
    rx_packets: dict[str, int]
    tx_packets: dict[str, int]


def counted(dut: OvsDpdkDut | LinuxDut) -> Counted:
    """Of Open vSwitch since the last `begin_trial` (`apply` is one too), of Linux since `apply`."""
    if isinstance(dut, LinuxDut):
        now = dut._read()
        linux = linux_counted(dut._start, now, dut._links.interfaces)
        return Counted(linux_drops(dut._start, now), dict(linux.received), dict(linux.sent))
    before, ports = dut._trial.ports, dut.control.ask(answers.PORTS, dut.control.bridge)
    counts = counts_since(before, ports, SIDES)
    return Counted(drops_since(before, ports, SIDES), dict(counts.received), dict(counts.sent))


def tried(make: Callable[[], Made], is_fine: Callable[[Made], bool], times: int = 3) -> Made:
    """What is made until it is fine, else the last: where others have the CPUs for seconds, it may not be."""
    for _ in range(times):
        made = make()
        if is_fine(made):
            break
    return made


def without_loss(make: Callable[[], Trial]) -> Trial:
    """A trial that loses nothing: packets may come after its end. What is asserted of it holds for any."""
    return tried(make, lambda trial: trial.completed == trial.intended)


@contextmanager
def skipping(*more: type[Exception]) -> Iterator[None]:
    """Skips the test where the machine lacks what is needed, or for one of these errors."""
    try:
        yield
    except (MissingResource, *more) as error:
        pytest.skip(str(error))


def hand_over(dut: OvsDpdkDut, port: int, frame: bytes) -> None:
    """Hand OVS a packet. One that it outputs is counted as a failed transmission where no generator is connected."""
    dut.control.ofctl("packet-out", dut.control.bridge, f"in_port={port},packet={frame.hex()},actions=table")
