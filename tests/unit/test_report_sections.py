"""What opens below a row, and the sections of the page: what was measured stands there, and nothing else."""

from pathlib import Path

from ctbench.dut.base import DutCounts
from ctbench.dut.topology import Topology
from ctbench.report.charts.chart import Bars
from ctbench.report.compose import compose
from ctbench.report.page import Page
from ctbench.report.runs import read_runs
from ctbench.results.evidence import Series, TableCount
from ctbench.results.record import Record
from ctbench.results.record_model import Figure, Reference
from ctbench.results.store import write
from ctbench.traffic.generator import PortPair
from ctbench.traffic.profiles import PacketProfile, load_profile

from .simulated import found_packets, made_up_packet_record, made_up_record


def page_of(folder: Path, *records: Record) -> Page:
    for number, record in enumerate(records):
        write(record.model_copy(update={"test": f"{record.test} {number}"}), folder)
    return compose(read_runs([folder]), folder)


def test_below_a_row_stands_what_was_measured_besides_its_figure(tmp_path: Path) -> None:
    figures = {
        "cps": Figure(17_700.0, "connections/s"), "active_connections": Figure(100_100.0, "connections"),
        "pps": Figure(345_000.0, "packets/s"), "latency_p50": Figure(20e-6, "s"), "latency_p99": Figure(900e-6, "s"),
    }  # fmt: skip
    record = made_up_record().model_copy(update={"profile": load_profile("mobile"), "figures": figures})
    (row,) = page_of(tmp_path, record).rows
    assert row.details["Also measured"] == ("connections open at once 100.1 k connections",)
    edge = row.details["Times at the edge, those of full queues"]
    assert edge == ("latency (median) 20 us; latency (p99) 900 us",)


def matching(ruleset: str, rate: float, emc: int | None = None) -> Record:
    topology = Topology(ruleset=ruleset, emc_insert_inv_prob=emc)
    profile = PacketProfile(name="match-1000", kind="packets", flows=1000)
    return made_up_packet_record(found_packets(rate), topology=topology, profile=profile)


def test_rates_stand_by_what_rules_match_and_each_setting_of_the_caches_has_its_chart(tmp_path: Path) -> None:
    source = matching("match-src", 1_000_000)
    published = Reference(figures={"pps": 1_760_000.0}, source="2017")
    source = source.model_copy(update={"floor": source.floor.model_copy(update={"reference": published})})
    records = [matching("match-none", 2_000_000), source]
    records += [matching(each, 900_000, emc=0) for each in ("match-none", "match-src")]
    page = page_of(tmp_path, *records)
    default, without = (chart for chart in page.charts if isinstance(chart, Bars))
    assert [row.text for row in default.rows] == ["2 M", "1 M"]
    assert "no exact match cache" in without.title and "cache" not in default.title
    assert "2017" in str(page.rows[1].details["Published elsewhere"])


def of_table(metric: str, figures: dict[str, Figure], **evidence: object) -> Record:
    record = made_up_record()
    return record.model_copy(
        update={
            "metric": metric,
            "topology": Topology(timeout_s=5),
            "profile": load_profile("held"),
            "figures": figures,
            "evidence": record.evidence.model_copy(update=evidence),
        }
    )


def test_connections_held_stand_with_the_rate_of_opening_and_the_counts_of_the_dut(tmp_path: Path) -> None:
    counts = [TableCount(trial=1, moment=moment, expected=4_000_000, found=4_000_000) for moment in ("opened", "held")]
    figures = {"held_connections": Figure(4e6, "connections"), "opening_rate": Figure(98_500.0, "connections/s")}
    counts[1] = counts[1].model_copy(update={"memory": 1900 << 20})
    (row,) = page_of(tmp_path, of_table("held_connections", figures, table=counts)).rows
    assert "connections opened per second 98.5 k CPS" in str(row.details["Also measured"])
    said = "opened 4\u202f000\u202f000, held 4\u202f000\u202f000 in 1\u202f900 MiB"
    assert row.details["Counted by the device under test"] == (said,)


def test_what_conntrack_counted_in_all_trials_is_shown_where_it_is_not_zero(tmp_path: Path) -> None:
    record = made_up_record()
    counts = DutCounts({}, {}, conntrack={"insert_failed": 3, "early_drop": 0, "clash_resolve": 1})
    trials = [made.model_copy(update={"counts": counts}) for made in record.evidence.trials]
    assert len(trials) == 2
    evidence = record.evidence.model_copy(update={"trials": trials})
    (row,) = page_of(tmp_path, record.model_copy(update={"evidence": evidence})).rows
    assert row.details["Counted by conntrack"] == ("insert_failed 6, clash_resolve 2",)


def test_entries_over_time_are_drawn_of_what_watched_the_table(tmp_path: Path) -> None:
    series = [Series(name="entries_after_the_last_packet", unit="entries", trial=1, every_s=0.2, values=[5.0, 0.0])]
    one = made_up_record().evidence.trials[:1]
    record = of_table("drain_time", {"drain_time": Figure(0.4, "s")}, series=series, trials=one)
    page = page_of(tmp_path, made_up_record(), record.model_copy(update={"verdict": "met", "margin_pct": 50.0}))
    drawn = [chart.title for each in page.searches for chart in each.charts]
    assert "Entries after the last packet over trial 1" in drawn


def test_what_each_pair_of_ports_did_is_shown(tmp_path: Path) -> None:
    record = made_up_record()
    pairs = [PortPair(attempted=1000, completed=1000), PortPair(attempted=1000, completed=900)]
    trials = [
        made.model_copy(update={"trial": made.trial.model_copy(update={"port_pairs": pairs})})
        for made in record.evidence.trials
    ]
    evidence = record.evidence.model_copy(update={"trials": trials})
    page = page_of(tmp_path, record.model_copy(update={"evidence": evidence}), record)
    said, none = (row.details.get("Port pairs") for row in page.rows)
    assert said and none is None
    assert [text.partition(":")[0] for text in said] == ["1", "2"] and said[1].endswith("lost 10.0 %")
