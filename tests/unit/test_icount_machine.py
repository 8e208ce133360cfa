"""An emulated machine: what it says, its monitor, its process, its saved states; what goes wrong is a sentence."""

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.paths import RULESETS
from icount import machine
from icount.__main__ import main
from icount.counter import Counter, Setup, _workloads
from icount.errors import IcountError, Invalid, Missing
from icount.image import GUEST, Image, compile_program, find_program
from icount.machine import States, Workload, read_log

GOOD = (Path(__file__).parents[1] / "data" / "icount-boot.log").read_text()


def test_a_boot_that_proves_everything_counts() -> None:
    log = read_log(GOOD)
    assert (log.trouble, list(log.workloads)) == ("", ["stream", "udp"])
    stream = log.workloads["stream"]
    assert (stream.doubt, [each.instructions for each in stream.rounds]) == ("", [30000000, 30000100, 30000300])


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


#: Stands in for QEMU: what it says and does is in a file beside it.
QEMU = """#!/usr/bin/env -S python3 -I -S
import json, sys, time
from pathlib import Path

does = json.loads(Path(__file__).with_suffix(".json").read_text())
serial = next(word for word in sys.argv if word.startswith("file:"))
Path(serial.removeprefix("file:")).write_text(does["says"])
print(does["complains"], file=sys.stderr, flush=True)
if does["status"]:
    sys.exit(does["status"])
print(json.dumps({"QMP": {"version": {}}}), flush=True)
answers = {"query-status": {"status": "guest-panicked"}, "query-migrate": {}}
for line in sys.stdin:
    asked = json.loads(line)
    command = asked["execute"]
    print(json.dumps({"event": "STOP"}))
    if command == does["refuses"]:
        print(json.dumps({"error": {"class": "GenericError", "desc": "There is no such command"}}), flush=True)
        continue
    if command == "migrate":
        Path(asked["arguments"]["uri"].removeprefix("exec:cat >")).write_text("a state")
        answers["query-migrate"] = does["saving"]
        answers["query-status"] = {"status": "postmigrate" if does["saving"]["status"] == "completed" else "paused"}
    print(json.dumps({"return": answers.get(command, {})}), flush=True)
    if command in ("cont", "quit"):
        time.sleep(does["takes_s"])
        sys.exit()
"""


