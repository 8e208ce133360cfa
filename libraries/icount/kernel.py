"""The kernel that emulated machines boot: from a package, unpacked and not installed, from a folder with the layout of
a package, or a bzImage with its modules next to it. And the checks that find a damaged file."""

import lzma
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from icount.errors import Missing, one_line

#: Where `./run setup` unpacks the distribution's.
UNPACKED = Path(__file__).parents[2] / ".venv" / "emulated-kernel"
#: What to do where something is missing.
REMEDY = "./run setup brings it"
#: What topologies may load (`use` in their scripts).
MODULES = (
    "veth", "bridge", "8021q", "bonding", "sch_ingress", "cls_matchall", "act_mirred",
    "nf_conntrack", "nf_conntrack_netlink", "nf_tables", "nft_ct", "nft_nat", "nft_chain_nat", "nft_masq",
    "nft_compat", "nft_flow_offload", "nf_flow_table_inet", "xt_conntrack", "xt_nat", "xt_MASQUERADE", "xt_tcpudp",
    "openvswitch", "tun", "dummy",
)  # fmt: skip
#: Of modules: as they are, and compressed as in Debian's newer kernels.
_ENDINGS = (".ko", ".ko.xz")
#: Seconds that a package may take.
_UNPACK_S = 600
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path

    @property
    def release(self) -> str:
        """The release, which names the folder of the modules: `6.1.0-56-cloud-amd64`."""
        return self.modules.name

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The modules by name, with underscores for dashes, as in the kernel. Of two, one that can be read."""
        every = sorted(self.modules.rglob("*.ko*"), key=lambda path: path.name.endswith(_ENDINGS))
        return {_name_of(path): path for path in every}

    @property
    def built_in(self) -> list[str]:
        """Those of `MODULES` that are part of the kernel itself."""
        listed = self.modules / "modules.builtin"
        names = {_name_of(Path(line)) for line in listed.read_text().splitlines()} if listed.is_file() else set()
        return [name for name in MODULES if name in names]

    @cached_property
    def needed(self) -> dict[str, list[str]]:
        """`MODULES` and all that they need, each with the modules to load before it. Modules that the kernel lacks are
        left out: a topology that uses one reports it when it is set up. Raises `Missing` where one cannot be read."""
        found: dict[str, list[str]] = {}
        waiting = [name for name in MODULES if name in self._files]
        while waiting:
            name = waiting.pop()
            if name not in found:
                said = _DEPENDS.search(b"\0" + self.read(name))  # in a module's own words (modinfo(8))
                needed = said[1].decode().split(",") if said else []
                found[name] = [each.replace("-", "_") for each in needed if each]
                waiting += found[name]
        return found

    def read(self, name: str) -> bytes:
        """Return a module. Raise `Missing` where it is missing, damaged, or compressed in another way."""
        if name not in self._files:
            raise Missing(f"{self.modules} lacks the module {name}, which others need")
        path = self._files[name]
        if not path.name.endswith(_ENDINGS):
            raise Missing(f"{path} is neither as it was built nor compressed with xz")
        try:
            data = path.read_bytes()
            return lzma.decompress(data) if path.suffix == ".xz" else data
        except lzma.LZMAError:
            raise Missing(f"{path} was cut off or changed") from None


def _name_of(module: Path) -> str:
    return module.name.partition(".")[0].replace("-", "_")


def unpack_package(package: Path, folder: Path) -> Path:
    """Unpack a kernel's package into a folder, without installing it, and return the folder. Raise `Missing` where it
    is not a package, or dpkg-deb is not installed."""
    argv = ["dpkg-deb", "--extract", str(package), str(folder)]
    try:
        said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_UNPACK_S)
    except FileNotFoundError:
        raise Missing("a package is unpacked with dpkg-deb, which is not installed") from None
    except subprocess.TimeoutExpired:
        raise Missing(f"{package} does not unpack within {_UNPACK_S} s") from None
    if said.returncode:
        raise Missing(f"{package} does not unpack ({one_line(said.stderr.strip())[-200:]})")
    return folder


def find_kernel(folder: Path = UNPACKED) -> Kernel:
    """Return the kernel below a folder with `boot` and `lib/modules`, the layout of a package. Raise `Missing` where
    there is none, or several."""
    images, remedy = sorted((folder / "boot").glob("vmlinuz-*")), f"; {REMEDY}" if folder == UNPACKED else ""
    if len(images) != 1:
        raise Missing(
            f"An emulated machine needs a kernel: {folder}/boot has {len(images) or 'no'} file vmlinuz-*{remedy}."
        )
    release = images[0].name.removeprefix("vmlinuz-")
    modules = next((found for up in ("lib", "usr/lib") if (found := folder / up / "modules" / release).is_dir()), None)
    if modules is None:
        raise Missing(
            f"An emulated machine needs its kernel's modules: {folder}/lib/modules/{release} is missing{remedy}."
        )
    return Kernel(images[0], modules)


#: In the header of a bzImage (boot protocol 2.00 and later, Documentation/arch/x86/boot.rst): what tells it, where the
#: text begins that its release stands at the head of (from 0x200 on), the number of sectors before the kernel itself
#: without the first one (0: 4), and its length in 16 bytes.
_MAGIC, _MAGIC_AT, _VERSION_AT, _SECTORS_AT, _LENGTH_AT = b"HdrS", 0x202, 0x20E, 0x1F1, 0x1F4
#: Bytes that a header and the text are within.
_HEAD = 0x10000


def open_kernel(named: Path, folder: Path) -> Kernel:
    """Return the kernel that a user named: a package (.deb), which is unpacked into `folder`; a folder with the layout
    of a package; or a bzImage with its modules next to it. Raise `Missing`, which says what is wrong with it."""
    if named.suffix == ".deb":
        require_file(named)
        return find_kernel(unpack_package(named, folder))
    if named.is_dir():
        return find_kernel(named)
    release = read_release(named)
    places = [up / "lib/modules" / release for up in (named.parent, named.parent.parent, Path("/"))]
    modules = next((each for each in places if each.is_dir()), None)
    if modules is None:
        raise Missing(
            f"the modules of {named} are not found: expected them in {places[0]} or {places[1]}, where `make "
            "modules_install INSTALL_MOD_PATH=...` puts them"
        )
    return Kernel(named, modules)


def check_kernel(named: Path) -> str:
    """Return the release of a kernel that a user named, after a check of its files, modules included. Raise `Missing`,
    which says what is wrong."""
    with tempfile.TemporaryDirectory(prefix="icount-kernel-") as folder:
        try:
            kernel = open_kernel(named, Path(folder))
            require_bootable(kernel.image)
            _ = kernel.needed
        except Missing as error:
            raise Missing(str(error).replace(folder, str(named))) from None
        return kernel.release


def require_file(path: Path) -> None:
    """Raise `Missing` where a file does not exist or is empty."""
    if not path.is_file():
        raise Missing(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    if not path.stat().st_size:
        raise Missing(f"{path} is empty")


def require_bootable(image: Path) -> bytes:
    """Raise `Missing` where a file is not a complete bzImage, nor an ELF file, EFI application or gzip file as other
    processors have it. Return its header."""
    require_file(image)
    try:
        with image.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise Missing(f"{image} cannot be read ({error.strerror})") from None
    if head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC:
        (sixteens,) = struct.unpack_from("<I", head, _LENGTH_AT)
        size, whole = image.stat().st_size, ((head[_SECTORS_AT] or 4) + 1) * 512 + sixteens * 16
        if size < whole:
            raise Missing(f"{image} was cut off: {size} bytes of at least {whole}")
    elif head[:4] != b"\x7fELF" and head[:2] not in (b"MZ", b"\x1f\x8b"):
        raise Missing(f"{image} is not a kernel (bzImage or ELF)")
    return head


def read_release(image: Path) -> str:
    """Return the release that a bzImage names in its header: `6.1.0-56-cloud-amd64`. Raise `Missing` where it is not
    one."""
    head = require_bootable(image)
    if head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise Missing(f"{image} is not a bzImage")
    at = int.from_bytes(head[_VERSION_AT : _VERSION_AT + 2], "little") + 0x200
    release = head[at : at + 200].partition(b"\0")[0].partition(b" ")[0].decode(errors="replace")
    if not release.isprintable() or not release or "/" in release:
        raise Missing(f"the header of {image} names no release")
    return release
