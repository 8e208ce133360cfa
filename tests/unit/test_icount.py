"""An emulated machine: what it boots and what damaged it, an image kept as a file, instructions by function; what it
says, its monitor, its process, its saved states. What goes wrong is a sentence."""

import ctypes
import gzip
import io
import json
import lzma
import random
import shutil
import signal
import struct
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.paths import RULESETS
from ctgen.library import FLAGS, built
from icount import machine
from icount.__main__ import by_name, main, net
from icount.by_function import Symbols, plugin_for
from icount.counter import Counter, Setup, _workloads
from icount.errors import IcountError, Invalid, Missing
from icount.image import (
    GUEST,
    OWN_PROGRAMS,
    Image,
    compile_program,
    find_program,
    keep,
    make_image,
    open_kept,
    pack,
    unpack,
)
from icount.kernel import Kernel, check_kernel, find_kernel, open_kernel
from icount.machine import States, Workload, read_log

from .test_kernel_candidate import bzimage, deb


def module(needs: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=" + needs.encode() + b"\0name=x\0"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel with four modules, of which the first needs the others."""
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-1.2").write_bytes(b"MZ")
    folder = tmp_path / "lib/modules/1.2"
    folder.mkdir(parents=True)
    needed = {"xt_nat": "nf_nat,x_tables", "nf_nat": "nf_conntrack", "x_tables": "", "nf-conntrack": ""}
    for name, needs in needed.items():
        (folder / f"{name}.ko").write_bytes(module(needs))
    return find_kernel(tmp_path)


@pytest.fixture
def make(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Image]:
    """Makes an image of its own catalogue, and of an Open vSwitch whose programs are texts."""
    monkeypatch.setattr("icount.image._programs", lambda: [("usr/bin/dash", b"dash")])
    monkeypatch.setattr("icount.image.compile_program", lambda source: source.read_bytes())
    ovs = tmp_path / "ovs"
    places = [f"bin/{each}" for each in ("ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")]
    for place in (*places, "sbin/ovs-vswitchd", "sbin/ovsdb-server", "share/openvswitch/vswitch.ovsschema"):
        (ovs / place).parent.mkdir(parents=True, exist_ok=True)
        (ovs / place).write_text(place)
    shutil.copytree(RULESETS, tmp_path / "rulesets")
    return lambda: make_image(kernel, tmp_path / "rulesets", str(ovs))


@pytest.mark.parametrize(
    "changed",
    [
        "boot/vmlinuz-1.2",
        "ovs/sbin/ovs-vswitchd",
        "ovs/share/openvswitch/vswitch.ovsschema",
        "rulesets/emulated/iptables-snat.sh",
        "rulesets/iptables/snat.rules",
        "rulesets/nftables/stateful.nft",
        "rulesets/ovs/conntrack.flows",
    ],
)
def test_what_can_change_a_count_makes_another_image(make: Callable[[], Image], tmp_path: Path, changed: str) -> None:
    before = make().identity
    (tmp_path / "rulesets/emulated/forward.yaml").write_text("title: other")  # is no part of it
    assert make().identity == before
    with (tmp_path / changed).open("a") as file:
        file.write("# more")
    assert make().identity != before


def test_the_libraries_of_a_build_are_where_its_programs_look(
    make: Callable[[], Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_build, of_system = tmp_path / "ovs/lib/libopenvswitch.so.3", Path("/lib/x86_64-linux-gnu/libc.so.6")
    of_build.parent.mkdir()
    of_build.write_bytes(b"library")
    monkeypatch.setattr("icount.image._libraries", lambda _: [of_build, of_system])
    found = unpack(make().parts["openvswitch.cpio"])
    assert found[str(of_build)] == b"library" and "/usr/lib/x86_64-linux-gnu/libc.so.6" in found
    # One that is found by ldconfig's list is found in /usr/lib: a link.
    assert found["/usr/lib/libopenvswitch.so.3"] == str(of_build).encode()
    assert "/usr/lib/libc.so.6" not in found


@pytest.fixture
def image() -> Image:
    """An image whose programs are made up."""
    parts = {
        "kernel": b"MZ of a kernel" * 1000,
        "common.cpio": pack({"usr/bin/dash": b"dash" * 1000}),
        "openvswitch.cpio": pack({"usr/sbin/ovs-vswitchd": b"ovs"}),
        "rules.cpio": pack({}),
        "scripts.cpio": pack({"ovs-mine.sh": b"prove() { :; }\n"}),
    }
    return Image("6.9", parts, {"dash": "0.5"})


@pytest.fixture
def kept(image: Image, tmp_path: Path) -> Path:
    keep(image, tmp_path / "mine.image")
    return tmp_path / "mine.image"


def test_an_image_that_was_kept_is_the_same(image: Image, kept: Path, tmp_path: Path) -> None:
    again = open_kept(kept)
    assert again == image and again.identity == image.identity
    assert again.topology("ovs-mine") == b"prove() { :; }\n"
    with pytest.raises(Missing, match="has no topology newer"):
        again.topology("newer")
    # And it makes the same file.
    keep(image, tmp_path / "again.image")
    assert (tmp_path / "again.image").read_bytes() == kept.read_bytes()


def rewritten(kept: Path, name: str, data: bytes) -> None:
    """The same file with another part in it."""
    with tarfile.open(kept) as tar:
        parts = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    with tarfile.open(kept, "w:gz") as tar:
        for each, content in (parts | {name: data}).items():
            header = tarfile.TarInfo(each)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))


def cut(left: float) -> Callable[[Path], object]:
    return lambda kept: kept.write_bytes(kept.read_bytes()[: int(kept.stat().st_size * left)])


def changed(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda kept: rewritten(kept, name, data)


def listed(**keys: Any) -> Callable[[Path], object]:
    def change(kept: Path) -> None:
        with tarfile.open(kept) as tar:
            found = json.loads(tar.extractfile("list.json").read())  # type: ignore[union-attr]
        rewritten(kept, "list.json", json.dumps(found | keys).encode())

    return change


NO_IMAGE = r"is not an image of an emulated machine, or was cut off or changed\."


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        *((cut(left), NO_IMAGE) for left in (0.0, 0.001, 0.5, 0.99)),
        (changed("kernel", b"MZ of another kernel"), NO_IMAGE),
        (changed("common.cpio", b""), NO_IMAGE),
        (changed("more", b"a part that is not listed"), NO_IMAGE),
        (changed("list.json", b"{}"), NO_IMAGE),
        (changed("list.json", b"[1]"), NO_IMAGE),
        (changed("list.json", b"not JSON"), NO_IMAGE),
        (listed(identity="0" * 16), NO_IMAGE),
        (listed(format=1), "was kept by another version of this project"),
        (lambda kept: kept.write_bytes(b"no image"), NO_IMAGE),
        (lambda kept: kept.write_bytes(gzip.compress(b"no archive", mtime=0)), NO_IMAGE),
        (Path.unlink, r"cannot be read \(No such file or directory\)"),
    ],
)
def test_a_file_that_is_not_as_it_was_kept_is_refused(damage: Callable[[Path], object], said: str, kept: Path) -> None:
    damage(kept)
    with pytest.raises(Invalid, match=rf"mine\.image: {said}"):
        open_kept(kept)


