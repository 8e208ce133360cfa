"""`./run compare --installations`: starts of both builds, made by a made-up ./run sla, from the options to the page."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ctbench.cli import child_runs, compare
from ctbench.compare.judge import nothing_counted
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.results import store
from ctbench.results.comparison import Comparison
from ctbench.testbed.config import TestbedConfig

from .compared import Made, MadeUpSla, Run
from .paired import start_record

CANDIDATE = "/opt/ovs-3.3"


class Started(MadeUpSla):
    """Leaves the record of a start for each test. The candidate is as fast as `factor` says, and every start has a luck
    of its own."""

    def __init__(self, factor: float = 1.0, *, breaks_at: int = 0, tests: int = 1, luck: float = 0.005) -> None:
        super().__init__()
        self.factor, self.breaks_at, self.tests, self.luck = factor, breaks_at, tests, luck
        self.dice = random.Random(4)

    def leave(self, folder: Path, dut: dict[str, Any], base: str) -> int:
        if len(self.calls) == self.breaks_at:
            return 130
        first, speed = dut["ovs"]["prefix"], {"distribution": 1.0, CANDIDATE: self.factor}
        for test in range(self.tests):
            ratio = speed[first] / speed[base] * self.dice.gauss(1, self.luck)
            store.write(start_record(ratio, f"run-{folder}", test, first), folder)
        return 0

    @property
    def folders(self) -> list[str]:
        return ["/".join(call[call.index("--outputdir") + 1].split("/")[-2:]) for call in self.calls]


@pytest.fixture
def able(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A machine on which every installation can be measured; instructions are counted in tests of their own."""
    monkeypatch.setattr(compare, "check_installation", lambda *_: None)
    monkeypatch.setattr(compare, "count_builds", lambda *_, **__: nothing_counted("QEMU is missing"))
    return made


COMMAND = ["--installations", "base=distribution", f"candidate={CANDIDATE}"]


def test_the_base_is_measured_against_itself_and_then_both_by_turns(
    able: Made, tmp_path: Path, run_compare: Run
) -> None:
    sla, out = able(Started(0.95)), tmp_path / "out"
    status, shown, _ = run_compare(*COMMAND, "--include", "1cpu")
    assert sla.folders == [
        *(f"base-against-itself/{number:02d}" for number in range(1, 6)),
        *(f"starts/{number:02d}" for number in range(1, 11)),
    ]
    first = [call[call.index("-v") + 1].rsplit("/", 1)[1] for call in sla.calls]
    assert first == ["base.yaml"] * 5 + ["candidate.yaml", "base.yaml"] * 5
    assert [f"BASE:{CANDIDATE}" in call for call in sla.calls] == [False] * 5 + [False, True] * 5
    assert sla.calls[0][-4:] == ["-v", "CAMPAIGN:builds", "--include", "1cpu"]
    assert status == 7
    assert "REGRESSED" in shown
    lines = shown.splitlines()
    assert lines.pop(0) == "compare: No instructions were counted: QEMU is missing."
    assert lines[0] == "compare: base against itself, start 1 of 5; the time left is known after the first"
    assert lines[1].startswith("compare: base against itself, start 2 of 5; about ")
    assert lines[5].startswith(
        "compare: 5 starts of the base against itself: this machine can show 2.0 % with 10 starts"
    )
    assert lines[6].startswith("compare: candidate against base, start 1 of 10, candidate first; about ")
    assert lines[7].startswith("compare: candidate against base, start 2 of 10, base first; about ")
    written = Comparison.model_validate_json((out / "compare.json").read_text())
    assert (written.schema_version, written.kind, written.judgement) == (4, "pairs", "regressed")
    page = (out / "compare.html").read_text()
    assert "99 % interval" in page and "No instructions were counted: QEMU is missing." in page
    assert "99 % interval" in (out / "compare.md").read_text()
    assert max(map(len, shown.partition("\n\n")[2].splitlines()[:-1])) <= 120


def test_instructions_can_be_declined(able: Made, tmp_path: Path, run_compare: Run) -> None:
    able(Started())
    out = tmp_path / "out"
    _, shown, _ = run_compare(*COMMAND, "--no-instructions")
    assert "nstructions were counted" not in shown and "Instructions" not in shown
    assert json.loads((out / "compare.json").read_text())["counts"] is None


def test_many_tests_get_as_many_starts_as_they_need(able: Made, run_compare: Run) -> None:
    sla = able(Started(tests=3))
    status, shown, _ = run_compare(*COMMAND)
    assert (status, len(sla.calls)) == (0, 5 + 10)
    assert "in the median of 3 tests" in shown
    assert sla.calls[0][-2:] == ["--include", "ovs-dpdk"], "where neither tags nor suites are given"


