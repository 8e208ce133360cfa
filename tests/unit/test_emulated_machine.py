"""The emulated machine's process: what is missing is said, and what goes wrong is a sentence."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import YamlModel, load
from ctbench.dut.counting import Workload
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.dut import EmulatedDut, _boots
from ctbench.dut.emulated.image import Image, compile_traffic, find_program
from ctbench.dut.emulated.kind import EmulatedKind
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed

from .doctor_facts import xeon_facts

pytestmark = pytest.mark.unit

FORWARD = Topology(datapath="emulated", ruleset="forward")
BOOT = machine.Boot(Path(__file__), b"archive", 3)  # any file for a kernel


class Ending:
    """A QEMU that says something on the serial line and ends; its process is asked for the first time after `looks`."""

    def __init__(self, host: "QemuDouble", argv: Sequence[str], log: Path) -> None:
        (serial,) = (word.removeprefix("file:") for word in argv if word.startswith("file:"))
        self._serial = host.local_path(serial)
        assert host.local_path(argv[argv.index("-initrd") + 1]).read_bytes() == b"archive"
        assert host.local_path(argv[argv.index("-kernel") + 1]).read_bytes() == BOOT.kernel.read_bytes()
        self._host, self._left = host, host.looks
        self._serial.write_text(host.says)
        log.write_text(host.complains)
        host.running += 1
        host.most = max(host.most, host.running)
        self.pid = 1

    def is_running(self) -> bool:
        self._left -= 1
        return self._left > 0

    def stop(self, timeout: float = 5.0) -> int:
        self._host.running -= 1
        return self._host.status


class QemuDouble:
    """A host where QEMU runs, and how much memory is free there."""

    name = "double"

    def __init__(self, status: int = 0, says: str = "done\n", complains: str = "", free_kb: int = 2**22) -> None:
        self.status, self.says, self.complains, self.free_kb = status, says, complains, free_kb
        self.running = self.most = 0
        self.looks = 2

    def local_path(self, remote: str) -> Path:
        """Its /run is the folder for temporary files."""
        assert remote.startswith("/run")
        return Path(tempfile.gettempdir(), remote.removeprefix("/run").lstrip("/"))

    def start(self, argv: Sequence[str], *, log: Path) -> Ending:
        return Ending(self, argv, log)

    def read(self, remote: str) -> str:
        return f"MemTotal:  9 kB\nMemAvailable:   {self.free_kb} kB\n"

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        return Completed(tuple(argv), 0, "QEMU emulator version 7.2.22 (Debian)\n", "")


def boot(host: Any, count: int = 1, at_once: int = 2, longest_s: float = 60.0) -> list[machine.Ended]:
    return machine.boot_all(host, [BOOT] * count, at_once, longest_s)


def test_so_many_run_side_by_side_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    host = QemuDouble()
    assert [(each.said, each.trouble) for each in boot(host, 5)] == [("done\n", "")] * 5
    assert (host.most, host.running, list(tmp_path.iterdir())) == (2, 0, [])


def test_a_qemu_that_is_killed_or_complains_is_quoted() -> None:
    (ended,) = boot(QemuDouble(status=-9, complains="cannot set up guest memory\n"))
    assert ended.trouble == "QEMU ended with status -9: cannot set up guest memory"


def test_one_that_takes_too_long_is_stopped() -> None:
    host = QemuDouble()
    host.looks = 10**9
    (ended,) = boot(host, longest_s=0.0)
    assert (ended.trouble, host.running) == ("the emulated machine did not end within 0 s", 0)


def test_too_little_memory_is_said_before() -> None:
    host: Any = QemuDouble(free_kb=300 * 1024)
    with pytest.raises(MissingResource, match="needs 640 MB of memory, and 300 MB are available"):
        machine.fitting(host)
    more: Any = QemuDouble(free_kb=1300 * 1024)
    assert machine.fitting(more) == 2


def test_each_program_that_is_missing_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ctbench.dut.emulated.image._PATH", str(tmp_path))
    host: Any = QemuDouble()
    with pytest.raises(
        MissingResource, match=r"qemu-system-x86_64 \(package qemu-system-x86\).*\./run setup brings it"
    ):
        machine.version(host)
    with pytest.raises(MissingResource, match=r"needs nft \(package nftables\)"):
        find_program("nft")
    with pytest.raises(MissingResource, match=r"needs tcc \(package tcc\)"):
        compile_traffic()


def test_a_topology_with_several_cpus_is_more_than_there_is() -> None:
    config = EmulatedConfig(type="emulated", kernel="distribution", seeds=2)
    host: Any = QemuDouble()
    dut = EmulatedDut(config, host, xeon_facts().machine)
    with pytest.raises(MissingResource, match="an emulated machine has one of each"):
        dut.apply(FORWARD.model_copy(update={"cpus": 2}))
    with pytest.raises(ConfigError, match="is not a ruleset of an emulated machine"):
        dut.apply(FORWARD.model_copy(update={"ruleset": "nat"}))


def test_what_a_testbed_leaves_out_is_skipped_and_says_where_it_is_measured() -> None:
    left_out = ["iptables-dnat", "stream-10k"]
    config = EmulatedConfig(type="emulated", kernel="distribution", seeds=2, leave_out=left_out)
    host: Any = QemuDouble()
    dut = EmulatedDut(config, host, xeon_facts().machine)
    with pytest.raises(MissingResource, match=r"leaves it out.* TESTBED:emulated .* measures it"):
        dut.apply(FORWARD.model_copy(update={"ruleset": "iptables-dnat"}))
    dut._image = cast(Image, object())
    with pytest.raises(MissingResource, match="leaves it out"):
        dut.count([FORWARD], "stream-10k")


@pytest.mark.parametrize(
    ("rulesets", "workload", "boots"),
    [
        (("baseline", "forward"), "stream", "usual"),
        (("forward",), "removal", "usual"),
        (("baseline", "forward"), "stream-1k", "stream-1k"),
        (("baseline", "ovs-user-nat", "ovs-user-conntrack"), "udp", "waits"),
    ],
)
def test_all_that_are_compared_are_sent_to_in_the_same_way(
    rulesets: Sequence[str], workload: Workload, boots: str
) -> None:
    assert _boots([Topology(datapath="emulated", ruleset=each) for each in rulesets], workload) == boots


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("kernel", "vmlinuz", '"vmlinuz" is no kernel.'),
        ("ovs", "{prefix: opt}", '"opt" is no installation.'),
        ("seeds", "1", "seeds"),
        ("leave_out", "[nothing]", '"nothing" is neither a ruleset nor a workload'),
    ],
)
def test_a_mistake_in_its_settings_is_said(tmp_path: Path, key: str, value: str, said: str) -> None:
    class OneMachine(YamlModel):
        machine: EmulatedConfig

    keys = {"type": "emulated", "kernel": "distribution", "seeds": "2"} | {key: value}
    path = tmp_path / "one.yaml"
    path.write_text("machine:\n" + "".join(f"  {name}: {text}\n" for name, text in keys.items()))
    with pytest.raises(ConfigError, match=said):
        load("testbeds", path, OneMachine)


@pytest.mark.parametrize("key", ["kernel", "ovs"])
def test_a_path_that_does_not_exist_is_a_mistake(tmp_path: Path, key: str) -> None:
    named = str(tmp_path / "nothing")
    settings: Any = {"kernel": named} if key == "kernel" else {"kernel": "distribution", "ovs": {"prefix": named}}
    with pytest.raises(ConfigError, match=f"{key}.* is {named}, which does not exist"):
        EmulatedKind().require(EmulatedConfig(type="emulated", seeds=2, **settings))


@pytest.mark.parametrize("name", ["folder", "kernel.deb"])
def test_what_is_no_kernel_is_a_mistake_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("ctbench.dut.emulated.machine.shutil.which", lambda _name: "/usr/bin/it")
    named = tmp_path / name
    _ = named.mkdir() if name == "folder" else named.write_text("no package")
    host: Any = QemuDouble()
    dut = EmulatedDut(EmulatedConfig(type="emulated", kernel=str(named), seeds=2), host, xeon_facts().machine)
    with pytest.raises(ConfigError, match=str(named)):
        dut.apply(FORWARD)
    dut.restore()
    assert list(tmp_path.iterdir()) == [named]


def test_a_kernels_package_is_unpacked_in_the_sandboxs_own_memory_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    package, host = tmp_path / "k.deb", QemuDouble()
    package.write_text("a package")
    files: list[Path] = []

    def unpack(_package: Path, folder: Path) -> Path:
        files.append(folder)
        (folder / "boot").mkdir()
        (folder / "boot/vmlinuz-1.2").touch()
        (folder / "lib/modules/1.2").mkdir(parents=True)
        return folder

    monkeypatch.setattr("ctbench.dut.emulated.dut.unpack", unpack)
    config = EmulatedConfig(type="emulated", kernel=str(package), seeds=2)
    dut = EmulatedDut(config, host, xeon_facts().machine)  # type: ignore[arg-type]
    assert dut._kernel().release == "1.2"
    assert files[0].parent == host.local_path("/run")
    dut.restore()
    assert list(tmp_path.iterdir()) == [package]
