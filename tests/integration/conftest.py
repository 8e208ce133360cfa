"""What integration tests share: a sandbox, the real OVS-DPDK in it, and a way to be an ordinary user."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.sshd import Sshd

from ctbench import preflight
from ctbench.config import load
from ctbench.dut.base import Topology
from ctbench.dut.linux import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.errors import MissingResource, TestbedError
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import place, read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed_config import TestbedConfig

#: User and group `nobody` of Debian: what root becomes to be an ordinary user.
NOBODY = "65534"
REPOSITORY = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is an integration test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("integration")


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """A shell script starts what it leaves in the background deaf to Ctrl-C, and whatever that starts is deaf as well:
    TRex, and the programs of these tests. (In a run Robot Framework's own handler does this.)"""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
    try:
        server = Sshd(tmp_path_factory.mktemp("sshd"))
    except MissingResource as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="module")
def dut(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OvsDpdkDut]:
    """The real OVS-DPDK, oversubscribed so that every topology can be applied on any machine."""
    logs = tmp_path_factory.mktemp("ovs")
    machine = read_machine(sandbox)
    instance = OvsDpdkDut(
        sandbox, machine, lambda topology: place(machine, topology.pmd_cpus, oversubscribed=True), log_folder=logs
    )
    try:
        instance.apply(Topology())
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.restore()  # its PMD threads would go on polling


@pytest.fixture(scope="module")
def router(sandbox: Sandbox) -> Iterator[LinuxRouterDut]:
    """The Linux kernel of this machine as a router, oversubscribed so that every topology can be applied."""
    machine = read_machine(sandbox)
    instance = LinuxRouterDut(sandbox, machine, lambda topology: place(machine, topology.pmd_cpus, oversubscribed=True))
    try:
        instance.apply(Topology(datapath="linux-router", ruleset="forward"))
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.restore()


@pytest.fixture(scope="module")
def bridge(sandbox: Sandbox) -> Iterator[LinuxBridgeDut]:
    """The Linux kernel of this machine as a bridge, oversubscribed as well."""
    machine = read_machine(sandbox)
    instance = LinuxBridgeDut(sandbox, machine, lambda topology: place(machine, topology.pmd_cpus, oversubscribed=True))
    try:
        instance.apply(Topology(datapath="linux-bridge", ruleset="forward"))
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.restore()


@pytest.fixture(scope="module")
def unhurried() -> Iterator[None]:
    """A reply may take its time, and the generator be late: what is tested is whether things happen, not when."""
    from ctbench.traffic.software import pace, plan, stream_plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", 5.0)
        patch.setattr(plan, "LATE_LIMIT_S", 5.0)
        patch.setattr(stream_plan, "LATE_LIMIT_S", 5.0)
        patch.setattr(stream_plan, "LINGER_S", 2.0)
        patch.setattr(pace, "LATE_RATIO_LIMIT", 1.0)
        patch.setattr(pace, "ATTEMPTED_LIMIT", 0.0)
        yield


@pytest.fixture(scope="session")
def able_machine() -> None:
    """Skips where no run can be measured: OVS, its drivers, namespaces or a second CPU are missing."""
    try:
        preflight.check_machine(load("testbeds", "local", TestbedConfig))
    except MissingResource as error:
        pytest.skip(str(error))
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip(f"A run needs 2 CPUs, for the traffic generator and for OVS; this machine has {cpus} usable.")


@pytest.fixture(scope="session")
def compiled_kernel() -> Iterator[Path]:
    """A copy of numba's cache that an ordinary user can use: compiling takes 15 s."""
    import numba

    from ctbench.traffic.software.generator import warm_up

    warm_up()
    with tempfile.TemporaryDirectory(prefix="ctbench-test-") as folder:
        cache = Path(folder)
        compiled = Path(numba.config.CACHE_DIR)  # named by the state of the sources
        shutil.copytree(compiled, cache / compiled.name)
        for path in (cache, *cache.rglob("*")):
            os.chown(path, int(NOBODY), int(NOBODY))
        yield cache


@pytest.fixture(scope="session")
def as_ordinary_user(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs tests of this folder once more as an ordinary user, `only` those that pytest's -k chooses; skips for who is
    one already."""
    if os.geteuid() != 0:
        pytest.skip("The tests run as an ordinary user already.")
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    here = Path(__file__).parent
    if LocalHost().run([*drop, "test", "-r", str(here / "conftest.py")], check=False).exit_status != 0:
        pytest.skip(f"An ordinary user cannot read this checkout ({REPOSITORY}).")

    def run(*files: str, generator: bool = False, only: str = "") -> None:
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        # Otherwise pytest would use root's folder for temporary files.
        user = {"LOGNAME": "nobody", "USER": "nobody", "HOME": "/nonexistent"}
        if generator:  # nobody has no folder that numba could keep what it compiles in
            user["NUMBA_CACHE_DIR"] = str(request.getfixturevalue("compiled_kernel"))
        chosen = ["-k", only, *(str(here / file) for file in files)]
        done = LocalHost().run(
            [*drop, *command, "--rootdir", str(REPOSITORY), "-c", str(REPOSITORY / "pyproject.toml"), *chosen],
            timeout=180,
            check=False,
            env=user,
        )
        if done.exit_status == 0 and " passed" not in done.stdout:
            pytest.skip(f"An ordinary user could run none of it:\n{done.stdout[-1000:]}")
        if done.exit_status != 0:
            raise TestbedError(done.stdout[-4000:] + done.stderr[-1000:])

    return run
