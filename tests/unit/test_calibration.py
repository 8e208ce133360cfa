"""Calibration turns the records of several runs into floors by their scatter, and refuses what scatters too much; those
of instructions are above all seeds of one run, and bound to its image."""

import math
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES
from ctbench.results import floor
from ctbench.results.environment import CampaignFacts, MachineFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.statistics import tolerance_factor
from ctbench.sla.calibration import (
    LEAST_RUNS,
    LEAST_SCATTER,
    Figures,
    Stock,
    _worse,
    bound_of,
    ceilings,
    counts_file,
    enough,
    gather,
    most_of,
    only_counts,
    sla_file,
)
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import load_profile

from .calibrated import KEY, NONE, RATIO, STOCK, around, runs
from .counted import PER_PACKET, counted_record
from .simulated import found, found_packets, made_up_packet_record, made_up_record


def figures(*values: float, resolution: float = 0.0) -> Figures:
    return Figures(KEY, "short-lived", "", METRICS["cps"], values, resolution, 0, True, {})


def floors_of(folder: Path, records: list[Record], name: str = "here", stock: str = STOCK) -> Floors:
    """What a run reads of the file that is made of these records, which extends one with this text."""
    (folder / "stock.yaml").write_text(stock)
    file = folder / f"{name}.yaml"
    file.write_text(sla_file(name, records, 0.25, Stock("stock", yaml.safe_load(stock), str(folder / "stock.yaml"))))
    return load("sla", file, Floors)


def test_the_floor_is_the_tolerance_bound_of_the_logarithms(tmp_path: Path) -> None:
    rates = [100_000.0, 104_000.0, 96_000.0, 110_000.0, 99_000.0, 101_000.0]
    logs = [math.log(rate) for rate in rates]
    scatter = math.sqrt(sum((each - mean(logs)) ** 2 for each in logs) / 5)
    expected = math.exp(mean(logs) - 3.707 * math.hypot(scatter, math.log(1.001) / math.sqrt(12)))
    record = runs(1)[0]
    floor = floors_of(tmp_path, runs(*rates)).find(record.topology, record.profile)
    assert floor.main.limit == pytest.approx(expected, rel=0.005) and floor.main.limit <= expected
    assert floor.source == "6 runs on this machine"
    assert "new connections: median 100k, 96k to 110k in 6 runs, scatter 4.70 %" in (tmp_path / "here.yaml").read_text()


@pytest.mark.parametrize(
    ("metric", "bound", "promised"),
    [("cps", 123_999.0, 123_000.0), ("cps", 57_000.0, 57_000.0), ("drain_time", 3.1201, 3.13), ("drain_time", 0, 0)],
)
def test_a_bound_is_rounded_to_the_side_that_promises_less(metric: str, bound: float, promised: float) -> None:
    assert _worse(METRICS[metric], bound) == pytest.approx(promised)


def test_what_is_served_gets_a_floor_of_its_own_whatever_became_of_the_search(tmp_path: Path) -> None:
    """Of 5 % noise on the rates held, and 1 % on those served: the file has the one far below, the other one near."""
    records = [
        record.model_copy(
            update={
                "figures": record.figures | {"saturation_cps": Estimate(value=rate, unit="connections/s")},
                "verdict": "not measured",
                "limited_by": "generator",
            }
        )
        for record, rate in zip(runs(*around(1e5, 0.05, 5)), around(2e5, 0.01, 5), strict=True)
    ]
    held, served = gather([*records[:4], records[4].model_copy(update={"figures": {}})])
    assert (held.metric.name, len(held.results)) == ("cps", 4)
    assert (served.metric.name, len(served.results), served.without) == ("saturation_cps", 4, 1)
    floor = floors_of(tmp_path, records).find(records[0].topology, records[0].profile)
    limits = {name: each.limit for name, each in floor.thresholds.items()}
    assert limits["cps"] == pytest.approx(1e5, rel=0.25) and limits["saturation_cps"] == pytest.approx(188e3, rel=0.02)
    # What was served replaces no promise of what is held.
    made = [
        each.model_copy(update={"figures": {k: v for k, v in each.figures.items() if k != "cps"}}) for each in records
    ]
    kept = floors_of(tmp_path, made).floors[KEY]["short-lived"]
    assert kept.thresholds.keys() == {"saturation_cps", "cps"} and kept.ratio
    assert kept.thresholds["cps"].written == ">= 1k"


