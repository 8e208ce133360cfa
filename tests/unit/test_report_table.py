"""The connection table on the page: how many were held, and entries over time."""

from pathlib import Path

import pytest

from ctbench.dut.topology import Topology
from ctbench.report.charts.draw import draw
from ctbench.report.charts.model import ShareChart, XyChart
from ctbench.report.charts.table import table_charts
from ctbench.results import store
from ctbench.results.evidence import Series, TableCount
from ctbench.results.figure import Figure
from ctbench.results.record import Record
from ctbench.results.store import Stored
from ctbench.traffic.profiles import load_profile

from .simulated import made_up_record

pytestmark = pytest.mark.unit


def of_table(metric: str, figures: dict[str, Figure], topology: Topology, **evidence: object) -> Record:
    record = made_up_record()
    return record.model_copy(
        update={
            "metric": metric,
            "topology": topology,
            "profile": load_profile("held"),
            "figures": figures,
            "evidence": record.evidence.model_copy(update=evidence),
        }
    )


def test_a_bar_for_each_test_has_its_number_its_memory_and_the_counts_of_the_dut() -> None:
    counts = [TableCount(trial=1, moment=moment, expected=4_000_000, found=4_000_000) for moment in ("opened", "held")]
    figures = {"held_connections": Figure(4e6, "connections"), "table_entry_bytes": Figure(365.2, "bytes")}
    ovs = of_table("held_connections", figures, Topology(), table=counts)
    router = Topology(datapath="linux-router", ruleset="iptables-stateful")
    linux = of_table("held_connections", {"held_connections": Figure(250e3, "connections")}, router)
    (chart,) = table_charts([Stored(Path("a"), ovs), Stored(Path("b"), linux)])
    assert isinstance(chart, ShareChart)
    assert [share.text for share in chart.shares] == ["250.0 k", "4.00 M · 365 bytes each"]
    assert "entries of the DUT: opened 4000000, held 4000000" in chart.shares[1].hint
    assert "<svg" in str(draw(chart))


def test_entries_over_time_are_drawn_of_what_was_watched(tmp_path: Path) -> None:
    series = [
        Series(name="entries_after_the_last_packet", unit="entries", trial=1, every_s=0.2, values=[5.0, 5.0, 0.0])
    ]
    figures, one = {"drain_time": Figure(0.4, "s")}, made_up_record().evidence.trials[:1]
    record = of_table("drain_time", figures, Topology(timeout_s=5), series=series, trials=one)
    path = store.write(record, tmp_path)
    (chart,) = table_charts([Stored(path, record)])
    assert isinstance(chart, XyChart)
    assert chart.title.startswith("Entries after the last packet over trial 1: OVS-DPDK, ")
    path.unlink()
    assert table_charts([Stored(path, record)]) == []
