"""`./run prove`: what it plants, that it counts the verdicts of gates and nothing else, what later pages say of it."""

import math
import random
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.cli import prove
from ctbench.cli.parser.tree import command_of
from ctbench.dut.ovs.packages import Packages
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.measure import starts
from ctbench.report import candidate
from ctbench.results import proofs, store

from .compared import Made
from .test_report_candidate import row

FLOOR = 0.97


def test_the_rows_that_are_tried_where_none_are_chosen_are_there() -> None:
    *options, suites = prove._ROWS
    known = "\n".join(path.read_text() for path in Path(suites).rglob("*.robot"))
    assert options[::2] == ["--test"] * 2 and all(f"\n{name}  " in known for name in options[1::2])


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
            seen = starts.Estimate.of(logs[:number], starts.Scatter(), 3)
            kept = starts.decide(seen, seen, FLOOR) if kept is None else kept
        record = row(seen.interval.value, met=kept is True, undecided=kept is None)
        store.write(record, Path(argv[argv.index("--outputdir") + 1]))
        return int({True: ExitStatus.MET, False: ExitStatus.MISSED, None: ExitStatus.NOT_MEASURED}[kept])


@pytest.fixture
def proven(
    made: Made, status_of: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, proofs.Proof | None]]:
    """`./run prove` with these gates: its exit status, and the record of it. What is compiled is not."""
    monkeypatch.setattr(prove, "compile_program", lambda *_: b"")
    monkeypatch.setattr(proofs, "cache_folder", lambda name: tmp_path / "cache" / name)

    def run(gates: Gates, *arguments: str) -> tuple[int, proofs.Proof | None]:
        made(gates)
        status = status_of("prove", "--outputdir", str(tmp_path / "out"), *arguments)
        return status, proofs.read(tmp_path / "out")

    return run


def found(proof: proofs.Proof | None) -> dict[str, tuple[int, int]]:
    assert proof
    return {each.fault: (each.found, len(each.counted)) for each in proof.planted}


def test_it_counts_how_often_the_gate_was_red_and_the_page_of_a_later_gate_says_so(
    proven: Callable[..., tuple[int, proofs.Proof | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    gates = Gates()
    status, proof = proven(gates, "--faults", "nothing,slower-2,slower-10", "--tries", "3", "--base", "distribution")
    assert status == ExitStatus.MET
    assert found(proof) == {"nothing": (0, 3), "slower-2": (0, 3), "slower-10": (3, 3)}
    assert all("--candidate" in call and "CAMPAIGN:gate" in call for call in gates.calls)
    said = capsys.readouterr().out
    assert re.search(r"^10 % slower +3 of 3 +\d+ +-\d+\.\d % \(-\d+\.\d to -\d\.\d\) +10\.0 % of its time$", said, re.M)
    assert "nothing 0 of 3; 2 % slower 0 of 3; 10 % slower 3 of 3 (./run prove)." in candidate.proven([row(1.0)])


def test_it_finds_nothing_where_the_rule_of_the_gate_is_switched_off(
    proven: Callable[..., tuple[int, proofs.Proof | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "decide", lambda *_: True)
    assert found(proven(Gates(), "--tries", "2", "--faults", "slower-5,slower-10")[1]) == {
        "slower-5": (0, 2), "slower-10": (0, 2),
    }  # fmt: skip


def test_a_fault_that_took_no_effect_is_not_counted(
    proven: Callable[..., tuple[int, proofs.Proof | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(proven(Gates(works=False), "--tries", "1", "--faults", "nothing,stalls")[1]) == {
        "nothing": (0, 1), "stalls": (0, 0),
    }  # fmt: skip
    assert "did not take effect" in capsys.readouterr().out


def test_one_that_was_stopped_says_how_to_go_on_and_makes_no_gate_twice(
    proven: Callable[..., tuple[int, proofs.Proof | None]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["--faults", "nothing,slower-10", "--tries", "1"]
    status, proof = proven(Gates(0, 130), *asked)
    assert (status, found(proof)) == (130, {"nothing": (0, 1)})
    assert f"./run prove --outputdir {tmp_path / 'out'} --faults nothing,slower-10" in capsys.readouterr().err
    again = Gates()
    assert found(proven(again, *asked)[1]) == {"nothing": (0, 1), "slower-10": (1, 1)}
    assert len(again.calls) == 1


def test_a_gate_that_is_none_ends_it(
    proven: Callable[..., tuple[int, proofs.Proof | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert proven(Gates(5), "--tries", "1") == (ExitStatus.NOTHING_MEASURED, None)
    assert "status 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--faults", "slower-3"], ["--tries", "0"], ["--base", "/nowhere"], ["--outputdir", "a b"]]
)
def test_a_mistake_is_said_before_anything_is_measured(
    wrong: list[str], proven: Callable[..., tuple[int, proofs.Proof | None]]
) -> None:
    gates = Gates()
    assert (proven(gates, *wrong)[0], gates.calls) == (ExitStatus.CONFIGURATION, [])


def test_no_fault_is_planted_where_no_library_gets_in_between(tmp_path: Path) -> None:
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin" / "ovs-vswitchd").write_bytes(b"\x7fELF with DPDK within")
    packed = OvsInstallation("/usr", Packages("/nowhere", str(tmp_path / "sbin" / "ovs-vswitchd"), ("x 1",)))
    for base in (OvsInstallation(str(tmp_path)), packed):
        with pytest.raises(ConfigError, match="Expected"):
            prove.plant(prove.FAULTS["stalls"], base, tmp_path / "planted")


def test_the_help_names_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_of(["prove", "--help"])
    assert ",".join(prove.FAULTS) in "".join(capsys.readouterr().out.split())


def test_the_page_says_that_there_is_none_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(proofs, "cache_folder", lambda name: tmp_path / name)
    assert "was not tried" in candidate.proven([row(1.0)])
