"""A pool of testbeds that loses its processes in the middle of trials without end. One that is ended:
test_pool_processes.py."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.test_pool import SUITES, Start, starter
from integration.whole_run import Run, assert_nothing_is_left, traces

#: What ends, and what is left, is looked at, and nothing is measured.
pytestmark = pytest.mark.beside_others
#: With this campaign a trial of a test with the tag `endless` takes an hour.
SEARCH = ("-v", f"CAMPAIGN:{SUITES / 'endless.yaml'}", "--include", "short", "--include", "endless")


@pytest.fixture
def start(able_machine: None, tmp_path: Path) -> Iterator[Start]:
    """Starts a run; ends it when the test is over."""
    begin, runs = starter(tmp_path)
    yield begin
    for run in runs:
        run.end()


def measuring(run: Run) -> list[int]:
    """Wait until both testbeds are in a trial without end; returns their processes."""
    run.wait_until(
        lambda: (
            consoles(run).count("long-lived") + consoles(run).count("Long-Lived") >= 2
            and len(list((run.output / "records").glob("*.json"))) == 1
        )
    )
    run.wait_until(lambda: consoles(run).count("connect p99") >= 3)
    return [pid for pid, command in run.processes().items() if command.split()[1:4] == ["-P", "-m", "robot"]]


def consoles(run: Run) -> str:
    return "".join(path.read_text() for path in run.output.glob("pabot_results/*/console.txt"))


def test_the_testbed_of_a_process_that_was_killed_goes_to_the_next_suite(start: Start) -> None:
    before = traces()
    run = start(*SEARCH)
    for pid in measuring(run):
        os.kill(pid, signal.SIGKILL)

    assert run.wait() == 5, run.said  # two were killed; that of Ant, which is "not measured", does not hide it
    assert [record.suite.rpartition(".")[2] for record in run.records()] == ["Zebra", "Ant"]
    assert run.said.count("The process of this suite was killed.") == 3  # of each, and why the run ends with 5
    failed = json.loads((run.output / "summary.json").read_text())["without_record"]
    assert {test["suite"] for test in failed} == {"Pool Suites.Zebra", "Pool Suites.Bee"}
    assert_nothing_is_left(run, before, set())
