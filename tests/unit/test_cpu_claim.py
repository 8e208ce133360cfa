"""A run has its CPUs for itself: another one waits, is told by whom, and goes on however the first one ends."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES
from ctbench.base.yaml_files import load
from ctbench.hosts.claims import CpuClaim
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import cpus_for_itself

HOLDS = """
import sys, time
from pathlib import Path
from ctbench.hosts.claims import CpuClaim
claim = CpuClaim([int(cpu) for cpu in sys.argv[2:]], print, Path(sys.argv[1]))
print("claimed", flush=True)
time.sleep(60)
"""
Other = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    """Another process, which has claimed CPUs of a machine that is made up."""
    begun = []

    def begin(*cpus: int) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(tmp_path), *map(str, cpus)], env={"PYTHONPATH": str(LIBRARIES)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        begun.append(process)
        assert process.stdout and process.stdout.readline() == "claimed\n"
        return process

    for cpu in range(4):
        (tmp_path / f"cpu{cpu}").mkdir()
    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_who_claims_a_cpu_that_another_process_has_waits_until_that_ends(tmp_path: Path, other: Other) -> None:
    first, said = other(1, 2), list[str]()

    def kill(by: str) -> None:
        said.append(by)
        first.kill()
        first.wait()

    claim = CpuClaim([0, 1], kill, tmp_path)

    assert said == [f"process {first.pid}"]
    claim.release()
    claim.release()
    other(0, 1)


def test_cpus_of_another_one_are_free_and_what_cannot_be_locked_hinders_nobody(tmp_path: Path, other: Other) -> None:
    other(0, 1)
    begun = time.monotonic()
    claim = CpuClaim([2, 3, 4711], pytest.fail, tmp_path)
    again = CpuClaim([3], pytest.fail, tmp_path)  # of the same process
    assert time.monotonic() - begun < 1
    claim.release()
    again.release()
    other(2, 3)
    assert not list(tmp_path.glob("cpu*/*"))


def test_a_testbed_claims_what_it_measures_on_here() -> None:
    local = load("testbeds", "local", TestbedConfig)
    assert cpus_for_itself(local, (4, 5, 6)) == (4, 5, 6)
    named = local.cpus.model_copy(update={"generator": [4], "pmd": {1: [6]}, "housekeeping": [4]})
    assert cpus_for_itself(local.model_copy(update={"cpus": named}), (4, 5, 6)) == [4, 6]
    # Nothing is measured, instructions are counted, or all is elsewhere.
    assert cpus_for_itself(local.model_copy(update={"oversubscribe": True}), (4, 5)) == ()
    assert cpus_for_itself(load("testbeds", "emulated", TestbedConfig), (4, 5)) == ()
    assert cpus_for_itself(load("testbeds", "example-trex-xeon", TestbedConfig), (4, 5)) == ()
