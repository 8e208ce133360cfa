"""An image that is kept as a file: the same identity again, and a file that is cut off or changed is refused."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource, OutputError
from ctbench.dut.emulated.image import Image, keep, open_kept, pack


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
    with pytest.raises(MissingResource, match="has no topology newer"):
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
def test_a_file_that_is_not_whole_or_not_as_it_was_kept_is_refused(
    damage: Callable[[Path], object], said: str, kept: Path
) -> None:
    damage(kept)
    with pytest.raises(ConfigError, match=rf"mine\.image: {said}"):
        open_kept(kept)


def test_an_image_without_open_vswitch_says_so(image: Image, tmp_path: Path) -> None:
    keep(image.with_openvswitch(str(tmp_path / "nothing")), tmp_path / "bare.image")
    with pytest.raises(MissingResource, match="the image that was kept has none"):
        open_kept(tmp_path / "bare.image").topology("ovs-mine")
    with pytest.raises(MissingResource, match="nothing/bin/ovsdb-tool is missing"):
        open_kept(tmp_path / "bare.image", str(tmp_path / "nothing")).topology("ovs-mine")


def test_a_folder_that_cannot_be_written_is_said(image: Image, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the image cannot be written"):
        keep(image, tmp_path / "nowhere" / "mine.image")
