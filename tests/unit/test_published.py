"""Published figures: by metric, with their source, and any other file is a sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError
from ctbench.dut.topology import Topology
from ctbench.results.published import is_published, read_published

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
OVS_3 = REFERENCE / "ovs-3.0.0"


@pytest.mark.parametrize(("name", "count"), [("ovs-2.17.2", 16), ("ovs-3.0.0", 16), ("ovs-2.7", 7), ("linux-5.0", 8)])
def test_published_figures_can_be_read_and_name_their_source(name: str, count: int) -> None:
    figures = read_published(REFERENCE / name)
    assert is_published(REFERENCE / name) and len(figures) == count
    assert all(each.source.title and each.source.machine and min(each.figures.values()) > 0 for each in figures)
    assert [each.number for each in figures] == sorted(each.number for each in figures)


def test_a_published_figure_is_found_by_metric() -> None:
    figures = {each.number: each for each in read_published(OVS_3)}
    assert figures[4].figures["cps"] == 48_200 and figures[4].figures["pps"] == 334_900
    assert figures[4].key == Topology().key and figures[4].label == "Open vSwitch 3.0.0, 2022, table 4"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"profil": "short-lived"}, "profil: Extra inputs"),
        ({"figures": {}}, "figures: Dictionary should have at least 1 item"),
        ({"figures": {"speed": 1}}, 'figures.speed: "speed" is not a metric of this version'),
        ({"figures": {"cps": -1}}, "figures.cps: "),
        ({"schema_version": 1}, "schema_version: Input should be 2"),
        ({"number": 0}, "number: "),
    ],
)
def test_a_published_figure_that_is_broken_is_one_sentence(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    shutil.copytree(OVS_3, tmp_path / "copy")
    file = tmp_path / "copy" / "figure-04.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(ConfigError) as error:
        read_published(tmp_path / "copy")
    first, expected = str(error.value).split("\n")
    assert first.startswith(f"{file}: {said}") and expected == "  Expected a published figure as JSON."
