"""Calibration turns the records of several runs into floors by their scatter, and refuses what scatters too much."""

import math
import random
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml

from ctbench.base.errors import CtbenchError
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.base.yaml_files import load
from ctbench.cli import calibrate, child_runs
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, MachineFacts, TestbedFacts
from ctbench.results.metrics import METRICS, SECONDS, Metric
from ctbench.results.record import Figure, Record
from ctbench.results.tolerance import tolerance_factor
from ctbench.sla import threshold
from ctbench.sla.calibration import Stock, sla_file
from ctbench.sla.calibration_bound import LEAST_RUNS, LEAST_SCATTER, bound_of, enough, runs_needed, scatter_of
from ctbench.sla.calibration_figures import Figures, gather
from ctbench.sla.floors import Floors

from .simulated import found, found_packets, made_up_packet_record, made_up_record

pytestmark = pytest.mark.unit

NONE = Stock("none", {}, {})
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"


def runs(*capacities: float) -> list[Record]:
    """A run for each capacity, whose search could tell nearly anything apart."""
    return [
        exact(made_up_record(found(capacity), run_id=f"run-{i}"), capacity * 1.001)
        for i, capacity in enumerate(capacities)
    ]


def exact(record: Record, upper: float) -> Record:
    return record.model_copy(update={"evidence": record.evidence.model_copy(update={"upper_bound": upper})})


def around(middle: float, scatter: float, number: int, seed: int = 0) -> list[float]:
    dice = random.Random(seed)
    return [middle * math.exp(dice.gauss(0, scatter)) for _ in range(number)]


def figures(*values: float, resolution: float = 0.0) -> Figures:
    return Figures(KEY, "short-lived", "", METRICS["cps"], values, resolution, 0, True, {})


def test_the_floor_is_the_tolerance_bound_of_the_logarithms(tmp_path: Path) -> None:
    rates = [100_000.0, 104_000.0, 96_000.0, 110_000.0, 99_000.0, 101_000.0]
    logs = [math.log(rate) for rate in rates]
    scatter = math.sqrt(sum((each - mean(logs)) ** 2 for each in logs) / 5)
    expected = math.exp(mean(logs) - 3.707 * math.hypot(scatter, math.log(1.001) / math.sqrt(12)))
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", runs(*rates), 0.25, NONE))
    record = runs(1)[0]
    floor = load("sla", str(file), Floors).find(record.topology, record.profile)
    assert floor.main is not None
    assert floor.main.limit == pytest.approx(expected, rel=0.005)
    assert floor.source == "6 runs on this machine"
    assert "# new connections: median 100k, 96k to 110k in 6 runs, scatter 4.70 %" in file.read_text()


def test_further_runs_of_the_same_machine_fall_below_the_bound_as_rarely_as_it_says() -> None:
    """Content 95 % with 95 % confidence: of all calibrations, in 19 of 20 at least 19 of 20 further runs are above."""
    kept = []
    for seed in range(600):
        bound = bound_of(figures(*around(100_000, 0.07, 7, seed)))
        assert bound is not None
        further = around(100_000, 0.07, 400, 10_000 + seed)
        kept.append(mean(each >= bound.value for each in further) >= 0.95)
    assert mean(kept) >= 0.93


def test_stopping_when_it_is_enough_leaves_most_of_the_confidence() -> None:
    """A lucky row of runs ends early, so the confidence is less than of a fixed number: that much is documented."""
    kept = []
    for seed in range(500):
        rates = around(100_000, 0.08, 10, seed)
        number = next(n for n in range(LEAST_RUNS, 11) if n == 10 or enough([figures(*rates[:n])], n, 0.25))
        bound = bound_of(figures(*rates[:number]))
        assert bound is not None
        if bound.width <= 0.25:  # else it is refused
            below = 0.5 * (1 + math.erf(math.log(bound.value / 100_000) / 0.08 / math.sqrt(2)))
            kept.append(below <= 0.05)
    assert mean(kept) >= 0.88


def test_what_scatters_too_much_gets_no_floor_and_the_file_says_why() -> None:
    wild = runs(100_000, 140_000, 70_000, 120_000, 90_000)
    text = sla_file("here", wild, 0.25, NONE)
    assert yaml.safe_load(text).keys() == {"name", "description", "source"}
    (said,) = [line for line in text.splitlines() if "no floor of this machine" in line]
    assert said.startswith(f"# {KEY}: short-lived: new connections: no floor of this machine: its 5 runs scatter by 2")
    assert said.endswith("below the median of 100.0 k/s, and 25.0 % is the widest.")


