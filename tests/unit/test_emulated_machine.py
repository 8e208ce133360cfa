"""An emulated machine: what it says, its monitor, its process, its saved states; what goes wrong is a sentence."""

import json
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.dut.abilities import Workload
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.counter import EmulatedCounter, _workloads
from ctbench.dut.emulated.image import GUEST, Image, compile_program, find_program
from ctbench.dut.emulated.kind import EmulatedConfig, EmulatedKind
from ctbench.dut.emulated.machine import Monitor, States, read_log
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed

from .doctor_facts import xeon_facts


class Ending:
    """A QEMU that says something on the serial line and ends; it is found running so many times less one."""

    def __init__(self, host: "QemuDouble", argv: Sequence[str], log: Path) -> None:
        (serial,) = (word.removeprefix("file:") for word in argv if word.startswith("file:"))
        (given,) = (word.partition("file=")[2] for word in argv if word.startswith("name=opt/ctbench/given"))
        host.local_path(serial).write_text(host.says)
        host.given.append(host.local_path(given).read_bytes())
        log.write_text(host.complains)
        self._host, self._left = host, host.looks
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
    """A host where QEMU runs, and how much memory is free there. Its /run is the folder for temporary files."""

    name = "double"

    def __init__(self, status: int = 0, says: str = "done\n", complains: str = "", free_kb: int = 2**22) -> None:
        self.status, self.says, self.complains, self.free_kb = status, says, complains, free_kb
        self.running = self.most = 0
        self.looks = 4
        #: What machines were given, and what was said to their monitors.
        self.given: list[bytes] = []
        self.asked: list[str] = []
        #: How the saving of a state ends, and what QEMU says of it.
        self.saving: dict[str, str] = {"status": "completed"}
        self.refuses = ""

    def local_path(self, remote: str) -> Path:
        assert remote.startswith("/run")
        return Path(tempfile.gettempdir(), remote.removeprefix("/run").lstrip("/"))

    def start(self, argv: Sequence[str], *, log: Path) -> Ending:
        return Ending(self, argv, log)

    def read(self, remote: str) -> str:
        return f"MemTotal:  9 kB\nMemAvailable:   {self.free_kb} kB\n"

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        return Completed(0, "QEMU emulator version 7.2.22 (Debian)\n", "")


class MonitorDouble:
    """The monitor of a machine that waits, and whose state can be saved."""

    def __init__(self, host: QemuDouble) -> None:
        self._host, self._status, self._saving = host, "guest-panicked", dict[str, str]()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._host.asked.append(command)
        if command == self._host.refuses:
            raise TestbedError(f"QEMU refuses `{command}`: no.")
        if command == "migrate":
            self._host.local_path(arguments["uri"].removeprefix("exec:cat >")).write_bytes(b"a state")
            self._status, self._saving = "postmigrate", self._host.saving
        return {"query-status": {"status": self._status}, "query-migrate": self._saving}.get(command, {})

    def close(self) -> None:
        pass


GOOD = (Path(__file__).parents[1] / "data" / "emulated-boot.log").read_text()


def test_a_boot_that_proves_everything_counts() -> None:
    log = read_log(GOOD)
    assert (log.trouble, list(log.workloads)) == ("", ["stream", "udp"])
    stream = log.workloads["stream"]
    assert (stream.doubt, [each.instructions for each in stream.rounds]) == ("", [30000000, 30000100, 30000300])
    assert stream.rounds[0].each == 30000000 / 4096


@pytest.mark.parametrize(
    ("said", "instead", "doubt"),
    [
        ("round stream 4096 4096 30000100", "round stream 4096 4095 30000100", "4096 were sent and 4095 came through"),
        ("check 0 0 connections", "check 0 1 connections", "connections in the table: 1 where 0 had to be"),
        ("check 20482 20482 packets", "check 20482  packets", "packets routed: nothing where 20482 had to be"),
        ("check", "chuck", "nothing was proved of the topology"),
        ("round stream", "ruond stream", "no round was counted"),
    ],
)
def test_what_is_not_proved_is_doubted(said: str, instead: str, doubt: str) -> None:
    assert read_log(GOOD.replace(said, instead)).workloads["stream"].doubt == doubt


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (GOOD.replace("done\n", ""), "its last words are: [ 5.2] reboot: Restarting system"),
        (GOOD.replace("done\n", "broken no wire could be made\n"), "no wire could be made"),
        ("", "its last words are: none"),
        ("[ 1.0] Kernel panic - not syncing: no init found\n", "[ 1.0] Kernel panic - not syncing: no init found"),
    ],
)
def test_a_boot_that_did_not_come_to_its_end_says_why(text: str, trouble: str) -> None:
    assert read_log(text).trouble == trouble


