"""Calibration turns the records of several runs into floors below their medians, and says how far they spread."""

from pathlib import Path

import pytest
import yaml

import calibrate
from ctbench.config import load
from ctbench.errors import CtbenchError
from ctbench.results import store
from ctbench.results.record import Baseline, Record
from ctbench.sla.calibration import gather, sla_file
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
    assert floor.rate.limit == 160_000
    assert "median of 3 runs" in floor.source


def test_the_spread_is_said() -> None:
    (figures,) = gather(runs(300_000, 100_000, 200_000))
    assert figures.spread == pytest.approx(1.0)
    assert "spread 100.0 % over 3 runs" in sla_file("here", runs(300_000, 100_000, 200_000), 0.2)


def packet_runs(*capacities: float, forwarding: float = 400_000.0) -> list[Record]:
    floor, baseline = made_up_packet_floor(">= 1k", share=">= 1%"), Baseline(key=FORWARDING, rate=forwarding)
    return [
        made_up_packet_record(found_packets(capacity), floor, baseline=baseline, run_id=f"run-{i}")
        for i, capacity in enumerate(capacities)
    ]


def test_packets_get_floors_in_packets_and_a_relative_one_with_its_spread(tmp_path: Path) -> None:
    records = packet_runs(200_000, 240_000, 280_000)
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", records, 0.2))
    floor = load("sla", str(file), Floors).find(records[0].topology, records[0].profile)
    assert (floor.unit, floor.rate.limit) == ("packets", 192_000)
    assert floor.relative is not None
    assert (floor.relative.to, floor.relative.rate.limit) == (FORWARDING, 0.48)
    assert "# median 60%, 50% to 70%" in file.read_text()
    assert "cps" not in file.read_text()


def test_a_run_that_measured_nothing_is_counted_apart() -> None:
    records = [*runs(200_000), made_up_record(verdict="not measured", measured=None, run_id="run-9")]
    (figures,) = gather(records)
    assert figures.rates == (200_000,)
    assert figures.without == 1
    assert "1 runs measured nothing" in sla_file("here", records, 0.2)


def test_without_a_measurement_there_is_no_file() -> None:
    with pytest.raises(CtbenchError, match="measured nothing"):
        sla_file("here", [made_up_record(verdict="not measured", measured=None)], 0.2)


def test_existing_runs_can_be_used_and_a_file_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "variables" / "sla").mkdir(parents=True)
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    store.write(runs(200_000)[0], tmp_path / "run")
    monkeypatch.setattr("sys.argv", ["calibrate", "mine", "--from", str(tmp_path / "run"), "--margin", "10%"])
    assert calibrate.main() == 0
    assert '">= 180k"' in (tmp_path / "variables" / "sla" / "mine.yaml").read_text()
    assert calibrate.main() == 4
    assert "is there already" in capsys.readouterr().err


def test_a_folder_without_records_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["calibrate", "mine", "--from", str(tmp_path / "empty")])
    assert calibrate.main() == 4
    assert "has no records" in capsys.readouterr().err


def test_a_machine_with_an_odd_name_gives_a_file_that_can_be_read(tmp_path: Path) -> None:
    record = made_up_record()
    facts = record.environment.model_copy(update={"machine": {"cpu_model": 'x: "y"\n- #\x1b[31m', "usable_cpus": [0]}})
    text = sla_file("here", [record.model_copy(update={"environment": facts})], 0.2)
    assert yaml.safe_load(text)["source"] == 'median of 1 runs on x: "y"\n- #\\x1b[31m'
    assert "\x1b" not in text
