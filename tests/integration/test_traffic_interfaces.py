"""Traffic through the real kernel of this machine: every packet accounted for, on the DUT's CPU and no other."""

import ctypes
import socket
import struct
import sys
from collections.abc import Callable

import pytest
from real_duts import counted, without_loss
from wire import join

from ctbench.dut.base import Dut, Ports, wait_until
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.topology import Topology
from ctbench.hosts.base import SocketKind
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.measure.observation import MOST_WAITING_OF_LINKS
from ctbench.measure.trial import TrialRunner
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, largest_frame
from ctgen import Generator, plan
from ctgen.errors import GeneratorError
from ctgen.memif import RingPlan
from ctgen.packet_port import PacketPort

#: Lossless and patient (fixture `unhurried`): they pass where others use the machine as well.
pytestmark = pytest.mark.beside_others

PACKETS = PacketProfile(name="packets", kind="packets", flows=500, client_ips=50, directions="both")
CONNECTIONS = ConnectionProfile(name="mixed", messages=2, udp_percent=10, client_ips=100, server_ips=10)
#: Packets (connections) per second, and seconds: few enough for a busy machine.
LOAD, SECONDS = 5_000, 0.2

STATEFUL = ["iptables-stateful", "nftables-stateful"]
NAT = [f"{family}-{kind}" for family in ("iptables", "nftables") for kind in ("snat", "dnat", "masquerade")]


def measured(dut: Dut, generator: Generator, topology: Topology, profile: ConnectionProfile | PacketProfile) -> Trial:
    """A trial on a fresh topology."""

    def make() -> Trial:
        join(generator, dut.apply(topology), largest_frame(profile))
        return generator.run_trial(profile, Rate(LOAD), SECONDS)

    return without_loss(make)


def router_topology(ruleset: str = "forward", **settings: int) -> Topology:
    return Topology(datapath="linux-router", ruleset=ruleset, **settings)


@pytest.mark.parametrize("ruleset", ["forward", "iptables-notrack", *STATEFUL, *NAT])
def test_a_lossless_trial_is_what_the_kernel_counted_to_the_packet(
    router: LinuxRouterDut, generator: Generator, ruleset: str
) -> None:
    trial = measured(router, generator, router_topology(ruleset), PACKETS)
    found = counted(router)
    assert trial.completed == trial.intended
    assert found.rx_packets == trial.total_tx_packets
    assert found.tx_packets == trial.total_rx_packets
    assert found.drops == {}
    assert (trial.unexpected, trial.failed, trial.total_dut_missed) == ({}, {}, 0)
    assert bool(router.connections()) == (ruleset in [*STATEFUL, *NAT])


@pytest.mark.parametrize("ruleset", [*STATEFUL, *NAT])
def test_connections_complete_and_each_has_an_entry_in_the_table(
    router: LinuxRouterDut, generator: Generator, ruleset: str
) -> None:
    patient = CONNECTIONS.model_copy(update={"udp_percent": 100.0})  # closed TCP connections are forgotten within 1 s
    join(generator, router.apply(router_topology(ruleset)))
    for profile in (CONNECTIONS, patient):

        def make(profile: ConnectionProfile = profile) -> Trial:
            router.flush_state()
            return generator.run_trial(profile, Rate(LOAD), SECONDS)

        trial = without_loss(make)
        assert trial.completed == trial.intended
        assert trial.unexpected == {}
    assert router.connections() == trial.total_tx_packets["client"] / patient.messages


@pytest.mark.parametrize(("size", "mtu"), [(64, 1500), (1518, 1500), ("imix", 1500), (9018, 9000)])
def test_a_bridge_passes_frames_of_every_size(
    bridge: LinuxBridgeDut, generator: Generator, size: int | str, mtu: int
) -> None:
    profile = PACKETS.model_copy(update={"frame_bytes": size})
    trial = measured(bridge, generator, Topology(datapath="linux-bridge", ruleset="forward", mtu=mtu), profile)
    assert trial.completed == trial.intended
    assert mtu == 1500 or "packet sockets" in str(generator.snapshot()["wiring"])


def test_the_tag_of_a_vlan_counts_although_the_kernel_takes_it_out_of_the_frame(
    bridge: LinuxBridgeDut, generator: Generator
) -> None:
    """It does for packet sockets, which take the place of AF_XDP where frames are large."""
    tagged = PACKETS.model_copy(update={"vlan": 100})

    def make() -> Trial:
        topology = Topology(datapath="linux-bridge", ruleset="forward", mtu=9000)
        join(generator, bridge.apply(topology), largest_frame(PACKETS.model_copy(update={"frame_bytes": 9018})))
        return generator.run_trial(tagged, Rate(LOAD), SECONDS)

    trial = without_loss(make)
    assert "packet sockets" in str(generator.snapshot()["wiring"])
    assert trial.completed == trial.intended
    each = [trial.tx_bytes[side] / trial.tx_packets[side] for side in ("client", "server")]
    assert [trial.rx_bytes[side] / trial.rx_packets[side] for side in ("server", "client")] == each == [64, 64]


def test_frames_pass_again_after_an_interface_dropped_some(
    sandbox: Sandbox, bridge: LinuxBridgeDut, generator: Generator
) -> None:
    join(generator, bridge.apply(Topology(datapath="linux-bridge", ruleset="forward")))
    assert "AF_XDP" in str(generator.snapshot()["wiring"])
    stream, load = PACKETS.model_copy(update={"directions": "one", "flows": 1}), Saturation(2048)
    assert generator.run_trial(stream, load, SECONDS).completed
    sandbox.run(["ip", "link", "set", "r0", "down"])  # its other end drops what it is given
    with pytest.raises(GeneratorError, match=r"took none of \d+ frames"):
        generator.run_trial(stream, load, SECONDS)
    sandbox.run(["ip", "link", "set", "r0", "up"])
    assert wait_until(lambda: generator.run_trial(stream, load, SECONDS).completed > 0, 30)  # until it is up