def test_fewer_starts_than_the_tests_need_are_said_before_they_are_made(able: Made, run_compare: Run) -> None:
    sla = able(Started(0.5))
    status, shown, _ = run_compare(*COMMAND, "--starts", "7")
    assert (status, len(sla.calls)) == (8, 5 + 7)
    said = "compare: one test needs 8 starts, and --starts is 7: nothing will be judged."
    assert shown.index(said) < shown.index("candidate against base")
    assert "7 starts cannot show p < 0.01 among 1 test: 8 are needed." in shown


@pytest.mark.parametrize(("breaks_at", "judged"), [(3, False), (6, False), (9, True)])
def test_what_was_stopped_goes_on_where_it_was_and_loses_nothing(
    breaks_at: int, judged: bool, able: Made, tmp_path: Path, run_compare: Run
) -> None:
    out = tmp_path / "out"
    stopped = able(Started(0.9, breaks_at=breaks_at))
    status, shown, said = run_compare(*COMMAND)
    assert (status, len(stopped.calls)) == (130, breaks_at)
    assert f"ended with status 130. {(breaks_at - 1) % 5} of {5 if breaks_at < 6 else 10} starts" in said
    assert f"--outputdir {out}" in said
    assert ("NOT MEASURABLE" in shown) == judged  # what there is of both builds is shown
    again = able(Started(0.9))
    status, _, _ = run_compare(*COMMAND)
    assert (status, again.folders[0], len(again.calls)) == (7, stopped.folders[-1], 15 - breaks_at + 1)
    broken_off = stopped.folders[-1] + "-broken-off-1"
    assert (out / broken_off).is_dir()
    made_of = json.loads((out / "compare.json").read_text())["tests"][0]["starts"]
    assert (len(made_of["ratios"]), len(made_of["same"])) == (10, 5)
    assert not any("broken-off" in path for path in made_of["records"])


def test_what_is_complete_is_judged_again_and_nothing_is_measured(able: Made, run_compare: Run) -> None:
    able(Started(0.97))
    assert run_compare(*COMMAND)[0] == 7
    nothing = able(Started())
    assert run_compare(*COMMAND, "--least-difference", "5%")[0] == 0
    assert nothing.calls == []


def test_starts_of_other_installations_are_not_mixed(able: Made, tmp_path: Path, run_compare: Run) -> None:
    able(Started(breaks_at=3))
    run_compare(*COMMAND)
    other = ["--installations", "base=distribution", "candidate=/opt/ovs-3.4"]
    status, _, said = run_compare(*other)
    assert status == 4
    assert "is of a comparison of something else" in said
    # Nor are starts on another machine.
    able(Started())
    run_compare(*COMMAND)
    path = next((tmp_path / "out" / "starts" / "01" / "records").glob("*.json"))
    path.write_text(path.read_text().replace("Xeon", "EPYC"))
    status, _, said = run_compare(*COMMAND)
    assert status == 4
    assert "cpu_model" in said and "--different" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--starts", "4"], '--starts: "4" is not a number for this.\n  Expected a whole number from 5 to 20.'),
        (["--starts", "21"], "Expected a whole number from 5 to 20."),
        (["--starts", "9" * 5000], "Expected a whole number from 5 to 20."),
        (["--starts", "two"], "Expected a whole number from 5 to 20."),
        (["--least-difference", "100%"], "--least-difference: of 100% nothing ever regressed."),
        (["--least-difference", "1e-999%"], "is too small for a percentage"),
        (["--least-difference", "nan"], '--least-difference: "nan" is not a percentage.'),
    ],
)
def test_an_option_out_of_its_range_is_said_before_anything_is_measured(
    able: Made, run_compare: Run, options: list[str], said: str
) -> None:
    sla = able(Started())
    status, _, error = run_compare(*COMMAND, *options)
    assert (status, sla.calls) == (4, [])
    assert said in error
    assert len(error) < 400


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
    broken: dict[str, tuple[int, str] | None],
    said: str,
    tmp_path: Path,
    run_compare: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix, sla = tmp_path / "ovs", Started()
    works = (0o755, "#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 3.3.0'\necho DPDK 23.11\n")
    files = dict.fromkeys(OvsInstallation(prefix="").files, works) | {f"/{name}": made for name, made in broken.items()}
    for name, made in files.items():
        if made:
            path = prefix / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[1])
            path.chmod(made[0])
    monkeypatch.setattr(TestbedConfig, "check_machine", lambda _testbed: None)
    monkeypatch.setattr(child_runs, "run_child", sla)
    both = ["--installations", f"base={prefix}", f"candidate={prefix}"]
    status, _, error = run_compare(*both)
    assert (status, sla.calls) == (6, [])
    assert error.startswith(f"compare: --installations base={prefix}: ")
    assert said in error
    assert not (tmp_path / "out").exists()
