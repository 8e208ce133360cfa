"""A build below a prefix, and a folder of packages, which is unpacked once and not installed: what is wrong with either
is said before anything runs."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.ovs import packages
from ctbench.dut.ovs.packages import Packages, unpack
from ctbench.dut.ovs.settings import DISTRIBUTION_VSWITCHD, OvsInstallation
from ctbench.dut.registry import KINDS
from ctbench.hosts.local import LocalHost
from ctbench.run.settings import RunSettings

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")
PROGRAM = Path(sys.executable).read_bytes()[:64]


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
    package(debs, "openvswitch-switch", {"/usr/lib/openvswitch-switch/ovs-vswitchd": PROGRAM, "/lib/systemd/x": b"1"})
    package(debs, "openvswitch-switch-dpdk", {DISTRIBUTION_VSWITCHD: PROGRAM})
    found = unpack(debs)
    installed = OvsInstallation.at(str(found))
    assert found.name.startswith("openvswitch-switch-dpdk_3.3.0-1-") and unpack(debs) == found
    assert installed.packages and installed.packages.names[0] == "openvswitch-switch-dpdk 3.3.0-1"
    assert installed.vswitchd_path == DISTRIBUTION_VSWITCHD
    assert (found / "usr" / "lib" / "systemd" / "x").is_file(), "of before /usr was merged"
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


def test_a_folder_that_may_not_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(ConfigError, match="Permission denied"):
        unpack(tmp_path)


def test_libraries_that_stop_this_machines_programs_are_named(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    said = "ls: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /lib/libselinux.so.1)"

    def run(argv: list[str], **_: Any) -> SimpleNamespace:
        return SimpleNamespace(exit_status=int(argv[0] == "ls"), stdout="", stderr=said)

    sandbox: Any = SimpleNamespace(run=run)
    with pytest.raises(MissingResource, match=r"openvswitch 3.5.*GLIBC_2.38.*libc6.*a container"):
        Packages(str(tmp_path), DISTRIBUTION_VSWITCHD, ("openvswitch 3.5",)).lay_over(sandbox)


SAYS = "(Open vSwitch) 3.7.1"
MEMIF = 'PMD_INFO_STRING= {"name" : "net_memif", "pci_ids": []}'
RING = "ring_mt_rts"


class Build:
    """Programs that say a version, as a build has them, and libraries: real ones of a C compiler, stripped."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        for folder in ("sbin", "bin", "lib", "share/openvswitch"):
            (prefix / folder).mkdir(parents=True)
        installation = OvsInstallation(prefix=str(prefix))
        Path(installation.database_schema).touch()
        for path in installation.files[1:]:
            if path != installation.database_schema:
                self.script(path, f"{Path(path).name} {SAYS}")
        self.vswitchd(MEMIF, RING)

    def script(self, path: str, says: str, status: int = 0) -> None:
        file = self.prefix / path
        file.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
        file.chmod(0o755)

    def vswitchd(self, *texts: str, library: Path | None = None, options: Sequence[str] = ()) -> None:
        """With DPDK and its drivers linked in, or in a library that it needs."""
        call = "need();" if library else ""
        code = f'int puts(const char *); int need(void); int main(void) {{ puts("ovs {SAYS}\\nDPDK 25.11"); {call} }}'
        linked = [str(library), f"-Wl,-rpath,{library.parent}"] if library else []
        self._compile(self.prefix / "sbin" / "ovs-vswitchd", code, texts, [*linked, *options])

    def library(self, path: str, *texts: str, needs: Sequence[str] = ()) -> Path:
        file = self.prefix / path
        file.parent.mkdir(exist_ok=True)
        options = ["-shared", "-fPIC", f"-Wl,-soname,{file.name}", *needs]
        self._compile(file, "int need(void) { return 0; }", texts, options)
        return file

    def _compile(self, target: Path, code: str, texts: Sequence[str], options: Sequence[str]) -> None:
        kept = "".join(
            f"__attribute__((used)) const char text{number}[] = {json.dumps(text)};\n"
            for number, text in enumerate(texts)
        )
        source = self.prefix / "source.c"
        source.write_text(f"{kept}{code}\n")
        subprocess.run(["cc", "-s", "-o", str(target), str(source), *options], check=True)

    def check(self) -> None:
        KINDS["ovs-dpdk"].check_build(LocalHost(), str(self.prefix), "memif")

    def refused(self, reason: str) -> None:
        with pytest.raises(MissingResource, match=reason) as raised:
            self.check()
        assert "\n" not in str(raised.value) and str(raised.value).endswith(".")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    if not shutil.which("cc"):
        pytest.skip("cc is not installed")
    return Build(tmp_path / "build")


