"""Whole runs that measure nothing: what was asked for cannot be had, and the user reads why."""

import os
from pathlib import Path

import pytest
from integration.whole_run import GATE, HERE, ROOT, TEST, Start

pytestmark = pytest.mark.beside_others


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
    floors.write_text((HERE / "floors.yaml").read_text().replace("  short-lived:", "  long-lived:"))

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
