"""Whole runs as a user starts them, in processes of their own: how they end, what they say, and what they leave."""

import os
import re
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

from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import read_hugepages
from ctbench.results import store
from ctbench.results.record import Record

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SUITE = ROOT / "suites" / "02__ovs_dpdk" / "02__conntrack.robot"
TEST = "1 CPU, 1 Queue, Short-Lived Connections"
LONG_LIVED_TEST = "1 CPU, 1 Queue, Long-Lived Connections"
#: With search.yaml its trial is endless.
ENDLESS_TEST = LONG_LIVED_TEST
#: A column of the table of trials, which begins when a measurement of the DUT does.
HEADING = "connect p99"
#: Folders where programs leave things behind.
SHARED_FOLDERS = ("/run", "/run/ctbench", "/run/dpdk", "/run/netns", "/run/openvswitch", "/dev/shm", "/dev/hugepages")
#: What a file of ours in /tmp would be called; others use /tmp as well.
OUR_WORDS = ("ctbench", "ovs", "dpdk", "rte", "memif", "cable", "sandbox")
#: Seconds for a whole run, and for the kernel to take a sandbox down. They only matter when a test fails.
RUN_TIMEOUT_S, GONE_WITHIN_S = 90, 10


def named(folder: Path, pattern: str = "*") -> set[str]:
    return {str(path) for path in folder.glob(pattern)}


def traces() -> dict[str, set[str]]:
    """What a run could leave on this machine, beside its processes."""
    return {
        "interfaces": named(Path("/sys/class/net")),
        "files": set().union(*(named(Path(folder)) for folder in SHARED_FOLDERS)),
        "files of ours": {path for word in OUR_WORDS for path in named(Path("/tmp"), f"*{word}*")},
        "mounts": {line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "nsfs" in line},
        "hugepages": {
            f"page {number} of {pages.size_kb} kB"
            for pages in read_hugepages(LocalHost())
            for number in range(pages.total - pages.free)
        },
    }


@dataclass
class Run:
    """A run in processes of its own. A mark in the environment, which they all inherit, tells them from others."""

    command: list[str]
    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    popen: "subprocess.Popen[bytes]" = field(init=False)

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
        records, broken = store.read_all(self.output)
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


def used_namespaces() -> set[str]:
    return {name for process in Path("/proc").glob("[0-9]*") for name in namespaces_of(process)}


Start = Callable[..., Run]


@pytest.fixture
def start(able_machine: None, tmp_path: Path) -> Iterator[Start]:
    """Starts `robot` or `sla` (`./run sla`) with options, on the conntrack suite; results go to the test's folder."""
    runs: list[Run] = []

    def run(program: str, *options: str, before: tuple[str, ...] = (), floors: Path = HERE / "floors.yaml") -> Run:
        programs = {"robot": [sys.executable, "-m", "robot"], "sla": commands.command("sla")}
        where = ["--outputdir", str(tmp_path / "output"), "-v", f"SLA:{floors}"]
        command = [*before, *programs[program], *where, *options, str(SUITE)]
        runs.append(Run(command, tmp_path))
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


GATE = ("-v", f"CAMPAIGN:{HERE / 'gate.yaml'}", "--test", TEST)


@pytest.mark.root_too
def test_a_floor_that_is_held_ends_with_0_and_the_figures_are_in_robots_output(start: Start) -> None:
    before = traces()
    run = start("robot", *GATE)
    status = finished(run)

    assert status == 0, run.said
    result, message, metadata = run.tests()[TEST]
    assert (result, metadata["Verdict"]) == ("PASS", "met")
    assert (metadata["Floor"], metadata["Measured"], metadata["Margin"]) == ("1.0 k/s", "1.0 k/s", "+1.0 %")
    assert message.startswith("Met: the floor of 1.0 k/s was held")
    (record,) = run.records()
    assert (record.suite, record.test, record.verdict) == ("Conntrack", TEST, "met")
    assert set(record.tags) >= {"ovs-dpdk", "conntrack", "1cpu", "1rxq", "short-lived"}
    assert "1 met" in run.said
    assert_nothing_is_left(run, before, set())


def test_a_floor_out_of_reach_ends_with_1_and_the_sentence_for_the_product_manager(
    start: Start, tmp_path: Path
) -> None:
    # In 1 us light gets 300 metres far.
    floors = tmp_path / "floors.yaml"
    floors.write_text((HERE / "floors.yaml").read_text().replace('">= 1k"', '">= 1k", connect_time_p99: "<= 1us"'))

    run = start("sla", *GATE, floors=floors)
    status = finished(run)

    assert status == 1, run.said
    result, message, metadata = run.tests()[TEST]
    assert (result, metadata["Verdict"]) == ("FAIL", "missed")
    assert re.fullmatch(
        r"Missed: TCP connect time \(p99\): \S+ \S+ instead of at most 1 us \(-\d+\.\d %\); "
        r"0 of \d trials at 1\.0 k/s held",
        message,
    ), message
    assert [record.verdict for record in run.records()] == ["missed"]
    assert "An SLA is missed (0 met, 1 missed, 0 not measured)." in run.said


