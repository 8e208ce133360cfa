"""A folder of packages is a build: unpacked once, not installed; what is wrong with it is said before anything runs."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.ovs import packages
from ctbench.dut.ovs.packages import Packages, unpack
from ctbench.dut.ovs.settings import DISTRIBUTION_PLAIN, DISTRIBUTION_VSWITCHD, OvsInstallation
from ctbench.run.settings import RunSettings

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")
PROGRAM = Path(sys.executable).read_bytes()[:64]
#: The same for another processor (e_machine of an ELF file).
FOREIGN = PROGRAM[:18] + b"\xf3\0" + PROGRAM[20:]


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "cache_folder", lambda _: tmp_path / "ovs-dpdk-gate" / "cache")


def package(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    root = folder.parent / f"root-{name}"
    control = f"Package: {name}\nVersion: 3.3.0-1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: b\n"
    for path, data in {"/DEBIAN/control": control.encode(), **files}.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    folder.mkdir(exist_ok=True)
    target = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", str(root), str(target)], check=True, capture_output=True)
    return target


def test_they_are_unpacked_once_by_what_they_hold_and_called_by_their_version(tmp_path: Path) -> None:
    debs = tmp_path / "of-dpdk" / "debs"
    debs.mkdir(parents=True)
    package(debs, "openvswitch-switch", {DISTRIBUTION_PLAIN: PROGRAM, "/lib/systemd/x": b"1"})
    package(debs, "openvswitch-switch-dpdk", {DISTRIBUTION_VSWITCHD: PROGRAM})
    found = unpack(debs)
    installed = OvsInstallation.at(str(found))
    assert found.name.startswith("openvswitch-switch-dpdk_3.3.0-1-") and unpack(debs) == found
    assert installed.packages and installed.packages.names[0] == "openvswitch-switch-dpdk 3.3.0-1"
    assert (installed.vswitchd_path, installed.without_dpdk) == (DISTRIBUTION_VSWITCHD, DISTRIBUTION_PLAIN)
    assert installed.packages.has("/usr/lib/systemd/x"), "of before /usr was merged"
    package(debs, "zz-debuginfo", {"/usr/lib/debug/usr/sbin/ovs-vswitchd.dpdk-3.3.debug": PROGRAM})
    assert OvsInstallation.at(str(unpack(debs))).vswitchd_path == DISTRIBUTION_VSWITCHD
    package(debs, "openvswitch-switch-dpdk", {"/usr/share/x": b"another"})
    assert unpack(debs) != found
    with pytest.raises(ConfigError, match="in a sandbox"):
        RunSettings.load(candidate=str(debs), testbed="example-trex-xeon")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"/usr/share/man/ovs-vswitchd.8": b""}, "no ovs-vswitchd"),
        ({DISTRIBUTION_VSWITCHD: FOREIGN}, "another processor"),
        ({DISTRIBUTION_VSWITCHD: b"#!/bin/sh\n"}, "a script"),
        ({DISTRIBUTION_VSWITCHD: PROGRAM, "cut": b""}, "does not unpack"),
        (None, "empty folder"),
    ],
)
def test_a_mistake_is_one_sentence(files: dict[str, bytes] | None, reason: str, tmp_path: Path) -> None:
    debs = tmp_path / "debs"
    debs.mkdir()
    if files is not None:
        made = package(debs, "openvswitch-switch-dpdk", files)
        made.write_bytes(made.read_bytes()[: -80 if "cut" in files else None])
    with pytest.raises(ConfigError, match=rf"{reason}.*\n  Expected"):
        unpack(debs)
    assert not list(tmp_path.glob("*/cache/*")), "nothing is left behind"
    with pytest.raises(ConfigError, match="File name too long"):
        unpack(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("said", "drivers", "reason"),
    [
        ("libunbound.so.9 => not found", "x", "libunbound.so.9"),
        ("vswitchd: /lib/libc.so.6: version `GLIBC_2.38' not found (required by x)", "x", "GLIBC_2.38"),
        ("librte_eal.so.25 => /usr/lib/librte_eal.so.25 (0x0)", "", "librte_net_memif"),
    ],
)
def test_what_they_need_and_nobody_has_is_named(said: str, drivers: str, reason: str) -> None:
    def run(argv: list[str], **_: Any) -> SimpleNamespace:
        return SimpleNamespace(stdout=said if argv[0] == "ldd" else drivers, stderr="")

    sandbox: Any = SimpleNamespace(run=run)
    with pytest.raises(MissingResource, match=rf"{reason}.*a container of their Debian"):
        Packages("/x", DISTRIBUTION_VSWITCHD, ("openvswitch 3.3",)).require_libraries(sandbox)
