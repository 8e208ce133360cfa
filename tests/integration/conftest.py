"""What integration tests share: a sandbox, the real OVS-DPDK in it, an sshd."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from integration.small_testbed import small
from integration.sshd import PASSWORD, TESTER, Sshd, serving
from integration.whole_run import Start, starts
from real_duts import on_shared_cpus, set_up

from ctbench.base.errors import MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.linux import health
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.ovs import bridge as ovs_bridge
from ctbench.dut.ovs import threads
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.hosts.ssh import SshHost
from ctbench.measure import observation
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctgen import Generator, clock, engine, plan
from ctgen.library import kernel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is an integration test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("integration")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox; skips where the machine does not allow one."""
    try:
        host = Sandbox()
    except MissingResource as error:
        pytest.skip(str(error))
    with host:
        yield host


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A real sshd on loopback; skips where it is not installed, or cannot have namespaces of its own."""
    yield from serving(tmp_path_factory.mktemp("sshd"))


@pytest.fixture
def ssh_host(sshd: Sshd) -> Iterator[SshHost]:
    """A host that is reached over SSH."""
    instance = SshHost("dut", sshd.config())
    yield instance
    instance.close()


@pytest.fixture(scope="session")
def sudo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One with a user who may become root."""
    if os.geteuid() != 0 or shutil.which("sudo") is None:
        pytest.skip("sudo has to be installed on a machine of which one is root.")
    # With a password, for an account without one is refused by sudo's PAM.
    sudoers = f"{TESTER} ALL=(ALL) NOPASSWD: ALL\n"
    yield from serving(tmp_path_factory.mktemp("sudo"), password=PASSWORD, sudoers=sudoers)


@pytest.fixture
def sudoer(sudo_server: Sshd) -> Iterator[SshHost]:
    """A host that an ordinary user logs in to, who becomes root there."""
    instance = SshHost("dut", sudo_server.config(user=TESTER, sudo=True))
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def resting() -> Iterator[None]:
    """PMD threads sleep while nothing comes, as those that share CPUs do: polling, they would take one from the tests
    that run meanwhile."""
    options = ovs_bridge.options_of
    rest = dict.fromkeys(ovs_bridge._MOST_SLEEP, str(ovs_bridge._SLEEP_US))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ovs_bridge, "options_of", lambda topology, placement: options(topology, placement) | rest)
        yield


@pytest.fixture(scope="module")
def dut(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OvsDpdkDut]:
    """The real OVS-DPDK."""
    logs = tmp_path_factory.mktemp("ovs")
    yield from set_up(on_shared_cpus(OvsDpdkDut, sandbox, log_folder=logs), Topology())


@pytest.fixture(scope="module")
def router(sandbox: Sandbox) -> Iterator[LinuxRouterDut]:
    """The Linux kernel of this machine as a router."""
    yield from set_up(on_shared_cpus(LinuxRouterDut, sandbox), Topology(datapath="linux-router", ruleset="forward"))


@pytest.fixture(scope="module")
def bridge(sandbox: Sandbox) -> Iterator[LinuxBridgeDut]:
    """The Linux kernel of this machine as a bridge."""
    yield from set_up(on_shared_cpus(LinuxBridgeDut, sandbox), Topology(datapath="linux-bridge", ruleset="forward"))


@pytest.fixture(scope="module")
def unhurried() -> Iterator[None]:
    """A reply may take its time, the generator be late, and nothing settles before a trial counts: what is tested is
    whether things happen, not when."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", 5.0)
        patch.setattr(plan, "LATE_LIMIT_S", 5.0)
        patch.setattr(plan, "RAMP_S", 0.05)
        patch.setattr(plan, "SETTLE_S", 0.05)
        patch.setattr(clock, "LATEST_S", 5.0)
        patch.setattr(plan, "STREAM_LINGER_S", 2.0)
        patch.setattr(engine, "LATE_RATIO_LIMIT", 1.0)
        patch.setattr(engine, "ATTEMPTED_LIMIT", 0.0)
        # At a floor a disturbance voids good trials as well.
        patch.setattr(engine, "RING_SHARE", 1e9)
        patch.setattr(threads, "MOST_WAITING", 1.0)
        patch.setattr(observation, "MOST_WAITING_OF_LINKS", 1.0)
        # Nor does one that runs next to others wait for the end of what they measure.
        patch.setattr(Testbed, "claim", lambda *_: None)
        yield


@pytest.fixture
def any_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel does not tell whose packets a CPU processed: those of others make no trial invalid."""
    monkeypatch.setattr(health, "NOISE_PACKETS", 10**9)


@pytest.fixture(scope="session")
def compiled() -> None:
    """The generator's kernel, compiled before anything is timed."""
    kernel()


@pytest.fixture(scope="module")
def generator(compiled: None, unhurried: None) -> Iterator[Generator]:
    """The software traffic generator, not connected."""
    with closing(Generator()) as instance:
        yield instance


@pytest.fixture(scope="session")
def able_machine() -> None:
    """Skips where no run can be measured: OVS, its drivers, namespaces or a second CPU are missing."""
    try:
        load("testbeds", "local", TestbedConfig).check_machine()
    except MissingResource as error:
        pytest.skip(str(error))
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip(f"A run needs 2 CPUs, for the traffic generator and for OVS; this machine has {cpus} usable.")


@pytest.fixture(scope="module")
def testbed(able_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    """The local testbed, used by one test after the other: each needs what the one before left, or its recovery."""
    with closing(Testbed(small(load("testbeds", "local", TestbedConfig)), tmp_path_factory.mktemp("testbed"))) as made:
        yield made


@pytest.fixture
def start(able_machine: None, tmp_path: Path) -> Iterator[Start]:
    """Starts whole runs; ends them when the test is over."""
    yield from starts(tmp_path)