def test_further_runs_of_the_same_machine_fall_below_the_bound_as_rarely_as_it_says() -> None:
    """Content 95 % with 95 % confidence: of all calibrations, in 19 of 20 at least 19 of 20 further runs are above."""
    kept = []
    for seed in range(600):
        bound = bound_of(figures(*around(100_000, 0.07, 7, seed)))
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
        if bound.width <= 0.25:  # else it is refused
            below = 0.5 * (1 + math.erf(math.log(bound.value / 100_000) / 0.08 / math.sqrt(2)))
            kept.append(below <= 0.05)
    assert mean(kept) >= 0.88


def test_what_scatters_too_much_gets_no_floor_and_the_file_says_why(tmp_path: Path) -> None:
    wild = runs(100_000, 140_000, 70_000, 120_000, 90_000)
    text = sla_file("here", wild, 0.25, NONE)
    assert yaml.safe_load(text).keys() == {"extends", "name", "description", "source"}
    (said,) = [line for line in text.splitlines() if "no floor of this machine" in line]
    assert said.startswith(f"# {KEY}: short-lived: new connections: no floor of this machine: its 5 runs scatter by 2")
    assert "(between runs 2" in said
    assert said.endswith("below the median of 100.0 k/s, and 25.0 % is the widest.")
    # What other floors promise of it stays.
    entry = floors_of(tmp_path, wild).floors[KEY]["short-lived"]
    assert (entry.source, entry.thresholds["cps"].written) == ("somewhere", ">= 1k") and entry.ratio


def test_results_that_are_all_alike_are_not_taken_to_be_exact() -> None:
    bound, coarse = (bound_of(figures(*[100_000.0] * 6, resolution=step)) for step in (0.0, 0.3))
    assert bound.scatter == LEAST_SCATTER
    assert coarse.scatter == pytest.approx(math.log(1.3) / math.sqrt(12))
    assert bound.value == pytest.approx(100_000 * math.exp(-tolerance_factor(6) * LEAST_SCATTER))


def test_it_is_enough_when_each_test_that_was_measured_has_a_floor() -> None:
    quiet, loud = figures(*around(1e5, 0.02, 5)), figures(*around(1e5, 0.12, 5, 3))
    assert enough([quiet], 5, 0.25)
    assert not enough([quiet], 4, 0.25)  # a bound of so few says nothing
    assert not enough([quiet, loud], 5, 0.25)
    # What no run measured is waited for by nobody; what one did is.
    assert enough([quiet, figures()], 5, 0.25)
    assert not enough([quiet, figures(1e5)], 5, 0.25)
    # One figure does not scatter, and one of nothing has no logarithm.
    assert bound_of(figures(1e5)) is bound_of(figures(1e5, 0.0)) is None


def test_the_floors_bind_to_the_machine_that_was_measured(tmp_path: Path) -> None:
    facts = MachineFacts(cpu_model="EPYC 9R14: x", usable_cpus=[0, 1], virtualisation="kvm", kernel="6.1")
    records = [
        each.model_copy(update={"environment": each.environment.model_copy(update={"machine": facts})})
        for each in runs(*around(1e5, 0.02, 5))
    ]
    machine = floors_of(tmp_path, records).machine
    assert not machine.differs_from(facts)
    assert not machine.differs_from(facts.model_copy(update={"kernel": "6.2"}))  # it may be what is tested
    for other in ({"cpu_model": "Xeon"}, {"usable_cpus": [0]}, {"virtualisation": "none"}):
        assert machine.differs_from(facts.model_copy(update=other))


def timed(seconds: float, run: str, **changes: Any) -> Record:
    """The record of a test that looked for a time, with a load that was held meanwhile."""
    (record,) = runs(200_000)
    rates = {"cps": Estimate(value=1_000, unit="connections/s"), "wait": Estimate(value=seconds, unit="s")}
    return record.model_copy(update={"metric": "wait", "figures": rates, "run_id": run} | changes)


