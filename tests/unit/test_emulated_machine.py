"""The emulated machine's process: what is missing is said, and what goes wrong is a sentence."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import YamlModel, load
from ctbench.dut.counting import Workload
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.dut import EmulatedDut, _workloads
from ctbench.dut.emulated.image import GUEST, Image, compile_program, find_program
from ctbench.dut.emulated.kind import EmulatedKind
from ctbench.dut.emulated.states import States
from ctbench.dut.topology import Topology

from .doctor_facts import xeon_facts
from .qemu_double import MonitorDouble, QemuDouble

pytestmark = pytest.mark.unit

FORWARD = Topology(datapath="emulated", ruleset="forward")
START = machine.Start("/run/kernel", "/run/1.state", b"given")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    """A host whose machines wait to be started, and end."""
    made = QemuDouble()
    monkeypatch.setattr("ctbench.dut.emulated.machine.Monitor", lambda _path: MonitorDouble(made))
    return made


def run(host: Any, count: int = 1, at_once: int = 2, longest_s: float = 60.0) -> list[machine.Ended]:
    return machine.run_all(host, [START] * count, at_once, longest_s)


def test_so_many_run_side_by_side_and_nothing_is_left(
    host: QemuDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert [(each.said, each.trouble, each.told) for each in run(host, 5)] == [("done\n", "", True)] * 5
    assert (host.most, host.running, list(tmp_path.iterdir())) == (2, 0, [])
    assert host.given == [b"given"] * 5
    assert host.asked.count("cont") == 5


def test_a_qemu_that_is_killed_or_complains_is_quoted(host: QemuDouble) -> None:
    host.status, host.complains = -9, "cannot set up guest memory\n"
    (ended,) = run(host)
    assert ended.trouble == "QEMU ended with status -9: cannot set up guest memory"


def test_one_that_takes_too_long_is_stopped(host: QemuDouble) -> None:
    host.looks = 10**9
    (ended,) = run(host, longest_s=0.0)
    assert (ended.trouble, host.running) == ("it took longer than 0 s", 0)


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
        compile_program(GUEST / "traffic.c")


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


def test_seeds_that_there_is_no_memory_for_are_counted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneAtATime:
        asked: ClassVar[list[list[int]]] = []

        def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, machine.Start]:
            self.asked.append(list(seeds))
            return {seeds[0]: machine.Start("kernel", f"{seeds[0]}.state")}

    def run_all(_host: Any, asked: Sequence[machine.Start], *_: Any) -> list[machine.Ended]:
        said = "workload stream\nround stream 10 10 {}000\ncheck 1 1 all\ndone\n"
        assert all(b"PORTS=plain\nWORKLOADS=usual\nscript" in each.given for each in asked)
        return [machine.Ended(said.format(each.state[0]), "", 1.0, told=True) for each in asked]

    monkeypatch.setattr("ctbench.dut.emulated.machine.run_all", run_all)
    host: Any = QemuDouble()
    dut = EmulatedDut(EmulatedConfig(type="emulated", kernel="distribution", seeds=3), host, xeon_facts().machine)
    dut._image = cast(Image, SimpleNamespace(topology=lambda _script: b"script"))
    dut._states = cast(States, OneAtATime())
    counted = dut.count([FORWARD, FORWARD.model_copy(update={"ruleset": "bridge"})], "stream")
    assert OneAtATime.asked == [[1, 2, 3], [2, 3], [3]]
    assert [[(each.seed, each.each, each.doubt) for each in one] for one in counted] == [
        [(1, 100.0, ""), (2, 200.0, ""), (3, 300.0, "")]
    ] * 2


@pytest.mark.parametrize(
    ("rulesets", "workload", "workloads"),
    [
        (("baseline", "forward"), "stream", "usual"),
        (("forward",), "removal", "usual"),
        (("baseline", "forward"), "stream-1k", "stream-1k"),
        (("baseline", "ovs-user-nat", "ovs-user-conntrack"), "udp", "waits"),
    ],
)
def test_all_that_are_compared_are_sent_to_in_the_same_way(
    rulesets: Sequence[str], workload: Workload, workloads: str
) -> None:
    topologies = [Topology(datapath="emulated", ruleset=each) for each in rulesets]
    assert _workloads(topologies, workload) == workloads


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
