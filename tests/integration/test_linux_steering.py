"""Receive packet steering: a Linux DUT works on its own CPUs although TRex sends its frames from another one."""

import os
from collections.abc import Iterator

import pytest
from packets import udp
from veth import Wire

from ctbench.base.errors import MissingResource
from ctbench.dut.linux import LinuxRouterDut
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, place, read_machine
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.root_too

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
FORWARD = Topology(datapath="linux-router", ruleset="forward")
#: Enough to tell the DUT's packets from the machine's own.
MANY = 5000


@pytest.fixture
def steered(sandbox: Sandbox) -> Iterator[tuple[LinuxRouterDut, Placement]]:
    """A router whose frames are sent from the generator's CPU, and which CPUs are whose."""
    machine = read_machine(sandbox)
    try:
        placement = place(machine, 1)
    except MissingResource as error:
        pytest.skip(str(error))
    dut = LinuxRouterDut(sandbox, machine, lambda _: placement, steer=True)
    before = os.sched_getaffinity(0)
    yield dut, placement
    os.sched_setaffinity(0, before)
    dut.restore()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root may set receive packet steering.")
def test_frames_from_another_cpu_are_forwarded_on_the_duts(steered: tuple[LinuxRouterDut, Placement]) -> None:
    dut, placement = steered
    wire = Wire(dut.apply(FORWARD), CLIENT, SERVER)
    os.sched_setaffinity(0, placement.generator)
    dut.begin_trial()

    for number in range(MANY):
        wire.client.send(udp(CLIENT, SERVER, b"many"))
        if number % 100 == 99:  # not more than a CPU's backlog holds
            wire.client.send(udp(CLIENT, SERVER, str(number).encode()))
            wire.server.packets_until(str(number).encode())

    assert dut.health() == []
    snapshot = dut.snapshot()
    assert snapshot["received_on"][str(placement.pmd[0])] >= 2 * MANY
    assert snapshot["links"]["binding"] == f"receive packet steering to CPUs {list(placement.pmd)}"
    wire.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root may set receive packet steering.")
def test_queues_are_shared_by_the_duts_cpus_in_turn(sandbox: Sandbox) -> None:
    machine = read_machine(sandbox)
    dut = LinuxRouterDut(
        sandbox, machine, lambda topology: place(machine, topology.cpus, oversubscribed=True), steer=True
    )
    dut.apply(FORWARD.model_copy(update={"cpus": 2, "rx_queues": 3}))

    masks = [sandbox.read(f"/sys/class/net/r1/queues/rx-{queue}/rps_cpus").strip() for queue in range(3)]
    cpus = [machine.usable_cpus[index % len(machine.usable_cpus)] for index in (0, 1, 0)]
    assert [int(mask.replace(",", ""), 16) for mask in masks] == [1 << cpu for cpu in cpus]
    dut.restore()


@pytest.mark.skipif(os.geteuid() == 0, reason="Root may set receive packet steering.")
def test_an_ordinary_user_is_told_that_root_is_needed(steered: tuple[LinuxRouterDut, Placement]) -> None:
    with pytest.raises(MissingResource, match=r"Receive packet steering cannot be set .*: run as root"):
        steered[0].apply(FORWARD)