@given(st.text(alphabet="rounda stecmw0123456789\n\r[]", max_size=300))
def test_whatever_is_said_can_be_read(text: str) -> None:
    log = read_log(text)
    assert all(told.rounds or told.doubt for told in log.workloads.values())


GREETING = {"QMP": {"version": {}}}
ANSWERS = {
    "qmp_capabilities": [{"return": {}}],
    "query-status": [{"event": "STOP"}, {"return": {"status": "guest-panicked"}}],
    "migrate": [{"error": {"class": "GenericError", "desc": "There is no such command"}}],
}


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A monitor that answers, in pieces, until it is asked for what it does not know."""
    listens = socket.socket(socket.AF_UNIX)
    listens.bind(str(tmp_path / "monitor"))
    listens.listen()

    def serve() -> None:
        talks, _ = listens.accept()
        listens.close()  # who asks again is refused, and does not wait
        with talks, talks.makefile("r") as asked:
            talks.sendall(json.dumps(GREETING).encode() + b"\n")
            for line in asked:
                for said in ANSWERS.get(json.loads(line)["execute"], [None]):
                    if said is None:
                        return
                    whole = json.dumps(said).encode() + b"\r\n"
                    talks.sendall(whole[:5])
                    talks.sendall(whole[5:])

    server = threading.Thread(target=serve)
    server.start()
    yield tmp_path / "monitor"
    server.join()


def test_answers_are_found_between_events_and_one_that_goes_away_has_none(path: Path, tmp_path: Path) -> None:
    monitor = Monitor(path)
    assert monitor.ask("query-status") == {"status": "guest-panicked"}
    with pytest.raises(TestbedError, match="QEMU refuses `migrate`: There is no such command"):
        monitor.ask("migrate", uri="nowhere")
    assert monitor.ask("query-status") == {"status": "guest-panicked"}
    monitor.close()
    assert Monitor(path).ask("quit") is None
    assert Monitor(tmp_path / "nothing").ask("query-status") is None


FORWARD = Topology(datapath="emulated", ruleset="forward")
START = replace(machine.start("/run/kernel", "/run/1.state"), given=b"given")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    """A host whose machines wait to be started, and end."""
    made = QemuDouble()
    monkeypatch.setattr("ctbench.dut.emulated.machine.Monitor", lambda _path: MonitorDouble(made))
    return made


def run(host: Any, count: int = 1, at_once: int = 2, longest_s: float = 60.0) -> list[machine.Ended]:
    return machine.run_all(host, [START] * count, at_once, longest_s)


@pytest.mark.parametrize(
    ("settings", "longest_s", "trouble"),
    [
        ({"status": -9, "complains": "no guest memory\n"}, 60.0, "QEMU ended with status -9: no guest memory"),
        ({"looks": 10**9}, 0.0, "it took longer than 0 s"),
    ],
)
def test_a_qemu_that_is_killed_is_quoted_and_one_that_takes_too_long_is_stopped(
    host: QemuDouble, settings: dict[str, Any], longest_s: float, trouble: str
) -> None:
    for name, value in settings.items():
        setattr(host, name, value)
    (ended,) = run(host, longest_s=longest_s)
    assert (ended.trouble, host.running) == (trouble, 0)


def test_too_little_memory_is_said_before() -> None:
    host: Any = QemuDouble(free_kb=300 * 1024)
    with pytest.raises(MissingResource, match="needs 640 MB of memory, and 300 MB are available"):
        machine.fitting(host)
    more: Any = QemuDouble(free_kb=1300 * 1024)
    assert machine.fitting(more) == 2


def test_each_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ctbench.dut.emulated.image.PATH", str(tmp_path))
    host: Any = QemuDouble()
    with pytest.raises(
        MissingResource, match=r"qemu-system-x86_64 \(package qemu-system-x86\).*\./run setup brings it"
    ):
        machine.version(host)
    with pytest.raises(MissingResource, match=r"needs nft \(package nftables\)"):
        find_program("nft")
    with pytest.raises(MissingResource, match=r"needs tcc \(package tcc\)"):
        compile_program(GUEST / "traffic.c")


def new_dut(host: Any = None, **settings: Any) -> EmulatedCounter:
    keys = {"type": "emulated", "kernel": "distribution", "seeds": 2} | settings
    return EmulatedCounter(EmulatedConfig.model_validate(keys), host or QemuDouble(), xeon_facts().machine)


def test_a_topology_with_several_cpus_is_more_than_there_is() -> None:
    dut = new_dut()
    with pytest.raises(MissingResource, match="an emulated machine has one of each"):
        dut.count([FORWARD.model_copy(update={"cpus": 2})], "stream")
    with pytest.raises(ConfigError, match="is not a ruleset of an emulated machine"):
        dut.count([FORWARD.model_copy(update={"ruleset": "nat"})], "stream")


def test_seeds_that_there_is_no_memory_for_are_counted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneAtATime:
        asked: ClassVar[list[list[int]]] = []

        def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, machine.Asked]:
            self.asked.append(list(seeds))
            return {seeds[0]: machine.start("kernel", f"{seeds[0]}.state")}

    def run_all(_host: Any, asked: Sequence[machine.Asked], *_: Any) -> list[machine.Ended]:
        said = "workload stream\nround stream 10 10 {}000\ncheck 1 1 all\ndone\n"
        assert all(b"PORTS=plain\nWORKLOADS=usual\nscript" in each.given for each in asked)
        return [machine.Ended(said.format(each.arguments[-1].split()[1][0]), "", 1.0, told=True) for each in asked]

    monkeypatch.setattr("ctbench.dut.emulated.machine.run_all", run_all)
    dut = new_dut(seeds=3)
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
def test_all_that_are_compared_are_sent_the_same(rulesets: Sequence[str], workload: Workload, workloads: str) -> None:
    topologies = [Topology(datapath="emulated", ruleset=each) for each in rulesets]
    assert _workloads(topologies, workload) == workloads


@pytest.mark.parametrize("key", ["kernel", "ovs"])
def test_a_path_that_does_not_exist_is_a_mistake(tmp_path: Path, key: str) -> None:
    named = str(tmp_path / "nothing")
    settings: Any = {"kernel": named} if key == "kernel" else {"kernel": "distribution", "ovs": {"prefix": named}}
    with pytest.raises(ConfigError, match=f"{key}.* is {named}, which does not exist"):
        EmulatedKind().require(EmulatedConfig(type="emulated", seeds=2, **settings))


@pytest.mark.parametrize("name", ["folder", "kernel.deb"])
def test_what_is_no_kernel_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("ctbench.dut.emulated.machine.shutil.which", lambda _name: "/usr/bin/it")
    named = tmp_path / name
    _ = named.mkdir() if name == "folder" else named.write_text("no package")
    dut = new_dut(kernel=str(named))
    with pytest.raises(ConfigError, match=str(named)):
        dut.snapshot()


def test_a_kernels_package_is_unpacked_in_the_sandboxs_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    monkeypatch.setattr("ctbench.dut.emulated.counter.unpack_package", unpack)
    dut = new_dut(host, kernel=str(package))
    assert dut._kernel().release == "1.2"
    assert files[0].parent == host.local_path("/run")


@pytest.fixture
def roomy(host: QemuDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    """A host whose /run is empty, and where each machine gets ready."""
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "run"))
    host.says = ""
    return host


@pytest.fixture
def states(roomy: Any) -> States:
    return States(roomy, Image("6.1", {"kernel": b"MZ", "common.cpio": b"c", "rules.cpio": b"r"}, {}))


def files(roomy: QemuDouble) -> list[str]:
    (folder,) = roomy.local_path("/run").iterdir()
    return sorted(each.name for each in folder.iterdir())


def needed_kb(machines: int) -> int:
    return machines * (512 + 128 + 80) * 1024


def test_where_there_is_memory_for_one_the_others_come_later_and_make_way(roomy: QemuDouble, states: States) -> None:
    roomy.free_kb = needed_kb(1)
    assert list(states.ready([1, 2], 2)) == [1]
    roomy.free_kb = needed_kb(1) - 1024
    assert list(states.ready([1, 2], 2)) == [1]
    with pytest.raises(MissingResource, match="needs 720 MB of memory, and 719 MB are available"):
        states.ready([2], 2)
    assert files(roomy) == ["kernel"]  # it has made way


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"status": -9}, r"did not get ready \(seed 1\): QEMU ended with status -9\."),
        ({"looks": 2, "says": "Kernel panic - no init\n"}, r"did not get ready \(seed 1\): Kernel panic - no init\."),
        ({"looks": 2, "says": "broken it is\ndone"}, r"did not get ready \(seed 1\): it is\."),
        ({"saving": {"status": "failed", "error-desc": "No space"}}, "could not be saved: No space"),
        ({"refuses": "migrate"}, "QEMU refuses `migrate`"),
    ],
)
def test_a_machine_that_does_not_get_ready_is_said_and_leaves_no_state(
    roomy: QemuDouble, states: States, settings: dict[str, Any], said: str
) -> None:
    for name, value in settings.items():
        setattr(roomy, name, value)
    with pytest.raises(TestbedError, match=said):
        states.ready([1], 2)
    assert (files(roomy), roomy.running) == (["kernel"], 0)
