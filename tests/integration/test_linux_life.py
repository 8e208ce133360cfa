"""What a Linux DUT says of a trial, and what is left of it."""

import os
import sys
from collections.abc import Iterator

import pytest
from packets import udp
from real_duts import on_shared_cpus, skipping
from veth import Wire

from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, read_machine
from ctbench.hosts.offloads import OFFLOADS
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.cpus import AUTO, plan_cpus

#: Alone: the kernel's counters do not tell whose packets a CPU received.
pytestmark = pytest.mark.root_too

CLIENT, SERVER = ("16.0.0.1", 40000), ("48.0.0.1", 5353)
FORWARD = Topology(datapath="linux-router", ruleset="forward")
#: Enough to tell the DUT's packets from the machine's own.
MANY = 5000


def on_its_own_cpus(sandbox: Sandbox, **options: bool) -> tuple[LinuxRouterDut, Placement]:
    """A router, and which CPUs are whose."""
    machine = read_machine(sandbox)
    with skipping():
        placement = plan_cpus(AUTO, machine, 1)
    return LinuxRouterDut(sandbox, machine, lambda _: placement, **options), placement  # type: ignore[arg-type]


@pytest.fixture
def placed() -> Iterator[tuple[LinuxRouterDut, Placement]]:
    with Sandbox() as sandbox:
        yield on_its_own_cpus(sandbox)


@pytest.fixture
def steered(sandbox: Sandbox) -> Iterator[tuple[LinuxRouterDut, Placement]]:
    """One that the kernel hands its frames to, by receive packet steering, as for TRex."""
    dut, placement = on_its_own_cpus(sandbox, steer=True)
    yield dut, placement
    dut.restore()