@pytest.mark.parametrize(("cpus", "queues"), [(1, 1), (1, 4), (2, 2), (2, 4)])
def test_packets_pass_over_every_queue(router: LinuxRouterDut, generator: Generator, cpus: int, queues: int) -> None:
    trial = measured(router, generator, router_topology(cpus=cpus, rx_queues=queues), PACKETS)
    assert trial.completed == trial.intended
    assert trial.link and trial.link.packets > 0
    assert trial.link.refused == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 3), (3, 1)])
def test_frames_are_taken_from_the_ring_of_the_cpu_that_delivers_them(sandbox: Sandbox, order: tuple[int, int]) -> None:
    sandbox.run(["ip", "link", "add", "fan0", "type", "veth", "peer", "name", "fan1"])
    for name in ("fan0", "fan1"):  # without frames of its own
        sandbox.run(["ip", "link", "set", name, "up", "addrgenmode", "none"])
    cpu = read_machine(sandbox).usable_cpus[0]
    cpus = [cpu + each for each in order]
    try:
        port = PacketPort("fan1", sandbox.open_socket, RingPlan(1, 2), cpus)
        send = "import socket; s = socket.socket(17, 3, 0); s.bind(('fan0', 0)); s.send(bytes(60))"
        sandbox.run(["taskset", "-c", str(cpu), sys.executable, "-c", send])
        found = [ctypes.c_uint32.from_address(ring.first).value & 1 for ring in port.rx]
        port.close()
    finally:
        sandbox.run(["ip", "link", "del", "fan0"])
    taken_by = order.index(0) if 0 in order else cpu % 2
    assert found == [int(taken_by == place) for place in range(2)]


def test_a_process_that_takes_the_duts_cpu_is_noticed(
    sandbox: Sandbox, router: LinuxRouterDut, generator: Generator
) -> None:
    cpu = read_machine(sandbox).usable_cpus[-1]
    join(generator, router.apply(router_topology()), cpus=(cpu,))
    rival = sandbox.start(["taskset", "-c", str(cpu), sys.executable, "-S", "-c", "while True: pass"])
    try:
        trial = generator.run_trial(PACKETS, Rate(LOAD), 0.5)
    finally:
        rival.stop()
    assert trial.link and trial.link.waiting > MOST_WAITING_OF_LINKS


@pytest.mark.root_too
def test_packet_sockets_do_where_af_xdp_may_not_be_used(router: LinuxRouterDut, generator: Generator) -> None:
    ports = router.apply(router_topology())
    give = ports.open_socket

    def refuse(kind: str) -> object:
        if kind == "xdp":
            raise OSError(1, "Operation not permitted")
        return give("packet")

    join(generator, ports, open_socket=refuse)
    assert "packet sockets (AF_XDP: Operation not permitted)" in str(generator.snapshot()["wiring"])
    trial = without_loss(lambda: generator.run_trial(PACKETS, Rate(LOAD), SECONDS))
    assert trial.completed == trial.intended


#: For bpf(4), classic: a frame passes unless a random number of 32 bits is below 2^28, one of sixteen.
_SO_ATTACH_FILTER, _RANDOM = 26, 0xFFFFF000 + 56
ONE_IN_16_GOES = [(0x20, 0, 0, _RANDOM), (0x35, 0, 1, 1 << 28), (0x06, 0, 0, 1 << 18), (0x06, 0, 0, 0)]


def losing(ports: Ports) -> Callable[[SocketKind], socket.socket]:
    """Opens sockets of the generator that do not get all that the DUT has sent."""
    program = b"".join(struct.pack("=HBBI", *each) for each in ONE_IN_16_GOES)

    def opened(kind: SocketKind) -> socket.socket:
        made = ports.open_socket(kind)
        if kind == "packet":
            code = ctypes.create_string_buffer(program)
            head = struct.pack("HP", len(ONE_IN_16_GOES), ctypes.addressof(code))
            made.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, head)
        return made

    return opened


def test_a_loss_between_dut_and_generator_is_not_the_duts_and_its_own_is(
    router: LinuxRouterDut, generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "REPLY_TIMEOUT_S", 1.0)  # some never come
    ports = router.apply(router_topology("iptables-stateful"))
    runner = TrialRunner(router, generator, CONNECTIONS, {"loss_ratio": 0.001})  # type: ignore[arg-type]
    join(generator, ports, open_socket=losing(ports))
    lost = runner.offer(Rate(LOAD), SECONDS)
    assert lost.state == "invalid", lost.reason
    assert lost.lost_elsewhere
    told = {"insert_failed", "drop", "early_drop", "clash_resolve", "search_restart"}
    assert lost.counts and lost.counts.conntrack.keys() >= told
    join(generator, ports)
    assert runner.offer(Rate(LOAD), SECONDS).good
    router._host.run(["iptables", "-w", "-I", "FORWARD", "1", "-s", "16.0.0.0/28", "-j", "DROP"])
    own = runner.offer(Rate(LOAD), SECONDS)
    assert (own.state, own.lost_elsewhere) == ("bad", ""), own.reason
