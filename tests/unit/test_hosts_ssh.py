"""What a host over SSH decides by itself: whose jobs are left over, what a status means, what it sends."""

import os
import pickle
import re
import shutil
import subprocess

import pytest

from ctbench.base.errors import ConfigError
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh import SshHost
from ctbench.hosts.ssh_login import known_name
from ctbench.hosts.ssh_password import Password, password_of
from ctbench.hosts.ssh_process import exit_status
from ctbench.hosts.ssh_remote import FUNCTIONS, call, script
from ctbench.hosts.ssh_session import is_left_over, new_session_name


def config(**keys: object) -> SshConfig:
    return SshConfig.model_validate({"address": "dut.example", "user": "tester", **keys})


def renamed(name: str, position: int, value: str) -> str:
    parts = name.split(".")
    parts[position] = value
    return ".".join(parts)


def test_what_we_or_another_living_run_of_this_machine_does_is_not_left_over() -> None:
    assert not is_left_over(new_session_name(), connected=True)
    assert not is_left_over(f"/run/ctbench/ssh/{new_session_name()}", connected=False)


@pytest.mark.parametrize("connected", [True, False])
def test_what_a_dead_run_of_this_machine_did_is_left_over_whatever_the_host_believes(connected: bool) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    assert is_left_over(renamed(new_session_name(), 2, str(gone.pid)), connected=connected)


def test_a_process_that_got_the_number_of_a_dead_run_does_not_save_what_that_left() -> None:
    name = new_session_name()
    assert name.split(".")[2] == str(os.getpid())

    assert is_left_over(renamed(name, 3, "1"), connected=True)


def test_what_a_run_of_another_machine_does_is_left_over_once_its_connection_is_gone() -> None:
    elsewhere = renamed(new_session_name(), 0, "00000000-0000-0000-0000-000000000000")

    assert not is_left_over(elsewhere, connected=True)
    assert is_left_over(elsewhere, connected=False)


@pytest.mark.parametrize(
    ("shell", "meant"), [(0, 0), (3, 3), (127, 127), (128, 128), (143, -15), (137, -9), (255, 255)]
)
def test_a_status_that_a_shell_gives_for_a_signal_is_that_signal(shell: int, meant: int) -> None:
    assert exit_status(shell) == meant


def test_a_password_shows_itself_to_nobody() -> None:
    password = Password("hunter2")

    assert password.reveal() == "hunter2"
    assert "hunter2" not in f"{password} {password!r} {[password]}"
    with pytest.raises(TypeError):
        pickle.dumps(password)


def test_a_password_comes_from_the_environment_variable_that_the_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    named = config(password_env="CTBENCH_TEST_PASSWORD")
    monkeypatch.delenv("CTBENCH_TEST_PASSWORD", raising=False)
    assert password_of("dut", config()) is None
    with pytest.raises(ConfigError, match=r"dut: the environment variable CTBENCH_TEST_PASSWORD, .* is not set"):
        password_of("dut", named)

    monkeypatch.setenv("CTBENCH_TEST_PASSWORD", "hunter2")
    found = password_of("dut", named)
    assert found is not None and found.reveal() == "hunter2"

    monkeypatch.setenv("CTBENCH_TEST_PASSWORD", "hunter2\nhunter3")
    with pytest.raises(ConfigError, match="has more than one line") as caught:
        password_of("dut", named)
    assert "hunter2" not in str(caught.value)


def test_a_host_that_was_never_used_can_be_closed() -> None:
    SshHost("dut", config()).close()


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


def test_no_comment_is_sent() -> None:
    assert not re.search(r"^\s*#", FUNCTIONS, re.MULTILINE)
    assert "run() {" in FUNCTIONS