def test_an_image_without_open_vswitch_or_a_folder_says_so(image: Image, tmp_path: Path) -> None:
    keep(image.with_openvswitch(str(tmp_path / "nothing")), tmp_path / "bare.image")
    with pytest.raises(Missing, match="the image that was kept has none"):
        open_kept(tmp_path / "bare.image").topology("ovs-mine")
    with pytest.raises(Missing, match="nothing/bin/ovsdb-tool is missing"):
        open_kept(tmp_path / "bare.image", str(tmp_path / "nothing")).topology("ovs-mine")
    with pytest.raises(FileNotFoundError):
        keep(image, tmp_path / "nowhere" / "mine.image")


PROGRAM = "/usr/sbin/ovs-vswitchd"
KERNEL = 0xFFFF_FFFF_8100_0000


def elf(functions: dict[str, tuple[int, int]], table: int = 11) -> bytes:
    """A program whose code is loaded from offset 0x1000 to address 0x2000, with these functions (address, size)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in functions)
    symbols = b"\0" * 24 + b"".join(
        struct.pack("<IBBHQQ", names.index(b"\0" + name.encode() + b"\0") + 1, 0x12, 0, 1, *where)
        for name, where in functions.items()
    )
    data = bytearray(0x3000)
    data[:5] = b"\x7fELF\x02"
    struct.pack_into("<QQ", data, 0x20, 0x40, 0x2000)
    struct.pack_into("<HHHH", data, 0x36, 56, 1, 64, 3)
    struct.pack_into("<IIQQQQ", data, 0x40, 1, 5, 0x1000, 0x2000, 0, 0x1000)
    for number, (of, at, size, link) in enumerate([(0, 0, 0, 0), (table, 0x2400, len(symbols), 2), (3, 0x2200, 99, 0)]):
        struct.pack_into("<IIQQQQIIQQ", data, 0x2000 + 64 * number, 0, of, 0, 0, at, size, link, 0, 0, 0)
    data[0x2200 : 0x2200 + len(names)] = names
    data[0x2400 : 0x2400 + len(symbols)] = symbols
    return bytes(data)


def said(*more: str, end: str = "end") -> bytes:
    lines = [f"symbol {KERNEL:x} start_kernel", f"symbol {KERNEL + 0x100:x} nf_conntrack_in [nf_conntrack]", *more, end]
    return gzip.compress("\n".join(lines).encode(), mtime=0)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (KERNEL, "start_kernel"),
        (KERNEL + 0xFF, "start_kernel"),
        (KERNEL + 0x100, "nf_conntrack_in [nf_conntrack]"),
        (KERNEL - 1, "the kernel"),
        (0x40_0123, "the traffic"),
        (0x5555_5555_5000, "process_one [ovs-vswitchd]"),
        (0x5555_5555_500F, "process_one [ovs-vswitchd]"),
        (0x5555_5555_5010, "(no symbol) [ovs-vswitchd]"),
        (0x7FFF_0000_0000, "other programs"),
    ],
)
def test_an_address_is_of_a_function(address: int, name: str) -> None:
    packed = said(f"mapped 555555555000-555555556000 00001000 {PROGRAM}")
    symbols = Symbols.read(packed, {PROGRAM: elf({"process_one": (0x2000, 16), "main": (0x2020, 8)})})
    assert symbols.name(address) == name


def test_a_whole_table_of_symbols_is_better_than_what_is_exported() -> None:
    packed = said(f"mapped 555555555000-555555556000 00001000 {PROGRAM}")
    assert Symbols.read(packed, {PROGRAM: elf({"f": (0x2000, 4)}, 2)}).name(0x5555_5555_5000) == "f [ovs-vswitchd]"
    for other in (b"", b"#!/bin/sh"):
        assert Symbols.read(packed, {PROGRAM: other}).name(0x5555_5555_5000) == "(no symbol) [ovs-vswitchd]"


@pytest.mark.parametrize("packed", [b"", b"no gzip", said()[:-9], said(end=""), gzip.compress(b"end", mtime=0)])
def test_symbols_that_are_not_whole_are_refused(packed: bytes) -> None:
    with pytest.raises(IcountError, match="symbols"):
        Symbols.read(packed, {})


@pytest.mark.parametrize("name", OWN_PROGRAMS)
def test_another_compiler_has_no_complaint(tmp_path: Path, name: str) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    argv = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-ffreestanding", "-fno-builtin", "-fno-stack-protector"]
    subprocess.run([*argv, "-c", "-o", tmp_path / f"{name}.o", GUEST / f"{name}.c"], check=True, timeout=60)


@pytest.mark.parametrize(
    ("version", "interface"),
    [("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", 1), ("9.0.0", 2), ("10.0.3 (Debian 1:10.0.3+ds-0+deb13u1)", 2)],
)
def test_the_plugin_counts_by_the_interface_of_its_qemu(tmp_path: Path, version: str, interface: int) -> None:
    qemu = ctypes.CDLL(str(built([Path(__file__).parents[1] / "qemu_plugins.c"], FLAGS)), ctypes.RTLD_GLOBAL)
    plugin = ctypes.CDLL(str(written(tmp_path / "plugin.so", plugin_for(version))))
    # QEMU refuses any other: QEMU_PLUGIN_VERSION and, since 9.0, QEMU_PLUGIN_MIN_VERSION.
    assert ctypes.c_int.in_dll(plugin, "qemu_plugin_version").value == interface
    out = tmp_path / "rounds"
    arguments = (ctypes.c_char_p * 2)(f"out={out}".encode(), b"mark=1001")
    assert plugin.qemu_plugin_install(ctypes.c_ulong(1), None, 2, arguments) == 0
    qemu.qemu_run(3)  # the mark is a block's second instruction: a round, and the begin of another one
    assert out.read_text() == "round\n1000 2\n"


def test_parts_and_copies_of_a_function_count_as_it_and_the_dearest_stand_first() -> None:
    counted = {"ip_rcv": 50.0, "f.isra.0 [m]": 40.0, "f.part.3 [m]": 5.0, "f [m]": 10.0, "new.constprop.0": 35.0}
    assert by_name(counted) == [("f [m]", 55.0), ("ip_rcv", 50.0), ("new", 35.0)]


def folder(at: Path, vmlinuz: bytes) -> Path:
    """A kernel as a package has it."""
    (at / "lib/modules/6.1").mkdir(parents=True)
    (at / "boot").mkdir()
    (at / "boot/vmlinuz-6.1").write_bytes(vmlinuz)
    return at


def package(at: Path, vmlinuz: bytes, left: int | None = None) -> Path:
    made = deb(at / "linux.deb", "boot/vmlinuz-6.1", vmlinuz, "lib/modules/6.1")
    return written(made, made.read_bytes()[:left])


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def with_module(at: Path, name: str, content: bytes) -> Path:
    return written(folder(at / "x", GOOD) / "lib/modules/6.1" / name, content).parents[3]


GOOD, ELF, JUNK = b"MZ" + bytes(600), b"\x7fELF" + bytes(600), b"junk" * 500


@pytest.mark.parametrize("make", [lambda at: folder(at / "x", bzimage(at / "whole").read_bytes()),
                                  lambda at: package(at, GOOD), lambda at: folder(at / "x", ELF)])  # fmt: skip
def test_a_kernel_that_can_be_booted_has_its_release(make: Callable[[Path], Path], tmp_path: Path) -> None:
    assert check_kernel(make(tmp_path)) == "6.1"


def test_the_modules_of_a_kernel_are_found_by_its_release(tmp_path: Path) -> None:
    image, modules = bzimage(tmp_path / "k" / "boot" / "bzImage"), tmp_path / "k" / "lib" / "modules" / "6.9.0-mine"
    with pytest.raises(Missing, match=r"the modules of .*bzImage are not found"):
        check_kernel(image)
    modules.mkdir(parents=True)
    assert open_kernel(image, tmp_path) == Kernel(image, modules)


def test_what_is_part_of_the_kernel_is_no_module_that_it_lacks(
    make: Callable[[], Image], kernel: Kernel, tmp_path: Path
) -> None:
    before = make()
    assert "/usr/lib/modules/1.2/modules.builtin" not in unpack(before.whole)
    (kernel.modules / "modules.builtin").write_text("kernel/drivers/net/tun.ko\nkernel/net/nf-tables.ko\nkernel/x.ko\n")
    listed = unpack(make().whole)["/usr/lib/modules/1.2/modules.builtin"]
    assert sorted(listed.splitlines()) == [b"kernel/nf_tables.ko", b"kernel/tun.ko"]


#: How the file of a kernel is damaged, and the words that say it.
DAMAGED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no folder": (lambda at: at / "none", "does not exist"),
    "an empty folder": (lambda at: at, "boot has no file vmlinuz-*."),
    "no package": (lambda at: at / "none.deb", "does not exist"),
    "an empty package": (lambda at: written(at / "x.deb", b""), "is empty"),
    "a text as package": (lambda at: written(at / "x.deb", b"404 Not Found"), "does not unpack"),
    "a package cut off": (lambda at: package(at, GOOD, 200), "does not unpack"),
    "a package cut by a byte": (lambda at: package(at, random.Random(1).randbytes(50_000), -1), "does not unpack"),
    "a package of something else": (lambda at: deb(at / "bash.deb", "bin/bash"), "boot has no file vmlinuz-*."),
    "a package without modules": (lambda at: deb(at / "x.deb", "boot/vmlinuz-6.1", GOOD), "modules/6.1 is missing."),
    "a package with a junk kernel": (lambda at: package(at, JUNK), "is not a kernel"),
    "two kernels": (lambda at: written(folder(at / "x", GOOD) / "boot/vmlinuz-7", GOOD).parents[1], "has 2 file"),
    "a file as folder": (lambda at: written(at / "x", b"text"), "is not a kernel"),
    "a folder with an empty kernel": (lambda at: folder(at / "x", b""), "is empty"),
    "a folder with a junk kernel": (lambda at: folder(at / "x", JUNK), "is not a kernel"),
    "a folder with a kernel cut off": (
        lambda at: folder(at / "x", bzimage(at / "whole").read_bytes()[:1500]),
        "was cut off",
    ),
    "a module compressed in another way": (lambda at: with_module(at, "veth.ko.zst", b"x"), "nor compressed with xz"),
    "a module cut off": (
        lambda at: with_module(at, "veth.ko.xz", lzma.compress(module(""))[:30]),
        "cut off or changed",
    ),
    "a module that is missing": (lambda at: with_module(at, "veth.ko", module("other")), "lacks the module other"),
    "an empty image": (lambda at: written(at / "vmlinuz", b""), "is empty"),
    "a junk image": (lambda at: written(at / "vmlinuz", JUNK), "is not a kernel"),
    "an ELF file as image": (lambda at: written(at / "vmlinuz", ELF), "is not a bzImage"),
    "an image without a release": (lambda at: bzimage(at / "vmlinuz", ""), "names no release"),
    "an image whose release is a path": (lambda at: bzimage(at / "vmlinuz", "../../etc"), "names no release"),
    "an image cut off": (lambda at: bzimage(at / "vmlinuz", size=0xFFF), "was cut off"),
}


def test_a_package_that_takes_too_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icount.kernel._UNPACK_S", 1e-6)
    with pytest.raises(Missing, match=r"linux.*\.deb does not unpack within"):
        check_kernel(package(tmp_path, GOOD))


@pytest.mark.parametrize("how", DAMAGED)
def test_a_kernel_that_is_missing_or_damaged_is_said(how: str, tmp_path: Path) -> None:
    make, said = DAMAGED[how]
    named = make(tmp_path)
    with pytest.raises(Missing) as error:
        check_kernel(named)
    assert said in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize("how", ["an empty folder", "a text as package", "a module cut off"])
def test_what_is_no_kernel_is_a_mistake(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icount.machine.version", lambda: "7.2.22")
    make, _ = DAMAGED[how]
    with pytest.raises(Invalid, match=str(tmp_path)):
        _ = Counter(tmp_path, RULESETS, kernel=make(tmp_path)).release


BOOT = (Path(__file__).parents[1] / "data" / "icount-boot.log").read_text()


def test_a_boot_that_proves_everything_counts() -> None:
    log = read_log(BOOT)
    assert (log.trouble, list(log.workloads)) == ("", ["stream", "udp"])
    stream = log.workloads["stream"]
    assert (stream.doubt, [each.instructions for each in stream.rounds]) == ("", [30000000, 30000100, 30000300])


@pytest.mark.parametrize(
    ("said", "instead", "doubt"),
    [
        ("round stream 4096 4096 30000100", "round stream 4096 4095 30000100", "4096 were sent and 4095 came through"),
        ("check 0 0 connections", "check 0 1 connections", "connections in the table: 1 where 0 had to be"),
        ("check 20482 20482 packets", "check 20482  packets", "packets routed: nothing where 20482 had to be"),
        ("check", "chuck", "nothing was proved of the topology"),
        ("round stream", "ruond stream", "no round was counted"),
    ],
)
def test_what_is_not_proved_is_doubted(said: str, instead: str, doubt: str) -> None:
    assert read_log(BOOT.replace(said, instead)).workloads["stream"].doubt == doubt


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (BOOT.replace("done\n", ""), "its last words are: [ 5.2] reboot: Restarting system"),
        (BOOT.replace("done\n", "broken no wire could be made\n"), "no wire could be made"),
        (
            BOOT.replace("done\n", "Illegal instruction\nbroken ovsdb-tool failed\n"),
            "ovsdb-tool failed: it was built for another processor; build DPDK with -Dplatform=generic",
        ),
        ("", "its last words are: none"),
        ("[ 1.0] Kernel panic - not syncing: no init found\n", "[ 1.0] Kernel panic - not syncing: no init found"),
    ],
)
def test_a_boot_that_did_not_come_to_its_end_says_why(text: str, trouble: str) -> None:
    assert read_log(text).trouble == trouble


@given(st.text(alphabet="rounda stecmw0123456789\n\r[]", max_size=300))
def test_whatever_is_said_can_be_read(text: str) -> None:
    log = read_log(text)
    assert all(told.rounds or told.doubt for told in log.workloads.values())


#: Stands in for QEMU: what it says and does is in a file next to it.
QEMU = """#!/usr/bin/env -S python3 -I -S
import json, sys, time
from pathlib import Path