@pytest.mark.parametrize(
    ("program", "number", "status"),
    [
        pytest.param("sla", signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param("sla", signal.SIGTERM, 143, id="kill"),
        pytest.param("robot", signal.SIGKILL, -signal.SIGKILL, id="kill -9", marks=pytest.mark.root_too),
    ],
)
def test_a_run_that_is_ended_in_the_middle_of_a_trial_leaves_its_records_and_nothing_else(
    start: Start, program: str, number: signal.Signals, status: int
) -> None:
    before = traces()
    run = start(program, "-v", f"CAMPAIGN:{HERE / 'search.yaml'}", "--test", TEST, "--test", ENDLESS_TEST)
    run.wait_until(lambda: run.said.count(HEADING) == 2)
    spent = run.cpu_seconds()
    run.wait_until(lambda: run.cpu_seconds() > spent + 0.5)  # the generator is at it
    alive, namespaces = " ".join(run.processes().values()), run.namespaces()
    assert all(name in alive for name in ("ovsdb-server", "ovs-vswitchd", "unshare", "sandbox_init.py"))
    assert {name.partition(":")[0] for name in namespaces} >= {"user", "net", "mnt", "pid"}

    if number == signal.SIGINT:
        os.killpg(run.popen.pid, number)  # what a terminal does when Ctrl-C is typed
    else:
        run.popen.send_signal(number)

    assert run.wait() == status, run.said
    (record,) = run.records()
    assert record.test == TEST
    if number != signal.SIGKILL:
        assert run.tests()[TEST][2]["Verdict"] == record.verdict
        assert run.tests()[ENDLESS_TEST][0] == "FAIL"
        assert "Stopped before the end (" in run.said
        assert "To go on: ./run sla --resume output\n" in run.said
    assert_nothing_is_left(run, before, namespaces)


def assert_nothing_is_left(run: Run, before: dict[str, set[str]], namespaces: set[str]) -> None:
    """Of processes, namespaces, interfaces, mounts, files and hugepages; the kernel may take its time."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while True:
        left = {what: found - before[what] for what, found in traces().items()}
        left |= {
            "processes": set(run.processes().values()),
            "namespaces": namespaces & used_namespaces(),
            "temporary files": named(run.temporary, "**/*"),
        }
        if not any(left.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert not any(left.values()), left


def test_a_sandbox_that_is_killed_costs_one_test_its_verdict_and_the_table_has_both(start: Start) -> None:
    before = traces()
    run = start("sla", "-v", f"CAMPAIGN:{HERE / 'gate.yaml'}", "--test", TEST, "--test", LONG_LIVED_TEST)
    run.wait_until(lambda: HEADING in run.said)
    (first,) = [pid for pid, command in run.processes().items() if "-S" in command and "sandbox_init.py" in command
                and "unshare" not in command]  # fmt: skip
    os.kill(first, signal.SIGKILL)

    assert run.wait() == 3, run.said
    broken, measured = run.records()
    assert (broken.test, broken.verdict) == (TEST, "not measured")
    assert "The sandbox has ended: its first process" in broken.verdict_reason
    if measured.limited_by != "generator":  # others used the machine
        assert (measured.test, measured.verdict) == (LONG_LIVED_TEST, "met")
    table = run.said.partition("measured      margin  verdict")[2]
    assert TEST in table and LONG_LIVED_TEST in table and "1 not measured" in table
    assert "Traceback" not in run.said
    assert_nothing_is_left(run, before, set())


def test_where_every_test_is_skipped_nothing_was_measured_and_that_is_a_failure(start: Start) -> None:
    one_cpu = ("taskset", "-c", str(min(os.sched_getaffinity(0))))

    run = start("sla", *GATE, before=one_cpu)

    assert run.wait() == 6, run.said
    result, message, _ = run.tests()[TEST]
    assert result == "SKIP"
    assert message == ("1 PMD CPU(s) and 1 for the traffic generator need 2 CPUs; this machine has 1 usable.")
    assert run.records() == []
    assert "Nothing was measured" in run.said


def test_an_unknown_testbed_ends_with_4_and_names_the_one_that_was_meant(start: Start) -> None:
    run = start("sla", *GATE, "-v", "TESTBED:locl")

    assert run.wait() == 4
    said = run.complaints.read_text()
    assert said.startswith("run: variables/testbeds/locl.yaml: no such file.\n")
    assert said.endswith('Did you mean "local"?\n')
    assert not run.output.exists()


def test_a_floor_that_is_missing_ends_with_4_and_names_the_key_to_add(start: Start, tmp_path: Path) -> None:
    floors = tmp_path / "floors.yaml"
    floors.write_text((HERE / "floors.yaml").read_text().replace("  short-lived:", "  shore-lived:"))

    run = start("sla", *GATE, floors=floors)

    assert run.wait() == 4, run.said
    result, message, _ = run.tests()[TEST]
    assert result == "FAIL"
    assert message.startswith(f"{floors}: ovs-dpdk/conntrack/1cpu-1rxq.short-lived: is missing.")
    assert "The configuration is wrong: see the message above." in run.said


def test_a_misspelt_key_ends_with_4_and_names_file_key_and_expectation(start: Start, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    local = (ROOT / "variables" / "testbeds" / "local.yaml").read_text()
    mine.write_text(local.replace("memory_mb:", "memory_MB:"))

    run = start("sla", *GATE, "-v", f"TESTBED:{mine}")

    assert run.wait() == 4
    said = run.complaints.read_text()
    assert f"{mine}: duts[0].memory_mb: is missing." in said
    assert f"{mine}: duts[0].memory_MB: unknown key." in said and 'Did you mean "memory_mb"?' in said
    assert "Traceback" not in said
    assert not run.output.exists()
