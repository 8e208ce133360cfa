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
from ctbench.dut.emulated import archive
from ctbench.dut.emulated.image import Image
from ctbench.dut.emulated.kept import KeptImage, keep, open_kept
from ctbench.dut.kernel import Kernel


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """An image whose programs are made up."""
    (tmp_path / "vmlinuz-6.9").write_bytes(b"MZ of a kernel" * 1000)
    (tmp_path / "rulesets" / "emulated").mkdir(parents=True)
    (tmp_path / "rulesets" / "emulated" / "ovs-mine.sh").write_text("prove() { :; }\n")
    made = Image(Kernel(tmp_path / "vmlinuz-6.9", Path("/lib/modules/6.9")), rulesets=tmp_path / "rulesets")
    made.__dict__["common"] = archive.pack({"usr/bin/dash": archive.file(b"dash" * 1000)})
    made.__dict__["openvswitch"] = archive.pack({"usr/sbin/ovs-vswitchd": archive.file(b"ovs")})
    return made


@pytest.fixture
def kept(image: Image, tmp_path: Path) -> Path:
    keep(image, {"dash": "0.5"}, tmp_path / "mine.image")
    return tmp_path / "mine.image"


def opened(path: Path, tmp_path: Path) -> KeptImage:
    (tmp_path / "memory").mkdir(exist_ok=True)
    return open_kept(path, tmp_path / "memory")


def test_an_image_that_was_kept_has_the_same_identity_and_boots_the_same(
    image: Image, kept: Path, tmp_path: Path
) -> None:
    script = tmp_path / "rulesets" / "emulated" / "ovs-mine.sh"
    whole, said = image.whole, image.topology(script)
    script.write_text("changed since\n")
    again = opened(kept, tmp_path)
    assert again.identity == image.identity
    assert (again.whole, again.topology(script)) == (whole, said)
    assert (again.kernel.release, again.packages) == ("6.9", {"dash": "0.5"})
    assert again.kernel.image.parent == tmp_path / "memory"
    assert again.kernel.image.read_bytes() == image.kernel.image.read_bytes()
    with pytest.raises(MissingResource, match="has no topology newer"):
        again.topology(tmp_path / "newer.sh")


def test_the_same_image_makes_the_same_file(image: Image, kept: Path, tmp_path: Path) -> None:
    keep(image, {"dash": "0.5"}, tmp_path / "again.image")
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
        (listed(sha256={}), NO_IMAGE),
        (listed(identity="0" * 16), "is not the image that it says it is"),
        (listed(format=1), "was kept by another version of this project"),
        (lambda kept: kept.write_bytes(b"no image"), NO_IMAGE),
        (lambda kept: kept.write_bytes(gzip.compress(b"no archive", mtime=0)), NO_IMAGE),
        (Path.unlink, r"cannot be read \(No such file or directory\)"),
    ],
)
def test_a_file_that_is_not_whole_or_not_as_it_was_kept_is_refused(
    damage: Callable[[Path], object], said: str, kept: Path, tmp_path: Path
) -> None:
    damage(kept)
    with pytest.raises(ConfigError, match=rf"mine\.image: {said}"):
        opened(kept, tmp_path)


def test_an_image_without_open_vswitch_says_so(image: Image, tmp_path: Path) -> None:
    del image.__dict__["openvswitch"]
    bare = Image(image.kernel, str(tmp_path / "nothing"), image.rulesets)
    bare.__dict__["common"] = image.common
    keep(bare, {}, tmp_path / "bare.image")
    with pytest.raises(MissingResource, match="the image that was kept has none"):
        _ = opened(tmp_path / "bare.image", tmp_path).openvswitch


def test_a_folder_that_cannot_be_written_is_said(image: Image, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the image cannot be written"):
        keep(image, {}, tmp_path / "nowhere" / "mine.image")
