"""Children and hosts: the status of a child, what a signal comes to, lists of CPUs, refusals, what SSH is sent."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctbench.hosts.local import run_child
from ctbench.hosts.machine import parse_cpu_list
from ctbench.hosts.sandbox import why_forbidden
from ctbench.hosts.ssh import script

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


@pytest.mark.parametrize(
    ("text", "cpus"), [("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0-1,4,6-7\n", (0, 1, 4, 6, 7)), ("", ())]
)
def test_the_kernels_cpu_lists_are_read(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ],
)
def test_a_setting_that_forbids_sandboxes_has_its_remedy(tmp_path: Path, setting: str, value: str, remedy: str) -> None:
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")

    assert why_forbidden("unshare: unshare failed: Operation not permitted", tmp_path).endswith(remedy)
    said = why_forbidden("unshare: unshare failed: Operation not permitted\n", tmp_path / "none")  # a container
    assert "unshare failed: Operation not permitted" in said and "seccomp=unconfined" in said


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_what_is_sent_over_ssh_is_understood_by_the_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed.")
    argv = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]

    done = subprocess.run(argv, input=script("nonce", "look /run/j 0", {"A": "b c"}), capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
