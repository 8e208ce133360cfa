"""OVS over veth pairs, read through DPDK's af_packet: set up, read back, forwarding, and nothing left."""

import struct
from collections.abc import Iterator

import pytest
from packets import udp
from real_duts import counted, on_shared_cpus, set_up
from veth import Wire
from wire import join

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.ovs.dpdk import VethDevices
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software.generator import SoftwareTrafficGenerator

pytestmark = pytest.mark.beside_others

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
PACKETS = PacketProfile(name="packets", kind="packets", flows=500, client_ips=50, directions="both")
CONNECTIONS = ConnectionProfile(name="mixed", messages=2, udp_percent=10, client_ips=100, server_ips=10)
#: Packets (connections) per second, and seconds: few enough for a busy machine.
LOAD, SECONDS = 3000, 0.5
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


@pytest.mark.parametrize("rx_queues", [1, 4])
@pytest.mark.parametrize("profile", [PACKETS, CONNECTIONS], ids=["packets", "connections"])
def test_every_packet_passes_over_every_queue(
    ovs: OvsDpdkDut, generator: SoftwareTrafficGenerator, rx_queues: int, profile: ConnectionProfile | PacketProfile
) -> None:
    join(generator, ovs.apply(Topology(rx_queues=rx_queues)))
    ovs.verify()
    before = counted(ovs)
    trial = generator.run_trial(profile, Rate(LOAD), SECONDS)
    after = counted(ovs)
    assert trial.completed == trial.intended
    assert {side: after.rx_packets[side] - before.rx_packets[side] for side in after.rx_packets} == (
        trial.total_tx_packets
    )
    generator.disconnect()


def test_a_vlan_tag_that_the_kernel_takes_out_is_put_back(ovs: OvsDpdkDut) -> None:
    wire = Wire(ovs.apply(Topology(ruleset="normal", ports="vlan")), CLIENT, SERVER)
    for payload, tag in ((b"tagged", TAG), (b"untagged", b""), (b"last", TAG)):
        plain = udp(CLIENT, SERVER, payload)
        wire.client.send(plain[:12] + tag + plain[12:])
    arrived = wire.server.packets_until(b"last")
    assert [packet.payload for packet in arrived] == [b"tagged", b"last"]
    wire.close()
