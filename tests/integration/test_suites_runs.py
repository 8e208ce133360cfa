"""Whole runs as a user starts them, in processes of their own: how they end, what they say, and what they leave."""

import os
import re
import signal
from pathlib import Path

import pytest
from integration.whole_run import (
    ENDLESS_TEST,
    GATE,
    HEADING,
    HERE,
    TEST,
    Start,
    assert_nothing_is_left,
    finished,
    traces,
)

from ctbench.base.units import format_margin


@pytest.mark.root_too
def test_a_floor_that_is_held_ends_with_0_and_the_figures_are_in_robots_output(start: Start) -> None:
    before = traces()
    run = start("robot", *GATE)
    status = finished(run)

    assert status == 0, run.said
    result, message, metadata = run.tests()[TEST]
    assert (result, metadata["Verdict"]) == ("PASS", "met")
    assert [metadata[name].partition(",")[0] for name in ("Floor", "Measured")] == ["1.0 k CPS", "1.0 k CPS"]
    assert message.startswith("Met: the floor of 1.0 k/s was held")
    (record,) = run.records()
    assert (record.suite, record.test, record.verdict) == ("Conntrack", TEST, "met")
    assert record.margin_pct is not None and 0 <= record.margin_pct <= 1.01  # 1 % more than the floor was offered
    assert metadata["Margin"] == format_margin(record.margin_pct)
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
