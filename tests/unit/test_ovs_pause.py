"""A process that is paused for another one: how long, that it wakes up for what it is asked, and that nobody takes it
for trouble. The process is a real one of ours; the Open vSwitch is not."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import Problem
from ctbench.dut.ovs import OvsInstallation, trouble
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.cpu_contention import ThreadTimes, sharing_problems
from ctbench.dut.ovs.daemons import OvsDaemons
from ctbench.dut.ovs.health import log_problems
from ctbench.dut.ovs.instance import ProcessIdentity
from ctbench.dut.ovs.pause import Pause, awake
from ctbench.dut.ovs.system import SystemOvs
from ctbench.hosts.local import LocalHost

from .test_ovs_trouble import BOTH, RUNNING, Said, stat, times

pytestmark = pytest.mark.unit


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as running:
        yield running
        running.kill()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def becomes(pid: int, wanted: str) -> bool:
    """Signals are heard when the process runs next."""
    deadline = time.monotonic() + 10
    while state(pid) not in wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def test_a_process_is_stopped_and_goes_on_and_the_time_between_is_known(process: "subprocess.Popen[bytes]") -> None:
    pause = Pause(LocalHost())
    pause.end()
    assert (pause.lasts, pause.seconds) == (False, 0.0)
    for _ in range(2):
        pause.begin(process.pid)
        pause.begin(process.pid)
        assert pause.lasts and becomes(process.pid, "T")
        before = pause.seconds
        pause.end()
        assert not pause.lasts and pause.seconds > before and becomes(process.pid, "SR")
    pause.begin(process.pid)
    pause.forget()
    assert becomes(process.pid, "SR") and pause.seconds == 0.0


def test_one_that_has_died_is_somebody_elses_to_find(process: "subprocess.Popen[bytes]") -> None:
    pause = Pause(LocalHost())
    pause.begin(process.pid)
    process.kill()
    process.wait()
    pause.end()
    pause.begin(process.pid)
    assert not pause.lasts
    pause.forget()
    pause.begin(process.pid)
    assert not pause.lasts


def test_a_process_of_another_machine_is_not_paused() -> None:
    far: Any = SimpleNamespace(name="dut.lab", open_process=lambda _: None)
    with pytest.raises(MissingResource, match=r"^dut\.lab: a process there cannot be paused"):
        Pause(far).begin(1)


def test_the_systems_open_vswitch_is_not_paused() -> None:
    host: Any = SimpleNamespace(name="lab", run=lambda *_, **__: None)
    with pytest.raises(MissingResource, match=r"ovs\.manage: true"):
        SystemOvs(OvsControl(host, OvsInstallation(), "/run/x"), cards=True).pause()


class Paused:
    """What is asked something while it is paused."""

    def __init__(self, *, paused: bool) -> None:
        self.paused, self.seen = paused, list[bool]()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    @awake
    def answer(self) -> int:
        self.seen.append(self.paused)
        return 7

    @awake
    def fail(self) -> None:
        raise TestbedError("no")


@pytest.mark.parametrize("paused", [True, False])
def test_what_is_paused_wakes_up_for_what_it_is_asked_and_is_paused_again(paused: bool) -> None:
    asked = Paused(paused=paused)
    assert asked.answer() == 7
    with pytest.raises(TestbedError):
        asked.fail()
    assert asked.seen == [False] and asked.paused is paused


def test_what_we_paused_is_in_no_trouble_and_what_somebody_else_stopped_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trouble, "GO_ON_TIMEOUT_S", 0.0)
    stopped: Any = Said([[stat(16, 1000, "T"), RUNNING[1]]])
    assert trouble.find_trouble(stopped, BOTH, [], {"ovs-vswitchd"}) == ""
    assert "is stopped" in trouble.find_trouble(stopped, BOTH, [])
    dead: Any = Said([[RUNNING[1]]])
    assert trouble.find_trouble(dead, BOTH, [], {"ovs-vswitchd"}) == "ovs-vswitchd (process 16) died."


def test_daemons_that_are_paused_are_in_no_trouble(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "GO_ON_TIMEOUT_S", 0.0)
    daemons = OvsDaemons(OvsControl(LocalHost(), OvsInstallation(), "/nonexistent/ctbench"))
    daemons.pause()  # nothing runs yet
    assert not daemons.paused
    ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    daemons._processes = {"ovs-vswitchd": ProcessIdentity(process.pid, ticks)}
    daemons.pause()
    assert daemons.paused and becomes(process.pid, "T")
    assert daemons.trouble().startswith("Open vSwitch cannot be reached any more: /nonexistent/ctbench/db.sock")
    daemons.resume()
    assert becomes(process.pid, "SR") and daemons.paused_s > 0
    os.kill(process.pid, 19)
    assert becomes(process.pid, "T") and "is stopped" in daemons.trouble()


def test_a_pause_is_no_stall_in_the_log() -> None:
    line = "2026-11-22T14:00:00.000Z|00044|ovs_rcu|WARN|blocked 1004 ms waiting for pmd-c01/id:8 to quiesce"
    error = "2026-11-22T14:00:00.000Z|00045|dpdk|ERR|no memory"
    assert [each.severity for each in log_problems([line, error])] == ["fatal", "warning"]
    assert [each.severity for each in log_problems([line, error], was_paused=True)] == ["fatal"]


def test_the_time_of_a_pause_is_no_standstill_and_a_rival_took_its_share_of_the_rest() -> None:
    before, after = times((0.0, 0.0, 0)), times((4.9, 0.1, 1))
    assert sharing_problems(before, after, 5.0, with_generator=False) == [
        Problem("disturbed", "Other processes took 2.0 % of a PMD CPU of the DUT.", cpu_taken=0.02)
    ]
    assert sharing_problems(before, after, 10.0, with_generator=False)[0].severity == "stalled"
    assert sharing_problems(ThreadTimes(), ThreadTimes(), 1.0, with_generator=True) == []
