"""What an emulated machine boots: the archive, the modules, the program."""

import lzma
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource
from ctbench.base.paths import RULESETS
from ctbench.dut.emulated.image import Image, _before, make_image, pack
from ctbench.dut.kernel import Kernel, find_kernel


def names_of(packed: bytes) -> list[tuple[str, int, int]]:
    """Name, mode and number of what is in an archive, in its order."""
    found, at = [], 0
    while True:
        assert packed[at : at + 6] == b"070701"
        numbers = [int(packed[at + 6 + 8 * each : at + 14 + 8 * each], 16) for each in range(13)]
        number, mode, size, length = numbers[0], numbers[1], numbers[6], numbers[11]
        name = packed[at + 110 : at + 110 + length - 1].decode()
        if name == "TRAILER!!!":
            return found
        found.append((name, mode, number))
        at += 110 + length
        at += -at % 4 + size
        at += -at % 4


def test_an_archive_is_sorted_numbered_and_has_the_folders_of_its_files() -> None:
    packed = pack({"b/c": b"12345", "a": "b/c", "d": None})
    assert names_of(packed) == [
        ("a", stat.S_IFLNK | 0o777, 1),
        ("b", stat.S_IFDIR | 0o755, 2),
        ("b/c", stat.S_IFREG | 0o755, 3),
        ("d", stat.S_IFDIR | 0o755, 4),
    ]
    assert b"12345" in packed


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


def test_modules_come_with_what_they_need(kernel: Kernel) -> None:
    needed = kernel.with_needed(["xt_nat", "not_there"])
    assert needed == {
        "xt_nat": ["nf_nat", "x_tables"], "nf_nat": ["nf_conntrack"], "nf_conntrack": [], "x_tables": [],
    }  # fmt: skip
    assert _before("xt_nat", needed) == ["x_tables", "nf_nat", "nf_conntrack"]
    assert _before("x_tables", needed) == []


def test_a_module_may_be_compressed(kernel: Kernel) -> None:
    (kernel.modules / "nf_nat.ko").rename(kernel.modules / "moved")
    (kernel.modules / "nf_nat.ko.xz").write_bytes(lzma.compress(module("x_tables")))
    assert kernel.read("nf_nat") == module("x_tables")
    assert kernel.with_needed(["nf_nat"]) == {"nf_nat": ["x_tables"], "x_tables": []}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ((), "has no file"),
        (("vmlinuz-1", "vmlinuz-2"), "has 2 file"),
        (("vmlinuz-1.2",), r"lib/modules/1\.2 is missing"),
    ],
)
def test_a_folder_without_one_kernel_and_its_modules_is_refused(
    tmp_path: Path, files: tuple[str, ...], why: str
) -> None:
    (tmp_path / "boot").mkdir()
    for name in files:
        (tmp_path / "boot" / name).touch()
    with pytest.raises(MissingResource, match=why):
        find_kernel(tmp_path)


@pytest.fixture
def make(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Image]:
    """Makes an image of its own catalogue, and of an Open vSwitch whose programs are texts."""
    monkeypatch.setattr("ctbench.dut.emulated.image._programs", lambda: [("usr/bin/dash", b"dash")])
    monkeypatch.setattr("ctbench.dut.emulated.image.compile_program", lambda source: source.read_bytes())
    ovs = tmp_path / "ovs"
    places = [f"bin/{each}" for each in ("ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")]
    for place in (*places, "sbin/ovs-vswitchd", "sbin/ovsdb-server", "share/openvswitch/vswitch.ovsschema"):
        (ovs / place).parent.mkdir(parents=True, exist_ok=True)
        (ovs / place).write_text(place)
    shutil.copytree(RULESETS, tmp_path / "rulesets")
    return lambda: make_image(kernel, str(ovs), tmp_path / "rulesets")


@pytest.mark.parametrize(
    "changed",
    [
        "boot/vmlinuz-1.2", "ovs/sbin/ovs-vswitchd", "ovs/share/openvswitch/vswitch.ovsschema",
        "rulesets/emulated/iptables-snat.sh", "rulesets/iptables/snat.rules", "rulesets/nftables/stateful.nft",
        "rulesets/ovs/conntrack.flows",
    ],
)  # fmt: skip
def test_whatever_can_change_a_count_makes_another_image(
    make: Callable[[], Image], tmp_path: Path, changed: str
) -> None:
    before = make().identity
    (tmp_path / "rulesets/emulated/forward.yaml").write_text("title: other")  # is no part of it
    assert make().identity == before
    with (tmp_path / changed).open("a") as file:
        file.write("# more")
    assert make().identity != before


@pytest.mark.parametrize("name", ["traffic", "await"])
def test_the_guests_own_programs_are_part_of_the_image(
    make: Callable[[], Image], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = make().identity
    monkeypatch.setattr(
        "ctbench.dut.emulated.image.compile_program",
        lambda source: b"other" if source.stem == name else source.read_bytes(),
    )
    assert make().identity != before


def test_an_image_without_open_vswitch_is_one_too(make: Callable[[], Image], tmp_path: Path) -> None:
    image = make()
    (tmp_path / "ovs/bin/ovs-vsctl").unlink()
    without = make()
    assert without.identity != image.identity
    assert image.whole == without.whole + image.parts["openvswitch.cpio"]
    assert b"forward" in without.topology("forward")
    with pytest.raises(MissingResource, match="ovs-vsctl is missing"):
        without.topology("ovs-forward")
