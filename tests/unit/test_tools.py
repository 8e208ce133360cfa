"""Tools for who works on the suite: gates of planted faults, the lab in a box, the simulations behind docs/evidence."""

import json
import math
import random
import re
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ExitStatus
from ctbench.base.yaml_files import load
from ctbench.measure import start_rule
from ctbench.results import store
from ctbench.testbed.config import TestbedConfig
from tools import all_tests, lab, prove
from tools.benchmarks import replay

from .test_report_candidate import row

FLOOR = 0.97


class Gates:
    """Stands in for ./run sla: a gate by its own rule of starts that scatter by 1 %, of a candidate that is as slow as
    its prefix says, and that counts what it did."""

    def __init__(self, *ends: int, works: bool = True) -> None:
        self.dice, self.ends, self.works = random.Random(1), list(ends), works
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls.append(list(argv[2:]))
        if self.ends and (ended := self.ends.pop(0)):
            return ended
        prefix = Path(argv[argv.index("--candidate") + 1])
        told = re.search(r"SLOWER (\d+)", (prefix / "plant.c").read_text())
        slower = int(told[1]) if told else 0
        if self.works:
            (prefix / "counts").write_bytes(struct.pack("<9Q", 1, 1000, 1000 - slower, slower, *[0] * 5))
        logs = [math.log(1 - slower / 1000) + self.dice.gauss(0, 0.01) for _ in range(16)]
        kept = None
        for number in start_rule.looks(16):
            seen = start_rule.Moderated.of(logs[:number], start_rule.Scatter(), start_rule.Budget(1, 3))
            kept = start_rule.decide([seen, seen], FLOOR) if kept is None else kept
        record = row(seen.interval.value, met=kept is True, undecided=kept is None)
        store.write(record, Path(argv[argv.index("--outputdir") + 1]))
        return int({True: ExitStatus.MET, False: ExitStatus.MISSED, None: ExitStatus.NOT_MEASURED}[kept])


#: Runs the tool with these gates: its exit status, and what it wrote.
Proven = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proven:
    """What is compiled is not."""
    monkeypatch.setattr(prove, "compile_program", lambda *_: b"")

    def run(gates: Gates, *arguments: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(prove, "run_child", gates)
        status = prove.main(["--outputdir", str(tmp_path / "out"), *arguments])
        file = tmp_path / "out" / prove.FILE
        return status, json.loads(file.read_text()) if file.exists() else {}

    return run


def found(proof: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """How often the gate was red of how many that had something to find."""
    counted = {name: [each for each in tries if each["took_effect"]] for name, tries in proof["planted"].items()}
    return {name: (sum(each["status"] == 1 for each in tries), len(tries)) for name, tries in counted.items()}


def test_it_counts_how_often_the_gate_was_red(proven: Proven, capsys: pytest.CaptureFixture[str]) -> None:
    gates = Gates()
    status, proof = proven(gates, "--faults", "nothing,slower-2,slower-10", "--tries", "3", "--base", "distribution")
    assert status == ExitStatus.MET
    assert found(proof) == {"nothing": (0, 3), "slower-2": (0, 3), "slower-10": (3, 3)}
    assert all("--candidate" in call and "CAMPAIGN:gate" in call for call in gates.calls)
    said = capsys.readouterr().out
    assert re.search(r"^10 % slower +3 of 3 +\d+ +-\d+\.\d % \(-\d+\.\d to -\d\.\d\) +10\.0 % of its time$", said, re.M)


def test_a_fault_that_took_no_effect_is_not_counted(proven: Proven, capsys: pytest.CaptureFixture[str]) -> None:
    _, proof = proven(Gates(works=False), "--tries", "1", "--faults", "nothing,stalls")
    assert found(proof) == {"nothing": (0, 1), "stalls": (0, 0)}
    assert "no effect" in capsys.readouterr().out


def test_its_testbed_file_names_what_qemu_makes() -> None:
    testbed, asked = load("testbeds", "lab-in-a-box", TestbedConfig), " ".join(lab._qemu())
    (dut,), (key,) = testbed.duts, {Path(host.key).expanduser() for host in testbed.hosts.values()}
    assert key == lab.FOLDER / "key"
    for side, address in dut.ports.cards if dut.ports else ():
        assert f"addr=0x{int(address[8:10], 16)}" in asked
        assert f"ifname={getattr(testbed.generator.interfaces, side)}" in asked  # type: ignore[union-attr]
    assert f"hugepages={dut.memory_mb // 2}" in asked  # type: ignore[union-attr]
    isolated = re.search(r"isolcpus=1-(\d+)", asked)
    assert isolated and testbed.cpus.pmd_named == set(range(1, int(isolated[1]) + 1)) == set(range(1, lab.CPUS))


def test_machines_of_a_pool_share_no_card_and_no_file_that_they_write() -> None:
    one, other = (
        set(re.findall(r"(?:ifname=|mac=|file:|unix:)([^, ]+)", " ".join(lab._qemu(number)))) for number in (0, 1)
    )
    assert len(one) == len(other) == 8 and not one & other


def test_options_behind_the_command_are_the_commands() -> None:
    assert lab.parse(["in", "./run", "sla", "-v", "X:y", "--", "--help"]).command == [
        "./run", "sla", "-v", "X:y", "--", "--help"
    ]  # fmt: skip
    for wrong in (["stop", "now"], ["in"], ["begin"], []):
        with pytest.raises(SystemExit):
            lab.parse(wrong)


def test_what_a_record_has_decides_its_promises_as_it_did() -> None:
    """And of a copy of it nothing is counted."""
    folder = Path(__file__).parents[1] / "data" / "golden-run"
    rows, rule = replay.read([folder, folder / "records"]), replay.Today()
    kept = {each["test"]: rule.decide(each) for each in rows}
    met = [(each["test"], known["metric"]) for each in rows for known in each["promised"] if known["met"]]
    words = [kept[test][metric][0] for test, metric in met]
    assert len(rows) == 11 and words.count("met") > 10 and set(words) == {"met", ""}
    assert {each["origin"] for each in rows} == {"integration tests"}


@pytest.mark.parametrize(("user", "mode", "stays"), [(0, 0o755, True), (0, 0o700, False), (1000, 0o700, True)])
def test_the_folder_of_roots_tests_is_one_that_others_reach(
    user: int, mode: int, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(mode)
        monkeypatch.setattr(tempfile, "tempdir", place)
        monkeypatch.setattr("os.geteuid", lambda: user)
        with all_tests.folder_that_goes() as folder:
            assert folder.parent == (Path(place) if stays else Path("/tmp"))