class QemuDouble:
    """QEMU, and how much memory is free."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "qemu"
        self.free_mb = 4096
        self.program.write_text(QEMU)
        self.program.chmod(0o755)
        self.does()

    def does(self, **changes: Any) -> None:
        usual = {"status": 0, "says": "done\n", "complains": "", "saving": {"status": "completed"}, "refuses": ""}
        self.program.with_suffix(".json").write_text(json.dumps({**usual, "takes_s": 0, **changes}))


@pytest.fixture
def qemu(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    made = QemuDouble(tmp_path_factory.mktemp("qemu"))
    monkeypatch.setattr(machine, "QEMU", str(made.program))
    monkeypatch.setattr(machine, "_free_mb", lambda: made.free_mb)
    return made


@pytest.mark.parametrize(
    ("does", "longest_s", "trouble"),
    [
        ({}, 60.0, ""),
        ({"status": 9, "complains": "no guest memory"}, 60.0, "QEMU ended with status 9: no guest memory"),
        ({"takes_s": 60}, 1.0, "it took longer than 1 s"),
    ],
)
def test_a_qemu_that_ends_badly_is_quoted_and_one_that_takes_too_long_is_stopped(
    qemu: QemuDouble, tmp_path: Path, does: dict[str, Any], longest_s: float, trouble: str
) -> None:
    qemu.does(**does)
    logs = machine.run_all(tmp_path, [machine.start("kernel", "1.state")] * 2, 2, longest_s)
    assert [log.trouble for log in logs] == [trouble] * 2
    assert files(tmp_path) == []


def test_too_little_memory_is_said_before(qemu: QemuDouble) -> None:
    qemu.free_mb = 300
    with pytest.raises(Missing, match="needs 640 MB of memory, and 300 MB are available"):
        machine.fitting()
    qemu.free_mb = 1300
    assert machine.fitting() == 2


def test_each_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("icount.image.PATH", str(tmp_path))
    with pytest.raises(Missing, match=r"qemu-system-x86_64 \(package qemu-system-x86\).*\./run setup brings it"):
        machine.version()
    with pytest.raises(Missing, match=r"needs nft \(package nftables\)"):
        find_program("nft")
    with pytest.raises(Missing, match=r"needs tcc \(package tcc\)"):
        compile_program(GUEST / "traffic.c")


def test_seeds_that_there_is_no_memory_for_are_counted_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OneAtATime:
        asked: ClassVar[list[list[int]]] = []

        def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, machine.Asked]:
            self.asked.append(list(seeds))
            return {seeds[0]: machine.start("kernel", f"{seeds[0]}.state")}

    def run_all(_folder: Path, asked: Sequence[machine.Asked], *_: Any) -> list[machine.Log]:
        said = "workload stream\nround stream 10 10 {}000\ncheck 1 1 all\ndone\n"
        assert all(b"PORTS=plain\nWORKLOADS=usual\nscript" in each.given for each in asked)
        return [read_log(said.format(each.arguments[-1].split()[1][0])) for each in asked]

    monkeypatch.setattr("icount.machine.run_all", run_all)
    counter = Counter(tmp_path, RULESETS, seeds=3)
    counter._image = cast(Image, SimpleNamespace(topology=lambda _script: b"script"))
    counter._states = cast(States, OneAtATime())
    counted = counter.count([Setup("forward"), Setup("bridge")], "stream")
    assert OneAtATime.asked == [[1, 2, 3], [2, 3], [3]]
    assert [[(each.seed, each.each, each.doubt) for each in one] for one in counted] == [
        [(1, 100.0, ""), (2, 200.0, ""), (3, 300.0, "")]
    ] * 2


@pytest.mark.parametrize(
    ("topologies", "workload", "workloads"),
    [
        (("baseline", "forward"), "stream", "usual"),
        (("forward",), "removal", "usual"),
        (("baseline", "forward"), "stream-1k", "stream-1k"),
        (("baseline", "ovs-user-nat", "ovs-user-conntrack"), "udp", "waits"),
    ],
)
def test_all_that_are_compared_are_sent_the_same(topologies: Sequence[str], workload: Workload, workloads: str) -> None:
    assert _workloads(list(map(Setup, topologies)), workload) == workloads


@pytest.mark.parametrize("name", ["folder", "kernel.deb"])
def test_what_is_no_kernel_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("icount.machine.version", lambda: "7.2.22")
    named = tmp_path / name
    _ = named.mkdir() if name == "folder" else named.write_text("no package")
    with pytest.raises(Invalid, match=str(named)):
        _ = Counter(tmp_path, RULESETS, kernel=named).release


@pytest.fixture
def states(qemu: QemuDouble, tmp_path: Path) -> States:
    """Of machines that get ready."""
    qemu.does(says="")
    return States(tmp_path, Image("6.1", {"kernel": b"MZ", "common.cpio": b"c", "rules.cpio": b"r"}, {}))


def files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


#: MB of a machine with its state.
NEEDED = 512 + 128 + 80


def test_where_there_is_memory_for_one_the_others_come_later_and_make_way(
    qemu: QemuDouble, states: States, tmp_path: Path
) -> None:
    qemu.free_mb = NEEDED
    assert list(states.ready([1, 2], 2)) == [1]
    qemu.free_mb = NEEDED - 1
    assert list(states.ready([1, 2], 2)) == [1]
    with pytest.raises(Missing, match="needs 720 MB of memory, and 719 MB are available"):
        states.ready([2], 2)
    assert files(tmp_path) == ["kernel"]  # it has made way


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ({"status": 1}, r"did not get ready \(seed 1\): QEMU ended with status 1\."),
        ({"saving": {"status": "failed", "error-desc": "No space"}}, "could not be saved: No space"),
        ({"refuses": "migrate"}, "QEMU refuses `migrate`: There is no such command"),
    ],
)
def test_a_machine_that_does_not_get_ready_is_said_and_leaves_no_state(
    qemu: QemuDouble, states: States, tmp_path: Path, does: dict[str, Any], said: str
) -> None:
    qemu.does(**does)
    with pytest.raises(IcountError, match=said):
        states.ready([1], 2)
    assert files(tmp_path) == ["kernel"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["forwrad"], 4, "forwrad is not a topology.\n  Expected one of "),
        (["forward", "--kernel", "/nowhere/linux.deb"], 4, "/nowhere/linux.deb does not exist"),
        (["forward", "--image", "/nowhere/mine.image"], 4, "/nowhere/mine.image: cannot be read"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(
    arguments: list[str], status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("icount.machine.version", lambda: "7.2.22")
    before = signal.getsignal(signal.SIGINT)
    assert main(arguments) == status
    assert said in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
