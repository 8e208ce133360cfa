"""DUTs on a host over SSH: the real OVS-DPDK and the real kernel, in namespaces of an sshd that the test starts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.sshd import Sshd, serving
from integration.test_ovs_topologies import CLIENT, SERVER
from packets import SYN, tcp
from real_duts import counted, hand_over, on_shared_cpus, skipping

from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.ovs.answers import PORTS, Command
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A machine to log in to, of which we are root in all but name: its network, processes and /run are its own."""
    yield from serving(tmp_path_factory.mktemp("remote"), own_network=True)


@pytest.fixture
def host(remote: Sshd) -> Iterator[SshHost]:
    instance = SshHost("dut.lab", remote.config())
    yield instance
    instance.close()


def test_ovs_is_set_up_measured_and_gone_again(host: SshHost, tmp_path: Path) -> None:
    before = host.run(["find", "/run", "-not", "-path", "/run/ctbench*"]).stdout
    dut = on_shared_cpus(OvsDpdkDut, host, log_folder=tmp_path)
    with skipping():
        ports = dut.apply(Topology())

    dut.verify()
    assert host.run(["test", "-S", ports.links[0][0]]).exit_status == 0
    assert not Path(ports.links[0][0]).exists()  # it is there, and not here

    dut.begin_trial()
    hand_over(dut, 1, tcp(CLIENT, SERVER, SYN, 100))
    assert counted(dut).drops == {"server.ovs_tx_failure_drops": 1}
    assert dut.connections() == 1
    dut.flush_state()
    assert dut.connections() == 0

    assert "ovs-vswitchd" in host.read(f"/proc/{dut.snapshot()['pid']}/comm")
    dut.begin_trial()
    assert dut.health() == []
    kill, ask = ["kill", "-KILL", str(dut.snapshot()["pid"])], dut.control.ask

    def ask_a_dead_one(command: Command[Any], *more: str) -> Any:
        if command is PORTS:
            host.run(kill)
        return ask(command, *more)

    dut.control.ask = ask_a_dead_one  # type: ignore[method-assign]
    for _ in ("killed while it is asked", "dead since"):
        assert [problem.severity for problem in dut.health()][:1] == ["fatal"]

    dut.restore()
    assert "ovs" not in host.run(["ps", "-eo", "comm"]).stdout
    assert host.run(["find", "/run", "-not", "-path", "/run/ctbench*"]).stdout == before
    (log,) = tmp_path.glob("ovs-vswitchd.*.log")
    assert log.read_text()


def test_ovs_that_a_crashed_run_left_is_found_at_the_next_start(remote: Sshd, host: SshHost, tmp_path: Path) -> None:
    crashed = SshHost("dut.lab", remote.config())
    left = on_shared_cpus(OvsDpdkDut, crashed, log_folder=tmp_path)
    with skipping():
        left.apply(Topology())
    pid = left.snapshot()["pid"]
    crashed.close()
    assert "ovs-vswitchd" in host.read(f"/proc/{pid}/comm")

    dut = on_shared_cpus(OvsDpdkDut, host, log_folder=tmp_path)
    dut.apply(Topology())

    assert dut.snapshot()["pid"] != pid
    assert host.run(["test", "-e", f"/proc/{pid}"], check=False).exit_status != 0
    dut.restore()


def test_what_crashed_runs_left_is_ended_and_restored_by_a_linux_dut(remote: Sshd, host: SshHost) -> None:
    settings = ["net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", "net.ipv6.conf.default.disable_ipv6"]
    cards = ("ens0", "ens1")  # a veth pair in the place of cards
    host.run(["ip", "link", "add", cards[0], "mtu", "1400", "type", "veth", "peer", "name", cards[1]])
    asked = [["sysctl", *settings], ["ip", "-br", "link"], ["ethtool", "-k", cards[0]], ["ls", "/run"]]
    before = [host.run(argv).stdout for argv in asked]
    crashed = SshHost("dut.lab", remote.config())
    left = on_shared_cpus(OvsDpdkDut, crashed)
    with skipping():
        left.apply(Topology())
    pid = left.snapshot()["pid"]
    router = on_shared_cpus(LinuxRouterDut, crashed, interfaces=cards, card_offloads=False)
    router.apply(Topology(datapath="linux-router", ruleset="iptables-stateful"))
    assert host.run(["test", "-e", f"/proc/{pid}"], check=False).exit_status != 0
    crashed.close()
    assert [host.run(argv).stdout == found for argv, found in zip(asked, before, strict=True)] == [False] * len(asked)

    dut = on_shared_cpus(LinuxBridgeDut, host, interfaces=cards)
    dut.apply(Topology(datapath="linux-bridge", ruleset="forward"))
    dut.restore()

    assert [host.run(argv).stdout for argv in asked] == before
    host.run(["ip", "link", "del", cards[0]])


def test_the_kernel_is_set_up_as_a_router_and_left_as_it_was(host: SshHost) -> None:
    before = host.run(["ip", "-o", "link"]).stdout
    dut = on_shared_cpus(LinuxRouterDut, host)
    with skipping():
        dut.apply(Topology(datapath="linux-router", ruleset="iptables-stateful"))

    dut.verify()
    dut.flush_state()
    dut.begin_trial()
    assert dut.health() == []
    assert set(counted(dut).rx_packets) == {"client", "server"}

    dut.restore()
    assert host.run(["ip", "-o", "link"]).stdout == before
    assert host.run(["nft", "list", "ruleset"]).stdout == ""
