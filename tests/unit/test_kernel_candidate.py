"""The gate of a kernel: what its base costs is what it is judged by."""

import json
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock

import commands
import pytest

from ctbench.base.errors import ExitStatus, MissingResource
from ctbench.base.paths import RESULTS_VARIABLE, ROOT, SUITES
from ctbench.base.yaml_files import load
from ctbench.cli import kernel_candidate, sla
from ctbench.cli.robot.command_line import CommandLine, parse
from ctbench.report.write import write_reports
from ctbench.results import store
from ctbench.results.store import WithoutRecord
from ctbench.sla.floors import Floors
from ctbench.testbed.config import TestbedConfig

from .counted import PER_PACKET, Made, counted_record

#: What records say of the machine.
ALIKE = {"packages": {"iptables": "1.7"}, "seeds": 2, "program": "a1"}


class Counted:
    """Stands in for ./run sla: notes how it was called, and leaves what a run leaves where it ends with `status` 0. A
    packet costs so much with the base's kernel, with each seed; without costs, nothing was proved."""

    def __init__(self, *costs: float, status: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.costs, self.status = costs, status

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls.append(list(argv[2:]))
        if not self.status:
            folder = Path(argv[argv.index("--outputdir") + 1])
            store.write(counted_record("forward", self.costs, **ALIKE), folder)
        return self.status


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


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[CommandLine]:
    """The runs of candidates that were begun, all of whose rows are met; and what their machine says of itself."""
    found: list[CommandLine] = []

    def begin(command: CommandLine) -> int:
        found.append(command)
        return 0

    monkeypatch.setattr(sla, "begin", begin)
    monkeypatch.setattr(kernel_candidate, "facts_of", lambda *_: {"image": "b2", "qemu": "7.2", **ALIKE})
    monkeypatch.setattr(kernel_candidate, "program_of", lambda *_: "a1")
    return found


def gate(out: Path, *arguments: str) -> int:
    """The gate of a kernel: its exit status."""
    return commands.status("sla", ["--outputdir", str(out), *arguments])


def test_a_kernel_is_measured_as_ever_and_judged_by_what_its_base_costs(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path
) -> None:
    base, out = made(Counted(4000, 4001)), tmp_path / "out"
    asked = ("--candidate", package, "-v", "CAMPAIGN:gate", "--exclude", "x", "--name", "Mine")
    assert (gate(out, *asked), gate(out, *asked)) == (0, 0)
    (counted,) = base.calls  # and not again
    of_base = parse(counted[1:], SUITES)
    assert (of_base.chosen["campaign"], of_base.chosen["candidate"], of_base.chosen["base"]) == ("gate", "", "")
    assert load("testbeds", of_base.chosen["testbed"], TestbedConfig).duts[0].kernel == "distribution"
    assert {*of_base.options} == {"exclude", "include", "name", "outputdir", "variable"}
    assert (of_base.options["exclude"], of_base.options["include"]) == (["x"], ["emulated"])
    chosen = begun[0].chosen
    (machine,) = load("testbeds", chosen["testbed"], TestbedConfig).duts
    # The stock testbed has two seeds, which of like kernels may all lie beyond one another by chance.
    assert (machine.type, machine.kernel, machine.seeds) == ("emulated", package, 5)
    floors = load("sla", chosen["sla"], Floors)
    (entry,) = floors.floors["emulated/forward/1cpu-1rxq"].values()
    # Half a percent above the dearer seed; what the base did not count is not promised.
    assert (floors.image, floors.others, entry.thresholds[PER_PACKET].limit) == ("b2", "skipped", 4022)
    assert (chosen["campaign"], chosen["candidate"], begun[0].outputdir) == ("gate", "", str(out))
    assert (begun[0].options["exclude"], begun[0].options["name"]) == (["x"], "Mine")


def test_the_base_counts_the_same_rows_and_writes_nothing_that_the_user_named(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path
) -> None:
    base, out = made(Counted(4000)), tmp_path / "out"
    (tmp_path / "Rows.py").write_text("class Rows:\n    pass\n")
    (tmp_path / "Mine.py").write_text("class Mine:\n    pass\n")
    chooses = [
        "--name", "Mine", "--test", "*Mine*", "--task", "a", "--suite", "b", "--include", "c", "--exclude", "d",
        "--skip", "e", "--skiponfailure", "f", "--settag", "g", "--rerunfailed", "h", "--rerunfailedsuites", "i",
        "--prerunmodifier", "Rows", "--parser", "Mine", "--parseinclude", "*.md", "--extension", "md",
        "--pythonpath", str(tmp_path), "--language", "de", "--runemptysuite", "--randomize", "all",
    ]  # fmt: skip
    writes = [
        "--output", "a", "--log", "b", "--report", "c", "--xunit", "d", "--debugfile", "e", "--legacyoutput",
        "--splitlog", "--timestampoutputs", "--logtitle", "f", "--reporttitle", "g", "--reportbackground", "a:b",
        "--maxerrorlines", "20", "--maxassignlength", "9", "--suitestatlevel", "1", "--tagstatinclude", "h",
        "--tagstatexclude", "i", "--tagstatcombine", "j", "--tagdoc", "k:l", "--tagstatlink", "m:n:o",
        "--expandkeywords", "name:p", "--removekeywords", "for", "--flattenkeywords", "for", "--prerebotmodifier", "q",
    ]  # fmt: skip
    ends = ["--nostatusrc", "--exitonfailure", "--exitonerror", "--skipteardownonexit"]
    assert gate(out, "--candidate", package, *chooses, *writes, *ends) == 0
    of_base, judged = parse(base.calls[0][1:], SUITES).options, begun[0].options
    assert {*of_base} == {"outputdir", "variable"} | {each[2:] for each in chooses if each.startswith("--")}
    assert {*judged} == {*of_base} | {each[2:].removeprefix("no") for each in writes + ends if each.startswith("--")}
    assert all(of_base[name] == judged[name] for name in of_base if name not in ("outputdir", "variable"))


@pytest.mark.parametrize(
    "asked", [("-V", "mine.yaml"), ("--argumentfile", str(ROOT / "test_lists" / "gate.args"), "-v", "SLA:mine")]
)
def test_another_sla_gives_way_to_what_the_base_costs(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, ...], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    base, out = made(Counted(4000)), tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("SLA: none-of-this-name\nCAMPAIGN: gate\n")
    assert gate(out, "--candidate", package, *asked) == 0
    assert "no other SLA is used" in capsys.readouterr().out
    of_base = parse(base.calls[0][1:], SUITES).chosen
    assert (of_base["sla"], begun[0].chosen["sla"]) == ("local", str(out / "counts-of-base.yaml"))
    assert (of_base["campaign"], begun[0].chosen["campaign"]) == ("gate", "gate")


def test_other_rows_than_those_of_the_base_need_another_folder(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, out = made(Counted(4000)), tmp_path / "out"
    asked = ("--candidate", package, "--test", "*Forward*", "--skip", "x")
    assert gate(out, *asked) == 0
    for other in (("--test", "*Bridge*"), ("-v", "CAMPAIGN:gate"), (str(SUITES),)):
        assert gate(out, *asked, *other) == 4, other
        error = capsys.readouterr().err
        assert error.startswith(f"run: {out / 'arguments-of-both.txt'}: is of other options.\n")
    # Neither the order of options matters, nor what is written.
    same = ("--skip", "x", "--test", "*Forward*", "--candidate", package, "--log", "NONE")
    assert (gate(out, *same), len(begun), len(base.calls)) == (0, 2, 1)


def test_what_does_not_go_with_a_kernel_is_said_before_anything_is_counted(
    package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert gate(out, "--candidate", str(deb(tmp_path / "linux-x.deb", "bin/x"))) == 4
    assert "--candidate: " in capsys.readouterr().err
    for more in (
        ["--testbeds", "a,b"],
        ["--all"],
        ["-v", "TESTBAD:x"],
        ["--base", package],
        ["--dryrun", "--test", "No Such Row"],
    ):
        assert gate(out, "--candidate", package, *more) == 4, more
    assert not out.exists()


def test_what_was_not_counted_with_the_base_is_not_judged(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(Counted())
    assert gate(tmp_path / "out", "--candidate", package) == 6
    assert "No instructions were counted: nothing was proved of the topology.\n" in capsys.readouterr().out
    store.write(counted_record("bridge", [1], **ALIKE), tmp_path / "out" / "base")
    assert (gate(tmp_path / "out", "--candidate", package), len(begun)) == (0, 1)
    # However the run ends that judges: also where it goes on later.
    ends = [kernel_candidate.with_uncounted(ExitStatus(status), tmp_path / "out") for status in (0, 1, 3)]
    assert ends == [3, 1, 3]
    said = "Forward: Not counted with the base, and so not judged: nothing was proved of the topology."
    assert said in capsys.readouterr().out
    # The report agrees with the status.
    row = counted_record("forward", [])
    skipped = WithoutRecord(suite=row.suite, test=row.test, outcome="skipped", reason="It promises nothing.")
    store.note_without_record([skipped, skipped.model_copy(update={"test": "Other"})], tmp_path / "out")
    store.write(counted_record("bridge", [1], **ALIKE), tmp_path / "out")
    kernel_candidate.with_uncounted(ExitStatus.MET, tmp_path / "out")
    page = write_reports([tmp_path / "out"], tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (page.tone, summary["verdict"]) == ("unmeasured", "not measured")
    assert [(test["test"], test["outcome"]) for test in summary["without_record"]] == [
        ("Other", "skipped"), (row.test, "failed"),
    ]  # fmt: skip
    assert "nothing was proved of the topology" in (tmp_path / "out" / "sla.html").read_text()
    assert (tmp_path / "out" / "junit.xml").read_text().count("<error") == 1
    assert not any("--candidate" in said for said in page.unseen)
    assert kernel_candidate.with_uncounted(ExitStatus.MET, tmp_path) == 0
    (tmp_path / "out" / "base" / "records" / "broken.json").write_text("{")
    assert "broken" in [test.test for test in kernel_candidate.not_counted(tmp_path / "out")]


@pytest.mark.parametrize("status", [4, 130, 137, 143])
def test_a_gate_ends_where_its_base_was_stopped_or_broke(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """Of a base that counted some rows only, the others would be skipped, and the gate could be green."""
    made(Counted(status=status))
    out = tmp_path / "a folder"
    store.write(counted_record("forward", [4000], **ALIKE), out / "base")
    assert (gate(out, "--candidate", package), begun) == (status, [])
    assert f"To go on: the same command with --outputdir '{out}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda base, _: store.write(counted_record("bridge", [1], **ALIKE | {"seeds": 3}), base),
            "was counted with another number of seeds",
        ),
        (
            lambda _, patch: patch.setattr(kernel_candidate, "program_of", lambda machine: "changed"),
            "the base is no longer what was counted",
        ),
    ],
    ids=["seeds", "files"],
)
def test_a_base_that_was_counted_in_another_way_or_of_other_files_is_refused(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], change: Callable[[Path, pytest.MonkeyPatch], object], said: str,
) -> None:  # fmt: skip
    made(Counted(4000, 4001))
    assert gate(tmp_path / "out", "--candidate", package) == 0
    change(tmp_path / "out" / "base", monkeypatch)
    assert (gate(tmp_path / "out", "--candidate", package), len(begun)) == (4, 1)
    assert said in capsys.readouterr().err


def test_a_row_that_only_the_base_counted_is_not_judged(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert kernel_candidate.with_uncounted(ExitStatus.MET, out) == 0
    made(Counted(4000, 4001))
    assert gate(out, "--candidate", package) == 0
    assert [kernel_candidate.with_uncounted(ExitStatus(status), out) for status in (0, 1, 3)] == [3, 1, 3]
    assert "Forward: Not counted with the candidate, and so not judged: " in capsys.readouterr().out
    # Another row of the test does not make up for it, and the report agrees with the status.
    other = counted_record("forward", [4000], **ALIKE)
    other = other.model_copy(update={"topology": other.topology.model_copy(update={"rx_queues": 2})})
    store.write(other, out)
    assert kernel_candidate.with_uncounted(ExitStatus.MET, out) == 3
    assert write_reports([out], out).tone == "unmeasured"
    store.write(counted_record("forward", [4000], **ALIKE), out)
    assert kernel_candidate.with_uncounted(ExitStatus.MET, out) == 0


def test_a_run_that_judges_notes_what_its_base_did_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    (tmp_path / "a.robot").write_text("*** Test Cases ***\nPasses\n    No Operation\n")
    out = tmp_path / "out"
    store.write(counted_record("forward", [], **ALIKE), out / "base")
    (out / kernel_candidate.COUNTS).touch()
    command = parse(["--console", "none", str(tmp_path / "a.robot")], tmp_path)
    sla.run(command, out, sla.selected_suite(command.arguments))
    assert [(test.test, test.outcome) for test in store.read_without_record(out)[0]] == [("Forward", "failed")]


def test_a_dry_run_checks_the_rows_of_the_candidate(
    made: Made, begun: list[CommandLine], package: str, tmp_path: Path
) -> None:
    base = made(Counted())
    assert gate(tmp_path / "out", "--candidate", package, "--dryrun") == 0
    (checked,) = begun
    assert (checked.dry_run, checked.chosen["testbed"], checked.options["include"]) == (True, "emulated", ["emulated"])
    assert (checked.chosen["candidate"], base.calls) == ("", [])


def test_the_image_of_a_testbed_gives_way_to_the_kernels(tmp_path: Path) -> None:
    stock = load("testbeds", "emulated", TestbedConfig)
    (machine,) = stock.duts
    kept = stock.model_copy(update={"duts": (machine.model_copy(update={"image": "/srv/my.image"}),)})
    (made,) = kernel_candidate.write_testbed(kept, "/opt/linux-6.12.deb", tmp_path / "candidate.yaml").duts
    assert (made.kernel, made.image) == ("/opt/linux-6.12.deb", "")


def test_a_machine_without_qemu_says_so_and_nothing_is_counted(
    made: Made, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = made(Counted(4000))
    lacking = Mock(side_effect=MissingResource("An emulated machine needs QEMU."))
    monkeypatch.setattr(kernel_candidate, "facts_of", lacking)
    assert (gate(tmp_path / "out", "--candidate", package), base.calls) == (6, [])


def test_no_name_is_no_kernel_wherever_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.1").touch()
    monkeypatch.chdir(tmp_path)
    assert kernel_candidate.is_kernel(".") and not kernel_candidate.is_kernel("")
    assert not kernel_candidate.is_kernel("x" * 300)


@pytest.mark.parametrize(("name", "side"), [("linux-x.deb", "base"), ("linux-x.deb", "candidate")])
def test_a_kernel_that_is_damaged_is_said_before_the_other_side_is_counted(
    made: Made, package: str, name: str, side: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, base, out = tmp_path / name, made(Counted()), tmp_path / "out"
    file.write_bytes(b"404 Not Found\n")
    sides = {"base": "distribution", "candidate": package} | {side: str(file)}
    assert gate(out, "--candidate", sides["candidate"], "--base", sides["base"]) == 4
    error = capsys.readouterr().err
    assert base.calls == [] and not out.exists()
    assert error.startswith(f"run: --{side}: {file} is not a kernel: ") and error.count("\n") == 2
    assert gate(out, "--candidate", package, "--base", "/nowhere.deb") == 4
    assert capsys.readouterr().err.startswith("run: --base: /nowhere.deb is not a kernel: /nowhere.deb does")
