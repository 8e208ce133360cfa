"""A whole run as a user starts it, in processes of its own: what it says, what it has going, and what it leaves."""

import math
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import commands
import pytest
from robot.api import ExecutionResult
from whole_records import read_all

from ctbench.results.record import Record

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SUITE = ROOT / "suites" / "02__ovs_dpdk" / "02__conntrack.robot"
TEST = "1 CPU, 1 Queue, Short-Lived Connections"
#: With search.yaml its trial is endless.
ENDLESS_TEST = "1 CPU, 1 Queue, Long-Lived Connections"
#: A column of the table of trials, which begins when a measurement of the DUT does.
HEADING = "connect p99"
#: Folders where programs leave things behind.
SHARED_FOLDERS = ("/run", "/run/ctbench", "/run/dpdk", "/run/netns", "/run/openvswitch", "/dev/shm", "/dev/hugepages")
#: What a file of ours in /tmp would be called; others use /tmp as well.
OUR_WORDS = ("ctbench", "ovs", "dpdk", "rte", "memif", "cable", "sandbox")
#: Seconds for a whole run, and for the kernel to take a sandbox down. They only matter when a test fails.
RUN_TIMEOUT_S, GONE_WITHIN_S = 240, 30
#: One test at its floor, as short as can be.
GATE = ("-v", f"CAMPAIGN:{HERE / 'gate.yaml'}", "--test", TEST)


def named(folder: Path, pattern: str = "*") -> set[str]:
    return {str(path) for path in folder.glob(pattern)}


def traces() -> dict[str, set[str]]:
    """What a run could leave on this machine, besides its processes, which hold its hugepages. What tests that run
    next to it have for a moment is gone before `assert_nothing_is_left` gives up."""
    return {
        "interfaces": named(Path("/sys/class/net")),
        "files": set().union(*(named(Path(folder)) for folder in SHARED_FOLDERS)),
        "files of ours": {path for word in OUR_WORDS for path in named(Path("/tmp"), f"*{word}*")},
        "mounts": {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "nsfs" in line},
    }


@dataclass
class Run:
    """A run in processes of its own. A mark in the environment, which they all inherit, tells them from others."""

    command: list[str]
    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    popen: "subprocess.Popen[bytes]" = field(init=False)
    #: When `namespaces` was asked last, in seconds since boot.
    seen_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.temporary.mkdir(parents=True)
        with self.console.open("wb") as console, self.complaints.open("wb") as complaints:
            self.popen = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=complaints,
                env=commands.environment(self.folder / "results", CTBENCH_MARK=self.mark, TMPDIR=self.temporary),
                start_new_session=True,  # a process group of its own, as a shell makes it
                cwd=self.folder,
            )

    @property
    def console(self) -> Path:
        return self.folder / "console"

    @property
    def complaints(self) -> Path:
        return self.folder / "complaints"

    @property
    def temporary(self) -> Path:
        """Its name is longer than the address of a socket may be (unix(7): 107 bytes)."""
        return self.folder / "temporary" / ("long-" * 24)

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def said(self) -> str:
        return self.console.read_text() + self.complaints.read_text()

    def wait(self) -> int:
        """Its exit status."""
        return self.popen.wait(RUN_TIMEOUT_S)

    def wait_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + RUN_TIMEOUT_S
        while not reached():
            assert self.popen.poll() is None and time.monotonic() < deadline, self.said
            time.sleep(0.05)

    def processes(self) -> dict[int, str]:
        """Its living processes, by number, with their command lines; the dead have no environment."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"CTBENCH_MARK={self.mark}".encode() in path.read_bytes().split(b"\0"):
                    found[int(path.parent.name)] = (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def namespaces(self) -> set[str]:
        """Namespaces that it has made."""
        ours = {str(path.readlink()) for path in Path("/proc/self/ns").iterdir()}
        self.seen_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        return {name for pid in self.processes() for name in namespaces_of(Path(f"/proc/{pid}"))} - ours

    def cpu_seconds(self) -> float:
        """CPU time of Robot Framework's process, the generator's thread in it included; proc(5), stat, 14 and 15."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def tests(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        """Status, message and metadata of each test in output.xml."""
        suite = ExecutionResult(str(self.output / "output.xml")).suite
        return {test.name: (test.status, test.message, dict(test.metadata)) for test in suite.all_tests}

    def records(self) -> list[Record]:
        records, broken = read_all(self.output)
        assert broken == []
        return records

    def end(self) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()


def namespaces_of(process: Path) -> set[str]:
    """Namespaces of a process, as far as we may know them."""
    found = set()
    try:
        for path in (process / "ns").iterdir():
            found.add(str(path.readlink()))
    except OSError:
        pass
    return found


def used_namespaces(before_s: float) -> set[str]:
    """By processes that began before that time: one that another test makes later gets the number of one that is gone,
    which may be before the run has ended."""
    old = (process for process in Path("/proc").glob("[0-9]*") if began_s(process.name) < before_s)
    return {name for process in old for name in namespaces_of(process)}


def began_s(pid: str) -> float:
    """When a process began, in seconds since boot (proc(5)); never, where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return math.inf
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def assert_nothing_is_left(run: Run, before: dict[str, set[str]], namespaces: set[str]) -> None:
    """Of processes, namespaces, interfaces, mounts and files; the kernel may take its time."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while True:
        left = {what: found - before[what] for what, found in traces().items()}
        left |= {
            "processes": set(run.processes().values()),
            "namespaces": namespaces & used_namespaces(run.seen_s),
            "temporary files": named(run.temporary, "**/*"),
        }
        if not any(left.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert not any(left.values()), left


Start = Callable[..., Run]


def starts(folder: Path) -> Iterator[Start]:
    """Yields what starts `robot` or `sla` (`./run sla`) with options, on the conntrack suite; results go to `folder`.
    All that was started is ended then."""
    runs: list[Run] = []

    def run(program: str, *options: str, before: tuple[str, ...] = (), floors: Path = HERE / "floors.yaml") -> Run:
        programs = {"robot": [sys.executable, "-m", "robot"], "sla": commands.command("sla")}
        where = ["--outputdir", str(folder / "output"), "-v", f"SLA:{floors}"]
        command = [*before, *programs[program], *where, *options, str(SUITE)]
        runs.append(Run(command, folder))
        return runs[-1]

    yield run
    for made in runs:
        made.end()


def finished(run: Run) -> int:
    """Its exit status; skips where others used the machine so much that the generator could not keep its pace."""
    status = run.wait()
    for record in run.records():
        if record.limited_by == "generator":
            pytest.skip(f"This machine was too busy to measure anything: {record.verdict_reason}")
    return status
