"""Calibration turns the records of several runs into floors below their medians, and says how far they spread."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctbench.base.errors import CtbenchError
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.base.yaml_files import load
from ctbench.cli import calibrate
from ctbench.results import store
from ctbench.results.environment import CampaignFacts, MachineFacts, TestbedFacts
from ctbench.results.metrics import METRICS, SECONDS, Metric
from ctbench.results.record import Baseline, Figure, Record
from ctbench.sla import threshold
from ctbench.sla.calibration import Stock, sla_file
from ctbench.sla.calibration_figures import gather
from ctbench.sla.floors import Floors

from .simulated import (
    FORWARDING,
    found,
    found_packets,
    made_up_packet_floor,
    made_up_packet_record,
    made_up_record,
)

pytestmark = pytest.mark.unit


def runs(*capacities: float) -> list[Record]:
    return [made_up_record(found(capacity), run_id=f"run-{i}") for i, capacity in enumerate(capacities)]


def test_floors_are_the_margin_below_the_median(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", runs(300_000, 100_000, 200_000), 0.2))
    record = runs(1)[0]
    floor = load("sla", str(file), Floors).find(record.topology, record.profile)
    assert floor.main.limit == 160_000
    assert "median of 3 runs" in floor.source


def test_the_spread_is_said() -> None:
    assert "# new connections: spread 100.0 % over 3 runs\n" in sla_file("here", runs(300_000, 100_000, 200_000), 0.2)


def test_every_figure_that_can_be_promised_gets_a_floor_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", [*runs(200_000), *packet_runs(200_000)], 0.2))
    written = load("sla", file, Floors)
    entries = [entry for profiles in written.floors.values() for entry in profiles.values()]
    assert [list(entry.thresholds) for entry in entries] == [["cps", "pps"], ["pps", "bps", "latency_p99"]]
    assert {"loss_ratio", "connect_time_p50", "active_connections"} <= set(runs(200_000)[0].figures)


def made_up_metrics(monkeypatch: pytest.MonkeyPatch) -> tuple[Metric, Metric]:
    """Two that no other test knows, of which lower is better: one to promise and one to show."""
    wait = Metric("wait", "time to wait", SECONDS, "lower", "promise")
    shown = Metric("shown", "time to show", SECONDS, "lower", "detail")
    for metric in (wait, shown):
        monkeypatch.setitem(METRICS, metric.name, metric)
    return wait, shown


def timed(seconds: float, run: str, **changes: Any) -> Record:
    """The record of a test that looked for a time, with a load that was held meanwhile."""
    (record,) = runs(200_000)
    found = {name: Figure(value=seconds, unit="s") for name in ("wait", "shown")}
    rates = {"cps": Figure(value=1_000, unit="connections/s")}
    return record.model_copy(update={"metric": "wait", "figures": rates | found, "run_id": run} | changes)


def test_where_lower_is_better_the_floor_is_above_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    wait, _ = made_up_metrics(monkeypatch)
    text = sla_file("here", [timed(seconds, f"run-{seconds}") for seconds in (0.002, 0.004, 0.003)], 0.2)
    (entry,) = yaml.safe_load(text)["ovs-dpdk/conntrack/1cpu-1rxq"].values()
    assert entry == {"wait": "<= 3.6ms"}
    assert threshold.parse(entry["wait"], wait).limit == pytest.approx(0.0036)
    assert "    # time to wait: spread 66.7 % over 3 runs\n" in text
    assert '"<= 3.6ms" # median 3ms, 2ms to 4ms' in text


def test_two_tests_of_one_topology_and_profile_share_their_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_metrics(monkeypatch)
    text = sla_file("here", [timed(0.003, "run-0"), *runs(200_000)], 0.2)
    (entry,) = yaml.safe_load(text)["ovs-dpdk/conntrack/1cpu-1rxq"].values()
    assert entry == {"wait": "<= 3.6ms", "cps": ">= 160k", "pps": ">= 1.12M"}


def test_promises_of_another_test_in_the_same_entry_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_metrics(monkeypatch)
    stock = Stock.read("stock", STOCK.replace('{cps: ">= 1k"}', '{cps: ">= 1k", bps: ">= 1G", wait: "<= 9s"}'))
    for records, left in (
        ([timed(0.003, "run-0")], {"cps": ">= 1k", "bps": ">= 1G", "wait": "<= 3.6ms"}),
        (runs(200_000), {"cps": ">= 160k", "pps": ">= 1.12M", "wait": "<= 9s"}),
    ):
        text = sla_file("here", records, 0.2, stock)
        assert yaml.safe_load(text)["ovs-dpdk/conntrack/1cpu-1rxq"]["short-lived"] == left
        assert text.count("# was not measured: as in SLA stock") == 3


def test_what_no_sla_can_promise_stays_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up_metrics(monkeypatch)
    text = sla_file("here", [timed(0.0, "run-0"), *runs(200_000)], 0.2)
    assert "    # wait: median 0ns, 0ns to 0ns; an SLA can promise from 1us to 60s\n" in text
    (entry,) = yaml.safe_load(text)["ovs-dpdk/conntrack/1cpu-1rxq"].values()
    assert "wait" not in entry


def packet_runs(*capacities: float, forwarding: float = 400_000.0) -> list[Record]:
    floor = made_up_packet_floor(">= 1k", share=">= 1%", p99="<= 5ms")
    baseline = Baseline(key=FORWARDING, rate=forwarding)
    return [
        made_up_packet_record(found_packets(capacity), floor, baseline, run_id=f"run-{i}")
        for i, capacity in enumerate(capacities)
    ]


def test_packets_get_floors_in_packets_and_a_relative_one_with_its_spread(tmp_path: Path) -> None:
    records = packet_runs(200_000, 240_000, 280_000)
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", records, 0.2))
    floor = load("sla", str(file), Floors).find(records[0].topology, records[0].profile)
    assert (floor.metric.name, floor.main.limit) == ("pps", 192_000)
    assert (floor.relative_to, floor.limit("ratio")) == (FORWARDING, 0.48)
    assert floor.thresholds["latency_p99"].text == "<= 5ms"
    assert "# median 60%, 50% to 70%" in file.read_text()
    assert "cps" not in file.read_text()


def test_a_ratio_that_no_sla_can_promise_stays_a_comment(tmp_path: Path) -> None:
    records = packet_runs(4_000)
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", records, 0.2))
    assert "# rate: median 1%, 1% to 1%; an SLA can promise from 1%" in file.read_text()
    assert load("sla", file, Floors).find(records[0].topology, records[0].profile).relative_to == ""


def test_a_run_that_measured_nothing_is_counted_apart() -> None:
    records = [*runs(200_000), made_up_record(verdict="not measured", figures={}, run_id="run-9")]
    (figures,) = gather(records)
    assert figures.results == (200_000,)
    assert figures.without == 1
    assert "; 1 run measured nothing" in sla_file("here", records, 0.2)


def test_without_a_measurement_there_is_no_file() -> None:
    with pytest.raises(CtbenchError, match="measured nothing"):
        sla_file("here", [made_up_record(verdict="not measured", figures={})], 0.2)


def test_existing_runs_can_be_used_and_a_file_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "variables" / "sla").mkdir(parents=True)
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr(calibrate, "VARIABLES", tmp_path / "variables")
    store.write(runs(200_000)[0], tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["calibrate", "mine", "--from", str(tmp_path / "run"), "--margin", "10%"])
    assert calibrate.main() == 0
    assert '">= 180k"' in (tmp_path / "variables" / "sla" / "mine.yaml").read_text()
    assert calibrate.main() == 4
    assert "is there already" in capsys.readouterr().err


def test_a_folder_without_records_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "variables" / "sla").mkdir(parents=True)
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr(calibrate, "VARIABLES", tmp_path / "variables")
    monkeypatch.setattr("sys.argv", ["calibrate", "mine", "--from", str(tmp_path / "empty")])
    assert calibrate.main() == 4
    assert "has no records" in capsys.readouterr().err


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
    """Stands in for the runs of the suites: what each ends with, and what it leaves."""

    def __init__(self, checkout: Path, *ends: int, then: Callable[[], object] | None = None) -> None:
        self.ends, self.checkout, self.then = list(ends), checkout, then
        self.folders: list[Path] = []

    def __call__(self, argv: Sequence[str]) -> int:
        folder = Path(argv[argv.index("--outputdir") + 1])
        assert not folder.exists(), "an older run's records would count as this one's"
        self.folders.append(folder)
        ended = self.ends.pop(0)
        if ended not in (2, 4, 6):
            store.write(made_up_record(found(200_000), run_id=folder.name), folder)
        if self.then:
            self.then()
        return ended


@pytest.mark.parametrize(
    "name",
    ["../x", "/tmp/x", "", " ", "Mine", "mine\n", "a\nb", "a/b", "mine.yaml", "a" * 300, "a\0b", "ä", "."],
)
def test_a_name_that_is_none_is_refused_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr(calibrate, "run_child", Runs(checkout))
    assert calibrated(monkeypatch, name) == 4
    assert "Expected" in capsys.readouterr().err
    assert list(checkout.rglob("*.yaml*")) == []


@pytest.mark.parametrize(
    "option",
    [("--runs", runs) for runs in ("0", "-1", "100", "1e3", "9" * 5000, "three", "", "²", "1.5")]
    + [("--margin", margin) for margin in ("100%", "101%", "-1%", "20", "", "nan%", "9" * 5000 + "%")]
    + [(f"--{file}", "nowhere") for file in ("testbed", "campaign", "sla")],
)
def test_an_option_that_says_nothing_sensible_is_refused_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    monkeypatch.setattr(calibrate, "run_child", Runs(checkout))
    assert calibrated(monkeypatch, "mine", f"{option[0]}={option[1]}") == 4
    said = capsys.readouterr().err
    assert "Expected" in said
    assert len(said) < 500


def test_a_checkout_that_cannot_be_written_is_said_before_anything_is_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "variables" / "sla").rmdir()  # root may write to everything that is there
    monkeypatch.setattr(calibrate, "run_child", Runs(checkout))
    assert calibrated(monkeypatch, "mine") == 4
    assert "variables/sla: the SLA file cannot be written there" in capsys.readouterr().err


def test_every_run_says_which_it_is_and_the_file_is_that_of_all(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Runs(checkout, 0, 1, 3)
    monkeypatch.setattr(calibrate, "run_child", made)
    assert calibrated(monkeypatch, "mine") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("calibrate:")]
    assert said[0] == "calibrate: run 1 of 3, the time left is known after the first"
    assert all(line.startswith(f"calibrate: run {number} of 3, about ") for number, line in enumerate(said[1:3], 2))
    assert len(set(made.folders)) == 3
    assert said[-1] == "calibrate: variables/sla/mine.yaml written. Use it with: ./run sla -v SLA:mine"
    assert "over 3 runs" in (checkout / "variables" / "sla" / "mine.yaml").read_text()


def test_a_second_calibration_within_the_same_second_has_folders_of_its_own(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Runs(checkout, 0, 0)
    monkeypatch.setattr(calibrate, "run_child", made)
    for name, process in (("one", 7), ("two", 8)):
        monkeypatch.setattr(calibrate.os, "getpid", lambda number=process: number)
        assert calibrated(monkeypatch, name, "--runs", "1") == 0
    assert len(set(made.folders)) == 2


@pytest.mark.parametrize("ended", [2, 4, 5, 6, 70, 130, 143])
def test_a_run_that_ends_otherwise_passes_its_status_on_and_what_was_measured_can_be_used(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: int
) -> None:
    made = Runs(checkout, 0, ended)
    monkeypatch.setattr(calibrate, "run_child", made)
    assert calibrated(monkeypatch, "mine", "--margin", "10%") == ended
    assert not (checkout / "variables" / "sla" / "mine.yaml").exists()
    said = capsys.readouterr().err
    assert f"run 2 of 3 ended with status {ended}" in said
    command = shlex.split(said.splitlines()[-1])
    assert command[:2] == ["./run", "calibrate"]
    assert str(made.folders[0]) in command

    assert calibrated(monkeypatch, *command[2:]) == 0
    assert '">= 180k"' in (checkout / "variables" / "sla" / "mine.yaml").read_text()


def test_where_the_first_run_ends_with_a_mistake_nothing_is_kept_and_nothing_is_said_of_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate, "run_child", Runs(checkout, 4))
    assert calibrated(monkeypatch, "mine") == 4
    assert "--from" not in capsys.readouterr().err


def test_ctrl_c_between_two_runs_keeps_what_was_measured(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "run_child", Runs(checkout, 0, then=interrupt))
    assert calibrated(monkeypatch, "mine") == 130
    assert "--from" in capsys.readouterr().err


def test_a_file_that_somebody_wrote_in_the_meantime_is_kept_and_so_are_the_runs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = checkout / "variables" / "sla" / "mine.yaml"
    monkeypatch.setattr(calibrate, "run_child", Runs(checkout, 0, then=lambda: target.write_text("theirs")))
    assert calibrated(monkeypatch, "mine", "--runs", "1") == 4
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


def test_a_run_that_is_named_twice_counts_once(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = checkout / "results" / "run"
    store.write(runs(200_000)[0], run)
    (run.parent / "latest").symlink_to("run")
    given = ("--from", str(run), "--from", str(run.parent / "latest"), "--from", f"{run}/")
    assert calibrated(monkeypatch, "mine", *given) == 0
    assert "over 1 run\n" in (checkout / "variables" / "sla" / "mine.yaml").read_text()


STOCK = """
name: stock
source: somewhere
loss_ratio: "<= 1%"
ovs-dpdk/conntrack/1cpu-1rxq:
  short-lived: {cps: ">= 1k"}
  http-600: &http {cps: ">= 2k", connect_time_p99: "<= 5ms"}
