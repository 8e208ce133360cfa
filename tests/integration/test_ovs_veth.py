"""OVS over veth pairs, read through DPDK's af_packet. What it forwards is shown by test_stateful_forwarding."""

import struct
from collections.abc import Iterator

import pytest
from packets import udp
from real_duts import on_shared_cpus, set_up
from veth import Wire

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.dpdk import VethDevices
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
#: Tag of VLAN 100.
TAG = struct.pack("!HH", 0x8100, 100)


@pytest.fixture(scope="module")
def ovs(sandbox: Sandbox) -> Iterator[OvsDpdkDut]:
    try:
        yield from set_up(on_shared_cpus(OvsDpdkDut, sandbox, devices=VethDevices(sandbox, 1024)), Topology())
    except TestbedError as error:
        if "cannot open port0" in str(error):
            pytest.skip(f"DPDK's driver af_packet is missing: {error}")
        raise


def test_a_vlan_tag_that_the_kernel_takes_out_is_put_back(ovs: OvsDpdkDut) -> None:
    wire = Wire(ovs.apply(Topology(ruleset="normal", ports="vlan")), CLIENT, SERVER)
    for payload, tag in ((b"tagged", TAG), (b"untagged", b""), (b"last", TAG)):
        plain = udp(CLIENT, SERVER, payload)
        wire.client.send(plain[:12] + tag + plain[12:])
    arrived = wire.server.packets_until(b"last")
    assert [packet.payload for packet in arrived] == [b"tagged", b"last"]
    wire.close()
