"""IPv6 through the real kernel and the real Open vSwitch: every packet accounted for, every connection in the table."""

from functools import partial

import pytest
from real_duts import without_loss
from wire import join

from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctgen import Generator

pytestmark = pytest.mark.beside_others

CLIENTS, SERVERS = "2001:2:0:16::", "2001:2:0:48::"
PACKETS = PacketProfile(
    name="packets", kind="packets", ip_version=6, client_ip=CLIENTS, server_ip=SERVERS, client_ips=50, flows=500,
    frame_bytes=128, directions="both",
)  # fmt: skip
CONNECTIONS = ConnectionProfile(
    name="mixed", ip_version=6, client_ip=CLIENTS, server_ip=SERVERS, messages=2, udp_percent=10, client_ips=100
)
HELD = CONNECTIONS.model_copy(update={"udp_percent": 100.0})
LOAD, SECONDS = Rate(5_000), 0.2
TRACKING = ["ip6tables-stateful", "nftables-stateful-inet"]


def through_router(
    router: LinuxRouterDut, generator: Generator, ruleset: str, profile: object, load: Load = LOAD
) -> Trial:
    """A trial on a fresh topology."""

    def make() -> Trial:
        join(generator, router.apply(Topology(datapath="linux-router", ruleset=ruleset)))
        return generator.run_trial(profile, load, SECONDS)  # type: ignore[arg-type]

    return without_loss(make)


@pytest.mark.parametrize("ruleset", ["forward-ipv6", *TRACKING])
def test_connections_complete_through_the_kernel_and_each_has_an_entry(
    router: LinuxRouterDut, generator: Generator, ruleset: str
) -> None:
    trial = through_router(router, generator, ruleset, CONNECTIONS)
    assert trial.completed == trial.intended and trial.failed == {}
    router.flush_state()
    generator.run_trial(HELD, Hold(1000, 20_000), SECONDS)
    assert router.connections() == (1000 if ruleset in TRACKING else 0)


def test_a_dut_that_solicits_its_neighbour_gets_an_answer(
    sandbox: Sandbox, router: LinuxRouterDut, generator: Generator
) -> None:
    ports = router.apply(Topology(datapath="linux-router", ruleset="forward-ipv6"))
    join(generator, ports)
    for device in ("r0", "r1"):  # from which the kernel asks for what it forwards
        sandbox.run(["ip", "address", "add", "fe80::1/64", "dev", device, "nodad"])
    sandbox.run(["ip", "-6", "neighbour", "flush", "all", "nud", "permanent"])
    for _ in range(2):  # servers answer whom they have seen
        generator.run_trial(PACKETS, LOAD, SECONDS)
    neighbours = sandbox.run(["ip", "-6", "neighbour", "show"]).stdout
    ((client_hop, server_hop),) = ports.next_hops
    assert f"{client_hop} dev r0 lladdr 02:00:00:00:00:01" in neighbours
    assert f"{server_hop} dev r1 lladdr 02:00:00:00:00:02" in neighbours


@pytest.mark.parametrize("ruleset", ["conntrack-ipv6", "forward-ipv6"])
def test_connections_and_packets_pass_through_open_vswitch(dut: OvsDpdkDut, generator: Generator, ruleset: str) -> None:
    ports = dut.apply(Topology(ruleset=ruleset, rx_queues=2))
    join(generator, ports)
    for profile in (CONNECTIONS, PACKETS):
        dut.flush_state()
        trial = without_loss(partial(generator.run_trial, profile, LOAD, SECONDS))
        assert trial.completed == trial.intended and trial.failed == {}
    dut.flush_state()
    generator.run_trial(HELD, Hold(1000, 20_000), SECONDS)
    assert dut.connections() == (1000 if ruleset == "conntrack-ipv6" else 0)