does = json.loads(Path(__file__).with_suffix(".json").read_text())
serial = next(word for word in sys.argv if word.startswith("file:"))
Path(serial.removeprefix("file:")).write_text(does["says"])
print(does["complains"], file=sys.stderr, flush=True)
if does["status"]:
    sys.exit(does["status"])
print(json.dumps({"QMP": {"version": {}}}), flush=True)
answers = {"query-status": {"status": "guest-panicked"}, "query-migrate": {}}
for line in sys.stdin:
    asked = json.loads(line)
    command = asked["execute"]
    print(json.dumps({"event": "STOP"}))
    if command == does["refuses"]:
        print(json.dumps({"error": {"class": "GenericError", "desc": "There is no such command"}}), flush=True)
        continue
    if command == "migrate":
        Path(asked["arguments"]["uri"].removeprefix("exec:cat >")).write_text("a state")
        answers["query-migrate"] = does["saving"]
        answers["query-status"] = {"status": "postmigrate" if does["saving"]["status"] == "completed" else "paused"}
    print(json.dumps({"return": answers.get(command, {})}), flush=True)
    if command in ("cont", "quit"):
        time.sleep(does["takes_s"])
        sys.exit()
"""


class QemuDouble:
    """QEMU, and how much memory is free."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "qemu"
        self.free_mb = 4096
        self.program.write_text(QEMU)
        self.program.chmod(0o755)
        self.does()

    def does(self, **changes: Any) -> None:
        usual = {"status": 0, "says": "done\n", "complains": "", "saving": {"status": "completed"}, "refuses": ""}
        self.program.with_suffix(".json").write_text(json.dumps({**usual, "takes_s": 0, **changes}))


