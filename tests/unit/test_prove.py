"""tools.prove: what it plants, and that it counts the verdicts of gates and nothing else."""

import json
import math
import random
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.dut.ovs.packages import Packages
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.measure import starts
from ctbench.results import store
from tools import prove

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
            (prefix / "counts").write_bytes(struct.pack("<8Q", 1, 1000, 1000 - slower, slower, 0, 0, 0, 0))
        logs = [math.log(1 - slower / 1000) + self.dice.gauss(0, 0.01) for _ in range(16)]
        kept = None
        for number in starts.looks(16):
            seen = starts.Estimate.of(logs[:number], starts.Scatter(), starts.Budget(1, 3))
            kept = starts.decide(seen, seen, FLOOR) if kept is None else kept
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


def test_one_that_was_stopped_says_how_to_go_on_and_makes_no_gate_twice(
    proven: Proven, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["--faults", "nothing,slower-10", "--tries", "1"]
    status, proof = proven(Gates(0, 130), *asked)
    assert (status, found(proof)) == (130, {"nothing": (0, 1)})
    assert f"the same command with --outputdir {tmp_path / 'out'}" in capsys.readouterr().err
    again = Gates()
    assert found(proven(again, *asked)[1]) == {"nothing": (0, 1), "slower-10": (1, 1)}
    assert len(again.calls) == 1


@pytest.mark.parametrize(
    "wrong", [["--faults", "slower-3"], ["--tries", "0"], ["--base", "/nowhere"], ["--outputdir", "a b"]]
)
def test_a_mistake_is_said_before_anything_is_measured(wrong: list[str], proven: Proven) -> None:
    gates = Gates()
    with pytest.raises((SystemExit, ConfigError)):
        proven(gates, *wrong)
    assert gates.calls == []


def test_no_fault_is_planted_where_no_library_gets_in_between(tmp_path: Path) -> None:
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin" / "ovs-vswitchd").write_bytes(b"\x7fELF with DPDK within")
    packed = OvsInstallation("/usr", Packages("/nowhere", str(tmp_path / "sbin" / "ovs-vswitchd"), ("x 1",)))
    for base in (OvsInstallation(str(tmp_path)), packed):
        with pytest.raises(ConfigError, match="Expected"):
            prove.plant(prove.FAULTS["stalls"], base, tmp_path / "planted")
