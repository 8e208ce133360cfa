"""A Linux DUT becomes what a topology asks for, and says so; what the kernel lacks is named."""

import json
from pathlib import Path
from time import monotonic

import pytest
from packets import udp
from real_duts import skipping
from veth import PATIENCE_S, MemifEnd, Wire

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.linux.netfilter import TABLE_SETTINGS, host_settings
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import PortSetup, Topology
from ctbench.dut.veth import GENERATOR
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

RULESETS = Path(__file__).parents[2] / "resources" / "rulesets"
CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)


def routing(ruleset: str = "forward", ports: PortSetup = "plain", **more: int) -> Topology:
    return Topology(datapath="linux-router", ruleset=ruleset, ports=ports, **more)


def bridging(ruleset: str = "forward", ports: PortSetup = "plain", **more: int) -> Topology:
    return Topology(datapath="linux-bridge", ruleset=ruleset, ports=ports, **more)


@pytest.mark.parametrize("ruleset", [name for family, name in catalogue() if family in LinuxRouterDut.families])
def test_every_ruleset_that_ships_is_taken_as_it_is_written(router: LinuxRouterDut, ruleset: str) -> None:
    with skipping():  # of the kernel
        router.apply(routing(ruleset))
    router.verify()

    router.apply(routing(ruleset))
    router.verify()


def test_a_topology_that_the_kernel_cannot_be_leaves_nothing_behind(router: LinuxRouterDut, sandbox: Sandbox) -> None:
    try:
        router.apply(routing(ports="bond"))
    except MissingResource:
        assert sandbox.run(["ls", "/sys/class/net"]).stdout.split() == ["lo"]
    assert sandbox.run(["ip", "netns"]).stdout.count(GENERATOR) <= 1


def test_a_bridge_passes_frames_as_they_are_and_leaves_the_addresses_to_the_two_ends(bridge: LinuxBridgeDut) -> None:
    ports = bridge.apply(bridging())
    wire = Wire(ports, CLIENT, SERVER)
    question, answer = udp(CLIENT, SERVER, b"question"), udp(SERVER, CLIENT, b"answer")

    wire.client.send(question)
    asked = wire.server.receive()
    wire.server.send(answer)

    assert asked == [question]
    assert wire.client.receive() == [answer]
    assert bridge.connections() == 0
    assert (ports.macs, ports.next_hops) == ((), ())
    wire.close()


@pytest.mark.parametrize("ports", ["bond", "vlan", "bond-vlan"])
@pytest.mark.parametrize("kind", ["router", "bridge"])
def test_frames_pass_the_devices_that_a_topology_puts_on_its_links(
    request: pytest.FixtureRequest, kind: str, ports: PortSetup
) -> None:
    dut: LinuxRouterDut | LinuxBridgeDut = request.getfixturevalue(kind)
    topology = routing if kind == "router" else bridging
    with skipping():  # of the kernel
        made = dut.apply(topology(ports=ports))
    wire = Wire(made, CLIENT, SERVER)
    tag = b"\x81\0\0\x64" if ports.endswith("vlan") else b""

    def arrived(end: MemifEnd, payload: bytes) -> list[bytes]:
        frames: list[bytes] = []
        until = monotonic() + PATIENCE_S
        while not any(payload in frame for frame in frames):
            assert monotonic() < until, f"{payload!r} has not arrived, only {frames}"
            frames += end.receive()
        return frames

    for source, target, sender, receiver in (
        (CLIENT, SERVER, wire.client, wire.server), (SERVER, CLIENT, wire.server, wire.client),
    ):  # fmt: skip
        stray, sent = (udp(source, target, payload) for payload in (b"stray", b"to be passed on"))
        if tag:
            sender.send(stray)
        sender.send(sent[:12] + tag + sent[12:])
        assert not any(b"stray" in frame for frame in arrived(receiver, b"to be passed on"))
    wire.close()


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("sysctl -w net.ipv4.ip_forward=0", "net/ipv4/ip_forward: asked 1, found 0"),
        ("sysctl -w net.netfilter.nf_conntrack_tcp_loose=1", "nf_conntrack_tcp_loose: asked 0, found 1"),
        ("sysctl -w net.netfilter.nf_conntrack_udp_timeout=7", "nf_conntrack_udp_timeout: asked 30, found 7"),
        ("iptables -P FORWARD ACCEPT", "rules: .*-:FORWARD DROP; .*:FORWARD ACCEPT"),
        ("iptables -D FORWARD 1", "rules: .*-A FORWARD -i r1 -o r0"),
        ("ip route del 48.0.0.0/8", "route to 48.0.0.0/8: asked r1, found None"),
    ],
)
def test_what_changes_behind_its_back_is_found(
    router: LinuxRouterDut, sandbox: Sandbox, command: str, complaint: str
) -> None:
    router.apply(routing("iptables-stateful"))  # which puts back what the test before has changed
    router.verify()
    sandbox.run(command.split())

    with pytest.raises(TestbedError, match=complaint):
        router.verify()


@pytest.mark.parametrize("ruleset", ["iptables-snat", "nftables-snat", "forward"])
def test_the_snapshot_can_be_written_down(router: LinuxRouterDut, ruleset: str) -> None:
    router.apply(routing(ruleset))

    snapshot = json.loads(json.dumps(router.snapshot()))

    assert (snapshot["kind"], snapshot["entries"]) == ("linux-router", 0)
    if ruleset != "forward":
        limits = snapshot["conntrack_limits"]
        assert limits["asked"] == host_settings(TABLE_SETTINGS) and limits["found"].keys() == limits["asked"].keys()
    assert "nf_tables" in snapshot["iptables"] and snapshot["nftables"].startswith("v")
    assert ("198.19.0.1-198.19.0.254" in snapshot["rules"]) == (ruleset != "forward")
    assert snapshot["links"]["binding"].startswith("link threads pinned to CPUs [")
    assert {each["name"]: each["kind"] for each in snapshot["interfaces"]} == {"r0": "veth", "r1": "veth"}
