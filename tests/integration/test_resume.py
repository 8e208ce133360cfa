"""A run that is killed in the middle goes on by the same command, on one testbed and on a pool of two."""

import signal
from pathlib import Path

import commands
import pytest
from integration.test_pool import GATE as POOL_GATE
from integration.test_pool import Start
from integration.test_pool_stopped import start
from integration.whole_run import HERE, ROOT, Run, assert_nothing_is_left, traces
from robot.api import ExecutionResult

__all__ = ["start"]
#: What goes on is looked at, and not what was measured.
pytestmark = pytest.mark.beside_others
SUITES = (
    ROOT / "suites" / "02__ovs_dpdk" / "02__conntrack.robot",
    ROOT / "suites" / "03__linux_router" / "04__connections.robot",
)
TESTS = ("1 CPU, 1 Queue, Short-Lived Connections", "Stateful iptables, Short-Lived Connections")
#: Those of the pool's suites that leave a record.
POOL_TESTS = ("1 CPU, 1 Queue, Short-Lived Connections", "1 CPU, 1 Queue, Once More", "Stateful iptables, Short-Lived")


def program(folder: Path, *options: str) -> Run:
    """`./run sla` in a folder of its own."""
    folder.mkdir()
    return Run(commands.command("sla", *options), folder)


def kill_after_a_record(run: Run) -> set[str]:
    """Kill it as soon as it has a record; the tests that have one then: a pool may have written two by that time."""
    before = traces()
    run.wait_until(lambda: bool(files(run.output)))
    namespaces = run.namespaces()
    run.popen.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert_nothing_is_left(run, before, namespaces)
    return {record.test for record in run.records()}


def files(output: Path) -> dict[str, int]:
    """The records by name, each with the time when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in (output / "records").glob("*.json")}


def statuses(output: Path) -> dict[str, str]:
    suite = ExecutionResult(output / "output.xml").suite
    return {test.name: test.status for test in suite.all_tests}


def test_a_run_that_was_killed_measures_what_is_left_and_reports_the_whole(able_machine: None, tmp_path: Path) -> None:
    asked = ["-v", f"CAMPAIGN:{HERE / 'gate.yaml'}", "-v", f"SLA:{HERE / 'floors.yaml'}"]
    asked += [part for test in TESTS for part in ("--test", test)]
    asked = ["--outputdir", str(tmp_path / "first/output"), *asked, *map(str, SUITES)]
    first = program(tmp_path / "first", *asked)
    measured = kill_after_a_record(first)
    assert measured == {TESTS[0]}
    before = files(first.output)
    second = program(tmp_path / "second", *asked)
    status = second.wait()
    assert f"1 of 2 tests have a record in {first.output}" in second.said
    records = first.records()
    assert len({record.run_id for record in records}) == 1
    assert {record.test for record in records} == set(TESTS)
    assert files(first.output).items() > before.items()
    assert statuses(first.output)[TESTS[0]] == "SKIP"  # of what was killed the record is kept, the log is not
    assert (first.output / "log.html").exists()
    if all(record.verdict == "met" for record in records):
        assert status == 0, second.said


def test_a_pool_that_was_killed_goes_on(start: Start, tmp_path: Path) -> None:
    run = start(*POOL_GATE)
    measured = kill_after_a_record(run)
    assert 1 <= len(measured) < len(POOL_TESTS)
    before = files(run.output)
    second = start(*POOL_GATE, "--outputdir", str(run.output))
    assert second.wait() == 3, second.said  # its threads share CPUs: nothing is measured
    assert f"{len(measured)} of 4 tests have a record in {run.output}" in second.said
    assert "local#1" in second.said
    assert {record.test: record.verdict for record in run.records()} == dict.fromkeys(POOL_TESTS, "not measured")
    assert files(run.output).items() > before.items()
    # Of what was killed the record is kept, the log is not.
    outcomes = {test: "SKIP" if test in measured else "FAIL" for test in POOL_TESTS}
    assert statuses(run.output) == outcomes | {"What This Testbed Lacks": "SKIP"}
    assert not (run.output / "pabot_results").exists()