linux-bridge/bond/1cpu-1rxq:
  http-600: *http
"""


def test_what_was_not_measured_keeps_its_floors_and_it_is_said_how_many_there_are(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock = tmp_path / "stock.yaml"
    stock.write_text(STOCK.replace("source:", "description: x\nsource:"))
    store.write(runs(200_000)[0], checkout / "run")
    assert calibrated(monkeypatch, "mine", "--from", str(checkout / "run"), "--sla", str(stock)) == 0

    assert "2 floors are those of SLA stock" in capsys.readouterr().out
    written = load("sla", checkout / "variables" / "sla" / "mine.yaml", Floors)
    measured = written.floors["ovs-dpdk/conntrack/1cpu-1rxq"]["short-lived"]
    kept = written.floors["linux-bridge/bond/1cpu-1rxq"]["http-600"]
    assert measured.cps and measured.cps.limit == 160_000
    assert kept.cps and kept.cps.limit == 2_000
    assert kept.connect_time_p99 and kept.loss_ratio and (kept.loss_ratio.text, kept.source) == ("<= 1%", "somewhere")


def test_what_fewer_runs_measured_than_there_were_is_said(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(made_up_record(found(200_000), run_id="a"), checkout / "a")
    store.write(made_up_record(run_id="b", verdict="not measured", figures={}), checkout / "b")
    given = [part for run in ("a", "b") for part in ("--from", str(checkout / run))]
    assert calibrated(monkeypatch, "mine", *given) == 0
    assert "ovs-dpdk/conntrack/1cpu-1rxq short-lived: measured in 1 of 2 runs only" in capsys.readouterr().out
    file = (checkout / "variables" / "sla" / "mine.yaml").read_text()
    assert "over 1 of 2 runs; 1 run measured nothing" in file


def test_runs_of_several_machines_have_no_median() -> None:
    records = runs(200_000, 300_000)
    elsewhere = records[1].environment.model_copy(update={"machine": MachineFacts(cpu_model="another")})
    with pytest.raises(CtbenchError, match="several machines: unknown, another"):
        sla_file("mine", [records[0], records[1].model_copy(update={"environment": elsewhere})], 0.2)


@pytest.mark.parametrize("name", ["2024", "on", "no", "null", "1e3", "0x10", "1-2-3"])
def test_a_name_that_yaml_reads_as_something_else_is_written_as_a_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(sla_file(name, runs(200_000), 0.2))
    assert load("sla", file, Floors).name == name


@pytest.mark.parametrize("model", ["Xeon: fast # really", 'a "quoted" one', "two\nlines: x", "{", "- x", "", "'"])
def test_whatever_a_machine_is_called_the_file_can_be_read(tmp_path: Path, model: str) -> None:
    (record,) = runs(200_000)
    named = record.environment.model_copy(update={"machine": MachineFacts(cpu_model=model)})
    file = tmp_path / "mine.yaml"
    file.write_text(sla_file("mine", [record.model_copy(update={"environment": named})], 0.2))
    assert load("sla", file, Floors).name == "mine"


def test_where_the_floors_are_beyond_the_generator_what_it_reached_becomes_the_floor(tmp_path: Path) -> None:
    beyond = [
        made_up_record(found(capacity), run_id=f"run-{i}", verdict="not measured", limited_by="generator")
        for i, capacity in enumerate((40_000, 50_000, 60_000))
    ]
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", beyond, 0.2))
    floor = load("sla", file, Floors).find(beyond[0].topology, beyond[0].profile)
    assert floor.main.limit == 40_000
    assert "at least, the generator was the limit" in file.read_text()
    # A run that a busy machine spoilt does not lower what others measured.
    (figures,) = gather([*runs(200_000, 210_000), beyond[0].model_copy(update={"run_id": "run-9"})])
    assert (figures.results, figures.without) == ((200_000, 210_000), 1)


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
    (figures,) = gather([made_up_record(found(40_000), verdict="not measured", **changes)])
    assert (figures.results, figures.without) == ((), 1)


def test_what_shared_cpus_measured_becomes_no_floor() -> None:
    record = made_up_record(found(40_000), verdict="not measured")
    shared = record.environment.model_copy(update={"testbed": TestbedFacts(oversubscribe=True)})
    (figures,) = gather([record.model_copy(update={"environment": shared})])
    assert figures.results == ()


def test_a_machine_with_an_odd_name_gives_a_file_that_can_be_read(tmp_path: Path) -> None:
    record = made_up_record()
    machine = MachineFacts(cpu_model='x: "y"\n- #\x1b[31m', usable_cpus=[0])
    facts = record.environment.model_copy(update={"machine": machine})
    text = sla_file("here", [record.model_copy(update={"environment": facts})], 0.2)
    assert yaml.safe_load(text)["source"] == 'median of 1 run on x: "y" - #\\x1b[31m'
    assert "\x1b" not in text