def test_what_is_refused_keeps_what_other_floors_promise_of_it() -> None:
    wild = runs(100_000, 140_000, 70_000, 120_000, 90_000)
    text = sla_file("here", wild, 0.25, Stock.read("stock", STOCK))
    entry = yaml.safe_load(text)[KEY]["short-lived"]
    assert entry == {"source": "somewhere", "cps": ">= 1k", "ratio": RATIO}
    assert "    # as in SLA stock\n" in text and "no floor of this machine" in text


def test_results_that_are_all_alike_are_not_taken_to_be_exact() -> None:
    assert scatter_of([1.0] * 6, 0.0) == LEAST_SCATTER
    assert scatter_of([1.0] * 6, 0.3) == pytest.approx(math.log(1.3) / math.sqrt(12))
    bound = bound_of(figures(*[100_000.0] * 6))
    assert bound is not None
    assert bound.value == pytest.approx(100_000 * math.exp(-tolerance_factor(6) * LEAST_SCATTER))


def test_a_wider_search_makes_a_wider_bound() -> None:
    rates = around(100_000, 0.03, 8)
    narrow, wide = bound_of(figures(*rates)), bound_of(figures(*rates, resolution=0.2))
    assert narrow and wide and wide.value < narrow.value


def test_it_takes_as_many_runs_as_it_takes() -> None:
    quiet, loud = figures(*around(1e5, 0.02, 5)), figures(*around(1e5, 0.12, 5, 3))
    assert enough([quiet], 5, 0.25)
    assert not enough([quiet], 4, 0.25)  # a bound of so few says nothing
    assert not enough([quiet, loud], 5, 0.25)
    assert runs_needed([quiet], 0.25, 10) == 5
    assert 5 < runs_needed([quiet, loud], 0.25, 40) <= 40
    # What no run measured is waited for by nobody; what one did is.
    assert enough([quiet, figures()], 5, 0.25)
    assert not enough([quiet, figures(1e5)], 5, 0.25)


def test_one_figure_does_not_scatter_and_one_of_nothing_has_no_logarithm() -> None:
    assert bound_of(figures(1e5)) is None
    assert bound_of(figures(1e5, 0.0)) is None


def test_the_floors_bind_to_the_machine_that_was_measured(tmp_path: Path) -> None:
    facts = MachineFacts(cpu_model="EPYC 9R14: x", usable_cpus=[0, 1], virtualisation="kvm", kernel="6.1")
    records = [
        each.model_copy(update={"environment": each.environment.model_copy(update={"machine": facts})})
        for each in runs(*around(1e5, 0.02, 5))
    ]
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", records, 0.25, NONE))
    machine = load("sla", file, Floors).machine
    assert machine is not None
    assert not machine.differs_from(facts)
    assert not machine.differs_from(facts.model_copy(update={"kernel": "6.2"}))  # it may be what is tested
    for other in ({"cpu_model": "Xeon"}, {"usable_cpus": [0]}, {"virtualisation": "none"}):
        assert machine.differs_from(facts.model_copy(update=other))


def test_what_is_promised_is_the_rate_that_was_searched_for_and_nothing_else() -> None:
    records = [*runs(*around(1e5, 0.02, 5)), *packets(*around(2e5, 0.02, 5))]
    entries = [entry for profiles in yaml.safe_load(sla_file("here", records, 0.25, NONE)).values()
               if isinstance(profiles, dict) for entry in profiles.values()]  # fmt: skip
    assert [sorted(set(entry) & {"cps", "pps", "bps", "ratio"}) for entry in entries] == [["cps"], ["pps"]]


def packets(*capacities: float) -> list[Record]:
    return [made_up_packet_record(found_packets(each), run_id=f"run-{i}") for i, each in enumerate(capacities)]


