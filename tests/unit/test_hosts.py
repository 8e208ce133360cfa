"""What the kernel's lists of CPUs and its refusals mean, and what a host over SSH is sent."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ctbench.hosts.machine import parse_cpu_list
from ctbench.hosts.sandbox import why_forbidden
from ctbench.hosts.ssh import script


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
def test_a_setting_that_forbids_sandboxes_comes_with_its_remedy(
    tmp_path: Path, setting: str, value: str, remedy: str
) -> None:
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
