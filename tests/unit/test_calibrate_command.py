"""`./run calibrate`: what is refused before anything is measured, the runs that it makes, and the file of them."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.base.yaml_files import load
from ctbench.cli import calibrate
from ctbench.results import store
from ctbench.sla.floors import Floors

from .calibrated import KEY, STOCK, around, runs
from .counted import Made, counted_record
from .simulated import made_up_record


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


class Checkout:
    """A checkout without any SLA file or result, for the tool's own files; what it reads is the real one's."""

    def __init__(self, folder: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str], made: Made) -> None:
        self.folder, self._run, self._capsys, self._made = folder, run, capsys, made
        self.slas.mkdir(parents=True)
        (folder / "results").mkdir()

    @property
    def slas(self) -> Path:
        return self.folder / "variables" / "sla"

    def file(self, name: str) -> Path:
        return self.slas / f"{name}.yaml"

    def written(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.file(name).read_text())
        return found

    def calibrate(self, *arguments: str, made: Callable[[Sequence[str]], int] | None = None) -> tuple[int, str, str]:
        """`./run calibrate` with these arguments, and with runs that are made up: status, stdout and stderr."""
        self._made(made or Runs())
        status = self._run("calibrate", *arguments)
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def write_runs(self, *rates: float) -> list[str]:
        """Runs that were made before, as options."""
        for number, record in enumerate(runs(*rates)):
            store.write(record, self.folder / f"run-{number}")
        return [part for number in range(len(rates)) for part in ("--from", str(self.folder / f"run-{number}"))]


@pytest.fixture
def checkout(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status_of: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    made: Made,
) -> Checkout:
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr(calibrate, "own_files", lambda kind: tmp_path / "variables" / kind)
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    return Checkout(tmp_path, status_of, capsys, made)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *(
            ((name,), "Expected")
            for name in ("../x", "", " ", "Mine", "mine\n", "a/b", "mine.yaml", "a" * 300, "a\0b", "ä", ".")
        ),
        *(
            (("mine", f"--most-runs={runs}"), "Expected")
            for runs in ("0", "4", "-1", "100", "1e3", "9" * 5000, "three", "", "²", "1.5")
        ),
        *(
            (("mine", f"--widest={each}"), "Expected")
            for each in ("0%", "100%", "101%", "-1%", "20", "", "nan%", "9" * 5000 + "%")
        ),
        *((("mine", f"--{file}=nowhere"), "Expected") for file in ("testbed", "campaign", "sla")),
        (("mine", "--campaign", "gate"), "search: gate finds no rate"),
        (("mine", "--from", "x", "--outputdir", "y"), "Expected one of them"),
        (("mine", "--from", "empty"), "has no records"),
    ],
)
def test_what_says_nothing_sensible_or_makes_no_floor_is_refused_before_anything_is_measured(
    checkout: Checkout, arguments: tuple[str, ...], words: str
) -> None:
    status, _, said = checkout.calibrate(*arguments, made=(made := Runs()))
    assert (status, made.folders, list(checkout.folder.rglob("*.yaml*"))) == (4, [], [])
    assert words in said
    assert len(said) < 500


def test_a_checkout_that_cannot_be_written_is_said_before_anything_is_measured(checkout: Checkout) -> None:
    checkout.slas.rmdir()  # root may write to everything that is there
    status, _, said = checkout.calibrate("mine")
    assert status == 4
    assert "variables/sla: the SLA file cannot be written there" in said


def test_every_run_says_which_it_is_and_the_file_is_that_of_all(checkout: Checkout) -> None:
    status, out, _ = checkout.calibrate("mine", made=(made := Runs(0, 1, 3)))
    assert status == 0
    said = [line for line in out.splitlines() if line.startswith("calibrate:")]
    assert said[0] == "calibrate: run 1, at most 10; the time left is known after the first"
    assert all(
        line.startswith(f"calibrate: run {number}, at most 10; about ") for number, line in enumerate(said[1:5], 2)
    )
    assert [folder.name for folder in made.folders] == ["01", "02", "03", "04", "05"]
    assert said[5].startswith("calibrate: floors of this machine: 1, of 5 runs, ")
    assert said[-1] == "calibrate: variables/sla/mine.yaml written. Use it with: ./run sla -v SLA:mine"


def test_a_machine_that_scatters_is_measured_more_often_and_not_for_ever(checkout: Checkout) -> None:
    assert checkout.calibrate("loud", "--most-runs", "40", made=(loud := Runs(scatter=0.08)))[0] == 0
    assert 5 < len(loud.folders) < 40
    wild = Runs(scatter=0.3)
    status, out, _ = checkout.calibrate(
        "wild", "--most-runs", "7", "--outputdir", str(checkout.folder / "wild"), made=wild
    )
    assert (status, len(wild.folders)) == (0, 7)
    assert "calibrate: 1 figure without one: the file says why." in out
    load("sla", checkout.file("wild"), Floors)


@pytest.mark.parametrize("ended", [4, 130])
def test_a_run_that_ends_otherwise_passes_its_status_on_and_it_can_go_on(checkout: Checkout, ended: int) -> None:
    status, _, error = checkout.calibrate("mine", "--widest", "20%", made=(made := Runs(0, ended)))
    assert status == ended
    assert not checkout.file("mine").exists()
    lines = error.splitlines()
    assert f"calibrate: run 2 ended with status {ended}." in lines
    (of_these,) = (shlex.split(line) for line in lines if line.startswith("  ./run"))
    assert of_these[:3] == ["./run", "calibrate", "mine"]
    assert str(made.folders[0]) in of_these and str(made.folders[1]) not in of_these
    output = lines[-1].removeprefix("To go on: the same command with --outputdir ")

    assert checkout.calibrate("mine", "--widest", "20%", "--outputdir", output, made=(again := Runs()))[0] == 0
    assert [folder.name for folder in again.folders] == ["02", "03", "04", "05"]
    assert checkout.written("mine")["source"].startswith("5 runs")


def test_where_the_first_run_ends_with_a_mistake_nothing_is_kept_and_nothing_is_said_of_it(checkout: Checkout) -> None:
    status, _, said = checkout.calibrate("mine", made=Runs(4))
    assert status == 4
    assert "--from" not in said


def test_ctrl_c_keeps_the_runs_that_are_complete(checkout: Checkout) -> None:
    status, _, said = checkout.calibrate("mine", made=Runs(then=Mock(side_effect=[None, KeyboardInterrupt])))
    assert status == 130
    assert "calibrate: 1 runs are kept. To make the file of them:" in said and "--from" in said


def test_a_file_that_somebody_wrote_in_the_meantime_is_kept_and_so_are_the_runs(checkout: Checkout) -> None:
    theirs = checkout.file("mine")
    status, _, said = checkout.calibrate("mine", made=Runs(then=lambda: theirs.write_text("theirs")))
    assert status == 4
    assert "is there already" in said and "--from" in said
    assert theirs.read_text() == "theirs"


def test_runs_that_measured_nothing_end_with_6_and_leave_no_file(checkout: Checkout) -> None:
    store.write(made_up_record(verdict="not measured", figures={}), checkout.folder / "run")
    status, _, said = checkout.calibrate("mine", "--from", str(checkout.folder / "run"))
    assert status == 6
    assert "measured nothing" in said
    assert list(checkout.slas.iterdir()) == []


def test_where_nothing_was_counted_no_file_is_left(checkout: Checkout) -> None:
    def count(argv: Sequence[str]) -> int:
        store.write(counted_record("forward", []), Path(argv[argv.index("--outputdir") + 1]))
        return 3

    status, _, said = checkout.calibrate("mine", "--testbed", "emulated", made=count)
    assert (status, list(checkout.slas.iterdir())) == (6, [])
    assert "measured nothing" in said


@pytest.mark.parametrize("other", [("--campaign", "night"), ("--testbed", "emulated"), ("--include", "nat")])
def test_other_options_need_another_folder(checkout: Checkout, other: tuple[str, ...]) -> None:
    output = str(checkout.folder / "out")
    assert checkout.calibrate("mine", "--outputdir", output, made=Runs(0, 130))[0] == 130
    status, _, said = checkout.calibrate("mine", "--outputdir", output, *other, made=(made := Runs()))
    assert (status, made.folders) == (4, [])
    assert "arguments-of-all.txt: is of other options." in said


def test_another_command_does_not_measure_in_the_folder_of_one_that_does(checkout: Checkout) -> None:
    output = checkout.folder / "out"
    others: list[tuple[int, str]] = []

    def another() -> None:
        status, _, said = checkout.calibrate("other", "--outputdir", str(output))
        others.append((status, said))

    first = Runs(then=another)
    assert checkout.calibrate("mine", "--outputdir", str(output), made=first)[0] == 0
    assert {status for status, _ in others} == {4} and "measures into it" in others[0][1]
    assert sorted(each.name for each in output.glob("0*")) == ["01", "02", "03", "04", "05"]


def test_existing_runs_can_be_used_and_a_file_is_not_overwritten(checkout: Checkout) -> None:
    given = checkout.write_runs(*around(2e5, 0.02, 5))
    assert checkout.calibrate("mine", *given)[0] == 0
    assert checkout.written("mine")["name"] == "mine"
    status, _, said = checkout.calibrate("mine", *given)
    assert status == 4
    assert "is there already" in said
    # A run that is named twice counts once.
    (checkout.folder / "latest").symlink_to("run-0")
    assert checkout.calibrate("again", *given, "--from", str(checkout.folder / "latest"), *given)[0] == 0
    assert checkout.written("again")["source"].startswith("5 runs")


def test_what_was_not_measured_keeps_its_floors(checkout: Checkout) -> None:
    stock = checkout.folder / "stock.yaml"
    stock.write_text(STOCK)
    given = checkout.write_runs(*around(2e5, 0.02, 5))
    assert checkout.calibrate("mine", *given, "--sla", str(stock))[0] == 0
    floors = load("sla", checkout.file("mine"), Floors).floors
    assert 160_000 < floors[KEY]["short-lived"].cps.limit < 200_000
    assert floors["linux-bridge/bond/1cpu-1rxq"]["http-600"].cps.limit == 2_000


def test_the_file_to_write_is_not_the_one_that_it_extends(checkout: Checkout) -> None:
    checkout.file("mine").write_text(STOCK)
    status, _, said = checkout.calibrate("mine", "--force", "--sla", str(checkout.file("mine")))
    assert status == 4 and "is the file to write" in said


def test_what_fewer_runs_measured_than_there_were_is_said(checkout: Checkout) -> None:
    given = checkout.write_runs(*around(2e5, 0.02, 5))
    store.write(made_up_record(run_id="b", verdict="not measured", figures={}), checkout.folder / "b")
    assert checkout.calibrate("mine", *given, "--from", str(checkout.folder / "b"))[0] == 0
    file = checkout.file("mine").read_text()
    assert "in 5 runs, scatter " in file and "; 1 run measured nothing" in file


def test_one_run_of_instructions_is_enough(checkout: Checkout) -> None:
    def count(argv: Sequence[str]) -> int:
        store.write(counted_record("forward", [1375.2, 1375.3]), Path(argv[argv.index("--outputdir") + 1]))
        return 0

    status, out, _ = checkout.calibrate("mine", "--testbed", "emulated", made=(sla := Mock(side_effect=count)))
    assert (status, sla.call_count) == (0, 1)
    assert "run 1, at most 1" in out and "1 floors are of image a1." in out
    assert load("sla", checkout.file("mine"), Floors).image == "a1"
