"""What `./run setup` does for the emulated machine, with stand-ins for apt and dpkg."""

import getpass
import os
import subprocess
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES

from .test_run_command import stub

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


def emulated(machine: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    script = f'set -euo pipefail; root={machine}; venv={machine}/venv; say() {{ echo "$*"; }}; source {SETUP}; '
    script += f"emulated {' '.join(words)}"
    path = {"PATH": f"{machine}/bin:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", script], env=path | more, capture_output=True, text=True, check=False, timeout=30
    )


def test_the_kernel_is_unpacked_once_and_a_newer_one_where_it_is_asked_for(machine: Path) -> None:
    left = machine / "venv" / "emulated-kernel.new"  # by an unpacking that was killed
    left.mkdir()
    (left / "half").touch()
    assert "unpacking linux-image-k 1.2" in emulated(machine).stdout
    folder = machine / "venv" / "emulated-kernel"
    assert (folder / "boot/vmlinuz-k").read_text() == "unpacked\n"
    assert (folder / "version").read_text() == "linux-image-k 1.2\n"
    assert emulated(machine, "newest").stdout == ""
    (folder / "version").write_text("linux-image-k 1.1\n")
    assert emulated(machine).stdout == ""
    assert "unpacking linux-image-k 1.2" in emulated(machine, "newest").stdout
    assert [each.name for each in (machine / "venv").iterdir()] == ["emulated-kernel"]


def test_what_is_there_is_found_without_apt_and_kept_where_apt_has_nothing_newer(machine: Path) -> None:
    emulated(machine)
    stub(machine / "bin", "apt-cache", "exit 100")
    assert emulated(machine, "newest").stdout == ""
    assert (machine / "venv" / "emulated-kernel" / "version").exists()
    for name in ("apt-cache", "apt-get", "dpkg-deb"):
        stub(machine / "bin", name, f"echo {name}; exit 1")
    assert emulated(machine).stdout == ""


def test_it_can_be_declined(machine: Path) -> None:
    done = emulated(machine, CONNTRACK_SLA_EMULATED="no")
    assert "declined" in done.stdout and "skipped" in done.stdout
    assert list((machine / "venv").iterdir()) == []


@pytest.mark.parametrize(
    ("stubs", "said"),
    [
        ({"apt-cache": "exit 100"}, ()),
        ({"apt-get": "exit 100"}, ()),
        ({"dpkg-deb": "exit 2"}, ()),
        ({"dpkg-query": "exit 1", "sudo": '[ "$*" = "-n true" ]'},
         ("installing qemu-system-x86 busybox-static dash tcc", "could not be installed: the tests with an emulated")),
    ],
)  # fmt: skip
def test_without_the_kernel_or_the_packages_the_rest_goes_on(
    machine: Path, stubs: dict[str, str], said: tuple[str, ...]
) -> None:
    for name, body in stubs.items():
        stub(machine / "bin", name, body)
    done = emulated(machine)
    assert done.returncode == 0
    assert all(text in done.stdout for text in (*said, "the tests with an emulated machine will be skipped"))
    assert list((machine / "venv").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root installs packages")
def test_who_cannot_be_root_is_told_so_in_one_sentence(machine: Path) -> None:
    stub(machine / "bin", "dpkg-query", "exit 1")
    stub(machine / "bin", "sudo", "echo sudo: a password is required >&2; exit 1")
    done = emulated(machine)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert "can be installed by root only, with ./run setup" in done.stdout
    assert "will be skipped" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_who_may_not_change_the_venv_is_told_whose_it_is(machine: Path) -> None:
    (machine / "venv").chmod(0o555)
    done = emulated(machine)
    (machine / "venv").chmod(0o755)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert f"below {machine}/venv, which {getpass.getuser()} may change" in done.stdout
