"""Trials with connections on the real TRex over veth: a cable, and a Linux router that loses what it is told to lose.

Needs TREX_HOME, the folder of t-rex-64; no root, no NIC, no hugepages.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path

import pytest
from integration.trex_record import needs_trex

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.base.network import CLIENT_MAC, SERVER_MAC
from ctbench.dut.base import Ports
from ctbench.dut.cable import CABLE, VethCable
from ctbench.dut.linux import LinuxRouterDut
from ctbench.dut.topology import Topology
from ctbench.dut.veth import within_generator
from ctbench.hosts.machine import place, read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, load_profile
from ctbench.traffic.trex.config import TrexGeneratorConfig, TrexPort
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.locate import find_client, python_for
from ctbench.traffic.trex.server import Endpoint, Owner, ServerProbe, StartedServer
from ctbench.traffic.trex.worker import TrexRefused, TrexWorker

#: Connections per second: few enough for a busy machine.
FEW = 500.0
#: Connection profiles of variables/profiles with packets per connection from client and from server. TRex' TCP opens
#: with SYN, SYN-ACK and closes with FINs that ride on what is acknowledged: 2n + 5 packets for n messages.
PROFILES = {
    "tcp-no-data": (4, 3),
    "http-600": (4, 3),
    "http-800": (4, 3),
    "udp-800": (1, 1),
    "short-lived": (3.97, 2.98),
    "long-lived-short": (None, None),
}
#: How a client takes the ports of the server.
CONNECT = {"mode": "astf", "server": "127.0.0.1", "sync_port": 4501, "async_port": 4500, "ports": [0, 1]}


class Lab:
    """TRex on the generator's ends of a sandbox's links."""

    def __init__(self, host: Sandbox, ports: Ports, logs: Path) -> None:
        self.host = host
        config = TrexGeneratorConfig(
            type="trex",
            host="sandbox",
            server="start",
            trex_home=os.environ.get("TREX_HOME", "/opt/trex"),
            software=True,
            low_end=True,
            cpus=[max(os.sched_getaffinity(0))],
            client=TrexPort(interface=ports.client, mac=CLIENT_MAC, dest_mac=ports.client_mac or SERVER_MAC),
            server_port=TrexPort(interface=ports.server, mac=SERVER_MAC, dest_mac=ports.server_mac or CLIENT_MAC),
        )
        within = within_generator()
        probe = ServerProbe(host, within, Endpoint("127.0.0.1", config.sync_port, config.async_port))
        self.server = StartedServer(host, config, probe, logs, within)

    @cached_property
    def generator(self) -> TrexTrafficGenerator:
        """Made when it is needed first; a test without TRex ends there."""
        return TrexTrafficGenerator(self.server, self.worker())

    def close(self) -> None:
        if "generator" in vars(self):
            self.generator.close()

    def worker(self) -> TrexWorker:
        """A client of the server that nobody has connected yet."""
        found = find_client(needs_trex())
        return TrexWorker(self.host, str(found.folder), within_generator(), python_for(found))

    def stranger(self, user: str) -> TrexWorker:
        """Another client, which has the ports of a server in ASTF mode."""
        self.generator.close()
        self.server.start("astf")
        worker = self.worker()
        worker.start()
        worker.call("connect", 30, user=user, **CONNECT)
        return worker

    def trial(self, profile: ConnectionProfile | PacketProfile, load: float = FEW) -> Trial:
        return self.generator.run_trial(profile, Rate(load), 1.0)

    def kill_server(self) -> None:
        """What a crash does."""
        for pid in self.host.run(["pgrep", "-x", "_t-rex-64"]).stdout.split():
            self.host.run(["kill", f"-{signal.SIGKILL.value}", pid])


def new_sandbox() -> Sandbox:
    try:
        return Sandbox()
    except MissingResource as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def cable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """TRex with a veth pair as a cable between its ports."""
    with new_sandbox() as host:
        lab = Lab(host, VethCable(host).apply(CABLE), tmp_path_factory.mktemp("trex"))
        with closing(lab):
            yield lab


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """TRex on both sides of the Linux kernel as a router."""
    with new_sandbox() as host:
        machine = read_machine(host)
        dut = LinuxRouterDut(host, machine, lambda topology: place(machine, topology.cpus, oversubscribed=True))
        lab = Lab(
            host, dut.apply(Topology(datapath="linux-router", ruleset="forward")), tmp_path_factory.mktemp("trex")
        )
        with closing(lab):
            yield lab
        dut.restore()


@pytest.fixture
def forwarding(routed: Lab) -> Iterator[Callable[[str], None]]:
    """Makes the router do this to packets that it forwards, a rule of nft(8)."""

    def rule(text: str) -> None:
        chain = "type filter hook forward priority -10; policy accept;"
        routed.host.run(["nft", "-f", "-"], stdin=f"table ip test {{\nchain forward {{ {chain}\n{text}\n}}\n}}\n")

    yield rule
    routed.host.run(["nft", "delete", "table", "ip", "test"])


def connections(name: str) -> ConnectionProfile:
    profile = load_profile(name)
    assert isinstance(profile, ConnectionProfile)
    return profile


@pytest.mark.parametrize("name", PROFILES)
def test_every_connection_of_a_profile_completes_over_a_cable(cable: Lab, name: str) -> None:
    trial = cable.trial(connections(name), FEW / 5)

    assert trial.completed == trial.attempted > 0
    assert trial.failed == trial.unexpected == {}
    assert trial.total_tx_packets["client"] == trial.total_rx_packets["server"]
    assert trial.total_tx_packets["server"] == trial.total_rx_packets["client"]


@pytest.mark.parametrize(("name", "packets"), [(name, each) for name, each in PROFILES.items() if each[0] is not None])
def test_a_connection_has_the_packets_of_its_profile(cable: Lab, name: str, packets: tuple[float, float]) -> None:
    trial = cable.trial(connections(name))

    for side, count in zip(("client", "server"), packets, strict=True):
        assert trial.tx_packets[side] / trial.attempted == pytest.approx(count, rel=0.03)


def test_a_server_that_waits_answers_each_message_after_an_acknowledgement(cable: Lab) -> None:
    trial = cable.trial(ConnectionProfile(name="slow", messages=5, server_wait_ms=20, ack_before_reply=True), FEW / 5)

    assert trial.completed == trial.attempted
    assert trial.tx_packets["server"] / trial.attempted == pytest.approx(2 * 5 + 2, rel=0.1)


def test_the_rate_follows_the_load_without_loading_the_profile_again(cable: Lab) -> None:
    slow, fast = (cable.trial(connections("http-600"), load) for load in (FEW / 5, FEW))

    assert fast.attempted > 3 * slow.attempted
    assert fast.completed == fast.attempted


def test_more_than_trex_can_do_is_said_to_be_its_limit(cable: Lab) -> None:
    trial = cable.trial(connections("short-lived"), 2_000_000)

    assert trial.attempted < trial.intended
    assert trial.generator_limited.startswith("TRex began only")


def test_the_state_of_a_trial_does_not_reach_the_next(cable: Lab) -> None:
    cable.trial(connections("short-lived"), 100_000)
    trial = cable.trial(connections("short-lived"))

    assert trial.completed == trial.attempted
    assert trial.attempted < 2 * FEW


def test_packets_and_connections_take_turns_on_one_generator(cable: Lab) -> None:
    packets = cable.trial(PacketProfile(name="p", kind="packets"), 2000)
    connections_ = cable.trial(connections("udp-800"))

    assert packets.unit == "packets"
    assert packets.completed > 0
    assert connections_.completed == connections_.attempted


def test_through_a_router_all_complete_and_the_record_says_with_what(routed: Lab) -> None:
    trial = routed.trial(connections("short-lived"))

    assert trial.completed == trial.attempted
    facts = routed.generator.snapshot()
    assert str(facts["version"]).startswith("v")
    assert facts["server"]["mode"] == "ASTF"  # type: ignore[index]
    assert [port["driver"] for port in facts["ports"]] == ["net_af_packet"] * 2  # type: ignore[attr-defined]


def test_lost_packets_fail_their_connections(routed: Lab, forwarding: Callable[[str], None]) -> None:
    forwarding("numgen random mod 100 == 0 drop")
    trial = routed.trial(connections("short-lived"))

    lost = sum(trial.total_tx_packets.values()) - sum(trial.total_rx_packets.values())
    assert lost > 0
    assert 0 < sum(trial.failed.values()) <= 2 * lost
    assert trial.completed == trial.attempted - sum(trial.failed.values())


def test_udp_without_replies_fails(routed: Lab, forwarding: Callable[[str], None]) -> None:
    forwarding("udp sport 5353 drop")
    trial = routed.trial(connections("udp-800"))

    assert trial.attempted > 0
    assert trial.completed == 0


def test_a_router_that_answers_nothing_fails_all(routed: Lab, forwarding: Callable[[str], None]) -> None:
    forwarding("drop")
    trial = routed.trial(connections("http-600"))

    assert trial.attempted > 0
    assert (trial.completed, trial.established) == (0, 0)


def test_connections_that_the_router_resets_fail(routed: Lab, forwarding: Callable[[str], None]) -> None:
    forwarding("tcp flags & (syn | ack) == syn reject with tcp reset")
    trial = routed.trial(connections("http-600"))

    assert trial.completed == 0
    assert "reset" in trial.failed


def test_a_server_killed_in_the_middle_is_named_and_the_next_trial_starts_it_anew(cable: Lab) -> None:
    assert cable.trial(connections("http-600")).completed > 0
    killer = threading.Timer(1.5, cable.kill_server)
    killer.start()
    with pytest.raises(GeneratorError, match="TRex ended in the middle of a trial"):
        cable.generator.run_trial(connections("http-600"), Rate(FEW), 30)
    killer.join()

    assert cable.trial(connections("http-600")).completed > 0


def test_ports_that_another_client_holds_are_left_to_it_and_taken_when_it_is_gone(cable: Lab) -> None:
    with closing(cable.stranger("alice")), pytest.raises(GeneratorError, match="are held by alice: end that first"):
        cable.trial(connections("http-600"))

    assert cable.trial(connections("http-600")).completed > 0


def test_ports_of_a_killed_run_are_taken_from_it(cable: Lab) -> None:
    mine = Owner.myself()
    other = cable.stranger(str(Owner(mine.machine, mine.boot, ticks="1", pid=mine.pid)))
    other._kill()  # without a farewell

    assert cable.trial(connections("http-600")).completed > 0


def test_the_wrong_mode_and_nobody_there_are_one_sentence_each(cable: Lab) -> None:
    with closing(cable.stranger("alice")) as worker:
        for changed, sentence in (
            ({"mode": "stl"}, "runs in ASTF mode; STL is needed"),
            ({"sync_port": 4999}, "No TRex server answers at 127.0.0.1:4999"),
        ):
            with pytest.raises(TrexRefused, match=sentence):
                worker.call("connect", 30, **{**CONNECT, "user": "alice", **changed})


def test_ctrl_c_ends_the_traffic_at_once(cable: Lab) -> None:
    cable.trial(connections("http-600"))
    timer = threading.Timer(1.5, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cable.generator.run_trial(connections("http-600"), Rate(FEW), 30)
    timer.join()

    def sent() -> str:
        return cable.host.run([*within_generator(), "cat", "/sys/class/net/g0/statistics/tx_packets"]).stdout

    before = sent()
    time.sleep(0.5)
    assert sent() == before
