"""`./run compare`: its exit status, what it refuses, and two installations measured in turn by a made-up ./run sla."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from ctbench.cli import compare
from ctbench.compare.interleave import turns
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.comparison import Comparison
from ctbench.testbed import checks

from .compared import TRUTH, around, environment, record

pytestmark = pytest.mark.unit


def write_runs(folder: Path, rates: Sequence[float], **changes: object) -> str:
    for number, rate in enumerate(rates):
        store.write(record([rate], f"{folder.name}-{number}", **changes), folder / f"{number}")
    return str(folder)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["compare.py", *arguments])
    status = compare.main()
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(("factor", "samples", "status"), [(1.0, 5, 0), (1.1, 5, 0), (0.9, 5, 7), (0.9, 3, 8)])
def test_the_exit_status_says_what_came_of_it(
    factor: float, samples: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    old = write_runs(tmp_path / "old", around(TRUTH, samples))
    new = write_runs(tmp_path / "new", around(TRUTH * factor, samples, 1))
    out = tmp_path / "out"
    found, shown, _ = run(capsys, monkeypatch, old, new, "--outputdir", str(out))
    assert found == status
    written = Comparison.model_validate_json((out / "compare.json").read_text())
    assert written.sentence in shown
    assert written.sentence in (out / "compare.md").read_text()


def test_runs_of_two_testbeds_are_refused_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, 5))
    other = environment(machine={"kernel": "6.2"})
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1), environment=other)
    where = ["--outputdir", str(tmp_path / "out")]
    status, _, said = run(capsys, monkeypatch, old, new, *where)
    assert status == 4
    assert "kernel" in said
    assert "--different" in said
    status, shown, _ = run(capsys, monkeypatch, old, new, "--different", *where)
    assert status == 0
    assert "NOT ALIKE: The machine" in shown


def test_runs_that_are_not_like_the_candidate_can_be_left_out_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    write_runs(old, around(TRUTH, 5))
    elsewhere = record([TRUTH * 3], "old-elsewhere", environment=environment(machine={"kernel": "6.2"}))
    store.write(elsewhere, old / "elsewhere")
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1))
    where = ["--outputdir", str(tmp_path / "out")]
    status, _, _ = run(capsys, monkeypatch, str(old), new, *where)
    assert status == 4
    status, _, _ = run(capsys, monkeypatch, str(old), new, "--only-alike", *where)
    assert status == 0
    written = Comparison.model_validate_json((tmp_path / "out" / "compare.json").read_text())
    assert written.base.records == 5
    assert str(old / "elsewhere") not in written.base.folders
    assert len(written.base.folders) == 5
    (said,) = written.notes
    assert "old-elsewhere" in said
    assert "kernel" in said
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "old-elsewhere" in page


PUBLISHED = str(Path(__file__).parents[2] / "results" / "reference" / "ovs-3.0.0")


def test_a_run_is_set_beside_published_figures_and_nothing_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(record([48_200.0 * 2], topology=Topology(ruleset="conntrack")), tmp_path / "run")
    out = tmp_path / "out"
    status, shown, _ = run(capsys, monkeypatch, PUBLISHED, str(tmp_path / "run"), "--outputdir", str(out))
    assert status == 0
    table = shown.partition("2022, table 4: ")[2].partition("\n\n")[0]
    theirs, ours = table.splitlines()[2:]
    assert "Open vSwitch 3.0.0" in theirs
    assert "48.2 k/s" in theirs
    assert "this run" in ours
    assert "96.4 k/s" in ours
    assert "+100 %" in ours
    assert "other hardware" in shown
    assert max(map(len, shown.partition("The published")[0].splitlines())) <= 120
    assert "2022, table 4" in (out / "report.html").read_text()
    assert not (out / "compare.html").exists()


def test_published_figures_are_no_candidate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = write_runs(tmp_path / "run", [TRUTH])
    for sides in ((mine, PUBLISHED), (f"{mine},{PUBLISHED}", mine)):
        status, _, said = run(capsys, monkeypatch, *sides, "--outputdir", str(tmp_path / "out"))
        assert status == 4
        assert "as BASE" in said


def test_where_no_run_is_like_the_candidate_nothing_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, 2), environment=environment(machine={"kernel": "6.2"}))
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1))
    status, _, said = run(capsys, monkeypatch, old, new, "--only-alike", "--outputdir", str(tmp_path / "out"))
    assert status == 4
    assert "kernel" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["", "one"], 4, "a folder has no name"),
        (["one", "two"], 4, "one: has no records, it is not a folder"),
        (["--installations", "base=distribution", "candidate=/nowhere"], 4, "candidate=/nowhere: there is no such"),
        (["--installations", "base=/nowhere", "candidate=distribution"], 4, "base=/nowhere: there is no such"),
        (["--installations", "base=/etc", "candidate=distribution"], 6, "base=/etc: OVS-DPDK is not on"),
        (["--installations", "base=/etc", "candidate=/etc", "--include", "nope"], 4, "no tests matching tag 'nope'"),
        (["one", "two"], 4, "one: has no records"),
        (["one", "two", "--least-difference", "3"], 4, "--least-difference"),
        (["--installations", "base=distribution", "candidate=here"], 4, "is not an installation"),
        (["--installations", "base=distribution", "base=/opt/ovs"], 4, "names one side twice"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "-v", "SLA:mine"], 4, "Expected --sla mine"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "--testbed", "locl"], 4, "Did you mean"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(
    arguments: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    found, _, error = run(capsys, monkeypatch, *arguments, "--outputdir", str(tmp_path / "out"))
    assert found == status
    assert said in error


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"sbin/ovsdb-server": None}, "sbin/ovsdb-server not found"),
        ({"sbin/ovs-vswitchd": (0o644, "")}, "sbin/ovs-vswitchd cannot be executed"),
        ({"sbin/ovsdb-server": (0o755, "#!/bin/sh\necho library missing >&2; exit 127\n")}, "(library missing)"),
        ({"sbin/ovs-vswitchd": (0o755, "#!/nowhere\n")}, "sbin/ovs-vswitchd --version does not work"),
        ({"sbin/ovs-vswitchd": (0o755, "#!/bin/sh\necho Open vSwitch 3.3.0\n")}, "was built without DPDK"),
    ],
)
def test_an_installation_that_cannot_be_measured_is_said_before_the_other_one_is(
    broken: dict[str, tuple[int, str] | None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    prefix, sla = tmp_path / "ovs", MadeUpSla()
    works = (0o755, "#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 3.3.0'\necho DPDK 23.11\n")
    files = dict.fromkeys(OvsInstallation(prefix="").files, works) | {f"/{name}": made for name, made in broken.items()}
    for name, made in files.items():
        if made:
            path = prefix / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[1])
            path.chmod(made[0])
    monkeypatch.setattr(checks, "check_machine", lambda _testbed: None)
    monkeypatch.setattr(compare, "run_child", sla)
    both = ["--installations", f"base={prefix}", f"candidate={prefix}", "--outputdir", str(tmp_path / "out")]
    status, _, error = run(capsys, monkeypatch, *both)
    assert (status, sla.calls) == (6, [])
    assert error.startswith(f"compare: --installations base={prefix}: ")
    assert said in error
    assert not (tmp_path / "out").exists()


class MadeUpSla:
    """Stands in for ./run sla: notes how it was called and leaves the record of one test."""

    def __init__(self, breaks_at: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.breaks_at = breaks_at

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls.append(list(argv[2:]))
        folder = Path(argv[argv.index("--outputdir") + 1])
        testbed = next(each for each in argv if each.startswith("TESTBED:")).partition(":")[2]
        prefix = yaml.safe_load(Path(testbed).read_text())["duts"][0]["ovs"]["prefix"]
        rate = TRUTH if prefix == "distribution" else TRUTH * 0.8
        store.write(record([rate + len(self.calls)], f"run-{len(self.calls)}-{folder}"), folder)
        return 130 if len(self.calls) == self.breaks_at else 1

    @property
    def order(self) -> list[str]:
        return [call[call.index("--outputdir") + 1].split("/")[-2] for call in self.calls]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which every installation can be measured."""
    monkeypatch.setattr(compare, "check_side", lambda *_: None)