def test_where_lower_is_better_the_floor_is_above_the_median(wait: str) -> None:
    times = [timed(seconds, f"run-{i}") for i, seconds in enumerate(around(0.003, 0.02, 6))]
    (entry,) = yaml.safe_load(sla_file("here", times, 0.25, NONE))[KEY].values()
    assert floor.parse(entry["wait"], METRICS[wait]).limit == pytest.approx(0.003 * math.exp(3.707 * 0.022), rel=0.03)
    assert "cps" not in entry  # it is what was offered
    # Two tests of one topology and profile share their entry.
    text = sla_file("here", [*times, *runs(*around(2e5, 0.02, 6))], 0.25, NONE)
    (entry,) = yaml.safe_load(text)[KEY].values()
    assert set(entry) == {"wait", "cps", "loss_ratio"}


def test_what_an_entry_promises_besides_its_rate_stays_and_its_rate_does_not(tmp_path: Path) -> None:
    stock = STOCK.replace('{cps: ">= 1k", ', '{cps: ">= 1k", pps: ">= 7k", smoke: true, connect_time_p99: "<= 9s", ')
    entry = floors_of(tmp_path, runs(*around(2e5, 0.02, 6)), stock=stock).floors[KEY]["short-lived"]
    assert set(entry.thresholds) == {"cps", "loss_ratio", "connect_time_p99"}
    assert (entry.thresholds["connect_time_p99"].written, entry.smoke, entry.source) == ("<= 9s", False, None)
    assert entry.ratio and entry.ratio.to == RATIO["to"]
    assert entry.thresholds["cps"].limit > 100_000


def test_the_file_holds_nothing_but_the_new_floors_and_what_it_extends() -> None:
    text = sla_file("here", runs(*around(2e5, 0.02, 6)), 0.25, Stock("local", yaml.safe_load(STOCK)))
    said = yaml.safe_load(text)
    assert (said["extends"], said[KEY].keys()) == ("local", {"short-lived"})
    assert said[KEY]["short-lived"].keys() == {"cps", "loss_ratio"}
    assert [key for key in said if "/" in key] == [KEY]


def test_a_substitute_keeps_what_is_promised_of_the_profile_that_it_stands_for(tmp_path: Path) -> None:
    stock = STOCK.replace("short-lived:", "long-lived:")
    short = made_up_record().profile.model_copy(update={"name": "long-lived-short", "derived_from": "long-lived"})
    records = [each.model_copy(update={"profile": short}) for each in runs(*around(2e5, 0.02, 6))]
    entries = floors_of(tmp_path, records, stock=stock).floors[KEY]
    assert set(entries["long-lived-short"].thresholds) == {"cps", "loss_ratio"} and entries["long-lived-short"].ratio
    assert entries["long-lived"].thresholds["cps"].written == ">= 1k"


@pytest.mark.parametrize("metric", ["ratio", "of_build"])
def test_runs_of_ratios_are_what_calibrate_cannot_use_and_not_runs_that_measured_nothing(metric: str) -> None:
    records = [record.model_copy(update={"metric": metric}) for record in runs(2e5, 3e5)]
    with pytest.raises(ConfigError, match="ratios only"):
        sla_file("here", records, 0.25, NONE)


def test_runs_of_several_machines_have_no_median() -> None:
    records = runs(200_000, 300_000)
    elsewhere = records[1].environment.model_copy(update={"machine": MachineFacts(cpu_model="another")})
    with pytest.raises(CtbenchError, match="several machines: unknown, another"):
        sla_file("mine", [records[0], records[1].model_copy(update={"environment": elsewhere})], 0.25, NONE)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *((name, "Xeon") for name in ("2024", "on", "no", "null", "1e3", "0x10", "1-2-3")),
        *(
            ("mine", model)
            for model in ("Xeon: fast # really", 'a "quoted" one', "two\nlines: x", "{", "- #\x1b[31m", "", "'")
        ),
    ],
)
def test_whatever_a_file_and_its_machine_are_called_it_can_be_read(tmp_path: Path, name: str, model: str) -> None:
    records = runs(*around(2e5, 0.02, 5))
    named = records[0].environment.model_copy(update={"machine": MachineFacts(cpu_model=model)})
    of_it = [record.model_copy(update={"environment": named}) for record in records]
    assert floors_of(tmp_path, of_it, name).name == name
    assert "\x1b" not in (tmp_path / f"{name}.yaml").read_text()


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


