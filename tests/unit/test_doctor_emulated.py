"""The doctor looks at the kernel and the image that the testbed file names for an emulated machine."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctbench.dut.emulated import kind
from ctbench.dut.emulated.kind import EmulatedConfig
from ctbench.hosts.machine import Finding

from .test_compare_counts import deb

#: The host and what is known of it: an emulated machine's rows are of this one.
ANYWHERE: Any = None


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind.shutil, "which", lambda name, path: f"/usr/bin/{name}")  # type: ignore[attr-defined]


def bzimage(sixteens: int = 64) -> bytes:
    """A kernel by its header: one sector of set-up code and so many times 16 bytes."""
    header = bytearray(1024)
    header[0x1F1] = 1
    struct.pack_into("<I", header, 0x1F4, sixteens)
    header[0x202:0x206] = b"HdrS"
    return bytes(header) + bytes(16 * sixteens)


def folder(at: Path, vmlinuz: bytes | None) -> Path:
    """A kernel as a package has it."""
    for each in ("boot", "lib/modules/6.1"):
        (at / each).mkdir(parents=True)
    if vmlinuz is not None:
        (at / "boot/vmlinuz-6.1").write_bytes(vmlinuz)
    return at


def package(at: Path, vmlinuz: bytes) -> Path:
    (at / "linux/lib/modules/6.1").mkdir(parents=True)
    return deb(at / "linux.deb", "boot/vmlinuz-6.1", vmlinuz)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def cut(path: Path) -> Path:
    return written(path, path.read_bytes()[:200])


def look(**named: Path) -> Finding:
    settings = {"kernel": "distribution"} | {key: str(path) for key, path in named.items()}
    (finding,) = kind.EmulatedKind().examine(
        EmulatedConfig.model_validate({"type": "emulated", "seeds": 2} | settings), ANYWHERE
    )
    return finding


@pytest.mark.parametrize("make", [lambda at: folder(at / "x", bzimage()), lambda at: package(at, bzimage()),
                                  lambda at: folder(at / "x", b"\x7fELF" + bytes(600))])  # fmt: skip
def test_a_kernel_that_can_be_booted_is_well(make: Callable[[Path], Path], tmp_path: Path) -> None:
    finding = look(kernel=make(tmp_path))
    assert (finding.state, finding.what) == ("ok", kind.KERNEL) and "6.1" in finding.found


#: How a kernel or an image is damaged, and the word that says it.
DAMAGED: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "no folder": ("kernel", lambda at: at / "none", "does not exist"),
    "no package": ("kernel", lambda at: at / "none.deb", "does not exist"),
    "an empty package": ("kernel", lambda at: written(at / "x.deb", b""), "is empty"),
    "a text as package": ("kernel", lambda at: written(at / "x.deb", b"text"), "does not unpack"),
    "a package cut off": ("kernel", lambda at: cut(package(at, bzimage())), "does not unpack"),
    "a file as folder": ("kernel", lambda at: written(at / "x", b"text"), "is not a folder"),
    "a folder without a kernel": ("kernel", lambda at: folder(at / "x", None), "no file vmlinuz"),
    "an empty kernel": ("kernel", lambda at: folder(at / "x", b""), "is empty"),
    "a junk kernel": ("kernel", lambda at: folder(at / "x", b"junk" * 500), "is not a kernel"),
    "a kernel cut off": ("kernel", lambda at: folder(at / "x", bzimage()[:1500]), "was cut off"),
    "a package with a junk kernel": ("kernel", lambda at: package(at, b"junk" * 500), "is not a kernel"),
    "no image": ("image", lambda at: at / "none", "does not exist"),
    "an empty image": ("image", lambda at: written(at / "x", b""), "is empty"),
    "a text as image": ("image", lambda at: written(at / "x", b"text"), "cut off or changed"),
    "a folder as image": ("image", lambda at: at, "is not a file"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_file_that_is_missing_or_damaged_is_said_with_what_to_do(how: str, tmp_path: Path) -> None:
    key, make, said = DAMAGED[how]
    named = make(tmp_path)
    finding = look(**{key: named})
    assert (finding.state, finding.what) == ("bad", kind.KERNEL if key == "kernel" else kind.IMAGE)
    assert str(tmp_path) in finding.found
    assert said in finding.found and f"{key}:" in finding.remedy