@pytest.fixture
def affinity() -> Iterator[None]:
    """Puts the test's thread back where it was."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def send_many(dut: LinuxRouterDut, cpus: tuple[int, ...]) -> None:
    """A trial whose packets are sent from these CPUs."""
    wire = Wire(dut.apply(FORWARD), CLIENT, SERVER)
    os.sched_setaffinity(0, cpus)
    dut.begin_trial()
    for _ in range(MANY):
        wire.client.send(udp(CLIENT, SERVER, b"many"))
    wire.close()


def test_a_router_that_worked_on_the_generators_cpu_is_not_measured(
    placed: tuple[LinuxRouterDut, Placement], affinity: None
) -> None:
    dut, placement = placed
    send_many(dut, placement.generator)

    (problem,) = dut.health()
    assert (problem.severity, problem.code) == ("invalid", "other-cpus")
    assert f"on CPU {placement.generator[0]}" in problem.text


def test_connections_in_spite_of_the_ruleset_are_found(router: LinuxRouterDut, sandbox: Sandbox) -> None:
    wire = Wire(router.apply(FORWARD), CLIENT, SERVER)
    router.begin_trial()
    sandbox.run(["iptables", "-A", "FORWARD", "-m", "conntrack", "--ctstate", "NEW,ESTABLISHED", "-j", "ACCEPT"])
    wire.open_connection()

    (problem,) = router.health()

    assert (problem.severity, problem.code) == ("fatal", "tracked")
    wire.close()


@pytest.mark.parametrize(
    "command", ["ip link del r0", "ip netns exec generator ip link del g1", "ip netns del generator"]
)
def test_a_link_that_is_gone_is_fatal(router: LinuxRouterDut, sandbox: Sandbox, command: str) -> None:
    router.apply(FORWARD)
    sandbox.run(command.split())

    assert {(problem.severity, problem.code) for problem in router.health()} == {("fatal", "interface-gone")}


def test_what_was_set_is_put_back(sandbox: Sandbox) -> None:
    settings = ["net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", "net.netfilter.nf_conntrack_tcp_timeout_close",
                "net.netfilter.nf_conntrack_max", "net.ipv6.conf.default.disable_ipv6",
                "net.ipv4.conf.all.accept_redirects"]  # fmt: skip
    found = ["net.ipv4.ip_forward=0", "net.ipv4.conf.all.rp_filter=2", "net.ipv4.conf.all.accept_redirects=0"]
    sandbox.run(["sysctl", "-w", *found])
    before = sandbox.run(["sysctl", *settings]).stdout
    dut = on_shared_cpus(LinuxRouterDut, sandbox)

    dut.apply(Topology(datapath="linux-router", ruleset="iptables-snat"))
    dut.restore()
    dut.restore()

    assert sandbox.run(["sysctl", *settings]).stdout == before
    assert sandbox.run(["ls", "/sys/class/net"]).stdout.split() == ["lo"]
    assert sandbox.run(["nft", "list", "ruleset"]).stdout == sandbox.run(["ip", "netns"]).stdout == ""


#: Datagrams of a host to itself, tracked as ours to a lab's router are.
CHAT = """import socket, time
here = socket.socket(type=socket.SOCK_DGRAM)
while True: here.sendto(b"", ("192.0.2.1", 9)); time.sleep(0.02)"""


def test_a_labs_cards_are_given_back_as_they_were(sandbox: Sandbox) -> None:
    for name, peer in (("ens0", "far0"), ("ens1", "far1")):  # veth pairs in the place of cards
        sandbox.run(["ip", "link", "add", name, "mtu", "1400", "type", "veth", "peer", "name", peer])
        for end in (name, peer):
            sandbox.run(["ip", "link", "set", end, "up"])
    sandbox.run(["ip", "address", "add", "192.0.2.1/24", "dev", "lo"])
    commands = ["ip -br -4 address", "ip -o link show ens0", "ip -o link show ens1", "ip route", "ip neigh"]
    commands += ["ethtool -k ens0", "ethtool -k ens1"]
    before = [sandbox.run(command.split()).stdout for command in commands]
    dut = on_shared_cpus(LinuxRouterDut, sandbox, interfaces=("ens0", "ens1"), card_offloads=False)
    chat = sandbox.start([sys.executable, "-c", CHAT])

    ports = dut.apply(Topology(datapath="linux-router", ruleset="iptables-snat"))
    assert int(sandbox.read("/proc/sys/net/netfilter/nf_conntrack_count")) == 1
    assert dut.connections() == 0
    chat.stop()
    snapshot, used = dut.snapshot(), dut.cpu_use()
    assert (ports.links, ports.open_socket) == ((("", ""),), None)
    assert "-A POSTROUTING -o ens1 -j SNAT" in snapshot["rules"]
    missing = [f"interrupts of {name}: none found in sysfs" for name in ("ens0", "ens1")]
    assert snapshot["links"]["not_set"] == missing
    off = dict.fromkeys(OFFLOADS.values(), False)
    assert snapshot["links"]["offloads"] == {"ens0": off, "ens1": off}
    assert used and used.source == "/proc/stat" and used.busy_cpus >= 0
    dut.restore()

    assert [sandbox.run(command.split()).stdout for command in commands] == before
    for name in ("ens0", "ens1"):
        sandbox.run(["ip", "link", "del", name])


def test_a_bridge_of_a_labs_cards_is_made_after_a_routers_run_that_was_killed(sandbox: Sandbox) -> None:
    for name, peer in (("ens0", "far0"), ("ens1", "far1")):
        sandbox.run(["ip", "link", "add", name, "type", "veth", "peer", "name", peer])
    sandbox.run(["ip", "address", "add", "198.18.0.1/30", "dev", "ens0"])  # which that run left
    dut = on_shared_cpus(LinuxBridgeDut, sandbox, interfaces=("ens0", "ens1"))
    dut.apply(Topology(datapath="linux-bridge", ruleset="forward"))
    dut.restore()
    assert sandbox.run(["ip", "-4", "address", "show", "ens0"]).stdout == ""
    for name in ("ens0", "ens1"):
        sandbox.run(["ip", "link", "del", name])


def test_a_host_with_rules_of_its_own_is_refused_and_left_alone(sandbox: Sandbox) -> None:
    sandbox.run(["nft", "add", "table", "ip", "somebodys"])
    sandbox.run(["ip", "link", "add", "ens0", "type", "veth", "peer", "name", "ens1"])
    dut = on_shared_cpus(LinuxRouterDut, sandbox, interfaces=("ens0", "ens1"))

    with pytest.raises(Exception, match=r"has netfilter rules of its own \(table ip somebodys\)"):
        dut.apply(FORWARD)
    dut.restore()

    assert "somebodys" in sandbox.run(["nft", "list", "ruleset"]).stdout
    sandbox.run(["nft", "flush", "ruleset"])
    sandbox.run(["ip", "link", "del", "ens0"])


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root may set receive packet steering.")
def test_frames_from_another_cpu_are_forwarded_on_the_duts_where_it_is_told_to_take_them(
    steered: tuple[LinuxRouterDut, Placement], affinity: None
) -> None:
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
