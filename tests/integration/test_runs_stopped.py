"""A run that is stopped by who started it: nothing goes on, and what there is is kept. One that is killed:
test_resume.py."""

import os
import signal
from pathlib import Path

import pytest
from integration.small_testbed import write_small
from integration.whole_run import ENDLESS_TEST, HEADING, HERE, TEST, Start, assert_nothing_is_left, traces

#: What ends, and what is left, is looked at, and not what was measured.
pytestmark = pytest.mark.beside_others


def test_a_run_that_is_ended_in_the_middle_of_a_trial_leaves_its_records_and_nothing_else(
    start: Start, tmp_path: Path
) -> None:
    before = traces()
    write_small(tmp_path / "local.yaml", oversubscribe=True)
    chosen = ("-v", f"CAMPAIGN:{HERE / 'search.yaml'}", "-v", f"TESTBED:{tmp_path / 'local.yaml'}")
    run = start("sla", *chosen, "--test", TEST, "--test", ENDLESS_TEST)
    run.wait_until(lambda: run.said.count(HEADING) == 2)
    spent = run.cpu_seconds()
    run.wait_until(lambda: run.cpu_seconds() > spent + 0.5)  # the generator is at it
    alive, namespaces = " ".join(run.processes().values()), run.namespaces()
    assert all(name in alive for name in ("ovsdb-server", "ovs-vswitchd", "unshare", "sandbox_init.py"))
    assert {name.partition(":")[0] for name in namespaces} >= {"user", "net", "mnt", "pid"}

    os.killpg(run.popen.pid, signal.SIGINT)  # what a terminal does when Ctrl-C is typed

    assert run.wait() == 130, run.said
    (record,) = run.records()
    assert record.test == TEST
    assert run.tests()[TEST][2]["Verdict"] == record.verdict
    assert run.tests()[ENDLESS_TEST][0] == "FAIL"
    assert "Stopped before the end (" in run.said
    assert f"To go on: the same command with --outputdir {run.output}\n" in run.said
    assert_nothing_is_left(run, before, namespaces)
