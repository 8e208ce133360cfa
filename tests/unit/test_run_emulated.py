"""What `./run setup` does for the emulated machine, with stand-ins for apt and dpkg."""

import os
import subprocess
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES

from .test_run_command import stub

pytestmark = pytest.mark.unit

SETUP = LIBRARIES / "ctbench" / "cli" / "setup.sh"
INSTALLED = 'for each in "$@"; do case $each in --*) ;; *) echo "$each installed";; esac; done'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine where everything is installed and apt knows a kernel of version 1.2."""
    stub(tmp_path / "bin", "dpkg-query", INSTALLED)
    stub(
        tmp_path / "bin",
        "apt-cache",
        'case $1 in depends) echo "  Depends: linux-image-k";; *) echo "Version: 1.2";; esac',
    )
    stub(tmp_path / "bin", "apt-get", 'case "$*" in *download*) touch linux-image-k_1.2.deb;; *) exit 100;; esac')
    stub(tmp_path / "bin", "dpkg-deb", 'mkdir -p "$3/boot" && echo unpacked >"$3/boot/vmlinuz-k"')
    (tmp_path / "venv").mkdir()
    return tmp_path


def emulated(machine: Path, **more: str) -> subprocess.CompletedProcess[str]:
    script = f'set -euo pipefail; root={machine}; venv={machine}/venv; say() {{ echo "$*"; }}; source {SETUP}; emulated'
    path = {"PATH": f"{machine}/bin:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", script], env=path | more, capture_output=True, text=True, check=False, timeout=30
    )


def test_the_kernel_is_unpacked_once_for_each_version(machine: Path) -> None:
    assert "unpacking linux-image-k 1.2" in emulated(machine).stdout
    folder = machine / "venv" / "emulated-kernel"
    assert (folder / "boot/vmlinuz-k").read_text() == "unpacked\n"
    assert (folder / "version").read_text() == "linux-image-k 1.2\n"
    assert emulated(machine).stdout == ""
    (folder / "version").write_text("linux-image-k 1.1\n")
    assert "unpacking linux-image-k 1.2" in emulated(machine).stdout
    assert [each.name for each in (machine / "venv").iterdir()] == ["emulated-kernel"]


def test_it_can_be_declined(machine: Path) -> None:
    done = emulated(machine, CONNTRACK_SLA_EMULATED="no")
    assert "declined" in done.stdout and "skipped" in done.stdout
    assert list((machine / "venv").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "body"),
    [("apt-cache", "exit 100"), ("apt-get", "exit 100"), ("dpkg-deb", "exit 2")],
)
def test_without_the_kernel_the_rest_goes_on(machine: Path, name: str, body: str) -> None:
    stub(machine / "bin", name, body)
    done = emulated(machine)
    assert done.returncode == 0
    assert "the tests with an emulated machine will be skipped" in done.stdout
    assert list((machine / "venv").iterdir()) == []


def test_without_the_packages_the_rest_goes_on(machine: Path) -> None:
    stub(machine / "bin", "dpkg-query", "exit 1")
    stub(machine / "bin", "sudo", "exit 1")
    done = emulated(machine)
    assert done.returncode == 0
    assert "installing qemu-system-x86 busybox-static dash tcc" in done.stdout
    assert "could not be installed" in done.stdout
