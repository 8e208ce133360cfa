"""Instructions of two sides: how they are judged, and the gate of a kernel."""

import random
import subprocess
from pathlib import Path
from typing import Any

import commands
import pytest

from ctbench.cli import kernel_candidate
from ctbench.results import store
from ctbench.results.store import WithoutRecord
from ctbench.sla.counts import differences, judge_counts

from .compared import Made, MadeUpSla
from .counted import counted_record


@pytest.mark.parametrize(
    ("base", "candidate", "word", "said"),
    [
        ([4000, 4000], [4000, 4000], "met", "+0.00 % (+0.00 % to +0.00 % over the seeds)"),
        ([4000, 4001], [4100, 4101], "missed", "+2.5 % (+2.5 % to +2.5 % over the seeds)"),
        ([4100, 4101], [4000, 4001], "met", "-2.4 % (-2.5 % to -2.4 % over the seeds)"),
        ([4000, 4001], [4010, 4011], "met", "+0.25 %"),
        ([4000, 4200], [4190, 4300], "not measured", "-0.24 %"),
        ([4000], [], "not measured", "of the candidate: not measured: nothing was proved of the topology"),
        ([], [4000], "not measured", "of the base: not measured: nothing was proved of the topology"),
    ],
)
def test_the_range_of_seeds_is_uncertain(base: list[float], candidate: list[float], word: str, said: str) -> None:
    ((_, test),) = judge_counts([counted_record("forward", base)], [counted_record("forward", candidate)])
    assert test.word == word
    assert said in test.reason


def test_a_test_of_one_side_only_is_named() -> None:
    both, one = counted_record("forward", [1]), counted_record("bridge", [1])
    assert [test.word for _, test in judge_counts([both, one], [both])] == ["met", "not measured"]
    assert "there is no record of it" in judge_counts([both, one], [both])[1][1].reason


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"qemu": "8.0"}, "QEMU"),
        ({"packages": {"iptables": "1.8"}}, "the packages in the machine"),
        ({"seeds": 3}, "the number of seeds"),
    ],
)
def test_machines_that_differ_in_something_else_are_said(other: dict[str, Any], said: str) -> None:
    alike = {"packages": {"iptables": "1.7"}, "seeds": 2}
    base, candidate = (counted_record("forward", [1], **alike | facts) for facts in ({}, other))
    assert differences([base], [candidate]) == [
        f"The sides differ in {said} as well, so a difference may not be what is compared."
    ]


class Counted(MadeUpSla):
    """A packet costs so much with a kernel of the testbed file."""

    def __init__(self, costs: dict[str, float], *, status: int = 0, skipped: str = "") -> None:
        super().__init__(status)
        self.costs, self.skipped = costs, skipped

    def leave(self, folder: Path, dut: dict[str, Any], base: str) -> int:
        if self.skipped:
            note = WithoutRecord(suite="E", test="F", outcome="skipped", reason=self.skipped)
            store.note_without_record([note], folder)
            return 6
        cost = self.costs[dut["kernel"]]
        store.write(counted_record("forward", [cost, cost + 1]), folder)
        return 0


def bzimage(path: Path, release: str = "6.9.0-mine", magic: bytes = b"HdrS", size: int = 0x1000) -> Path:
    """The header of a kernel, and the text with its release; the kernel itself is of 0x600 bytes."""
    data = bytearray(0x1000)
    data[0x1F4:0x1F8] = (0x60).to_bytes(4, "little")
    data[0x202:0x206] = magic
    data[0x20E:0x210] = (0x300).to_bytes(2, "little")
    text = f"{release} (me@here) #1\0".encode()
    data[0x500 : 0x500 + len(text)] = text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data[:size])
    return path


