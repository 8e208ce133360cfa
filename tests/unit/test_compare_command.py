"""`./run compare`: its exit status, what it refuses; instructions are in test_compare_counts.py."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.comparison import Comparison

from .compared import TRUTH, Run, around, environment, record


def write_runs(folder: Path, rates: Sequence[float], **changes: object) -> str:
    for number, rate in enumerate(rates):
        store.write(record([rate], f"{folder.name}-{number}", **changes), folder / f"{number}")
    return str(folder)


@pytest.mark.parametrize(("factor", "samples", "status"), [(1.0, 5, 0), (1.1, 5, 0), (0.9, 5, 7), (0.9, 3, 8)])
def test_the_exit_status_says_it(factor: float, samples: int, status: int, tmp_path: Path, run_compare: Run) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, samples))
    new = write_runs(tmp_path / "new", around(TRUTH * factor, samples, 1))
    out = tmp_path / "out"
    found, shown, _ = run_compare(old, new)
    assert found == status
    written = Comparison.model_validate_json((out / "compare.json").read_text())
    assert written.sentence in shown
    assert written.kind == "runs"
    assert "./run sla --candidate" in shown.replace("\n", " ")  # the better way
    assert written.sentence in (out / "compare.md").read_text()


def test_runs_of_two_testbeds_are_refused_unless_it_is_asked_for(tmp_path: Path, run_compare: Run) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, 5))
    other = environment(machine={"kernel": "6.2"})
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1), environment=other)
    status, _, said = run_compare(old, new)
    assert status == 4
    assert "kernel" in said
    assert "--different" in said
    status, shown, _ = run_compare(old, new, "--different")
    assert status == 0
    assert "NOT ALIKE: The machine" in shown


def test_runs_that_are_not_like_the_candidate_can_be_left_out_and_are_named(tmp_path: Path, run_compare: Run) -> None:
    old = tmp_path / "old"
    write_runs(old, around(TRUTH, 5))
    elsewhere = record([TRUTH * 3], "old-elsewhere", environment=environment(machine={"kernel": "6.2"}))
    store.write(elsewhere, old / "elsewhere")
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1))
    status, _, _ = run_compare(str(old), new)
    assert status == 4
    status, _, _ = run_compare(str(old), new, "--only-alike")
    assert status == 0
    written = Comparison.model_validate_json((tmp_path / "out" / "compare.json").read_text())
    assert written.base.records == 5
    assert str(old / "elsewhere") not in written.base.folders
    assert len(written.base.folders) == 5
    _, said = written.notes
    assert "old-elsewhere" in said
    assert "kernel" in said
    assert "old-elsewhere" in (tmp_path / "out" / "compare.html").read_text()
    shutil.rmtree(old)
    store.write(elsewhere, old / "elsewhere")
    status, _, said = run_compare(str(old), new, "--only-alike")
    assert status == 4
    assert "kernel" in said


PUBLISHED = str(Path(__file__).parents[2] / "results" / "reference" / "ovs-3.0.0")


def test_published_figures_stand_beside_a_run_and_are_no_candidate(tmp_path: Path, run_compare: Run) -> None:
    store.write(record([48_200.0 * 2], topology=Topology(ruleset="conntrack")), tmp_path / "run")
    out = tmp_path / "out"
    status, shown, _ = run_compare(PUBLISHED, str(tmp_path / "run"))
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
    mine = write_runs(tmp_path / "run", [TRUTH])
    for sides in ((mine, PUBLISHED), (f"{mine},{PUBLISHED}", mine)):
        status, _, said = run_compare(*sides)
        assert status == 4
        assert "as BASE" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["", "one"], 4, "a folder without a name: has no records"),
        (["one", "two"], 4, "one: has no records, it is not a folder"),
        (["one", "two", "--least-difference", "3"], 4, "--least-difference"),
        (["--installations", "base=distribution", "candidate=here"], 4, "is not a side with an installation"),
        (["--installations", "base=distribution", "base=/opt/ovs"], 4, "names one side twice"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "-v", "SLA:mine"], 4, "no floor is judged"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "-v", "TESTBED:x"], 4, "Expected --testbed x"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "--starts", "3"], 2, "option --starts"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "--testbed", "locl"], 4, "Did you mean"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(
    arguments: list[str], status: int, said: str, tmp_path: Path, run_compare: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _, error = run_compare(*arguments)
    assert found == status
    assert said in error