@pytest.fixture
def qemu(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    made = QemuDouble(tmp_path_factory.mktemp("qemu"))
    monkeypatch.setattr(machine, "QEMU", str(made.program))
    monkeypatch.setattr(machine, "_free_mb", lambda: made.free_mb)
    return made


@pytest.mark.parametrize(
    ("does", "longest_s", "trouble"),
    [
        ({}, 60.0, ""),
        ({"status": 9, "complains": "no guest memory"}, 60.0, "QEMU ended with status 9: no guest memory"),
        ({"takes_s": 60}, 1.0, "it took longer than 1 s"),
    ],
)
def test_a_qemu_that_ends_badly_is_quoted_and_one_that_takes_too_long_is_stopped(
    qemu: QemuDouble, tmp_path: Path, does: dict[str, Any], longest_s: float, trouble: str
) -> None:
    qemu.does(**does)
    logs = machine.run_all(tmp_path, [machine.start("kernel", "1.state")] * 2, 2, longest_s)
    assert [log.trouble for log in logs] == [trouble] * 2
    assert files(tmp_path) == []


def test_too_little_memory_is_said_before(qemu: QemuDouble) -> None:
    qemu.free_mb = 300
    with pytest.raises(Missing, match="needs 640 MB of memory, and 300 MB are available"):
        machine.fitting()
    qemu.free_mb = 1300
    assert machine.fitting() == 2


def test_each_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("icount.image.PATH", str(tmp_path))
    with pytest.raises(Missing, match=r"qemu-system-x86_64 \(package qemu-system-x86\).*\./run setup brings it"):
        machine.version()
    with pytest.raises(Missing, match=r"needs nft \(package nftables\)"):
        find_program("nft")
    with pytest.raises(Missing, match=r"needs tcc \(package tcc\)"):
        compile_program(GUEST / "traffic.c")


def test_seeds_that_there_is_no_memory_for_are_counted_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OneAtATime:
        asked: ClassVar[list[list[int]]] = []

        def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, machine.Asked]:
            self.asked.append(list(seeds))
            return {seeds[0]: machine.start("kernel", f"{seeds[0]}.state")}

    def run_all(_folder: Path, asked: Sequence[machine.Asked], *_: Any) -> list[machine.Log]:
        said = "workload stream\nround stream 10 10 {}000\ncheck 1 1 all\ndone\n"
        assert all(b"PORTS=plain\nWORKLOADS=usual\nscript" in each.given for each in asked)
        return [read_log(said.format(each.arguments[-1].split()[1][0])) for each in asked]

    monkeypatch.setattr("icount.machine.run_all", run_all)
    counter = Counter(tmp_path, RULESETS, seeds=3)
    counter._image = cast(Image, SimpleNamespace(topology=lambda _script: b"script"))
    counter._states = cast(States, OneAtATime())
    counted = counter.count([Setup("forward"), Setup("bridge")], "stream")
    assert OneAtATime.asked == [[1, 2, 3], [2, 3], [3]]
    assert [[(each.seed, each.each, each.doubt) for each in one] for one in counted] == [
        [(1, 100.0, ""), (2, 200.0, ""), (3, 300.0, "")]
    ] * 2


