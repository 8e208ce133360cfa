"""Calibration of instructions: one run, floors above all seeds, bound to the image that was measured."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from ctbench.base.errors import ConfigError
from ctbench.base.paths import RESULTS_VARIABLE, VARIABLES
from ctbench.base.yaml_files import load
from ctbench.cli import calibrate, child_runs
from ctbench.results import store
from ctbench.sla.calibration import Stock, ceilings, counts_file, most_of, only_counts
from ctbench.sla.floors import Floors
from ctbench.traffic.generator import LoadUnit

from .counted import PER_PACKET, counted_record
from .simulated import made_up_record

FORWARD = "emulated/forward/1cpu-1rxq"
STOCK = """
name: stock
description: x
source: somewhere
emulated/forward/1cpu-1rxq:
  udp-64-1flow: {cost: {to: emulated/bridge/1cpu-1rxq, instructions: "<= 400%"}}
linux-bridge/forward/1cpu-1rxq:
  udp-64-1flow: {pps: ">= 10k"}
"""


@pytest.mark.parametrize(
    ("seeds", "kind", "most"),
    [([1000.0, 1000.2], "packets", 1001), ([1000.0, 1010.0], "packets", 1020), ([1000.0, 1001.0], "connections", 1007)],
)
def test_a_floor_has_room_for_a_seed_that_was_not_tried(seeds: list[float], kind: LoadUnit, most: int) -> None:
    assert most_of(seeds, kind) == most


def test_the_file_is_of_its_image_and_extends_what_was_not_counted(tmp_path: Path) -> None:
    records = [counted_record("forward", [1375.2, 1375.3]), counted_record("nothing-proved", [])]
    (tmp_path / "stock.yaml").write_text(STOCK)
    stock = Stock("stock", yaml.safe_load(STOCK), str(tmp_path / "stock.yaml"))
    (tmp_path / "mine.yaml").write_text(counts_file("mine", records, stock))
    floors = load("sla", tmp_path / "mine.yaml", Floors)
    entry = floors.floors[FORWARD]["udp-64-1flow"]
    assert (floors.image, entry.thresholds[PER_PACKET].limit) == ("a1", 1376)
    assert entry.cost and entry.cost.to == "emulated/bridge/1cpu-1rxq"
    assert set(floors.floors) == {FORWARD, "linux-bridge/forward/1cpu-1rxq"}
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


class MadeUpSla:
    """Stands in for ./run sla with the testbed `emulated`."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, argv: Sequence[str]) -> int:
        self.calls += 1
        store.write(counted_record("forward", [1375.2, 1375.3]), Path(argv[argv.index("--outputdir") + 1]))
        return 0


@pytest.fixture
def sla(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpSla:
    (tmp_path / "variables" / "sla").mkdir(parents=True)
    monkeypatch.setattr(calibrate, "ROOT", tmp_path)
    monkeypatch.setattr(calibrate, "own_files", lambda kind: tmp_path / "variables" / kind)
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    made = MadeUpSla()
    monkeypatch.setattr(child_runs, "run_child", made)
    return made


Status = Callable[..., int]


def test_one_run_is_enough(
    sla: MadeUpSla, tmp_path: Path, status_of: Status, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("calibrate", "mine", "--testbed", "emulated") == 0
    assert sla.calls == 1
    said = capsys.readouterr().out
    assert "run 1, at most 1" in said and "1 floors are of image a1." in said
    assert load("sla", tmp_path / "variables" / "sla" / "mine.yaml", Floors).image == "a1"


def test_an_image_is_kept_where_there_is_one(
    sla: MadeUpSla, tmp_path: Path, status_of: Status, capsys: pytest.CaptureFixture[str]
) -> None:
    emulated = (VARIABLES / "testbeds" / "emulated.yaml").read_text()
    duts = "  - {type: linux-router, host: sandbox, ports: {kind: veth, ring_size: 4096}}"
    made = re.sub(r"  - type: emulated\n(    .*\n)+", f"{duts}\n", emulated).replace("name: emulated", "name: router")
    (tmp_path / "router.yaml").write_text(made)
    for target, testbed, said in (
        (tmp_path / "mine.image", str(tmp_path / "router.yaml"), "has no emulated machine"),
        (tmp_path, "emulated", "is there already"),
        (tmp_path / "nowhere" / "mine.image", "emulated", "cannot be written"),
    ):
        assert status_of("calibrate", "mine", "--testbed", testbed, "--keep-image", str(target)) == 4
        assert said in capsys.readouterr().err
    assert sla.calls == 0
