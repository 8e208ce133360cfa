"""The lab in a box: what starts ends with its command, whatever ends that; and where its disk was built, the second
machine starts, and the doctor finds it well."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_duts import skipping

from ctbench.base.paths import LIBRARIES, PROGRAM, ROOT
from ctbench.dut.base import wait_until
from ctbench.hosts.local import LocalHost, Owner
from icount import Missing
from tools import lab

LAB = (sys.executable, "-m", "tools.lab")
#: Takes QEMU's place: a machine that never answers, or one that cannot begin.
SILENT, BROKEN = "exec sleep 60", "echo no such device >&2; exit 1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with a disk that was built."""
    monkeypatch.setattr(lab, "FOLDER", tmp_path / ".cache/conntrack-sla/lab")
    lab.FOLDER.mkdir(parents=True)
    (lab.FOLDER / "disk").touch()
    require()
    return tmp_path


def require() -> None:
    if lab._owner():
        pytest.skip("the lab runs already")
    with skipping(Missing):
        lab._require(LocalHost())


def environment(home: Path) -> dict[str, str]:
    path = f"{home}:{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": str(LIBRARIES), "HOME": str(home), "PATH": path}


def started(home: Path, qemu: str) -> "subprocess.Popen[str]":
    program = home / "qemu-system-x86_64"
    program.write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec echo QEMU emulator version 7.2\n{qemu}\n')
    program.chmod(0o755)
    return subprocess.Popen([*LAB, "start"], stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(home))


def machine_of(process: "subprocess.Popen[str]") -> Owner:
    """Its machine, once it runs."""
    wait_until(lambda: lab._owner() is not None or process.poll() is not None, 30)
    owner = lab._owner()
    assert owner, process.communicate(timeout=5)
    return owner


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_whatever_ends_the_command_ends_the_machine(home: Path, number: int, status: int) -> None:
    process = started(home, SILENT)
    owner = machine_of(process)
    process.send_signal(number)
    assert process.wait(20) == status
    assert wait_until(owner.is_gone, 5)


def test_a_machine_that_cannot_begin_is_a_sentence_and_status_5(home: Path) -> None:
    process = started(home, BROKEN)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 5
    assert "no such device" in said and "Traceback" not in said


def test_the_doctor_finds_a_real_one_well_and_nothing_is_left_of_it() -> None:
    require()
    known = {**os.environ, "PYTHONPATH": str(LIBRARIES), "LC_ALL": "C.UTF-8"}
    command = [*LAB, "start", *PROGRAM, "doctor", "lab-in-a-box"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=known, timeout=400, check=False)
    assert "the lab is ready after" in done.stderr
    for row in ("SSH", "IOMMU", "isolated CPUs", "hugepages", "card 0000:00:05.0", "running OVS"):
        assert f"\n  ✓  {row} " in done.stdout
    assert done.returncode == 0
    assert lab._owner() is None