def made_up_metrics(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """One that no other test knows, of which lower is better."""
    wait = Metric("wait", "time to wait", SECONDS, "lower", "promise")
    monkeypatch.setitem(METRICS, wait.name, wait)
    return wait


def timed(seconds: float, run: str, **changes: Any) -> Record:
    """The record of a test that looked for a time, with a load that was held meanwhile."""
    (record,) = runs(200_000)
    rates = {"cps": Figure(value=1_000, unit="connections/s"), "wait": Figure(value=seconds, unit="s")}
    return record.model_copy(update={"metric": "wait", "figures": rates, "run_id": run} | changes)


def test_where_lower_is_better_the_floor_is_above_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = made_up_metrics(monkeypatch)
    times = around(0.003, 0.02, 6)
    text = sla_file("here", [timed(seconds, f"run-{seconds}") for seconds in times], 0.25, NONE)
    (entry,) = yaml.safe_load(text)[KEY].values()
    assert threshold.parse(entry["wait"], wait).limit == pytest.approx(0.003 * math.exp(3.707 * 0.022), rel=0.03)
    assert "cps" not in entry  # it is what was offered


def test_two_tests_of_one_topology_and_profile_share_their_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_metrics(monkeypatch)
    times = [timed(seconds, f"run-{i}") for i, seconds in enumerate(around(0.003, 0.02, 6))]
    text = sla_file("here", [*times, *runs(*around(2e5, 0.02, 6))], 0.25, NONE)
    (entry,) = yaml.safe_load(text)[KEY].values()
    assert list(entry) == ["wait", "cps", "loss_ratio"]


def test_what_an_entry_promises_besides_its_rate_stays_and_its_rate_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_metrics(monkeypatch)
    stock = Stock.read(
        "stock", STOCK.replace('{cps: ">= 1k", ', '{cps: ">= 1k", pps: ">= 7k", smoke: true, wait: "<= 9s", ')
    )
    (entry, *_) = yaml.safe_load(sla_file("here", runs(*around(2e5, 0.02, 6)), 0.25, stock))[KEY].values()
    assert set(entry) == {"cps", "loss_ratio", "wait", "ratio"}
    assert (entry["wait"], entry["ratio"]) == ("<= 9s", RATIO)
    assert entry["cps"] != ">= 1k"


def test_a_substitute_keeps_what_is_promised_of_the_profile_that_it_stands_for() -> None:
    stock = Stock.read("stock", STOCK.replace("short-lived:", "long-lived:"))
    short = made_up_record().profile.model_copy(update={"name": "long-lived-short", "derived_from": "long-lived"})
    records = [each.model_copy(update={"profile": short}) for each in runs(*around(2e5, 0.02, 6))]
    entries = yaml.safe_load(sla_file("here", records, 0.25, stock))[KEY]
    assert set(entries["long-lived-short"]) == {"cps", "loss_ratio", "ratio"}
    assert entries["long-lived"]["cps"] == ">= 1k"


def test_a_run_that_measured_nothing_is_counted_apart() -> None:
    records = [*runs(*around(2e5, 0.02, 5)), made_up_record(verdict="not measured", figures={}, run_id="run-9")]
    (only,) = gather(records)
    assert (len(only.results), only.without) == (5, 1)
    assert "; 1 run measured nothing" in sla_file("here", records, 0.25, NONE)


def test_without_a_measurement_there_is_no_file() -> None:
    with pytest.raises(CtbenchError, match="measured nothing"):
        sla_file("here", [made_up_record(verdict="not measured", figures={})], 0.25, NONE)


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
    assert said[5].startswith("calibrate: 1 floors are of this machine, of 5 runs, ")
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


RATIO = {"to": "ovs-dpdk/forward/1cpu-1rxq", "rate": ">= 20%"}
STOCK = f"""
name: stock
source: somewhere
loss_ratio: "<= 1%"
{KEY}:
  short-lived: {{cps: ">= 1k", ratio: {{to: {RATIO["to"]}, rate: "{RATIO["rate"]}"}}}}
  http-600: &http {{cps: ">= 2k", connect_time_p99: "<= 5ms"}}
linux-bridge/bond/1cpu-1rxq:
  http-600: *http
"""


def test_what_was_not_measured_keeps_its_floors_and_it_is_said_how_many_there_are(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock = tmp_path / "stock.yaml"
    stock.write_text(STOCK.replace("source:", "description: x\nsource:"))
    given = write_runs(checkout, *around(2e5, 0.02, 5))
    assert calibrated(monkeypatch, "mine", *given, "--sla", str(stock)) == 0

    assert "2 floors are those of SLA stock" in capsys.readouterr().out
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


def test_runs_of_several_machines_have_no_median() -> None:
    records = runs(200_000, 300_000)
    elsewhere = records[1].environment.model_copy(update={"machine": MachineFacts(cpu_model="another")})
    with pytest.raises(CtbenchError, match="several machines: unknown, another"):
        sla_file("mine", [records[0], records[1].model_copy(update={"environment": elsewhere})], 0.25, NONE)


@pytest.mark.parametrize("name", ["2024", "on", "no", "null", "1e3", "0x10", "1-2-3"])
def test_a_name_that_yaml_reads_as_something_else_is_written_as_a_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(sla_file(name, runs(*around(2e5, 0.02, 5)), 0.25, NONE))
    assert load("sla", file, Floors).name == name


@pytest.mark.parametrize("model", ["Xeon: fast # really", 'a "quoted" one', "two\nlines: x", "{", "- x", "", "'"])
def test_whatever_a_machine_is_called_the_file_can_be_read(tmp_path: Path, model: str) -> None:
    records = runs(*around(2e5, 0.02, 5))
    named = records[0].environment.model_copy(update={"machine": MachineFacts(cpu_model=model)})
    file = tmp_path / "mine.yaml"
    of_it = [record.model_copy(update={"environment": named}) for record in records]
    file.write_text(sla_file("mine", of_it, 0.25, NONE))
    assert load("sla", file, Floors).name == "mine"


def test_where_the_floors_are_beyond_the_generator_what_it_reached_becomes_the_floor() -> None:
    beyond = [
        made_up_record(found(capacity), run_id=f"run-{i}", verdict="not measured", limited_by="generator")
        for i, capacity in enumerate(around(50_000, 0.02, 5))
    ]
    text = sla_file("here", beyond, 0.25, NONE)
    assert "cps" in yaml.safe_load(text)[KEY]["short-lived"]
    assert "; at least, as something else was the limit" in text
    # A run that a busy machine spoilt does not lower what others measured.
    (only,) = gather([*runs(200_000, 210_000), beyond[0].model_copy(update={"run_id": "run-9"})])
    assert (only.results, only.without) == ((200_000, 210_000), 1)


def test_a_rate_that_is_too_close_to_its_floor_to_call_is_a_rate() -> None:
    close = made_up_record(found(205_000), run_id="run-9", verdict="not measured", limited_by="dut")
    (only,) = gather([*runs(200_000, 210_000), close])
    assert (only.results, only.without, only.judged) == ((200_000, 210_000, 205_000), 0, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"limited_by": "fault"},
        {"limited_by": "floor"},
        {"figures": {"cps": Figure(value=0.0, unit="connections/s")}},
        {"figures": {}},
        {
            "figures": {"cps": Figure(value=1.0, unit="connections/s", samples=[1.0, 9.0])},
            "campaign": CampaignFacts(name="x", max_spread=0.1),
        },
    ],
    ids=str,
)
def test_what_says_nothing_about_the_dut_becomes_no_floor(changes: dict[str, Any]) -> None:
    (only,) = gather([made_up_record(found(40_000), verdict="not measured", **changes)])
    assert (only.results, only.without) == ((), 1)


def test_what_shared_cpus_measured_becomes_no_floor() -> None:
    record = made_up_record(found(40_000), verdict="not measured")
    shared = record.environment.model_copy(update={"testbed": TestbedFacts(oversubscribe=True)})
    (only,) = gather([record.model_copy(update={"environment": shared})])
    assert only.results == ()


def test_a_machine_with_an_odd_name_gives_a_file_that_can_be_read() -> None:
    machine = MachineFacts(cpu_model='x: "y"\n- #\x1b[31m', usable_cpus=[0])
    records = [
        each.model_copy(update={"environment": each.environment.model_copy(update={"machine": machine})})
        for each in runs(*around(2e5, 0.02, 5))
    ]
    text = sla_file("here", records, 0.25, NONE)
    assert yaml.safe_load(text)["source"] == '5 runs on x: "y" - #\\x1b[31m'
    assert "\x1b" not in text


def test_instructions_are_of_an_image_and_of_no_machine() -> None:
    record = made_up_packet_record(found_packets(1e5))
    assert gather([record])
    assert gather([record.model_copy(update={"metric": "instructions_per_packet"})]) == []