COMMAND = ["--installations", "base=distribution", "candidate=/opt/ovs-3.3", "--rounds", "3"]


def test_two_installations_are_measured_in_turn_and_compared(
    installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sla = MadeUpSla()
    monkeypatch.setattr(compare, "run_child", sla)
    status, shown, _ = run(capsys, monkeypatch, *COMMAND, "--outputdir", str(tmp_path / "out"), "--include", "1cpu")
    assert sla.order == ["base", "candidate", "candidate", "base"] * 3
    assert status == 7
    assert "REGRESSED" in shown
    assert sla.calls[0][-2:] == ["--include", "1cpu"]
    assert "CAMPAIGN:compare" in sla.calls[0]


def test_without_tags_and_suites_only_open_vswitch_is_measured(
    installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sla = MadeUpSla()
    monkeypatch.setattr(compare, "run_child", sla)
    run(capsys, monkeypatch, *COMMAND, "--outputdir", str(tmp_path / "out"))
    assert sla.calls[0][-2:] == ["--include", "ovs-dpdk"]


def test_what_was_stopped_goes_on_where_it_was_and_loses_nothing(
    installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, stopped = tmp_path / "out", MadeUpSla(breaks_at=3)
    monkeypatch.setattr(compare, "run_child", stopped)
    status, shown, said = run(capsys, monkeypatch, *COMMAND, "--outputdir", str(out))
    assert (status, len(stopped.calls)) == (130, 3)
    assert f"--outputdir {out}" in said
    assert "NOT MEASURABLE" in shown
    again = MadeUpSla()
    monkeypatch.setattr(compare, "run_child", again)
    status, _, _ = run(capsys, monkeypatch, *COMMAND, "--outputdir", str(out))
    assert again.order == ["candidate", "base", *["base", "candidate", "candidate", "base"] * 2]
    assert status == 7
    made = json.loads((out / "compare.json").read_text())
    assert (made["base"]["records"], made["candidate"]["records"]) == (6, 7)


def test_runs_of_other_installations_are_not_mixed(
    installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "run_child", MadeUpSla(breaks_at=3))
    run(capsys, monkeypatch, *COMMAND, "--outputdir", str(tmp_path / "out"))
    other = ["--installations", "base=distribution", "candidate=/opt/ovs-3.4", "--outputdir", str(tmp_path / "out")]
    status, _, said = run(capsys, monkeypatch, *other)
    assert status == 4
    assert "is of a comparison of something else" in said


def test_a_run_that_was_broken_off_makes_way_for_another(tmp_path: Path) -> None:
    first, second = list(turns(tmp_path, 1))[:2]
    (first.folder / "records").mkdir(parents=True)
    first.make_way()
    second.make_way()
    assert [path.name for path in (tmp_path / "base").iterdir()] == ["01-broken-off-1"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rounds", "0"], '--rounds: "0" is not a number for this.\n  Expected a whole number from 1 to 1000.'),
        (["--rounds", "9" * 5000], "Expected a whole number from 1 to 1000."),
        (["--rounds", "two"], "Expected a whole number from 1 to 1000."),
        (["--least-difference", "100%"], "--least-difference: of 100% nothing ever regressed."),
        (["--least-difference", "1e-999%"], "is too small for a percentage"),
        (["--least-difference", "nan"], '--least-difference: "nan" is not a percentage.'),
    ],
)
def test_an_option_out_of_its_range_is_said_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    sla = MadeUpSla()
    monkeypatch.setattr(compare, "run_child", sla)
    monkeypatch.setattr(compare, "check_side", lambda *_: None)
    status, _, error = run(capsys, monkeypatch, *COMMAND, *options, "--outputdir", str(tmp_path / "out"))
    assert (status, sla.calls) == (4, [])
    assert said in error
    assert len(error) < 400
