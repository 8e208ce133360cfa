"""`./run calibrate`: what is refused before anything is measured, the runs that it makes, and the file of them."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.base.yaml_files import load
from ctbench.cli import calibrate, child_runs
from ctbench.results import store
from ctbench.sla.floors import Floors

from .calibrated import KEY, STOCK, around, runs
from .simulated import made_up_record

pytestmark = pytest.mark.unit


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without any SLA file or result, for the tool's own files; what it reads is the real one's."""
    (tmp_path / "variables" / "sla").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr(calibrate, "VARIABLES", tmp_path / "variables")
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    return tmp_path


def calibrated(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["calibrate", *arguments])
    return calibrate.main()


class Runs:
    """Stands in for the runs of the suites: what each ends with, and what it leaves: rates that scatter."""

    def __init__(self, *ends: int, scatter: float = 0.02, then: Callable[[], object] | None = None) -> None:
        self.ends, self.then = list(ends), then
        self.rates = iter(around(200_000, scatter, 60, 1))
        self.folders: list[Path] = []

    def __call__(self, argv: Sequence[str]) -> int:
        folder = Path(argv[argv.index("--outputdir") + 1])
        assert not list(folder.iterdir()), "an older run's records would count as this one's"
        self.folders.append(folder)
        ended = self.ends.pop(0) if self.ends else 0
        if ended not in (2, 4, 6):
            store.write(runs(next(self.rates))[0].model_copy(update={"run_id": str(folder)}), folder)
        if self.then:
            self.then()
        return ended


def made_by(monkeypatch: pytest.MonkeyPatch, made: Runs) -> Runs:
    monkeypatch.setattr(child_runs, "run_child", made)
    return made


@pytest.mark.parametrize(
    "name",
    ["../x", "/tmp/x", "", " ", "Mine", "mine\n", "a\nb", "a/b", "mine.yaml", "a" * 300, "a\0b", "ä", "."],
)
def test_a_name_that_is_none_is_refused_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    made_by(monkeypatch, Runs())
    assert calibrated(monkeypatch, name) == 4
    assert "Expected" in capsys.readouterr().err
    assert list(checkout.rglob("*.yaml*")) == []


@pytest.mark.parametrize(
    "option",
    [("--most-runs", runs) for runs in ("0", "4", "-1", "100", "1e3", "9" * 5000, "three", "", "²", "1.5")]
    + [("--widest", widest) for widest in ("0%", "100%", "101%", "-1%", "20", "", "nan%", "9" * 5000 + "%")]
    + [(f"--{file}", "nowhere") for file in ("testbed", "campaign", "sla")],
)
def test_an_option_that_says_nothing_sensible_is_refused_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    made_by(monkeypatch, Runs())
    assert calibrated(monkeypatch, "mine", f"{option[0]}={option[1]}") == 4
    said = capsys.readouterr().err
    assert "Expected" in said
    assert len(said) < 500


def test_a_checkout_that_cannot_be_written_is_said_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "variables" / "sla").rmdir()  # root may write to everything that is there
    made_by(monkeypatch, Runs())
    assert calibrated(monkeypatch, "mine") == 4
    assert "variables/sla: the SLA file cannot be written there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--campaign", "gate"), "search: gate finds no rate"),
        (("--from", "x", "--outputdir", "y"), "Expected one of them"),
        (("--runs", "3"), "no option --runs"),
    ],
)
def test_what_cannot_make_a_floor_is_said_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...],
    said: str,
) -> None:  # fmt: skip
    made = made_by(monkeypatch, Runs())
    try:
        assert calibrated(monkeypatch, "mine", *arguments) in (2, 4)
    except SystemExit as ended:
        assert ended.code == 2
    assert said in capsys.readouterr().err
    assert made.folders == []


def test_every_run_says_which_it_is_and_the_file_is_that_of_all(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_by(monkeypatch, Runs(0, 1, 3))
    assert calibrated(monkeypatch, "mine") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("calibrate:")]
    assert said[0] == "calibrate: run 1 of about 5, at most 10; the time left is known after the first"
    assert all(line.startswith(f"calibrate: run {number} of about 5, at most 10; about ") for number, line in
               enumerate(said[1:5], 2))  # fmt: skip
    assert [folder.name for folder in made.folders] == ["01", "02", "03", "04", "05"]
    assert said[5].startswith("calibrate: floors of this machine: 1, of 5 runs, ")
    assert said[-1] == "calibrate: variables/sla/mine.yaml written. Use it with: ./run sla -v SLA:mine"