@pytest.mark.parametrize(
    ("topologies", "workload", "workloads"),
    [
        (("baseline", "forward"), "stream", "usual"),
        (("forward",), "removal", "usual"),
        (("baseline", "forward"), "stream-1k", "stream-1k"),
        (("baseline", "ovs-user-nat", "ovs-user-conntrack"), "udp", "waits"),
    ],
)
def test_all_that_are_compared_are_sent_the_same(topologies: Sequence[str], workload: Workload, workloads: str) -> None:
    assert _workloads(list(map(Setup, topologies)), workload) == workloads


@pytest.fixture
def states(qemu: QemuDouble, tmp_path: Path) -> States:
    """Of machines that get ready."""
    qemu.does(says="")
    return States(tmp_path, Image("6.1", {"kernel": b"MZ", "common.cpio": b"c", "rules.cpio": b"r"}, {}))


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


#: MB of a machine with its state.
NEEDED = 512 + 128 + 80


def test_where_there_is_memory_for_one_the_others_come_later_and_make_way(
    qemu: QemuDouble, states: States, tmp_path: Path
) -> None:
    qemu.free_mb = NEEDED
    assert list(states.ready([1, 2], 2)) == [1]
    qemu.free_mb = NEEDED - 1
    assert list(states.ready([1, 2], 2)) == [1]
    with pytest.raises(Missing, match="needs 720 MB of memory, and 719 MB are available"):
        states.ready([2], 2)
    assert files(tmp_path) == ["kernel"]  # it has made way


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ({"status": 1}, r"did not get ready \(seed 1\): QEMU ended with status 1\."),
        ({"saving": {"status": "failed", "error-desc": "No space"}}, "could not be saved: No space"),
        ({"refuses": "migrate"}, "QEMU refuses `migrate`: There is no such command"),
    ],
)
def test_a_machine_that_does_not_get_ready_is_said_and_leaves_no_state(
    qemu: QemuDouble, states: States, tmp_path: Path, does: dict[str, Any], said: str
) -> None:
    qemu.does(**does)
    with pytest.raises(IcountError, match=said):
        states.ready([1], 2)
    assert files(tmp_path) == ["kernel"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["forwrad"], 4, "forwrad is not a topology.\n  Expected one of "),
        (["forward", "--kernel", "/nowhere/linux.deb"], 4, "/nowhere/linux.deb does not exist"),
        (["forward", "--keep-image", "/nowhere/mine.image"], 4, "--keep-image: /nowhere/mine.image: has no folder"),
        (["forward", "--image", "/nowhere/mine.image"], 4, "/nowhere/mine.image: cannot be read"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(
    arguments: list[str], status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("icount.machine.version", lambda: "7.2.22")
    before = signal.getsignal(signal.SIGINT)
    assert main(arguments) == status
    assert said in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_workload_that_a_topology_does_not_have_is_a_mistake() -> None:
    counter = Mock(spec=Counter)
    counter.count.return_value = [[machine.Counted(seed=1), machine.Counted(seed=2)]]
    with pytest.raises(Invalid, match=r"forward has no workload dump\."):
        net(counter, Setup("forward"), "dump")


def test_a_machine_that_ends_in_the_middle_of_what_it_says_has_ended() -> None:
    with pytest.raises(ConnectionResetError):
        machine.Monitor(io.StringIO('{"QMP": {}}\n{"retu'), io.StringIO())
