"""What an emulated machine boots: a kernel's package, unpacked and not installed, with its modules; files of installed
packages; and the project's own scripts and program. The same bytes wherever the same versions are installed; its
identity is a hash of them."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.emulated import archive
from ctbench.dut.emulated.archive import Entry
from ctbench.dut.kernel import REMEDY, Kernel

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
#: Of Open vSwitch, besides ovs-vswitchd.
OVS_PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")
#: Compiles the guest's own programs; see docs/emulated.md for why this one.
COMPILER = "tcc"
#: Those that send and count, and wait for what is given.
OWN_PROGRAMS = ("traffic", "await")
#: What topologies may load (`use` in their scripts).
MODULES = (
    "veth", "bridge", "8021q", "bonding", "sch_ingress", "cls_matchall", "act_mirred",
    "nf_conntrack", "nf_conntrack_netlink", "nf_tables", "nft_ct", "nft_nat", "nft_chain_nat", "nft_masq",
    "nft_compat", "nft_flow_offload", "nf_flow_table_inet", "xt_conntrack", "xt_nat", "xt_MASQUERADE", "xt_tcpudp",
    "openvswitch", "tun", "dummy",
)  # fmt: skip
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


@dataclass(frozen=True)
class Image:
    """A kernel, and what all topologies have in common."""

    kernel: Kernel
    #: Where Open vSwitch is installed: `distribution`, or the folder that a build was configured with (--prefix).
    ovs: str = "distribution"
    #: The catalogue, with the topologies' scripts in `emulated`.
    rulesets: Path = RULESETS

    @cached_property
    def common(self) -> bytes:
        """The archive with the programs, the modules and the guest's own scripts. `MissingResource` names a program
        that is not installed."""
        entries = {name: archive.folder() for name in _FOLDERS}
        entries |= {name: archive.link(to) for name, to in _LINKS.items()}
        entries |= dict(_programs()) | dict(self._modules())
        entries |= {f"guest/{path.name}": archive.file(path.read_bytes()) for path in sorted(GUEST.glob("*.sh"))}
        entries["init"] = entries.pop("guest/init.sh")
        entries |= {f"guest/{name}": archive.file(compile_program(GUEST / f"{name}.c")) for name in OWN_PROGRAMS}
        return archive.pack(entries)

    @cached_property
    def identity(self) -> str:
        """Tells it from any other: a hash of the kernel, of what it boots, and of the topologies. Whatever can change a
        count makes another image; so does an Open vSwitch that is not there."""
        try:
            openvswitch = self.openvswitch
        except MissingResource:
            openvswitch = b""
        parts = (self.kernel_bytes, self.common, openvswitch, self.rules, self.scripts)
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]

    @property
    def kernel_bytes(self) -> bytes:
        return self.kernel.image.read_bytes()

    @cached_property
    def openvswitch(self) -> bytes:
        """The archive with Open vSwitch. `MissingResource` names a missing part."""
        schema = "share/openvswitch/vswitch.ovsschema"
        if self.ovs == "distribution":
            places = {name: find_program(name) for name in OVS_PROGRAMS}
            places |= {"ovs-vswitchd": Path("/usr/lib/openvswitch-switch/ovs-vswitchd"), schema: Path("/usr") / schema}
        else:
            folders = {name: "sbin" if name in ("ovsdb-server", "ovs-vswitchd") else "bin" for name in OVS_PROGRAMS}
            places = {name: Path(self.ovs) / folder / name for name, folder in folders.items()}
            places |= {"ovs-vswitchd": Path(self.ovs) / "sbin/ovs-vswitchd", schema: Path(self.ovs) / schema}
        if missing := [str(path) for path in places.values() if not path.is_file()]:
            raise MissingResource(f"This topology needs Open vSwitch, and {missing[0]} is missing.")
        entries = {"guest/vswitch.ovsschema": archive.file(places.pop(schema).read_bytes())}
        for library in {library for path in places.values() for library in _libraries(path)}:
            entries[_place(library)] = archive.file(library.read_bytes())
        entries |= {f"usr/sbin/{name}": archive.file(path.read_bytes()) for name, path in places.items()}
        return archive.pack(entries)

    @property
    def whole(self) -> bytes:
        """What a machine boots, whatever its topology: `common`, the rulesets, and Open vSwitch where there is one. The
        kernel unpacks one archive after the other."""
        with suppress(MissingResource):
            return self.common + self.rules + self.openvswitch
        return self.common + self.rules

    def topology(self, script: Path) -> bytes:
        """What a topology's script says. `MissingResource` where it needs an Open vSwitch that is not there."""
        if script.stem.startswith("ovs-"):
            _ = self.openvswitch
        return self.script(script)

    def script(self, path: Path) -> bytes:
        return path.read_bytes()

    @cached_property
    def scripts(self) -> bytes:
        paths = (self.rulesets / "emulated").glob("*.sh")
        return archive.pack({path.name: archive.file(path.read_bytes()) for path in paths})

    @cached_property
    def rules(self) -> bytes:
        """The archive with the rulesets of all families that topologies use."""
        return archive.pack(
            {
                f"guest/rulesets/{family}/{rules.name}": archive.file(rules.read_bytes())
                for family in ("iptables", "nftables", "ovs")
                for rules in (self.rulesets / family).glob("*.*")
                if rules.suffix != ".yaml"
            }
        )

    def _modules(self) -> Iterator[tuple[str, Entry]]:
        """The modules, and the list by which modprobe(8) knows what to load first."""
        folder = f"usr/lib/modules/{self.kernel.release}"
        needed = self.kernel.with_needed(MODULES)
        for name in sorted(needed):
            yield f"{folder}/{name}.ko", archive.file(self.kernel.read(name))
        lines = [f"{name}.ko: {' '.join(f'{each}.ko' for each in _before(name, needed))}\n" for name in sorted(needed)]
        yield f"{folder}/modules.dep", archive.file("".join(lines).encode())


