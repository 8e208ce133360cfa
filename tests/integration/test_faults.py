"""Something dies, stops or vanishes in a run on the real OVS-DPDK or the real kernel: the record says what, with the
trials made until then, and the next test is measured. One run has all of the faults, so each test needs the recovery
from the one before."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.test_suites_records import judged, measure, settings, started
from whole_records import read_all
from wire import watching

from ctbench.dut import base
from ctbench.dut.ovs import instance
from ctbench.dut.ovs.bridge import Bridge
from ctbench.dut.ovs.instance import FOLDER
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.report import console
from ctbench.results.record import Record
from ctbench.run.acceptance import AcceptanceRun
from ctbench.traffic.software import SoftwareTrafficGenerator
from ctgen import plan
from ctgen.engine import Run

ROUTER = Topology(datapath="linux-router", ruleset="iptables-stateful")
ENDED = "The sandbox has ended: its first process"
#: Seconds that Open vSwitch is stopped for.
STOPPED_S = 1.5

#: With loads far below what a DUT serves.
pytestmark = [pytest.mark.usefixtures("unhurried"), pytest.mark.beside_others]
Fault = Callable[[Sandbox], None]


@pytest.fixture(scope="module")
def run(able_machine: None, unhurried: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcceptanceRun]:
    """The run that everything happens to. What never comes, or never ends by itself, need not be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "REPLY_TIMEOUT_S", 0.5)
        patch.setattr(instance, "END_TIMEOUT_S", 2.0)
        yield from started(tmp_path_factory.mktemp("faults"), settings())


def sandbox_of(run: AcceptanceRun) -> Sandbox:
    """The sandbox of the DUT that is set up."""
    dut = run.testbed.dut
    _, host = next(pair for pair in run.testbed._duts.values() if pair[0] is dut)
    return host


def send(number: signal.Signals, program: str) -> Fault:
    """Sends a signal to a daemon of the sandbox."""
    return lambda sandbox: os.kill(process_of(sandbox, program), number)


def process_of(sandbox: Sandbox, program: str) -> int:
    """The ID of a daemon as this machine sees it: inside it may be stopped, and commands take their time."""
    namespace = Path(f"/proc/{sandbox.init_pid}/ns/pid").readlink()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text().startswith(program) and (path / "ns/pid").readlink() == namespace:
                return int(path.name)
        except OSError:
            continue
    raise AssertionError(f"{program} does not run")


def remove_folder(sandbox: Sandbox) -> None:
    """All files of Open vSwitch."""
    shutil.rmtree(sandbox.local_path(FOLDER))


def kill_init(sandbox: Sandbox) -> None:
    os.kill(sandbox.init_pid, signal.SIGKILL)


def kill_unshare(sandbox: Sandbox) -> None:
    os.kill(sandbox._outermost.pid, signal.SIGKILL)


def inside(*argv: str) -> Fault:
    """Runs a command in the sandbox."""
    return lambda sandbox: sandbox.run(argv) and None


def in_second_trial(run: AcceptanceRun, fault: Fault, topology: Topology | None = None) -> Record:
    """Measure, with the fault in the middle of the DUT's second trial. A closed loop that the generator limited, on a
    busy machine, is made again, and is none."""
    trials: list[float] = []
    run_trial = SoftwareTrafficGenerator.run_trial

    def counted(generator: SoftwareTrafficGenerator, *arguments: object) -> object:
        has_dut = not str(generator.snapshot()["wiring"]).startswith("cable")
        trials.extend([0.0] if has_dut else [])
        trial = run_trial(generator, *arguments)  # type: ignore[arg-type]
        if has_dut and trial.under_way and trial.generator_limited and len(trials) == 1:
            trials.pop()
        return trial

    def watch(_run: Run) -> None:
        if len(trials) == 2:
            trials.append(0.0)
            fault(sandbox_of(run))

    with pytest.MonkeyPatch.context() as patch, watching(watch):
        patch.setattr(SoftwareTrafficGenerator, "run_trial", counted)
        return measure(run, topology=topology)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (send(signal.SIGKILL, "ovs-vswitchd"), r"ovs-vswitchd \(process \d+\) was killed by SIGKILL"),
        (send(signal.SIGKILL, "ovsdb-server"), r"ovsdb-server \(process \d+\) was killed by SIGKILL"),
        (kill_unshare, f"{ENDED}, or the unshare that holds it, was killed by SIGKILL"),
        (remove_folder, f"Open vSwitch cannot be reached any more: {FOLDER}/db.sock and 5 more of its files are gone"),
    ],
    ids=["ovs-vswitchd", "ovsdb-server", "unshare", "folder"],
)
def test_what_dies_or_vanishes_in_a_trial_is_named_and_the_trials_before_it_are_kept(
    run: AcceptanceRun, fault: Fault, reason: str
) -> None:
    record = in_second_trial(run, fault)

    assert (record.verdict, record.limited_by) == ("not measured", "fault"), record.verdict_reason
    assert re.match(rf"the measurement broke off: {reason}.*, in trial \d+, at \S+ k/s$", record.verdict_reason)
    assert "good" in [trial.state for trial in record.evidence.trials]
    assert record.environment.dut.product.startswith("Open vSwitch ")
    assert_table_and_records(run)
    assert said(run, record)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(kill_init, ENDED), (inside("ip", "link", "del", "r0"), "The interface r0 is gone")],
    ids=["init", "interface"],
)
def test_what_dies_or_vanishes_of_a_linux_router_is_named_too(run: AcceptanceRun, fault: Fault, reason: str) -> None:
    record = in_second_trial(run, fault, ROUTER)

    assert (record.verdict, record.limited_by) == ("not measured", "fault"), record.verdict_reason
    *_, last = record.evidence.trials
    # A closed loop that something else disturbed is made again.
    load = r"at \S+/s" if last.state == "good" else "a closed loop"
    assert last.state != "bad", last.reason
    assert re.match(rf"the measurement broke off: {reason}.*, in trial \d+, {load}$", record.verdict_reason)
    assert_table_and_records(run)


