"""An OVS that dies is noticed and replaced, its threads keep to their CPUs, and it leaves nothing behind."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.ovs.dpdk import MemifDevices
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.fit import program_of
from ctbench.dut.ovs.instance import FOLDER
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.ovs.threads import read_threads
from ctbench.dut.topology import Topology
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.cpus import AUTO, plan_cpus

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]


def on_cpus_of_its_own(sandbox: Sandbox, **options: Any) -> OvsDpdkDut:
    """OVS-DPDK as it is measured: PMD threads share no CPU."""
    machine = read_machine(sandbox)
    plan = AUTO.model_copy(update={"housekeeping": [machine.usable_cpus[0]]})
    return OvsDpdkDut(sandbox, machine, lambda topology: plan_cpus(plan, machine, topology.cpus), **options)


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ovs")


@pytest.fixture(scope="module")
def placed(sandbox: Sandbox, log_folder: Path) -> Iterator[OvsDpdkDut]:
    """OVS-DPDK as it is measured: one PMD thread on a CPU of its own."""
    instance = on_cpus_of_its_own(sandbox, log_folder=log_folder)
    yield instance
    instance.restore()


@pytest.fixture
def placed_dut(placed: OvsDpdkDut) -> OvsDpdkDut:
    """It, running, whatever the test before has done to it."""
    try:
        placed.apply(Topology())
    except MissingResource as error:
        pytest.skip(str(error))
    return placed


def test_a_process_that_takes_the_pmds_cpu_is_noticed(placed_dut: OvsDpdkDut, sandbox: Sandbox) -> None:
    (pmd_cpu,) = placed_dut.placement(Topology()).pmd
    taker = sandbox.start(["taskset", "-c", str(pmd_cpu), sys.executable, "-S", "-c", "while True: pass"])
    try:
        placed_dut.begin_trial()
        while not (taken := [problem for problem in placed_dut.health() if problem.severity == "disturbed"]):
            assert taker.is_running()
    finally:
        taker.stop()
    assert taken[0].code == "cpu-taken" and taken[0].cpu_taken and taken[0].cpu_taken > 0


def test_a_thread_that_strays_to_the_pmds_cpu_is_found_and_moved_back(placed_dut: OvsDpdkDut, sandbox: Sandbox) -> None:
    pid = placed_dut.snapshot()["pid"]
    (pmd_cpu,) = placed_dut.placement(Topology()).pmd
    stray = next(thread for thread in read_threads(sandbox, pid) if thread.name.startswith("revalidator"))
    sandbox.run(["taskset", "-p", "-c", str(pmd_cpu), str(stray.tid)])
    with pytest.raises(TestbedError, match=f"CPUs of thread {stray.name}: asked .*, found .*{pmd_cpu}"):
        placed_dut.verify()
    placed_dut.apply(Topology())
    placed_dut.verify()


def test_a_device_that_cannot_be_opened_says_which_package_may_be_missing(
    placed_dut: OvsDpdkDut, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MemifDevices, "devargs", lambda *_: "net_nosuchdriver0")
        with pytest.raises(TestbedError, match=r"OVS cannot open port0: .*librte-net-memif"):
            placed_dut.apply(Topology(ruleset="normal", ports="bond"))
    placed_dut.apply(Topology())
    placed_dut.verify()


def test_each_start_has_pages_of_its_program_that_no_other_shares(placed_dut: OvsDpdkDut, sandbox: Sandbox) -> None:
    program = Path(placed_dut.snapshot()["vswitchd"])
    files, told = {program.stat().st_ino}, {placed_dut.snapshot()["program"]}
    for _ in range(2):
        placed_dut.restore()
        placed_dut.apply(Topology())
        running = f"/proc/{placed_dut.snapshot()['pid']}/exe"
        assert sandbox.run(["readlink", running]).stdout.strip() == str(program)
        files.add(int(sandbox.run(["stat", "-L", "-c", "%i", running]).stdout))
        told.add(placed_dut.snapshot()["program"])
    assert len(files) == 3
    # And is of the same build all the same, which is known before it runs.
    assert told == {program_of(LocalHost(), OvsInstallation())}


def test_nothing_is_left_after_restore_but_the_log(placed_dut: OvsDpdkDut, sandbox: Sandbox, log_folder: Path) -> None:
    placed_dut.restore()
    placed_dut.restore()
    assert sandbox.run(["ls", "-d", FOLDER], check=False).exit_status != 0
    assert "ovs" not in sandbox.run(["ps", "-e", "-o", "comm"]).stdout
    assert all("Open vSwitch" in log.read_text() for log in log_folder.iterdir())
    assert not Path(FOLDER).exists()  # nor was it ever on the real host