def _before(name: str, needed: dict[str, list[str]]) -> list[str]:
    """All that a module needs, in the order of modules.dep(5): what is loaded first comes last."""
    order: list[str] = []

    def visit(one: str) -> None:
        for each in needed[one]:
            visit(each)
        if one not in order:
            order.append(one)

    visit(name)
    return order[-2::-1]


def find_program(name: str) -> Path:
    """Where a program is. `MissingResource` names its package."""
    package = PROGRAMS.get(name, name)
    found = shutil.which(name, path=PATH)
    if found is None:
        raise MissingResource(f"An emulated machine needs {name} (package {package}), which is missing; {REMEDY}.")
    return Path(found).resolve()


def _programs() -> Iterator[tuple[str, Entry]]:
    """The programs with the libraries that they load, and iptables' extensions."""
    files = [find_program(name) for name in PROGRAMS]
    extensions = sorted(path for path in _XTABLES.glob("lib*.so") if path.name.startswith(("libxt_", "libipt_")))
    for name, path in zip(PROGRAMS, files, strict=True):
        folder = "sbin" if "sbin" in str(shutil.which(name, path=PATH)) else "bin"
        yield f"usr/{folder}/{name}", archive.file(path.read_bytes())
    for path in extensions:
        yield _place(path), archive.file(path.read_bytes())
    for path in sorted({library for file in files for library in _libraries(file)}):
        yield _place(path), archive.file(path.read_bytes())


def _libraries(program: Path) -> list[Path]:
    """Libraries that a program loads when it starts, in the words of ldd(1); none of a static one."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False, timeout=30)
    return [Path(path) for path in re.findall(r"(/\S+)(?= \(0x)", said.stdout)]


def _place(path: Path) -> str:
    """The same place in the image, whose /lib is its /usr/lib."""
    name = str(path).lstrip("/")
    return name if name.startswith("usr/") else f"usr/{name}"


def compile_program(source: Path, how: str = "-static") -> bytes:
    """One of our own programs, or `-shared` objects. `MissingResource` where there is no compiler."""
    with tempfile.TemporaryDirectory(prefix="ctbench-") as folder:
        target = Path(folder) / source.stem
        argv = [str(find_program(COMPILER)), "-Wall", "-nostdlib", how, "-o", str(target), str(source)]
        said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if said.returncode or not target.exists():
            raise TestbedError(f"{source.name} could not be compiled with {COMPILER}: {said.stderr.strip()[-300:]}")
        return target.read_bytes()
