"""A child of `run_child`: its status, and what a signal comes to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctbench.hosts.local import run_child

LIBRARIES = Path(__file__).parents[2] / "libraries"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_status_is_the_childs() -> None:
    assert run_child(python("raise SystemExit(3)")) == 3
    assert run_child(python("import os; os.kill(os.getpid(), 9)")) == 137  # as a shell says it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_handed_on_once_and_the_end_of_the_child_is_waited_for(
    number: signal.Signals, tmp_path: Path
) -> None:
    # The child asks its parent to be stopped, and notes each signal that it gets; then it ends as if nothing had been.
    noted = tmp_path / "noted"
    child = f"""
import os, signal, time
from pathlib import Path
heard = []
for number in (2, 15):
    signal.signal(number, lambda number, _: heard.append(number))
os.kill(os.getppid(), {int(number)})
while not heard:
    time.sleep(0.01)
time.sleep(0.2)
Path({str(noted)!r}).write_text(str(heard))
"""
    before = signal.getsignal(number)
    assert run_child(python(child)) == 128 + number
    assert noted.read_text() == str([int(number)])
    assert signal.getsignal(number) is before


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = f"""
import sys
sys.path.insert(0, {str(LIBRARIES)!r})
from ctbench.hosts.local import run_child
run_child([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"])
"""
    with subprocess.Popen(python(parent), stdout=subprocess.PIPE) as popen:
        assert popen.stdout
        child = os.pidfd_open(int(popen.stdout.readline()))
        popen.kill()
        popen.wait()
        # Both ends of the pipe were the child's too: it ends when the child does.
        assert popen.stdout.read() == b""
    os.close(child)