MADE_UP = made_up_record().environment


@pytest.mark.parametrize(
    "changes",
    [
        {"limited_by": "fault"},
        {"limited_by": "floor"},
        {"figures": {"cps": Estimate(value=0.0, unit="connections/s")}},
        {"figures": {}},
        {"environment": MADE_UP.model_copy(update={"testbed": TestbedFacts(oversubscribe=True)})},
        {
            "figures": {"cps": Estimate(value=1.0, unit="connections/s", samples=[1.0, 9.0])},
            "campaign": CampaignFacts(name="x", max_spread=0.1),
        },
    ],
    ids=str,
)
def test_what_says_nothing_about_the_dut_becomes_no_floor(changes: dict[str, Any]) -> None:
    (only,) = gather([made_up_record(found(40_000), verdict="not measured", **changes)])
    assert (only.results, only.without) == ((), 1)


def test_instructions_are_of_an_image_and_of_no_machine() -> None:
    record = made_up_packet_record(found_packets(1e5))
    assert gather([record])
    assert gather([record.model_copy(update={"metric": "instructions_per_packet"})]) == []


# Instructions.

COUNTED = "emulated/forward/1cpu-1rxq"
COUNTED_STOCK = """
name: stock
description: x
source: somewhere
emulated/forward/1cpu-1rxq:
  udp-64-1flow: {cost: {to: emulated/bridge/1cpu-1rxq, instructions: "<= 400%"}}
linux-bridge/forward/1cpu-1rxq:
  udp-64-1flow: {pps: ">= 10k"}
"""


@pytest.mark.parametrize(
    ("seeds", "room", "most"),
    [([1000.0, 1000.2], 0.002, 1003), ([1000.0, 1010.0], 0.002, 1020), ([1000.0, 1001.0], 0.005, 1007)],
)
def test_a_floor_has_room_for_a_seed_that_was_not_tried(seeds: list[float], room: float, most: int) -> None:
    assert most_of(seeds, room) == most


def test_the_file_is_of_its_image_and_extends_what_was_not_counted(tmp_path: Path) -> None:
    records = [counted_record("forward", [1375.2, 1375.3]), counted_record("nothing-proved", [])]
    (tmp_path / "stock.yaml").write_text(COUNTED_STOCK)
    stock = Stock("stock", yaml.safe_load(COUNTED_STOCK), str(tmp_path / "stock.yaml"))
    (tmp_path / "mine.yaml").write_text(counts_file("mine", records, stock))
    floors = load("sla", tmp_path / "mine.yaml", Floors)
    entry = floors.floors[COUNTED]["udp-64-1flow"]
    assert (floors.image, entry.thresholds[PER_PACKET].limit) == ("a1", 1379)
    assert entry.cost and entry.cost.to == "emulated/bridge/1cpu-1rxq"
    counting, profile = PROMISES["instruction cost"].procedure, load_profile("udp-64-1flow")
    promised = floors.find(Topology.parse(COUNTED), profile, counting)
    assert promised.thresholds[PER_PACKET].bound_to == "image a1"
    assert set(floors.floors) == {COUNTED, "linux-bridge/forward/1cpu-1rxq"}
    # What was promised of another image would be no promise of this one.
    with pytest.raises(ConfigError, match="has instructions of image b2, and a1 was measured"):
        counts_file("mine", records, Stock("stock", {"image": "b2"}))


def test_runs_of_several_images_are_refused() -> None:
    with pytest.raises(ConfigError, match="of several emulated machines: a1, b2"):
        ceilings([counted_record("forward", [1.0]), counted_record("forward", [1.0], image="b2")])
    # A run with rates is calibrated as ever.
    assert only_counts([counted_record("forward", [1.0])])
    assert not only_counts([counted_record("forward", [1.0]), made_up_record()])
    assert not only_counts([])
