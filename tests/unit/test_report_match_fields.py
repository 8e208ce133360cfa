"""The table of match fields: a cell for each rate that is certain, the darker the higher."""

import pytest

from ctbench.dut.topology import Topology
from ctbench.report.charts import draw
from ctbench.report.charts.match_fields import match_charts
from ctbench.results.promised import Reference
from ctbench.results.record import Record
from ctbench.traffic.profiles import PacketProfile

from .simulated import found_packets, made_up_packet_record

pytestmark = pytest.mark.unit


def record(ruleset: str, flows: int, rate: float, *, tag: str = "match-fields", emc: int | None = None) -> Record:
    topology = Topology(ruleset=ruleset, emc_insert_inv_prob=emc)
    profile = PacketProfile(name=f"match-{flows}", kind="packets", flows=flows)
    made = made_up_packet_record(found_packets(rate), topology=topology, profile=profile)
    return made.model_copy(update={"tags": [tag]})


def test_rates_stand_by_match_fields_and_flows_and_each_setting_of_the_caches_has_its_table() -> None:
    published = Reference(figures={"pps": 1_760_000.0}, source="2017")
    source = record("match-src", 1000, 1_000_000)
    source = source.model_copy(update={"floor": source.floor.model_copy(update={"reference": published})})
    default, without = match_charts([
        record("match-none", 1000, 2_000_000), source, record("match-none", 10_000, 1_500_000),
        record("match-none", 1000, 900_000, emc=0), record("conntrack", 1000, 5_000_000, tag="conntrack"),
    ])  # fmt: skip
    assert default.columns == ("1\u202f000 flows", "10\u202f000 flows")
    (none, cells), (source_label, source_cells) = default.rows
    assert (none, source_label) == ("Any IP packet", "Match of the source address")
    assert [cell.style for cell in cells if cell] == ["heat-4", "heat-2"]
    assert source_cells[0] and source_cells[0].notes == ("2017: 1.76 M",) and source_cells[1] is None
    assert without.title.endswith("no exact match cache")
    assert "2.00 M" in draw.draw(default) and "heat-4" in draw.draw(default)
    assert f">{draw.NOTHING}</text>" in draw.draw(default)
    assert "here from 900.0 k to 2.00 M; below each what was published in 2017" in default.caption
    assert "below each" not in without.caption
    # Of one scale, so that both tables compare.
    ((_, (alone,)),) = without.rows
    assert alone and alone.style == "heat-0"


def test_what_was_not_measured_for_certain_is_not_there() -> None:
    made = record("match-none", 1000, 2_000_000)
    assert match_charts([made.model_copy(update={"verdict": "not measured"})]) == []
