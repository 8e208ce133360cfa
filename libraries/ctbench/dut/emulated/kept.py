"""An image that is kept as a file: a distribution moves on, and figures hold for what they were counted in.

The file is a packed tar: what a machine boots, and a list of it with checksums (`list.json`), which stands first.
"""

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource, OutputError
from ctbench.dut.emulated.archive import unpack
from ctbench.dut.emulated.image import Image
from ctbench.dut.kernel import Kernel

_LIST, _KERNEL, _OPENVSWITCH = "list.json", "kernel", "openvswitch.cpio"
_COMMON, _RULES, _SCRIPTS = "common.cpio", "rules.cpio", "scripts.cpio"
_ALWAYS = {_KERNEL, _COMMON, _RULES, _SCRIPTS}
#: What the parts are: another one is of a machine that is set up in another way.
_FORMAT = 2
_REMEDY = "Expected a file that ./run calibrate --keep-image wrote, whole and unchanged."


def keep(image: Image, packages: Mapping[str, str], target: Path) -> None:
    """Write an image to a file, which appears when it is complete. Open vSwitch is in it where it is installed. The
    same image makes the same bytes. `OutputError` where the file cannot be written."""
    parts = {_KERNEL: image.kernel_bytes, _COMMON: image.common, _RULES: image.rules, _SCRIPTS: image.scripts}
    with suppress(MissingResource):
        parts[_OPENVSWITCH] = image.openvswitch
    listed = {
        "format": _FORMAT,
        "identity": image.identity,
        "release": image.kernel.release,
        "packages": dict(packages),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    part = target.with_name(f".{target.name}.part")
    try:
        with (
            part.open("wb") as file,
            gzip.GzipFile("", "wb", 6, file, 0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
        ):
            for name, data in {_LIST: json.dumps(listed, indent=1).encode(), **parts}.items():
                header = tarfile.TarInfo(name)
                header.size = len(data)
                tar.addfile(header, io.BytesIO(data))
        part.replace(target)
    except OSError as error:
        raise OutputError(f"{target}: the image cannot be written ({error.strerror}).") from None
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True)
class KeptImage(Image):
    """An image from a file: the same identity as that which was kept."""

    parts: Mapping[str, bytes] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def common(self) -> bytes:
        return self.parts[_COMMON]

    @cached_property
    def rules(self) -> bytes:
        return self.parts[_RULES]

    @cached_property
    def scripts(self) -> bytes:
        return self.parts[_SCRIPTS]

    def script(self, path: Path) -> bytes:
        """As it was when the image was kept. `MissingResource` where there was none."""
        found = unpack(self.scripts).get(f"/{path.name}")
        if found is None:
            raise MissingResource(f"The image that was kept has no topology {path.stem}: it is newer.")
        return found

    @cached_property
    def openvswitch(self) -> bytes:
        """That of the file, unless another installation is named."""
        if self.ovs != "distribution":
            return super().openvswitch
        if _OPENVSWITCH not in self.parts:
            raise MissingResource("This topology needs Open vSwitch, and the image that was kept has none.")
        return self.parts[_OPENVSWITCH]


def open_kept(path: Path, folder: Path, ovs: str = "distribution") -> KeptImage:
    """Read a file that `keep` wrote; its kernel is put into `folder`. `ovs`: an installation in the place of the one
    that was kept. `ConfigError` where the file is not whole, or not as it was written."""
    listed, parts = _read(path)
    if listed.get("format") != _FORMAT:
        raise ConfigError(
            f"{path}: was kept by another version of this project, which sets its machines up in another way.\n"
            "  Expected one that this version kept: ./run calibrate --keep-image writes it."
        )
    (folder / _KERNEL).write_bytes(parts[_KERNEL])
    kernel = Kernel(folder / _KERNEL, Path(str(listed["release"])))
    kept = KeptImage(kernel, parts=parts, packages=listed["packages"])
    if kept.identity != listed["identity"]:
        raise ConfigError(f"{path}: is not the image that it says it is.\n  {_REMEDY}")
    return kept if ovs == "distribution" else replace(kept, ovs=ovs)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What is listed, and the parts, each as it was written."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).\n  {_REMEDY}") from None
    try:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
            found = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        listed = json.loads(found.pop(_LIST))
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
        if not (isinstance(listed["packages"], dict) and set(found) >= _ALWAYS and listed["sha256"] == sums):
            raise ValueError
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError):
        broken = "is not an image of an emulated machine, or was cut off or changed"
        raise ConfigError(f"{path}: {broken}.\n  {_REMEDY}") from None
    return listed, found
