"""The kernel that an emulated machine boots: a package's files, unpacked and not installed."""

import lzma
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ctbench.base.errors import MissingResource
from ctbench.base.paths import ROOT
from ctbench.base.plain_text import one_line

#: Where `./run setup` unpacks the distribution's.
UNPACKED = ROOT / ".venv" / "emulated-kernel"
#: What to do where something is missing.
REMEDY = "./run setup brings it"
#: Of modules: as they are, and compressed as in Debian's newer kernels.
_ENDINGS = (".ko", ".ko.xz")
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True)
class Kernel:
    """A kernel and its modules."""

    image: Path
    modules: Path

    @property
    def release(self) -> str:
        """As its modules' folder is called: `6.1.0-56-cloud-amd64`."""
        return self.modules.name

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Modules by name, in which the kernel has no dashes."""
        return {
            path.name.partition(".")[0].replace("-", "_"): path
            for path in self.modules.rglob("*.ko*")
            if path.name.endswith(_ENDINGS)
        }

    def with_needed(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Modules and all that they need, each with what has to be loaded before it. Those that are not there are left
        out: a topology that asks for one says so when it is set up."""
        found: dict[str, list[str]] = {}
        waiting = [name for name in names if name in self._files]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self._needed_by(name)
                waiting += found[name]
        return found

    def read(self, name: str) -> bytes:
        """A module, as the kernel loads it."""
        data = self._files[name].read_bytes()
        return lzma.decompress(data) if self._files[name].suffix == ".xz" else data

    def _needed_by(self, name: str) -> list[str]:
        """What a module says that it needs, in its own words (modinfo(8))."""
        said = _DEPENDS.search(b"\0" + self.read(name))
        return [each.replace("-", "_") for each in said[1].decode().split(",") if each] if said else []


def unpack(package: Path, folder: Path) -> Path:
    """A kernel's package, unpacked into a folder and not installed. `MissingResource` where it is no package."""
    argv = ["dpkg-deb", "--extract", str(package), str(folder)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    if said.returncode:
        raise MissingResource(f"{package} is no kernel's package: {one_line(said.stderr.strip())[-200:]}")
    return folder


def find_kernel(folder: Path = UNPACKED) -> Kernel:
    """The kernel below a folder with `boot` and `lib/modules`, as a package has them. `MissingResource` where there is
    none, or several."""
    images = sorted((folder / "boot").glob("vmlinuz-*"))
    if len(images) != 1:
        raise MissingResource(
            f"An emulated machine needs a kernel: {folder}/boot has {len(images) or 'no'} file vmlinuz-*; {REMEDY}."
        )
    release = images[0].name.removeprefix("vmlinuz-")
    modules = next((found for up in ("lib", "usr/lib") if (found := folder / up / "modules" / release).is_dir()), None)
    if modules is None:
        raise MissingResource(
            f"An emulated machine needs its kernel's modules: {folder}/lib/modules/{release} is missing; {REMEDY}."
        )
    return Kernel(images[0], modules)
