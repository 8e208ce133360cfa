"""What of an Open vSwitch is dead, stopped, gone or paused, and whether it stood still, by what the kernel says."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import wait_until
from ctbench.dut.ovs import instance
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.control_plane import OvsControlPlane
from ctbench.dut.ovs.fit import program_of
from ctbench.dut.ovs.instance import OvsDaemons, Pause, ProcessIdentity
from ctbench.dut.ovs.settings import OvsInstall, OvsInstallation
from ctbench.dut.ovs.threads import ThreadTimes, read_thread_times, stood_still
from ctbench.hosts.base import Completed, Host
from ctbench.hosts.local import LocalHost
from ctbench.hosts.sandbox import Sandbox

BOTH = {"ovs-vswitchd": ProcessIdentity(16, 1000), "ovsdb-server": ProcessIdentity(13, 900)}


def stat(pid: int, ticks: int, state: str = "S", flags: int = 0x400100) -> str:
    """A line of /proc/PID/stat, whose name has what names may have."""
    return f"{pid} (ovs) v (x) {state} 1 1 1 0 -1 {flags} " + " ".join(["1"] * 12) + f" {ticks} 0 0"


RUNNING = [stat(16, 1000), stat(13, 900)]


@dataclass
class Said:
    """In the place of a host: each command prints the next of these, the last one for ever; None: it is dead."""

    answers: list[list[str] | None]
    ends: dict[int, int] = field(default_factory=dict)
    asked: int = 0
    last: Any = None

    def run(self, argv: Any, *_: Any, **__: Any) -> Completed:
        self.last = argv
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if answer is None:
            raise TestbedError("The sandbox has ended.")
        return Completed(0, "\n".join(answer), "")

    def ended_with(self, pid: int) -> int | None:
        return self.ends.get(pid)


def found(*answers: list[str] | None, **ends: int) -> str:
    host = Said(list(answers), {int(pid[1:]): status for pid, status in ends.items()})
    return instance.find_trouble(host, BOTH, ["/run/db.sock"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    ["", stat(16, 1001), stat(16, 1000, "Z"), stat(16, 1000, "R", 0x40010C)],
    ids=["gone", "another one", "zombie", "ending"],
)
def test_a_process_that_is_gone_or_another_one_or_about_to_be_gone_is_dead(line: str) -> None:
    lines = [RUNNING[1], *([line] if line else [])]
    assert found(lines) == "ovs-vswitchd (process 16) died."
    assert found(lines, p16=-signal.SIGSEGV) == "ovs-vswitchd (process 16) was killed by SIGSEGV."
    paused: Any = Said([lines])
    assert instance.find_trouble(paused, BOTH, [], {"ovs-vswitchd"}) == "ovs-vswitchd (process 16) died."


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (RUNNING, ""),
        (RUNNING[:1], "ovsdb-server (process 13) ended with status 1."),
        (None, "The sandbox has ended."),
        (["gone /run/db.sock", *RUNNING], "any more: /run/db.sock is gone."),
        (["gone /run/db.sock", "gone /run/x", *RUNNING], "/run/db.sock and 1 more of its files are gone."),
        (["gone /run/db.sock", RUNNING[1]], "ovs-vswitchd (process 16) died."),  # before its socket
    ],
)
def test_the_first_that_is_dead_or_gone_is_named(answer: list[str] | None, trouble: str) -> None:
    assert found(answer, p13=1).endswith(trouble) and bool(found(answer)) == bool(trouble)


def test_the_sockets_of_a_daemon_that_was_never_up_are_not_missed() -> None:
    host = Said([RUNNING])
    daemons = OvsDaemons(OvsControl(host, OvsInstallation(), "/run/x"))  # type: ignore[arg-type]
    daemons._processes = {"ovsdb-server": BOTH["ovsdb-server"]}
    assert daemons.trouble(["/run/x/port0.sock"]) == "" and "db.sock" not in str(host.last)
    daemons._processes = dict(BOTH)
    assert daemons.trouble(["/run/x/port0.sock"]) == ""
    assert all(name in str(host.last) for name in ("/db.sock", "/ovs-vswitchd.ctl", "/ovsdb-server.pid", "/port0.sock"))


def test_a_daemon_that_a_crash_left_of_an_installation_that_is_gone_is_ended(tmp_path: Path) -> None:
    left = subprocess.Popen(["sh", "-c", "sleep 60", str(tmp_path)], start_new_session=True)
    (tmp_path / "ovs-vswitchd.pid").write_text(f"{left.pid}\n")
    daemons = OvsDaemons(OvsControl(LocalHost(), OvsInstallation(str(tmp_path / "gone")), str(tmp_path)))
    found = daemons.vswitchd()
    assert found and found.pid == left.pid
    daemons._end("ovs-vswitchd", found)
    assert left.wait(5) == -signal.SIGTERM


#: Seen with iproute2 6.1, but for the names.
TAPS = ["ovs-netdev: tap persist", "br0: tap persist", "stay0: tap persist", "stay1023: tap persist",
        "pod3: tap persist", "stays: tap persist", "br0.7: tap persist", "vnet0: tap vnet_hdr"]  # fmt: skip
OURS = ["ovs-netdev", "br0", "stay0", "stay1023", "pod3"]


@pytest.mark.parametrize(
    ("kind", "is_there", "gone"),
    [(LocalHost, True, OURS), (LocalHost, False, []), (Sandbox, True, [])],
    ids=["after a crash", "where nothing of ours was", "of a sandbox"],
)
def test_taps_that_a_crash_left_on_a_host_are_removed(kind: type[Host], is_there: bool, gone: list[str]) -> None:
    removed: list[str] = []

    def run(argv: list[str], *_: Any, stdin: str = "", **__: Any) -> Completed:
        if argv[0] == "test":
            return Completed(int(not is_there), "", "")
        removed.extend(stdin.splitlines())
        return Completed(0, "\n".join(TAPS) if argv[:2] == ["ip", "tuntap"] else "", "")

    OvsDaemons(OvsControl(Mock(spec=kind, run=run), OvsInstallation(), "/run/x")).stop()
    assert removed == [f"tuntap del dev {name} mode tap" for name in gone]


def times(*threads: tuple[float, float, int]) -> ThreadTimes:
    """PMD threads that had their CPUs and waited for so many seconds, and gave them up so often."""
    numbers = range(7, 7 + len(threads))
    return ThreadTimes(
        waited={n: int(waited * 1e9) for n, (_, waited, _) in zip(numbers, threads, strict=True)},
        had={n: int(had * 1e9) for n, (had, _, _) in zip(numbers, threads, strict=True)},
        slept={n: slept for n, (_, _, slept) in zip(numbers, threads, strict=True)},
    )


@pytest.mark.parametrize(
    ("thread", "still"),
    [
        ((10.0, 0.0, 0), 0.0),
        ((7.0, 0.0, 0), 3.0),
        ((7.0, 0.0, 3), 3.0),
        ((7.0, 3.0, 0), 0.0),  # somebody had its CPU
        ((7.0, 0.0, 20_000), 0.0),  # it waited for a lock, often and shortly
        ((9.9, 0.0, 0), 0.0),
    ],
)
def test_a_thread_that_neither_ran_waited_nor_slept_stood_still(thread: tuple[float, float, int], still: float) -> None:
    assert stood_still(times((0.0, 0.0, 0)), times(thread), 10.0) == pytest.approx(still)


def test_one_thread_that_goes_on_is_no_standstill_and_times_are_read_with_what_the_machine_took() -> None:
    nothing = times((0.0, 0.0, 0), (0.0, 0.0, 0))
    assert stood_still(nothing, times((7.0, 0.0, 0), (10.0, 0.0, 0)), 10.0) == 0.0
    assert stood_still(nothing, times((7.0, 0.0, 0), (8.0, 0.0, 0)), 10.0) == pytest.approx(2.0)
    assert stood_still(ThreadTimes(), ThreadTimes(), 10.0) == 0.0
    cpus = ["cpu0 1 1 1 1 1 9 9 9 0 0", "cpu1 1 1 1 1 1 10 20 70 0 0"]
    host: Any = Said([["pmd 20 7000000000 5 2 pmd-c01/id:8", "other 16 42 1", *cpus]])
    expected = ThreadTimes(waited={20: 5}, others_ran={16: 42}, had={20: 8_000_000_000}, slept={20: 2})
    assert read_thread_times(host, 16) == expected


def test_one_that_has_died_or_is_not_ours_is_not_paused() -> None:
    pause, process = Pause(LocalHost()), subprocess.Popen(["true"])
    process.wait()
    pause.begin(process.pid)
    assert not pause.lasts
    far: Any = SimpleNamespace(name="dut.lab", local_pid=lambda _: None, run=lambda *_, **__: None)
    with pytest.raises(MissingResource, match=r"^dut\.lab: a process there cannot be paused"):
        Pause(far).begin(1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"options": ["--pidfile=/x"]}, '"--pidfile=/x" is set by the run itself'),
        ({"dpdk_extra": ["-m", "64"]}, '"-m" is set by the run itself'),
        ({"dpdk_extra": ["-l0-3"]}, '"-l0-3" is set by the run itself'),
    ],
)
def test_options_that_a_run_sets_itself_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        OvsInstall.model_validate({"prefix": "distribution", **more})


def test_a_build_is_told_from_another_one_in_its_place_by_its_files(tmp_path: Path) -> None:
    host, installation = LocalHost(), OvsInstallation(str(tmp_path))
    for program in installation.programs:
        Path(program).parent.mkdir(exist_ok=True)
        shutil.copy2("/bin/sleep", program)

    def told(seconds: float) -> str:
        os.utime(installation.vswitchd_path, (seconds, seconds))
        return program_of(host, installation)

    first = told(1e9)
    assert first == told(1e9) != told(1e9 + 1e-3) and first


@pytest.mark.parametrize(
    ("does", "where", "waits"),
    [
        ("import select; select.poll().poll()", "poll", True),
        ("import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()", "futex", False),
        ("import time; time.sleep(99)", "nanosleep", False),
    ],
    ids=["an event", "a lock", "a time"],
)
def test_a_main_thread_that_waits_for_a_lock_or_a_time_answers_nothing(does: str, where: str, waits: bool) -> None:
    plane = OvsControlPlane(OvsControl(LocalHost(), OvsInstallation(), "/nowhere"))
    with subprocess.Popen([sys.executable, "-S", "-c", does]) as process:
        try:
            said = Path(f"/proc/{process.pid}/wchan")
            if not wait_until(lambda: where in said.read_text(), 10.0):
                pytest.skip(f"This kernel does not say where a thread waits: {said.read_text()}")
            look = plane.of_process(process.pid).main_thread()
        finally:
            process.kill()
    assert look and look.waits is waits
