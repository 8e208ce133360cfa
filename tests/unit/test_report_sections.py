"""What opens below a row, and the sections of the page with their charts: what was measured stands there, and nothing
else; nothing uncertain is drawn as if it were certain."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctbench.dut.base import DutCounts
from ctbench.dut.topology import Topology
from ctbench.report import setups
from ctbench.report.charts.bars import rate_charts
from ctbench.report.charts.chart import Axis, Bars, short_share
from ctbench.report.charts.lines import history_charts, search_chart, series_charts
from ctbench.report.compose import compose
from ctbench.report.page import Page
from ctbench.report.runs import read_runs
from ctbench.results.environment import TestbedFacts
from ctbench.results.evidence import Series, TableCount
from ctbench.results.floor import Reference
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.traffic.generator import PortPair
from ctbench.traffic.profiles import PacketProfile, load_profile

from .simulated import (
    found,
    found_packets,
    made_up_packet_record,
    made_up_record,
    run_of,
    with_environment,
    with_evidence,
    with_trials,
)


def page_of(folder: Path, *records: Record) -> Page:
    run_of(folder, *(each.model_copy(update={"test": f"{each.test} {at}"}) for at, each in enumerate(records)))
    return compose(read_runs([folder]), folder)


def test_below_a_row_stands_what_was_measured_besides_its_figure(tmp_path: Path) -> None:
    figures = {
        "cps": Estimate(17_700.0, "connections/s"), "active_connections": Estimate(100_100.0, "connections"),
        "pps": Estimate(345_000.0, "packets/s"), "table_slope": Estimate(-3_000.0, "connections/s"),
        "latency_p50": Estimate(20e-6, "s"), "latency_p99": Estimate(900e-6, "s"),
    }  # fmt: skip
    record = made_up_record().model_copy(update={"profile": load_profile("mobile"), "figures": figures})
    (row,) = page_of(tmp_path, record).rows
    assert row.details["Also measured"] == (
        "connections open at once 100.1 k connections; growth of the table -3.0 k/s",
    )
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
    assert [row.text for row in default.rows] == ["2.00 M pps", "1.00 M pps"]
    assert "no exact match cache" in without.title and "cache" not in default.title
    assert "2017" in str(page.rows[1].details["Published elsewhere"])


def of_table(metric: str, figures: dict[str, Estimate], **evidence: object) -> Record:
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
    figures = {"held_connections": Estimate(4e6, "connections"), "opening_rate": Estimate(98_500.0, "connections/s")}
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
    (row,) = page_of(tmp_path, with_evidence(record, trials=trials)).rows
    assert row.details["Counted by conntrack"] == ("insert_failed 6, clash_resolve 2",)


def test_entries_over_time_are_drawn_of_what_watched_the_table(tmp_path: Path) -> None:
    series = [Series(name="entries_after_the_last_packet", unit="entries", trial=1, every_s=0.2, values=[5.0, 0.0])]
    one = made_up_record().evidence.trials[:1]
    record = of_table("drain_time", {"drain_time": Estimate(0.4, "s")}, series=series, trials=one)
    page = page_of(tmp_path, made_up_record(), record.model_copy(update={"verdict": "met", "margin_pct": 50.0}))
    drawn = [chart.title for each in page.searches for chart in each.charts]
    assert "Entries after the last packet over trial 1" in drawn


def test_what_each_pair_of_ports_did_is_shown(tmp_path: Path) -> None:
    record = made_up_record()
    pairs = [PortPair(attempted=1000, completed=1000), PortPair(attempted=1000, completed=900)]
    page = page_of(tmp_path, with_trials(record, port_pairs=pairs), record)
    said, none = (row.details.get("Port pairs") for row in page.rows)
    assert said and none is None
    assert [text.partition(":")[0] for text in said] == ["1", "2"] and said[1].endswith("lost 10.0 %")


def conntrack(cpus: int, queues: int, rate: float, limited_by: str = "dut") -> Record:
    return made_up_record(found(rate, limited_by), topology=Topology(cpus=cpus, rx_queues=queues))


def test_setups_stand_in_order_with_their_floor_and_what_the_generator_limited_is_marked() -> None:
    assert rate_charts([conntrack(1, 1, 100_000)]) == [], "one alone shows no scaling"
    (cps,) = rate_charts([conntrack(4, 4, 300_000), conntrack(1, 1, 100_000), conntrack(2, 2, 190_000)])
    assert [row.label for row in cps.rows] == ["1 CPU, 1 queue", "2 CPUs, 2 queues", "4 CPUs, 4 queues"]
    assert [row.value for row in cps.rows] == [100_000, 190_000, 300_000]
    assert [row.ideal for row in cps.rows] == [None, 200_000, 400_000]
    assert {row.floor for row in cps.rows} == {48_200}
    assert cps.caption == "new connections (connections/s), held for 10 s"
    two = rate_charts([conntrack(1, 1, 100_000), conntrack(2, 2, 30_000, "generator")])[0]
    assert [(row.text, row.style) for row in two.rows] == [
        ("100.0 k CPS", "measured"), ("30.0 k CPS", "measured unsure"),
    ]  # fmt: skip


def test_rates_of_several_testbeds_and_campaigns_are_not_compared() -> None:
    def of(record: Record, testbed: str, campaign: str = "quick") -> Record:
        known = record.campaign.model_copy(update={"name": campaign})
        return with_environment(record, testbed=TestbedFacts(name=testbed)).model_copy(update={"campaign": known})

    one, two = conntrack(1, 1, 800_000), conntrack(2, 2, 900_000)
    records = [of(conntrack(1, 1, 100_000), "laptop"), of(one, "lab"), of(two, "lab")]
    (chart,) = rate_charts(records)
    assert chart.title.endswith("CPS, lab") and [row.ideal for row in chart.rows] == [None, 1_600_000]
    (bars,) = setups.charts(records, [[each] for each in records])
    assert isinstance(bars, Bars)
    assert [row.label.partition(",")[0] for row in bars.rows] == [
        f"Open vSwitch 3.1.0 ({each})" for each in ("laptop", "lab")
    ]
    both = [of(each, "lab", campaign) for campaign in ("quick", "gate") for each in (one, two)]
    assert [chart.title.rpartition(", ")[2] for chart in rate_charts(both)] == ["quick", "gate"]
    assert rate_charts(both[:2])[0].title.endswith("CPS")


def test_every_trial_is_a_point_whose_mark_tells_its_state() -> None:
    record = made_up_record()
    chart = search_chart(record)
    assert chart is not None
    assert {series.style: len(series.points) for series in chart.series} == {"trial-good": 1, "trial-bad": 1}
    assert {series.mark for series in chart.series} == {"dot", "cross"}
    assert [guide.text for guide in chart.guides] == ["limit 0.020 %", "promised 48.2 k/s", "holds 381.0 k/s for 10 s"]
    # Of packets there is another limit, which is not one of the connections that the chart shows.
    of_packets = [
        replace(each, metric="packet_loss_ratio") if each.metric == "loss_ratio" else each for each in record.thresholds
    ]
    known = record.campaign.model_copy(update={"loss_ratio": 0.0002})
    chart = search_chart(record.model_copy(update={"thresholds": of_packets, "campaign": known}))
    assert chart is not None and [guide.style for guide in chart.guides] == ["floor", "capacity"]


def test_a_trial_over_time_is_that_which_the_result_rests_on() -> None:
    assert series_charts(made_up_record()) == []
    series = {
        "timeline_active": [10, 12, 11, 9],
        "timeline_connect_mean_us": [20.0, 30.0, None, 25.0],
        "timeline_connect_max_us": [40.0, 900.0, None, 25.0],
        "timeline_completed": [100, 110],
    }
    charts = series_charts(with_trials(made_up_record(), timeline_step_s=0.5, **series))
    assert [chart.y.name for chart in charts] == [
        "open connections (connections)", "mean TCP connect time (us)", "longest TCP connect time (us)",
        "completed connections (per second)",
    ]  # fmt: skip
    assert all("trial 2" in chart.title for chart in charts)
    # A step without a connection has no point, and no line goes across it.
    assert [[point.x for point in each.points] for each in charts[1].series] == [[0.0, 0.5], [1.5]]
    assert [(point.x, point.y) for point in charts[3].series[0].points] == [(0.0, 200.0), (0.5, 220.0)]


def test_history_has_what_a_closed_loop_showed_apart() -> None:
    runs = [made_up_record(found(rate), run_id=str(rate)) for rate in (400_000.0, 40_000.0)]
    served = {"saturation_cps": Estimate(value=450_000.0, unit="connections/s")}
    runs[1] = runs[1].model_copy(update={"figures": runs[1].figures | served})
    (chart,) = history_charts([runs, [made_up_record()]])
    assert [(each.style, [point.y for point in each.points]) for each in chart.series[:2]] == [
        ("run-line", [400_000, 40_000]), ("run-served", [450_000]),
    ]  # fmt: skip
    assert chart.caption == "2 runs; the newest has 40.0 k/s, \u221290.0 % against the first."


@pytest.mark.parametrize(
    ("axis", "values", "ticks"),
    [
        (Axis("x"), [1_300_000], ["0", "500 k", "1 M", "1.5 M"]),
        (Axis("x"), [0.03], ["0", "0.01", "0.02", "0.03", "0.04"]),
        (Axis("x"), [], ["0", "0.5", "1", "1.5"]),
        (Axis("x", "share", short_share), [0.98, 1.02], ["98 %", "100 %", "102 %"]),
        (Axis("x", "log"), [2.9, 3.5], ["3", "4"]),
        (Axis("x", "log"), [250, 4000], ["200", "500", "1 k", "2 k", "5 k"]),
    ],
)
def test_axes_have_round_numbers_in_few_digits(axis: Axis, values: list[float], ticks: list[str]) -> None:
    assert [words for _, words in replace(axis, values=tuple(values)).ticks] == ticks