def test_a_machine_that_scatters_is_measured_more_often_and_not_for_ever(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = made_by(monkeypatch, Runs(scatter=0.08))
    assert calibrated(monkeypatch, "loud", "--most-runs", "40") == 0
    assert 5 < len(loud.folders) < 40
    wild = made_by(monkeypatch, Runs(scatter=0.3))
    assert calibrated(monkeypatch, "wild", "--most-runs", "7", "--outputdir", str(checkout / "wild")) == 0
    assert len(wild.folders) == 7
    assert f"no floor: {KEY} short-lived: its 7 runs scatter by " in capsys.readouterr().out
    load("sla", checkout / "variables" / "sla" / "wild.yaml", Floors)


@pytest.mark.parametrize("ended", [2, 4, 5, 6, 70, 130, 143])
def test_a_run_that_ends_otherwise_passes_its_status_on_and_it_can_go_on(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: int
) -> None:
    made = made_by(monkeypatch, Runs(0, ended))
    assert calibrated(monkeypatch, "mine", "--widest", "20%") == ended
    assert not (checkout / "variables" / "sla" / "mine.yaml").exists()
    lines = capsys.readouterr().err.splitlines()
    assert f"calibrate: run 2 ended with status {ended}." in lines
    on, of_these = (shlex.split(line) for line in lines if line.startswith("  ./run"))
    assert on[:3] == of_these[:3] == ["./run", "calibrate", "mine"]
    assert str(made.folders[0]) in of_these and str(made.folders[1]) not in of_these

    again = made_by(monkeypatch, Runs())
    assert calibrated(monkeypatch, *on[2:]) == 0
    assert [folder.name for folder in again.folders] == ["02", "03", "04", "05"]
    assert yaml.safe_load((checkout / "variables" / "sla" / "mine.yaml").read_text())["source"].startswith("5 runs")


def test_where_the_first_run_ends_with_a_mistake_nothing_is_kept_and_nothing_is_said_of_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made_by(monkeypatch, Runs(4))
    assert calibrated(monkeypatch, "mine") == 4
    assert "--from" not in capsys.readouterr().err


def test_ctrl_c_keeps_the_runs_that_are_complete(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Runs()

    def interrupt() -> None:
        if len(made.folders) == 2:
            raise KeyboardInterrupt

    made.then = interrupt
    made_by(monkeypatch, made)
    assert calibrated(monkeypatch, "mine") == 130
    said = capsys.readouterr().err
    assert "calibrate: 1 runs are kept. To go on:" in said and "--from" in said


def test_a_file_that_somebody_wrote_in_the_meantime_is_kept_and_so_are_the_runs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = checkout / "variables" / "sla" / "mine.yaml"
    made_by(monkeypatch, Runs(then=lambda: target.write_text("theirs")))
    assert calibrated(monkeypatch, "mine") == 4
    said = capsys.readouterr().err
    assert "is there already" in said and "--from" in said
    assert target.read_text() == "theirs"


def test_runs_that_measured_nothing_end_with_6_and_leave_no_file(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(made_up_record(verdict="not measured", figures={}), checkout / "run")
    assert calibrated(monkeypatch, "mine", "--from", str(checkout / "run")) == 6
    assert "measured nothing" in capsys.readouterr().err
    assert list((checkout / "variables" / "sla").iterdir()) == []


def write_runs(checkout: Path, *rates: float) -> list[str]:
    for number, record in enumerate(runs(*rates)):
        store.write(record, checkout / f"run-{number}")
    return [part for number in range(len(rates)) for part in ("--from", str(checkout / f"run-{number}"))]


def test_existing_runs_can_be_used_and_a_file_is_not_overwritten(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = write_runs(checkout, *around(2e5, 0.02, 5))
    assert calibrated(monkeypatch, "mine", *given) == 0
    assert yaml.safe_load((checkout / "variables" / "sla" / "mine.yaml").read_text())["name"] == "mine"
    assert calibrated(monkeypatch, "mine", *given) == 4
    assert "is there already" in capsys.readouterr().err


def test_a_folder_without_records_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated(monkeypatch, "mine", "--from", str(checkout / "empty")) == 4
    assert "has no records" in capsys.readouterr().err


def test_a_run_that_is_named_twice_counts_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = write_runs(checkout, *around(2e5, 0.02, 5))
    (checkout / "latest").symlink_to("run-0")
    assert calibrated(monkeypatch, "mine", *given, "--from", str(checkout / "latest"), *given) == 0
    assert yaml.safe_load((checkout / "variables" / "sla" / "mine.yaml").read_text())["source"].startswith("5 runs")


def test_what_was_not_measured_keeps_its_floors_and_it_is_said_how_many_there_are(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock = tmp_path / "stock.yaml"
    stock.write_text(STOCK.replace("source:", "description: x\nsource:"))
    given = write_runs(checkout, *around(2e5, 0.02, 5))
    assert calibrated(monkeypatch, "mine", *given, "--sla", str(stock)) == 0

    assert "floors of SLA stock that stay: 2." in capsys.readouterr().out
    written = load("sla", checkout / "variables" / "sla" / "mine.yaml", Floors)
    measured = written.floors[KEY]["short-lived"]
    kept = written.floors["linux-bridge/bond/1cpu-1rxq"]["http-600"]
    assert measured.cps and 160_000 < measured.cps.limit < 200_000
    assert kept.cps and kept.cps.limit == 2_000
    assert written.loss_ratio and written.loss_ratio.text == "<= 1%"
    assert kept.connect_time_p99 and kept.source == "somewhere"


def test_what_fewer_runs_measured_than_there_were_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = write_runs(checkout, *around(2e5, 0.02, 5))
    store.write(made_up_record(run_id="b", verdict="not measured", figures={}), checkout / "b")
    assert calibrated(monkeypatch, "mine", *given, "--from", str(checkout / "b")) == 0
    assert f"{KEY} short-lived: measured in 5 of 6 runs only" in capsys.readouterr().out
    file = (checkout / "variables" / "sla" / "mine.yaml").read_text()
    assert "in 5 runs, scatter " in file and "; 1 run measured nothing" in file