def test_a_build_with_dpdk_linked_in_has_the_drivers_in_its_program(build: Build) -> None:
    build.check()
    build.vswitchd(RING)
    build.refused("DPDK's librte_net_memif are missing in .*/sbin/ovs-vswitchd: build it on this system")
    build.vswitchd(MEMIF.replace('" :', '":'), "ring_mp_mc")
    build.refused("DPDK's librte_mempool_ring are missing in")
    # What it links may be in a library of the build's own (--enable-shared).
    build.vswitchd(library=build.library("lib/libopenvswitch.so.0", MEMIF, RING))
    build.check()


def test_a_program_that_needs_no_libraries_has_all_within(build: Build) -> None:
    try:
        build.vswitchd(MEMIF, RING, options=["-static"])
    except subprocess.CalledProcessError:
        pytest.skip("no C library to link statically is installed")
    build.check()
    build.vswitchd(MEMIF, options=["-static"])
    build.refused("DPDK's librte_mempool_ring are missing in .*/sbin/ovs-vswitchd")


def test_a_dpdk_of_its_own_is_asked_for_the_folder_of_its_drivers(build: Build) -> None:
    folder = build.prefix / "dpdk" / "pmds-26.0"
    eal = build.library("lib/librte_eal.so.26", f"DPDK_PLUGIN_PATH={folder}")
    build.vswitchd(library=eal)
    build.refused(f"librte_mempool_ring and librte_net_memif are missing in {folder}")
    (build.prefix / "dpdk").mkdir()
    build.library(f"{folder}/librte_net_memif.so.26.0")
    build.refused("DPDK's librte_mempool_ring are missing in")
    build.library(f"{folder}/librte_mempool_ring.so.26.0")
    build.check()
    # DPDK loads all that are there, and does not start where one cannot be loaded.
    verbs = build.library("lib/libibverbs.so.9")
    build.library(f"{folder}/librte_net_mlx5.so.26.0", needs=["-Wl,--no-as-needed", str(verbs)])
    verbs.unlink()
    build.refused("needs libibverbs.so.9, not found")


def test_what_does_not_start_or_is_of_another_version_is_named_with_what_it_said(build: Build) -> None:
    build.vswitchd(MEMIF, RING, options=["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.9"])
    build.refused(r"ovs-vswitchd --version does not work \(.*No such file")
    build.vswitchd(MEMIF, RING)
    for says, status, reason in (
        ("ovs-appctl (Open vSwitch) 3.1.0", 0, "ovs-appctl is of Open vSwitch 3.1.0, and .*/ovs-vswitchd of 3.7.1"),
        ("no python3", 1, r"ovs-appctl --version does not work \(no python3\)"),
        ("", 1, r"ovs-appctl --version does not work \(ended with status 1\)"),
    ):
        build.script("bin/ovs-appctl", says, status)
        build.refused(reason)
    (build.prefix / "bin" / "ovs-appctl").unlink()
    build.refused("bin/ovs-appctl not found: .*`make install` the whole")


def test_a_script_in_the_place_of_ovs_vswitchd_is_called_one(build: Build) -> None:
    program = build.prefix / "sbin" / "ovs-vswitchd"
    program.rename(build.prefix / "sbin" / "ovs-vswitchd.real")
    program.write_text('#!/bin/sh\nexec "$0.real" "$@"\n')
    program.chmod(0o755)
    build.refused("sbin/ovs-vswitchd is a script, where the program itself has to be: build it")
