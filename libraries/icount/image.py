"""The image that an emulated machine boots: a kernel's package, unpacked and not installed, with its modules; files of
installed packages; and the project's own scripts and programs. Its bytes are the same wherever the same versions are
installed; its identity is a hash of them."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from icount.errors import IcountError, Invalid, Missing
from icount.kernel import REMEDY, Kernel, require_file

GUEST = Path(__file__).parent / "guest"
#: Program -> the package that has it.
PROGRAMS = {
    "busybox": "busybox-static",
    "dash": "dash",
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
    "xtables-nft-multi": "iptables",
    "nft": "nftables",
    "conntrack": "conntrack",
}
#: Of Open vSwitch, besides its daemons; and where Debian and Ubuntu have the daemon without DPDK.
OVS_TOOLS = ("ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")
_DISTRIBUTION_VSWITCHD = "lib/openvswitch-switch/ovs-vswitchd"
QEMU = "qemu-system-x86_64"
#: Compiles the guest's own programs; see docs/emulated.md for why this one.
COMPILER = "tcc"
#: Those that send and count, and wait for what is given.
OWN_PROGRAMS = ("traffic", "await")
#: Where programs look, and where an ordinary user's PATH does not.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LINKS = {
    "bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64",
    "usr/sbin/modprobe": "/usr/bin/busybox", "usr/sbin/iptables": "xtables-nft-multi",
    "usr/sbin/iptables-restore": "xtables-nft-multi",
}  # fmt: skip
#: Where iptables finds its extensions, on Debian and Ubuntu.
_XTABLES = Path("/usr/lib/x86_64-linux-gnu/xtables")
_FOLDERS = ("dev", "proc", "sys", "run", "tmp")


#: What the parts of an image are called in the file that keeps it.
_KERNEL, _COMMON, _OPENVSWITCH, _RULES, _SCRIPTS = (
    "kernel", "common.cpio", "openvswitch.cpio", "rules.cpio", "scripts.cpio",
)  # fmt: skip
_PARTS = (_KERNEL, _COMMON, _OPENVSWITCH, _RULES, _SCRIPTS)


@dataclass(frozen=True)
class Image:
    """A kernel, and the archives that all topologies share."""

    #: Of the kernel: `6.1.0-56-cloud-amd64`.
    release: str
    #: The kernel, and archives: programs, modules and the guest's own scripts; Open vSwitch, where there is one; the
    #: rulesets of all families that topologies use; the topologies' scripts.
    parts: Mapping[str, bytes]
    #: Versions of the packages that its programs are of.
    packages: Mapping[str, str]
    #: Why it has no Open vSwitch, one sentence.
    without: str = "This topology needs Open vSwitch, and the image that was kept has none."

    @cached_property
    def identity(self) -> str:
        """The identity of the image: a hash of the kernel, of what it boots, and of the topologies. Everything that can
        change a count makes another image, a missing Open vSwitch included."""
        hashes = (hashlib.sha256(self.parts.get(name, b"")).digest() for name in _PARTS)
        return hashlib.sha256(b"".join(hashes)).hexdigest()[:16]

    @property
    def whole(self) -> bytes:
        """The archives that a machine boots, whatever its topology. The kernel unpacks one after the other."""
        return self.parts[_COMMON] + self.parts[_RULES] + self.parts.get(_OPENVSWITCH, b"")

    @property
    def kernel(self) -> bytes:
        return self.parts[_KERNEL]

    def topology(self, name: str) -> bytes:
        """Return the script of a topology, as it was when the image was made. Raise `Missing` where there was none, or
        where it needs an Open vSwitch that the image lacks."""
        if name.startswith("ovs-") and _OPENVSWITCH not in self.parts:
            raise Missing(self.without)
        found = unpack(self.parts[_SCRIPTS]).get(f"/{name}.sh")
        if found is None:
            raise Missing(f"The image that was kept has no topology {name}: it is newer.")
        return found

    def with_openvswitch(self, ovs: str) -> "Image":
        """Return this image with the Open vSwitch of an installation: `distribution`, or the folder that a build was
        configured with (--prefix). Where a part of it is missing, the image has none, and `without` says why."""
        parts = {name: data for name, data in self.parts.items() if name != _OPENVSWITCH}
        try:
            return replace(self, parts=parts | {_OPENVSWITCH: _openvswitch(ovs)})
        except Missing as error:
            return replace(self, parts=parts, without=str(error))


def make_image(
    kernel: Kernel, rulesets: Path, ovs: str = "distribution", packages: Mapping[str, str] | None = None
) -> Image:
    """Make an image of what is installed. `rulesets`: the catalogue, with the topologies' scripts in `emulated`. Raise
    `Missing`, which names a missing program."""
    rules = {
        f"guest/rulesets/{family}/{file.name}": file.read_bytes()
        for family in ("iptables", "nftables", "ovs")
        for file in (rulesets / family).glob("*.*")
        if file.suffix != ".yaml"
    }
    scripts = {path.name: path.read_bytes() for path in (rulesets / "emulated").glob("*.sh")}
    parts = {
        _KERNEL: kernel.image.read_bytes(), _COMMON: _common(kernel), _RULES: pack(rules), _SCRIPTS: pack(scripts),
    }  # fmt: skip
    return Image(kernel.release, parts, packages or {}).with_openvswitch(ovs)


def _common(kernel: Kernel) -> bytes:
    entries: dict[str, bytes | str | None] = {**dict.fromkeys(_FOLDERS), **_LINKS, **dict(_programs())}
    entries |= dict(_modules(kernel))
    entries |= {f"guest/{path.name}": path.read_bytes() for path in GUEST.glob("*.sh")}
    entries["init"] = entries.pop("guest/init.sh")
    return pack(entries | {f"guest/{name}": compile_program(GUEST / f"{name}.c") for name in OWN_PROGRAMS})


def _openvswitch(ovs: str) -> bytes:
    """Return the archive with Open vSwitch. Raise `Missing`, which names a missing part."""
    prefix = Path("/usr" if ovs == "distribution" else ovs)
    programs = {name: prefix / "bin" / name for name in OVS_TOOLS}
    programs["ovsdb-server"] = prefix / "sbin" / "ovsdb-server"
    programs["ovs-vswitchd"] = prefix / (_DISTRIBUTION_VSWITCHD if prefix == Path("/usr") else "sbin/ovs-vswitchd")
    schema = prefix / "share" / "openvswitch" / "vswitch.ovsschema"
    if missing := [path for path in (*programs.values(), schema) if not path.is_file()]:
        raise Missing(f"This topology needs Open vSwitch, and {missing[0]} is missing.")
    libraries = {library for program in programs.values() for library in _libraries(program)}
    entries: dict[str, bytes | str | None] = {"guest/vswitch.ovsschema": schema.read_bytes()}
    places = {_place(library): library for library in libraries}
    entries |= {place: library.read_bytes() for place, library in places.items()}
    # Programs that do not name the folder of a library find it by ldconfig's list, or in /usr/lib, as here.
    entries |= {
        f"usr/lib/{library.name}": f"/{place}" for place, library in places.items() if not place.startswith("usr/lib")
    }
    entries |= {f"usr/sbin/{name}": path.read_bytes() for name, path in programs.items()}
    return pack(entries)


def _modules(kernel: Kernel) -> Iterator[tuple[str, bytes]]:
    """Yield the modules, and the lists by which modprobe(8) finds what to load first, and what is no module."""
    folder = f"usr/lib/modules/{kernel.release}"
    needed = kernel.needed
    for name in needed:
        yield f"{folder}/{name}.ko", kernel.read(name)
    lines = [f"{name}.ko: {' '.join(f'{each}.ko' for each in _before(name, needed))}\n" for name in sorted(needed)]
    yield f"{folder}/modules.dep", "".join(lines).encode()
    if built_in := [f"kernel/{name}.ko\n" for name in kernel.built_in]:
        yield f"{folder}/modules.builtin", "".join(built_in).encode()


def _before(name: str, needed: dict[str, list[str]]) -> list[str]:
    """Return all modules that a module needs, in the order of modules.dep(5): the first one to load comes last."""
    order: list[str] = []

    def visit(one: str) -> None:
        for each in needed[one]:
            visit(each)
        if one not in order:
            order.append(one)

    visit(name)
    return order[-2::-1]


def find_program(name: str) -> Path:
    """Return the path of a program. Raise `Missing`, which names its package."""
    package = PROGRAMS.get(name, name)
    found = shutil.which(name, path=PATH)
    if found is None:
        raise Missing(f"An emulated machine needs {name} (package {package}), which is missing; {REMEDY}.")
    return Path(found).resolve()


def missing_programs() -> list[str]:
    """Return the programs that an emulated machine needs and that are not installed."""
    return [name for name in (QEMU, COMPILER, *PROGRAMS) if shutil.which(name, path=PATH) is None]


def _programs() -> Iterator[tuple[str, bytes]]:
    """Yield the programs, the libraries that they load, and the extensions of iptables."""
    files = {name: find_program(name) for name in PROGRAMS}
    for name, path in files.items():
        folder = "sbin" if "sbin" in str(shutil.which(name, path=PATH)) else "bin"
        yield f"usr/{folder}/{name}", path.read_bytes()
    libraries = {library for file in files.values() for library in _libraries(file)}
    for path in {*_XTABLES.glob("libxt_*.so"), *_XTABLES.glob("libipt_*.so"), *libraries}:
        yield _place(path), path.read_bytes()


def _libraries(program: Path) -> list[Path]:
    """Return the libraries that a program loads when it starts, by the output of ldd(1); empty for a static one."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return [Path(path) for path in re.findall(r"(/\S+)(?= \(0x)", said.stdout)]


def _place(path: Path) -> str:
    """Return the place of a file in the image, whose /lib is its /usr/lib. Any other is where it is on this host:
    programs of a build have the folder of its libraries in them."""
    name = str(path).lstrip("/")
    return f"usr/{name}" if name.startswith(("lib/", "lib64/")) else name


def compile_program(source: Path, compiler: str = COMPILER, *how: str) -> bytes:
    """Compile one of our own programs, by default a static one. Raise `Missing` where there is no compiler,
    `IcountError` where it fails."""
    with tempfile.TemporaryDirectory(prefix="ctbench-") as folder:
        target = Path(folder) / source.stem
        argv = [str(find_program(compiler)), "-Wall", "-nostdlib", *(how or ["-static"])]
        argv += ["-o", str(target), str(source)]
        said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if said.returncode or not target.exists():
            raise IcountError(f"{source.name} could not be compiled with {compiler}: {said.stderr.strip()[-300:]}")
        return target.read_bytes()


def pack(entries: Mapping[str, bytes | str | None]) -> bytes:
    """Return an archive for the kernel to boot from: cpio in the format newc, the same bytes for the same entries. An
    entry is a file (its content), a link (its target) or a folder (None). Names are sorted, with the folders above
    them, and numbered from 1; the owner is root, and there is no date."""
    above = (str(path) for name in entries for path in PurePosixPath(name).parents[:-1])
    every = dict.fromkeys(above) | dict(entries)
    packed = bytearray()
    for number, name in enumerate(sorted(every), 1):
        match every[name]:
            case None:
                packed += _record(number, name, stat.S_IFDIR | 0o755, b"")
            case str(to):
                packed += _record(number, name, stat.S_IFLNK | 0o777, to.encode())
            case bytes(data):
                packed += _record(number, name, stat.S_IFREG | 0o755, data)
    return bytes(packed + _record(0, "TRAILER!!!", 0, b""))


def _record(number: int, name: str, mode: int, data: bytes) -> bytes:
    """Return the record of one file: its header of 13 numbers with its name, and its data, each padded to four bytes
    (initramfs-buffer-format in the kernel's documentation)."""
    numbers = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name.encode()) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % value for value in numbers) + name.encode() + b"\0"
    return b"".join(part + b"\0" * (-len(part) % 4) for part in (header, data))


