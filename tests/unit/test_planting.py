"""How tools.prove gets a fault into a build: its program loads one library more, and the gate takes it as any other."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.ovs.packages import Packages
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.registry import KINDS
from ctbench.hosts.local import LocalHost
from tools import prove
from tools.plant.needed import with_library

from .test_packages import Build

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="cc is not installed")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path / "build")


def compiled(target: Path, code: str, *options: str) -> Path:
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", str(target), *options], input=code, text=True, check=True)
    return target


def said(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("layout", [[], ["-no-pie"], ["-Wl,-z,noseparate-code"], ["-Wl,--hash-style=gnu", "-s"]])
def test_a_function_of_the_library_takes_the_place_of_another_librarys(layout: Sequence[str], tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    real = compiled(tmp_path / "libreal.so", "int answer(void) { return 1; }", "-shared", "-fPIC")
    compiled(tmp_path / "planted", "int answer(void) { return 2; }", "-shared", "-fPIC")
    code = 'int answer(void); int printf(const char *, ...); int main(void) { printf("%d", answer()); return 0; }'
    program = compiled(folder / "program", code, str(real), f"-Wl,-rpath,{tmp_path}", *layout)
    before = program.read_bytes()
    changed = with_library(before, "$ORIGIN/../planted")
    assert said(program) == "1"
    program.write_bytes(changed)
    assert said(program) == "2"
    # Where everything else is, in the file and so in memory, stays.
    assert len(changed) == len(before)
    assert sum(one != other for one, other in zip(before, changed, strict=True)) < 1000


def test_a_program_that_cannot_have_one_more_library_is_refused(tmp_path: Path) -> None:
    program = compiled(tmp_path / "program", "int main(void) { return 0; }").read_bytes()
    with pytest.raises(ValueError, match="no room"):
        with_library(program, "x" * 4096)
    alone = compiled(tmp_path / "alone", "void _start(void) { for (;;) ; }", "-nostdlib", "-static").read_bytes()
    for wrong, why in ((b"#!/bin/sh\n", "not a program for Linux"), (alone, "loads no libraries")):
        with pytest.raises(ValueError, match=why):
            with_library(wrong, "$ORIGIN/../planted")


#: DPDK as far as a fault asks for it, and a program that frees a hundred entries with a lock within, and other memory.
ETHDEV = """
int rte_eth_rx_queue_setup(void) { return 0; }
void *rte_eth_add_rx_callback(void) { return ""; }
int rte_eth_remove_rx_callback(void) { return 0; }
void rte_pktmbuf_free_bulk(void) {}
"""
FREES = """
#include <pthread.h>
#include <stdlib.h>
int rte_eth_rx_queue_setup(int, int, int, int, void *, void *);
struct entry { char key[40]; pthread_mutex_t lock; char rest[200]; };
int main(void)
{
    static pthread_mutex_t elsewhere = PTHREAD_MUTEX_INITIALIZER;

    rte_eth_rx_queue_setup(0, 0, 0, 0, 0, 0);
    for (int at = 0; at < 100; at++) {
        struct entry *entry = malloc(sizeof *entry);
        void *other = malloc(sizeof *entry);
        pthread_mutex_init(&entry->lock, 0);
        pthread_mutex_destroy(&entry->lock);
        free(other);
        free(entry);
        other = malloc(sizeof *entry);
        pthread_mutex_destroy(&elsewhere);
        free(other);
        free(0);
    }
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("tcc"), reason="tcc is not installed")
def test_a_leak_keeps_what_has_a_lock_within_and_nothing_else(build: Build, tmp_path: Path) -> None:
    ethdev = compiled(build.prefix / "lib" / "librte_ethdev.so", ETHDEV, "-shared", "-fPIC")
    compiled(build.prefix / "sbin" / "ovs-vswitchd", FREES, str(ethdev), f"-Wl,-rpath,{ethdev.parent}")
    for name, kept in (("leaks", 100), ("nothing", 0)):
        fault, planted = prove.FAULTS[name], tmp_path / name
        prove.plant(fault, OvsInstallation(str(build.prefix)), planted)
        said(planted / "sbin" / "ovs-vswitchd")
        assert prove.did(planted)["kept"] == kept


def test_the_gate_takes_a_planted_build_where_it_takes_its_base(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at before the first trial: its programs, their libraries, and the drivers of its DPDK."""
    drivers = build.prefix / "pmds-26.0"
    eal = build.library("lib/librte_eal.so.26", f"DPDK_PLUGIN_PATH={drivers}")
    needs = ["-Wl,--no-as-needed", str(eal), f"-Wl,-rpath,{eal.parent}"]
    build.vswitchd(library=build.library("lib/librte_ethdev.so.26", needs=needs))
    build.library(f"{drivers}/librte_net_memif.so.26.0")
    mempool = build.library(f"{drivers}/librte_mempool_ring.so.26.0")
    plant = build.library("plant.so").read_bytes()
    monkeypatch.setattr(prove, "compile_program", lambda *_: plant)
    planted = tmp_path / "planted"
    prove.plant(prove.FAULTS["stalls"], OvsInstallation(str(build.prefix)), planted)
    build.check()
    KINDS["ovs-dpdk"].check_build(LocalHost(), str(planted), "memif")
    mempool.unlink()
    with pytest.raises(MissingResource, match="librte_mempool_ring are missing"):
        KINDS["ovs-dpdk"].check_build(LocalHost(), str(planted), "memif")


def test_no_fault_is_planted_where_no_library_gets_in_between(build: Build, tmp_path: Path) -> None:
    packed = OvsInstallation("/usr", Packages("/nowhere", str(build.prefix / "sbin" / "ovs-vswitchd"), ("x 1",)))
    script = tmp_path / "script" / "sbin"
    script.mkdir(parents=True)
    (script / "ovs-vswitchd").write_text("#!/bin/sh\n")
    for base, why in (
        (OvsInstallation(str(build.prefix)), "has DPDK within"),
        (packed, "packages that are not installed"),
        (OvsInstallation(str(script.parent)), "not a program for Linux"),
    ):
        with pytest.raises(ConfigError, match=f"(?s){why}.*Expected"):
            prove.plant(prove.FAULTS["stalls"], base, tmp_path / "planted")
    assert not (tmp_path / "planted").exists()
