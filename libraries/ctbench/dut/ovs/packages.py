"""Packages of Open vSwitch as a build: unpacked, not installed, and laid over /usr in the mounts of a sandbox. There
every file is at the place that it was built for: libraries, DPDK's drivers, the database's schema.

They are unpacked once, into a folder that is named by their content.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.paths import cache_folder
from ctbench.base.text import one_line
from ctbench.hosts.base import Host

#: What they say of themselves once they are unpacked.
_LIST = "packages.json"
#: Folders of packages that are laid over those of the same name.
_OVER = ("usr", "opt")
#: Where packages have ovs-vswitchd: other files of that name are pages of the manual, and services.
_PLACES = ("sbin", "bin", "openvswitch-switch", "openvswitch-switch-dpdk")
#: Characters of the name of a folder in the cache.
_NO_NAME = re.compile(r"[^A-Za-z0-9.+~_-]")
#: What unpacks package $1 into folder $2: the programs that it takes, and the script.
_WAYS = {
    ".deb": [("dpkg-deb", 'dpkg-deb --extract "$1" "$2"')],
    ".rpm": [
        ("bsdtar", 'bsdtar -x -f "$1" -C "$2"'),
        ("rpm2cpio cpio", 'cd "$2" && rpm2cpio "$1" > .cpio && cpio -idm --quiet < .cpio && rm .cpio'),
    ],
}
#: Seconds that a package may take to be unpacked.
_TIMEOUT_S = 120
#: Programs of this machine that are used next to those of the packages.
_PROGRAMS = (("ls", "-d", "/usr"), ("grep", "-V"), ("bash", "-c", "ldd --version"), ("ip", "-V"))
#: The loader of Debian and Ubuntu does not look where RPMs have their libraries; this cache of it names those, too.
_LIB64 = """
cd /run && { echo /usr/lib64; echo include /etc/ld.so.conf; } > lib64.conf &&
ldconfig -X -f lib64.conf -C lib64.cache 2> /dev/null && mount -n --bind lib64.cache /etc/ld.so.cache
"""
#: What to do about packages of another distribution, and where that is told.
ELSEWHERE = "or run the gate in a container of their Debian or Ubuntu, or build it on this system (docs/gate.md)"


@dataclass(frozen=True)
class Packages:
    """A set of packages that is unpacked."""

    #: Where: absolute, with `usr` below it.
    folder: str
    #: Where ovs-vswitchd is once they are laid over this machine's: `/usr/lib/openvswitch-switch-dpdk/…`.
    vswitchd: str
    #: Each with its version: `openvswitch-switch-dpdk 3.1.0-2+deb12u1`; that with ovs-vswitchd first.
    names: tuple[str, ...]

    @classmethod
    def read(cls, folder: str) -> "Packages | None":
        """Return the packages that `unpack` unpacked to a folder; None for any other folder."""
        try:
            said = json.loads((Path(folder) / _LIST).read_text(encoding="utf-8"))
            return cls(folder, str(said["vswitchd"]), tuple(said["names"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def prefix(self) -> str:
        """Prefix of the tools and the schema."""
        above = Path(self.vswitchd).parent
        return str(above.parent) if above.name == "sbin" else "/usr"

    def lay_over(self, sandbox: Host) -> None:
        """Mount the packages over the installed files in a sandbox, once; nothing outside of it sees them. Raise
        `MissingResource` where this machine's kernel does not allow that, or its programs do not run with them."""
        for name in filter(lambda each: (Path(self.folder) / each).is_dir(), _OVER):
            source = f"ctbench-{Path(self.folder).name}"
            if f"{source} /{name} " in sandbox.run(["cat", "/proc/mounts"]).stdout:
                continue
            upper = re.sub(r"([\\:,])", r"\\\1", f"{self.folder}/{name}")
            argv = ["mount", "-n", "-t", "overlay", "-o", f"ro,lowerdir={upper}:/{name}", source, f"/{name}"]
            done = sandbox.run(argv, check=False)
            if done.exit_status:
                raise MissingResource(
                    f"Packages cannot be laid over /{name} in a sandbox ({one_line(done.stderr.strip())[-120:]}): "
                    "overlayfs in a user namespace needs Linux 5.11; else install a build of your own (--prefix)."
                )
            self._require_programs(sandbox)
            if name == "usr" and any((Path(self.folder) / "usr/lib64").glob("lib*.so*")):
                sandbox.run(["sh", "-c", _LIB64], check=False)
                self._require_programs(sandbox)

    def _require_programs(self, sandbox: Host) -> None:
        """Raise `MissingResource` where this machine's programs do not start with the packages' libraries: those of a
        newer system need its C library as well."""
        for argv in _PROGRAMS:
            done = sandbox.run(argv, check=False)
            if done.exit_status != 0:
                raise MissingResource(
                    f"With the libraries that came with {self.names[0]}, programs of this machine do not start "
                    f"({one_line(done.stderr.strip())[-200:]}): put all that they depend on into the folder, their C "
                    f"library (libc6) as well, {ELSEWHERE}."
                )