def deb(path: Path, holds: str, content: bytes = b"MZ" + random.Random(1).randbytes(50_000), folder: str = "x") -> Path:
    """A package with one file in it, by default of 50 kB that do not get shorter, and a folder."""
    files = path.with_suffix("")
    (files / "DEBIAN").mkdir(parents=True)
    (files / folder).mkdir(parents=True)
    (files / "DEBIAN" / "control").write_text(
        "Package: linux\nVersion: 1\nArchitecture: all\nMaintainer: me <me@example.org>\nDescription: x\n"
    )
    (files / holds).parent.mkdir(parents=True)
    (files / holds).write_bytes(content)
    subprocess.run(["dpkg-deb", "--build", str(files), str(path)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(deb(tmp_path_factory.mktemp("linux") / "linux-6.12.deb", "boot/vmlinuz-6.12", folder="lib/modules/6.12"))


@pytest.mark.parametrize(
    ("cost", "status", "word"), [(4000, 0, "MET"), (4100, 1, "MISSED"), (3900, 0, "MET"), (4021, 1, "MISSED")]
)
def test_a_kernel_is_a_candidate_that_an_sla_judges_by_the_same_counts(
    made: Made, cost: float, status: int, word: str, package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sla, out = made(Counted({"distribution": 4000, package: cost})), tmp_path / "out"
    assert (
        commands.status(
            "sla", ["--candidate", package, "--outputdir", str(out), "-v", "CAMPAIGN:gate", "--exclude", "x"]
        )
        == status
    )
    shown = capsys.readouterr().out
    assert f" {word} " in shown and "at most +0.50 % instructions of the base's" in shown
    assert (
        sla.calls[0][-3:] == ["--exclude=x", "--include", "emulated"]
        and f" {word} " in (out / "counts.txt").read_text()
    )
    assert (
        commands.status(
            "sla", ["--candidate", str(deb(tmp_path / "linux-x.deb", "bin/x")), "--outputdir", str(out / "no")]
        )
        == 4
    )
    assert "--candidate: " in capsys.readouterr().err and not (out / "no").exists()
    for more in (["--resume", "latest"], ["--testbeds", "a,b"], ["--all"], ["-v", "TESTBAD:x"], ["--base", package]):
        assert commands.status("sla", ["--candidate", package, "--outputdir", str(out / "no"), *more]) == 4, more
    assert not (out / "no").exists()


def test_no_name_is_no_kernel_wherever_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.1").touch()
    monkeypatch.chdir(tmp_path)
    assert kernel_candidate.is_kernel(".") and not kernel_candidate.is_kernel("")
    assert not kernel_candidate.is_kernel("x" * 300)


def gate(out: Path, *arguments: str) -> int:
    """The gate of a kernel: its exit status."""
    return commands.status("sla", ["--outputdir", str(out), *arguments])


def test_what_was_counted_is_not_counted_again(
    made: Made, package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sla, out = made(Counted({"distribution": 4000, package: 4100})), tmp_path / "out"
    assert (gate(out, "--candidate", package), len(sla.calls)) == (1, 2)
    assert (gate(out, "--candidate", package), len(sla.calls)) == (1, 2)
    assert "No instructions" not in capsys.readouterr().out


def test_a_machine_without_qemu_says_so_and_nothing_is_compared(
    made: Made, package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(Counted({}, skipped="An emulated machine needs QEMU."))
    assert gate(tmp_path / "out", "--candidate", package) == 6
    assert "No instructions were counted: An emulated machine needs QEMU.\n" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "side"), [("linux-x.deb", "base"), ("linux-x.deb", "candidate")])
def test_a_kernel_that_is_damaged_is_said_before_the_other_side_is_counted(
    made: Made, package: str, name: str, side: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, sla, out = tmp_path / name, made(Counted({})), tmp_path / "out"
    file.write_bytes(b"404 Not Found\n")
    sides = {"base": "distribution", "candidate": package} | {side: str(file)}
    assert gate(out, "--candidate", sides["candidate"], "--base", sides["base"]) == 4
    error = capsys.readouterr().err
    assert sla.calls == [] and not out.exists()
    assert error.startswith(f"run: --{side}: {file} is not a kernel: ") and error.count("\n") == 2
    assert gate(out, "--candidate", package, "--base", "/nowhere.deb") == 4
    assert capsys.readouterr().err.startswith('run: --base: "/nowhere.deb" is not there.\n  Expected a package of')