def unpack(packed: bytes) -> dict[str, bytes]:
    """Return the files of consecutive archives, by their path in the machine: `/usr/sbin/ovs-vswitchd`."""
    found, at = {}, 0
    while packed[at : at + 6] == b"070701":
        data_length, name_length = (int(packed[at + begin : at + begin + 8], 16) for begin in (54, 94))
        name = packed[at + 110 : at + 110 + name_length - 1].decode()
        data = at + 110 + name_length + -(110 + name_length) % 4
        found[f"/{name}"] = packed[data : data + data_length]
        at = data + data_length + -data_length % 4
    return found


#: Stands first in the file that keeps an image, a packed tar with its parts.
_LIST = "list.json"
#: What the parts are: another one is of a machine that is set up in another way.
_FORMAT = 2
_REMEDY = "Expected a file that icount --keep-image wrote, whole and unchanged."


def keep(image: Image, target: Path) -> None:
    """Write an image to a file, which appears when it is complete. Figures hold for the image that they were counted
    in, and the packages of a distribution change. The same image makes the same bytes. Raise `OSError` where the file
    cannot be written."""
    listed = {"format": _FORMAT, "identity": image.identity, "release": image.release, "packages": image.packages}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in {_LIST: json.dumps(listed, indent=1).encode(), **image.parts}.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    part = target.with_name(f".{target.name}-{os.getpid()}.part")
    try:
        part.write_bytes(gzip.compress(packed.getvalue(), 6, mtime=0))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def open_kept(path: Path, ovs: str = "distribution") -> Image:
    """Read a file that `keep` wrote. `ovs`: an installation that replaces the kept one. Raise `Invalid` where the file
    is not complete, or differs from what was written, as its identity shows."""
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise Invalid(f"{path}: cannot be read ({error.strerror}).\n  {_REMEDY}") from None
    try:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
            parts = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        listed = json.loads(parts.pop(_LIST))
        ours = listed["format"] == _FORMAT
        kept = Image(str(listed["release"]), parts, dict(listed["packages"]))
        if ours and not ({*_PARTS} - {_OPENVSWITCH} <= {*parts} <= {*_PARTS} and kept.identity == listed["identity"]):
            raise ValueError
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError):
        broken = "is not an image of an emulated machine, or was cut off or changed"
        raise Invalid(f"{path}: {broken}.\n  {_REMEDY}") from None
    if not ours:
        raise Invalid(
            f"{path}: was kept by another version of this project, which sets its machines up in another way.\n"
            "  Expected one that this version kept: icount --keep-image writes it."
        )
    return kept if ovs == "distribution" else kept.with_openvswitch(ovs)


def check_image(path: Path) -> str:
    """Return the kernel's release of a file that `keep` wrote, after a check of all of it. Raise `Missing` where there
    is no file, `Invalid` where it is not as it was written."""
    require_file(path)
    return open_kept(path).release
