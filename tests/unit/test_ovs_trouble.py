"""What of an Open vSwitch is dead, stopped or gone, and whether it stood still, told from what the kernel says."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Problem
from ctbench.dut.ovs import OvsInstallation, trouble
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.cpu_contention import ThreadTimes, read_thread_times, sharing_problems, stood_still
from ctbench.dut.ovs.daemons import OvsDaemons
from ctbench.dut.ovs.instance import ProcessIdentity
from ctbench.hosts.base import Completed

pytestmark = pytest.mark.unit

BOTH = {"ovs-vswitchd": ProcessIdentity(16, 1000), "ovsdb-server": ProcessIdentity(13, 900)}


def stat(pid: int, ticks: int, state: str = "S", flags: int = 0x400100) -> str:
    """A line of /proc/PID/stat, whose name has what names may have."""
    return f"{pid} (ovs) v (x) {state} 1 1 1 0 -1 {flags} " + " ".join(["1"] * 12) + f" {ticks} 0 0"


RUNNING = [stat(16, 1000), stat(13, 900)]


@dataclass
class Said:
    """In the place of a host: each command prints the next of these, the last one for ever; None: it is dead."""

    answers: list[list[str] | None]
    fates: dict[int, str] = field(default_factory=dict)
    asked: int = 0
    last: Any = None

    def run(self, argv: Any, *_: Any, **__: Any) -> Completed:
        self.last = argv
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if answer is None:
            raise TestbedError("The sandbox has ended.")
        return Completed(tuple(argv), 0, "\n".join(answer), "")

    def how_ended(self, pid: int) -> str:
        return self.fates.get(pid, "")


def found(*answers: list[str] | None, **fates: str) -> str:
    host = Said(list(answers), {int(pid[1:]): fate for pid, fate in fates.items()})
    return trouble.find_trouble(host, BOTH, ["/run/db.sock"])  # type: ignore[arg-type]


def test_what_runs_and_has_its_sockets_is_in_no_trouble() -> None:
    assert found(RUNNING) == ""


@pytest.mark.parametrize(
    "line",
    ["", stat(16, 1001), stat(16, 1000, "Z"), stat(16, 1000, "R", 0x40010C)],
    ids=["gone", "another one", "zombie", "ending"],
)
def test_a_process_that_is_gone_or_another_one_or_about_to_be_gone_is_dead(line: str) -> None:
    lines = [RUNNING[1], *([line] if line else [])]
    assert found(lines) == "ovs-vswitchd (process 16) died."
    assert found(lines, p16="was killed by SIGSEGV") == "ovs-vswitchd (process 16) was killed by SIGSEGV."


def test_the_database_is_needed_as_well() -> None:
    assert found(RUNNING[:1], p13="ended with status 1") == "ovsdb-server (process 13) ended with status 1."


def test_a_dead_host_says_so_itself() -> None:
    assert found(None) == "The sandbox has ended."


def test_a_process_that_is_gone_is_named_before_its_socket() -> None:
    assert found(["gone /run/db.sock", *RUNNING]).endswith("any more: /run/db.sock is gone.")
    assert found(["gone /run/db.sock", "gone /run/x", *RUNNING]).endswith(
        "/run/db.sock and 1 more of its files are gone."
    )
    assert found(["gone /run/db.sock", RUNNING[1]]) == "ovs-vswitchd (process 16) died."


def test_a_stopped_process_that_goes_on_is_fine_and_one_that_does_not_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trouble, "POLL_S", 0.0)
    stopped = [stat(16, 1000, "T"), RUNNING[1]]
    assert found(stopped, stopped, RUNNING) == ""
    monkeypatch.setattr(trouble, "GO_ON_TIMEOUT_S", 0.0)
    assert found(stopped) == ("ovs-vswitchd (process 16) is stopped (state T) and did not go on within 0 s.")


def test_the_sockets_of_a_daemon_that_was_never_up_are_not_missed() -> None:
    host = Said([RUNNING])
    daemons = OvsDaemons(OvsControl(host, OvsInstallation(), "/run/x"))  # type: ignore[arg-type]
    daemons._processes = {"ovsdb-server": BOTH["ovsdb-server"]}
    assert daemons.trouble(["/run/x/port0.sock"]) == "" and "db.sock" not in str(host.last)
    daemons._processes = dict(BOTH)
    assert daemons.trouble(["/run/x/port0.sock"]) == ""
    assert all(name in str(host.last) for name in ("/db.sock", "/ovs-vswitchd.ctl", "/ovsdb-server.pid", "/port0.sock"))


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
def test_a_thread_that_neither_ran_nor_waited_nor_slept_in_pieces_stood_still(
    thread: tuple[float, float, int], still: float
) -> None:
    assert stood_still(times((0.0, 0.0, 0)), times(thread), 10.0) == pytest.approx(still)


def test_one_thread_that_goes_on_is_no_standstill_and_a_kernel_that_does_not_tell_knows_of_none() -> None:
    nothing = times((0.0, 0.0, 0), (0.0, 0.0, 0))
    assert stood_still(nothing, times((7.0, 0.0, 0), (10.0, 0.0, 0)), 10.0) == 0.0
    assert stood_still(nothing, times((7.0, 0.0, 0), (8.0, 0.0, 0)), 10.0) == pytest.approx(2.0)
    assert stood_still(ThreadTimes(), ThreadTimes(), 10.0) == 0.0


def test_a_standstill_is_a_problem_of_the_dut() -> None:
    assert sharing_problems(times((0.0, 0.0, 0)), times((7.0, 0.0, 0)), 10.0, with_generator=True) == [
        Problem(
            "stalled", "Open vSwitch stood still for 3.0 s: its PMD threads did not run, although their CPUs were free."
        )
    ]


def test_the_times_of_threads_are_read_with_what_the_machine_took_of_their_cpus() -> None:
    host = Said(
        [
            [
                "pmd 20 7000000000 5 2 pmd-c01/id:8",
                "other 16 42 1",
                "cpu0 1 1 1 1 1 9 9 9 0 0",
                "cpu1 1 1 1 1 1 10 20 70 0 0",
            ]
        ]
    )
    assert read_thread_times(host, 16) == ThreadTimes(  # type: ignore[arg-type]
        waited={20: 5}, others_ran={16: 42}, had={20: 8_000_000_000}, slept={20: 2}
    )
