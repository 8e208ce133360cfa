"""A lab in miniature: the suites unchanged, TRex and the DUT on two hosts behind SSH. Needs TREX_HOME, and root."""

import os
import subprocess
import sys
from pathlib import Path

import commands
import pytest
from integration.miniature_lab import lab_file
from integration.trex_server import needs_trex
from whole_records import read_all

from ctbench.base.errors import ExitStatus
from ctbench.base.yaml_files import load
from ctbench.testbed.config import TestbedConfig

pytestmark = pytest.mark.root_too

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
TESTS = ("Stateful iptables, Short-Lived Connections", "Forwarding, 10k Flows")
FLOORS = """
name: lab
description: Floors that any machine meets.
source: tests
linux-router/iptables-stateful/1cpu-1rxq:
  short-lived: {cps: ">= 500"}
linux-router/forward/1cpu-1rxq:
  udp-64-10k: {pps: ">= 1k"}
"""


def in_the_lab(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where `LAB` is the path of the lab's testbed file."""
    lab = folder / "lab.yaml"
    lab.write_text(lab_file(*["{address: 127.0.0.1, user: root}"] * 2))
    load("testbeds", str(lab), TestbedConfig)
    needs_trex()
    if os.geteuid() != 0:
        pytest.skip("TRex needs root, and so do two hosts that are joined by links.")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("TRex and the DUT need a CPU each.")
    path = os.pathsep.join([str(ROOT / "libraries"), str(ROOT / "tests")])
    return subprocess.run(
        [*NAMESPACES, sys.executable, "-m", "integration.miniature_lab", str(folder / "lab"), *command],
        env=commands.environment(folder / "results", PYTHONPATH=path),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_suites_run_unchanged_on_two_hosts_reached_over_ssh(tmp_path: Path) -> None:
    out = tmp_path / "out"
    floors = tmp_path / "floors.yaml"
    floors.write_text(FLOORS)
    options = ["-v", "TESTBED:LAB", "-v", f"CAMPAIGN:{HERE / 'gate.yaml'}", "-v", f"SLA:{floors}"]
    names = [word for test in TESTS for word in ("--test", f"*{test}")]

    done = in_the_lab(tmp_path, *commands.command("sla", "--outputdir", out, *options, *names, ROOT / "suites"))

    assert done.returncode == ExitStatus.MET, done.stdout + done.stderr
    records, broken = read_all(out)
    assert (sorted(record.test for record in records), broken) == (sorted(TESTS), [])
    for record in records:
        assert (record.verdict, record.environment.testbed.name) == ("met", "miniature")
        assert record.environment.generator["type"] == "trex"
        assert record.result and record.result.value > 0