def unpack(given: Path) -> Path:
    """Return where a folder of packages, or one package, is unpacked; any other folder as it is. Raise `ConfigError`
    for packages that are not of Open vSwitch, cut off or unreadable, `MissingResource` where this machine has no
    program that unpacks them."""
    try:
        found = [given] if given.is_file() else sorted(given.iterdir()) if given.is_dir() else []
        packages = [each for each in found if each.suffix in _WAYS and each.is_file()]
        digests = [each.name.encode() + hashlib.sha256(each.read_bytes()).digest() for each in packages]
    except OSError as error:
        raise ConfigError(f"{given}: {error.strerror}.\n  Expected a build that you may read.") from None
    if not packages:
        if given.is_file() or (given.is_dir() and not found):
            raise ConfigError(
                f"{given}: {'is not a package' if found else 'is an empty folder'}.\n  Expected packages of Open "
                "vSwitch (.deb or .rpm), or the folder that a build was configured with (--prefix) and installed to."
            )
        return given
    cache, key = cache_folder("packages"), hashlib.sha256(b"".join(digests)).hexdigest()[:12]
    if known := next((each for each in cache.glob(f"*-{key}") if (each / _LIST).is_file()), None):
        return known
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".unpacking-") as name:
        fresh = Path(name) / "fresh"
        vswitchd, names = _unpack_all(given, packages, fresh)
        said = {"vswitchd": f"/{vswitchd.relative_to(fresh)}", "names": names}
        (fresh / _LIST).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        target = cache / f"{_NO_NAME.sub('_', names[0])}-{key}"
        with suppress(OSError):  # another process was faster
            fresh.rename(target)
    return target


def _unpack_all(given: Path, packages: Sequence[Path], target: Path) -> tuple[Path, list[str]]:
    """Unpack packages. Return their ovs-vswitchd, and the name of each package, the one with ovs-vswitchd first."""
    vswitchd: Path | None = None
    names: list[str] = []
    target.mkdir()
    for package in packages:
        before = _daemons(target)
        _unpack_one(package, target)
        new = [each for each in _daemons(target) if each not in before]
        # Of Debian's two, which are in packages of their own, that with DPDK.
        if new and (vswitchd is None or _with_dpdk(new[-1]) >= _with_dpdk(vswitchd)):
            vswitchd, names = new[-1], [_name(package), *names]
        else:
            names.append(_name(package))
    if vswitchd is None:
        raise ConfigError(
            f"{given}: there is no ovs-vswitchd in {', '.join(names)}.\n  Expected the packages of Open vSwitch with "
            "DPDK: on Debian and Ubuntu openvswitch-switch-dpdk, openvswitch-switch and openvswitch-common."
        )
    return vswitchd, names


def _daemons(folder: Path) -> list[Path]:
    """Return the files ovs-vswitchd in packages, that with DPDK last."""
    every = [each for top in _OVER for each in (folder / top).rglob("ovs-vswitchd*") if each.parent.name in _PLACES]
    programs = (each for each in every if each.is_file() and not each.is_symlink() and each.suffix != ".debug")
    return sorted(programs, key=_with_dpdk)


def _with_dpdk(vswitchd: Path) -> bool:
    return "dpdk" in f"{vswitchd.parent.name}/{vswitchd.name}" and "nodpdk" not in vswitchd.name


def _unpack_one(package: Path, target: Path) -> None:
    ways = _WAYS[package.suffix]
    script = next((way for programs, way in ways if all(map(shutil.which, programs.split()))), "")
    if not script:
        names = " or with ".join(" and ".join(programs.split()) for programs, _ in ways)
        raise MissingResource(f"{package}: is unpacked with {names}, which is not installed.")
    argv = ["sh", "-c", script, "sh", str(package), str(target)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        why = one_line(done.stderr.strip())[-200:] or "no reason given" if done.returncode else ""
    except subprocess.TimeoutExpired:
        why = f"it takes longer than {_TIMEOUT_S} s"
    if why:
        raise ConfigError(f"{package}: does not unpack ({why}).\n  Expected a whole package; download it again.")
    for name in ("lib", "lib64"):  # of before /usr was merged
        if (target / name).is_dir():
            shutil.copytree(target / name, target / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(target / name)


def _name(package: Path) -> str:
    """Return the name and the version of a package, for an RPM from its file's name."""
    if package.suffix == ".deb":
        argv = ["dpkg-deb", "--showformat=${Package} ${Version}", "--show", str(package)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        if done.returncode == 0:
            return done.stdout.strip()
    return package.stem
