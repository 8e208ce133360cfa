"""What a host over SSH decides by itself: whose jobs are left over, what a status means, what it sends."""

import shutil
import subprocess

import pytest

from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh import call, exit_status, is_left_over, new_session_name, script
from ctbench.hosts.ssh_login import known_name


def config(**keys: object) -> SshConfig:
    return SshConfig.model_validate({"address": "dut.example", "user": "tester", **keys})


def renamed(name: str, position: int, value: str) -> str:
    parts = name.split(".")
    parts[position] = value
    return ".".join(parts)


def test_only_what_a_dead_run_did_is_left_over() -> None:
    ours = new_session_name()
    gone = subprocess.Popen(["true"])
    gone.wait()
    dead, reused = renamed(ours, 2, str(gone.pid)), renamed(ours, 3, "1")  # the second: its number is another's now
    elsewhere = renamed(ours, 0, "00000000-0000-0000-0000-000000000000")  # whose end only its connection tells

    for connected in (True, False):
        found = [is_left_over(f"/run/ctbench/ssh/{name}", connected=connected) for name in (ours, dead, reused)]
        assert found == [False, True, True]
        assert is_left_over(elsewhere, connected=connected) is not connected


@pytest.mark.parametrize(
    ("shell", "meant"), [(0, 0), (3, 3), (127, 127), (128, 128), (143, -15), (137, -9), (255, 255)]
)
def test_a_status_that_a_shell_gives_for_a_signal_is_that_signal(shell: int, meant: int) -> None:
    assert exit_status(shell) == meant


def test_a_host_has_the_name_in_known_hosts_that_ssh_gives_it() -> None:
    assert known_name(config()) == "dut.example"
    assert known_name(config(port=2222)) == "[dut.example]:2222"


def test_arguments_are_words_of_a_call() -> None:
    assert call("run", "/run/s", 3, "echo", "it's", "a b") == "run /run/s 3 echo 'it'\"'\"'s' 'a b'"


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_what_is_sent_is_understood_by_the_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed.")
    argv = [shell, "sh", "-n"] if shell == "busybox" else [shell, "-n"]

    done = subprocess.run(
        argv, input=script("nonce", "look /run/j 0 1", {"A": "b c"}), capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")