def said(run: AcceptanceRun, record: Record) -> dict[str, str]:
    """What the DUT said when the test failed, by name."""
    return {path.stem: path.read_text() for path in (run.output / record.capture).iterdir()}


def assert_table_and_records(run: AcceptanceRun) -> None:
    """Nothing of the run so far is lost."""
    written, broken = read_all(run.output)
    assert broken == []
    assert [record.to_json() for record in written] == [record.to_json() for record in run.records]
    assert f"{len(run.records)} not measured" in console.summary(run.records)


def test_an_ovs_that_is_stopped_for_seconds_is_to_blame_for_what_was_lost_and_measured_all_the_same(
    run: AcceptanceRun,
) -> None:
    def stop(sandbox: Sandbox) -> None:
        pid = process_of(sandbox, "ovs-vswitchd")
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(STOPPED_S, os.kill, (pid, signal.SIGCONT)).start()

    record = judged(lambda: in_second_trial(run, stop))

    stopped = next(trial for trial in record.evidence.trials if trial.state == "bad")
    found = re.search(r"Open vSwitch stood still for (\d\.\d) s: its PMD threads did not run", stopped.reason)
    assert found and float(found[1]) > STOPPED_S / 2
    assert record.verdict == "met", record.verdict_reason


def test_an_ovs_that_is_stopped_for_good_is_given_up(run: AcceptanceRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance, "GO_ON_TIMEOUT_S", 0.5)
    monkeypatch.setattr(base, "TIMEOUT_S", 2.0)
    record = in_second_trial(run, send(signal.SIGSTOP, "ovs-vswitchd"))

    assert record.verdict == "not measured"
    assert re.match(
        r"the measurement broke off: ovs-vswitchd \(process \d+\) is stopped \(state T\) and did not go on within "
        r"0\.5 s, in trial \d+, at \S+ k/s$",
        record.verdict_reason,
    )
    told = said(run, record)
    assert "|INFO|" in told["log"]
    assert "no answer: " in told["pmd-stats"]
    assert all("ovs-appctl did not answer before)" in told[name] for name in ("pmd-rxq", "upcall", "memory"))


def test_one_that_dies_while_it_is_set_up_is_named(run: AcceptanceRun, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Bridge._load

    def killed(bridge: Bridge, flows: str) -> None:
        bridge._control.host.run(["sh", "-c", f"kill -9 $(cat {FOLDER}/ovs-vswitchd.pid)"])
        load(bridge, flows)

    with monkeypatch.context() as patch:
        patch.setattr(Bridge, "_load", killed)
        record = measure(run)

    assert (record.verdict, record.evidence.trials) == ("not measured", [])
    assert re.match(
        r"ovs-dpdk/conntrack/1cpu-1rxq could not be set up: ovs-vswitchd \(process \d+\) was killed by SIGKILL\.$",
        record.verdict_reason,
    )


def test_one_that_died_between_two_tests_is_replaced_and_dead_sandboxes_end_in_peace(run: AcceptanceRun) -> None:
    assert judged(lambda: measure(run)).verdict == "met"
    kill_init(sandbox_of(run))

    record = measure(run)

    assert record.limited_by != "fault", record.verdict_reason
    (note,) = [note for note in record.notes if "a fresh DUT was needed" in note]
    assert ENDED in note
    sandboxes = list(run.testbed._hosts._sandboxes)
    kill_init(sandbox_of(run))
    run.close()
    assert all(sandbox._outermost.poll() is not None for sandbox in sandboxes)
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], check=True, capture_output=True)
    assert b"unshare" not in children.stdout and b"nsenter" not in children.stdout
