"""Charts: what they show is what the records hold, and nothing uncertain is drawn as if it were certain."""

from xml.etree import ElementTree as ET

import pytest

from ctbench.dut.topology import Topology
from ctbench.report.charts import draw
from ctbench.report.charts.cost import cost_charts
from ctbench.report.charts.history import history_charts
from ctbench.report.charts.model import Axis, LegendItem, Panels, XyChart
from ctbench.report.charts.scale import fit, nice_step, short_count
from ctbench.report.charts.scaling import scaling_charts
from ctbench.report.charts.search import search_chart, waiting_chart
from ctbench.report.charts.timeline import series_charts, timeline_charts
from ctbench.report.reference import NONE, Elsewhere, References
from ctbench.results.evidence import Baseline, TrialRecord
from ctbench.results.evidence import Series as Sampled
from ctbench.results.figure import Figure
from ctbench.results.record import Record
from ctbench.traffic.generator import Latency
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import FORWARDING, found, found_packets, made_up_packet_floor, made_up_packet_record, made_up_record

pytestmark = pytest.mark.unit


def conntrack(cpus: int, queues: int, rate: float, limited_by: str = "dut") -> Record:
    return made_up_record(found(rate, limited_by), topology=Topology(cpus=cpus, rx_queues=queues))


def router(ruleset: str, rate: float, limited_by: str = "dut", **changes: object) -> Record:
    topology = Topology(datapath="linux-router", ruleset=ruleset)
    return made_up_packet_record(found_packets(rate, limited_by), topology=topology, **changes)


def test_one_setup_alone_makes_no_chart_of_scaling() -> None:
    assert scaling_charts([conntrack(1, 1, 100_000)], NONE) == []


def test_setups_stand_in_order_with_their_floor_and_perfect_scaling() -> None:
    cps, pps = scaling_charts([conntrack(4, 4, 300_000), conntrack(1, 1, 100_000), conntrack(2, 2, 190_000)], NONE)
    assert [category.label for category in cps.categories] == [
        ("1", "1"), ("2", "2"), ("4", "4")
    ]  # fmt: skip
    assert [bar.value for category in cps.categories for bar in category.bars if bar] == [100_000, 190_000, 300_000]
    assert [category.ideal for category in cps.categories] == [100_000, 200_000, 400_000]
    assert {category.floor for category in cps.categories} == {48_200}
    assert cps.caption == ("From 100.0 k/s with 1 CPU, 1 queue to 300.0 k/s with 4 CPUs, 4 queues.")
    assert (cps.axis, pps.axis) == ("new connections (connections/s)", "packets (packets/s)")
    assert {category.floor for category in pps.categories} == {334_900}


def test_queues_alone_have_no_line_of_perfect_scaling() -> None:
    chart = scaling_charts([conntrack(1, 1, 100_000), conntrack(1, 2, 110_000)], NONE)[0]
    assert {category.ideal for category in chart.categories} == {None}
    assert "ideal" not in [item.style for item in chart.legend]


def test_what_the_generator_limited_is_marked_in_a_chart() -> None:
    chart = scaling_charts([conntrack(1, 1, 100_000), conntrack(2, 2, 30_000, "generator")], NONE)[0]
    sure, unsure = (category.bars[0] for category in chart.categories)
    assert sure and sure.text == "100 k"
    assert unsure and (unsure.text, unsure.style) == ("≥ 30 k", "measured unsure")


def test_published_bars_say_that_they_are_from_other_hardware() -> None:
    figure = Elsewhere("Open vSwitch 3.0.0, 2022, table 4", "short-lived", {"cps": 48_200, "pps": 334_900})
    references = References({"Open vSwitch 3.0.0": {("ovs-dpdk/conntrack/1cpu-1rxq", "short-lived"): figure}})
    chart = scaling_charts([conntrack(1, 1, 100_000), conntrack(1, 2, 110_000)], references)[0]
    assert chart.legend[1].text == "Open vSwitch 3.0.0 (other hardware)"
    first, second = chart.categories
    assert first.bars[1] and first.bars[1].hint == "Open vSwitch 3.0.0, 2022, table 4: 48.2 k/s, other hardware"
    assert second.bars[1] is None


def test_connections_of_another_length_are_not_drawn_beside_each_other() -> None:
    short = ConnectionProfile(name="long-lived-short", derived_from="long-lived", udp_percent=1)
    records = [
        made_up_record(found(rate), profile=short, topology=Topology(rx_queues=queues))
        for queues, rate in ((1, 14_000.0), (2, 15_000.0))
    ]
    figure = Elsewhere("2022", "long-lived", {"cps": 1_200, "pps": 1_800_000})
    references = References({"2022": {("ovs-dpdk/conntrack/1cpu-1rxq", "long-lived"): figure}})
    cps, pps = scaling_charts(records, references)
    assert [len(category.bars) for category in cps.categories] == [1, 1]
    assert [len(category.bars) for category in pps.categories] == [2, 2]
    assert pps.categories[0].bars[1] and pps.categories[0].bars[1].value == 1_800_000


def test_costs_are_shares_of_plain_forwarding_with_the_promised_share() -> None:
    floor = made_up_packet_floor(">= 100k", share=">= 45%")
    baseline = Baseline(key=FORWARDING, rate=800_000.0)
    nat = router("iptables-snat", 400_000, floor=floor, baseline=baseline)
    (chart,) = cost_charts([router("forward", 800_000), nat])
    assert [(share.label, share.share) for share in chart.shares] == [
        ("Plain forwarding", 1.0),
        ("SNAT, iptables", 0.5),
    ]
    assert chart.shares[1].floor == 0.45
    assert chart.caption == "Plain forwarding does 800.0 k pps; SNAT, iptables leaves 50.0 % of that."


def test_a_yardstick_that_is_only_at_least_gives_no_costs() -> None:
    assert cost_charts([router("forward", 800_000, "range"), router("iptables-snat", 400_000)]) == []


def test_more_than_plain_forwarding_is_said_to_be_the_machines_doing() -> None:
    (chart,) = cost_charts([router("forward", 500_000), router("iptables-snat", 700_000)])
    assert "More than 100 %: the machine was probably slower during plain forwarding" in chart.caption
    (chart,) = cost_charts([router("forward", 500_000), router("iptables-snat", 520_000)])
    assert "machine" not in chart.caption


def test_what_costs_at_most_is_said_and_is_not_the_headline() -> None:
    (chart,) = cost_charts([router("forward", 800_000), router("iptables-snat", 200_000, "range")])
    assert chart.shares[1].text == "at least 200.0 k pps · 25.0 %"
    assert chart.caption == "Plain forwarding does 800.0 k pps."


def test_a_baseline_serves_where_plain_forwarding_has_no_test_of_its_own() -> None:
    floor = made_up_packet_floor(">= 100k", share=">= 45%")
    record = router("iptables-snat", 400_000, floor=floor, baseline=Baseline(key=FORWARDING, rate=500_000.0))
    (chart,) = cost_charts([record])
    assert chart.shares[1].share == 0.8


def test_every_trial_is_a_point_whose_mark_tells_its_state() -> None:
    record = made_up_record()
    chart = search_chart(record)
    assert chart is not None
    assert {series.style: len(series.points) for series in chart.series} == {"trial-good": 1, "trial-bad": 1}
    assert {series.mark for series in chart.series} == {"dot", "cross"}
    assert [guide.text for guide in chart.guides] == ["limit 0.020 %", "floor 48.2 k/s", "capacity 381.0 k/s"]


def test_waiting_times_need_two_loads_and_leave_invalid_trials_out() -> None:
    record = made_up_record()
    chart = waiting_chart(record)
    assert chart and [point.x for point in chart.series[0].points] == [381_000.0, pytest.approx(400_050.0)]
    invalid = [made.model_copy(update={"state": "invalid"}) for made in record.evidence.trials]
    assert waiting_chart(with_trials(record, invalid)) is None
    # The latency of messages is no connect time: UDP has none.
    latency = Latency(p50=1, p99=2, max=3, jitter=1)
    udp = [
        made.model_copy(
            update={"latency_us": latency, "trial": made.trial.model_copy(update={"connect_time_us": None})}
        )
        for made in record.evidence.trials
    ]
    assert waiting_chart(with_trials(record, udp)) is None


def with_trials(record: Record, trials: list[TrialRecord]) -> Record:
    return record.model_copy(update={"evidence": record.evidence.model_copy(update={"trials": trials})})


def with_timeline(record: Record, **series: object) -> Record:
    """The record with points for every half second in its trials."""
    trials = [
        made.model_copy(update={"trial": made.trial.model_copy(update={"timeline_step_s": 0.5, **series})})
        for made in record.evidence.trials
    ]
    return with_trials(record, trials)


def test_a_trial_over_time_is_that_which_the_result_rests_on() -> None:
    record = made_up_record()
    assert timeline_charts(record) == []
    active, completed = timeline_charts(with_timeline(record, timeline_active=[10, 12], timeline_completed=[100, 110]))
    assert "trial 2" in active.title
    assert isinstance(completed, XyChart)
    assert [(point.x, point.y) for point in completed.series[0].points] == [(0.5, 200.0), (1.0, 220.0)]


def test_a_record_without_connect_times_over_the_trial_shows_the_connections_alone() -> None:
    (active,) = timeline_charts(with_timeline(made_up_record(), timeline_active=[10, 12]))
    assert isinstance(active, XyChart)
    assert [item.style for item in active.legend] == ["line-active"]


def test_open_connections_and_their_connect_time_share_the_time_axis() -> None:
    series = {
        "timeline_active": [10, 12, 11, 9],
        "timeline_connect_mean_us": [20.0, 30.0, None, 25.0],
        "timeline_connect_max_us": [40.0, 900.0, None, 25.0],
    }
    (chart,) = timeline_charts(with_timeline(made_up_record(), **series))
    assert isinstance(chart, Panels)
    assert [item.style for item in chart.legend] == ["line-active", "wait-mean", "wait-max"]
    above, below = (ET.fromstring(f"{svg}</svg>") for svg in draw.draw(chart).split("</svg>")[:-1])
    (line,) = [each for each in above.iter("polyline") if each.get("class") == "line-active"]
    (mean,) = [each for each in below.iter("polyline") if each.get("class") == "wait-mean"]
    (alone,) = [each for each in below.iter("circle") if each.get("class") == "wait-mean dot"]
    times = [place.split(",")[0] for place in line.attrib["points"].split()]
    assert [place.split(",")[0] for place in mean.attrib["points"].split()] == times[:2]
    assert alone.get("cx") == times[3], "a step without a connection has no point, and no line goes across it"
    ticks = [[each.get("x1") for each in svg.iter("line") if each.get("class") == "axis"] for svg in (above, below)]
    assert ticks[0] == ticks[1]


def test_what_a_probe_saw_is_drawn_over_the_trial_that_the_result_rests_on() -> None:
    record = made_up_record()
    assert series_charts(record) == []
    entries = {"name": "table_entries", "unit": "entries", "every_s": 0.1}
    seen = [
        Sampled(trial=1, values=[1.0, 2.0], **entries),
        Sampled(trial=2, values=[0.0, 900.0, None, 1_200.0], **entries),
        Sampled(trial=2, values=[None, None], **entries | {"name": "nothing"}),
    ]
    evidence = record.evidence.model_copy(update={"series": seen})
    (chart,) = series_charts(record.model_copy(update={"evidence": evidence}))
    assert (chart.title, chart.y.name) == ("Table entries over trial 2", "table entries (entries)")
    assert chart.caption == "At most 1.2 k entries, sampled each 100.0 ms."
    assert [[(point.x, point.y) for point in each.points] for each in chart.series] == [
        [(0.0, 0.0), (0.1, 900.0)],
        [(pytest.approx(0.3), 1_200.0)],
    ]


def test_history_has_a_chart_for_each_test_of_several_runs() -> None:
    runs = [made_up_record(found(rate), run_id=str(rate)) for rate in (400_000.0, 40_000.0)]
    (chart,) = history_charts([runs, [made_up_record()]])
    assert [point.y for point in chart.series[0].points] == [400_000, 40_000]
    assert [item.text for item in chart.legend] == ["met", "missed"]
    assert chart.caption == "2 runs; the newest has 40.0 k/s, \u221290.0 % against the first."


def test_history_draws_what_a_closed_loop_showed_apart_from_the_capacity_and_only_where_it_did() -> None:
    runs = [made_up_record(found(rate), run_id=str(rate)) for rate in (400_000.0, 380_000.0, 390_000.0)]
    served = {"saturation_cps": Figure(value=450_000.0, unit="connections/s")}
    runs[1] = runs[1].model_copy(update={"figures": runs[1].figures | served})
    (chart,) = history_charts([runs])
    assert [(point.x, point.y) for point in chart.series[1].points] == [(1.0, 450_000.0)]
    assert chart.series[1].style == "run-served"
    assert chart.legend[-1].text == "saturation rate: served in a closed loop, no SLA figure"


def test_small_numbers_keep_the_digits_that_tell_ticks_apart() -> None:
    assert [short_count(value) for value in (0.0, 0.0002, 0.0125, 0.25, 12.5)] == [
        "0",
        "0.0002",
        "0.0125",
        "0.25",
        "12.5",
    ]


@pytest.mark.parametrize(("length", "step"), [(1.0, 0.5), (100, 50), (1_300_000, 500_000), (0.03, 0.01)])
def test_axes_have_round_steps(length: float, step: float) -> None:
    assert nice_step(length) == pytest.approx(step)


def test_an_axis_of_losses_tells_none_from_a_little() -> None:
    axis = fit(Axis("lost", scale="loss", words="loss"), [])
    places = [axis.place(loss) for loss in (0.0, 1e-9, 0.0002, 0.5, 1.0, 2.0)]
    assert places == sorted(places)
    assert places[0] < places[1] and places[-1] == 1.0
    assert axis.ticks()[0] == (0.0, "none")


def test_a_logarithmic_axis_shows_all_its_values_and_few_ticks() -> None:
    axis = fit(Axis("load", scale="log"), [5_000, 1_500_000])
    assert 0 < axis.place(5_000) < axis.place(1_500_000) < 1
    assert 2 <= len(axis.ticks()) <= 6
    assert short_count(1_500_000) == "1.5 M"


def test_a_logarithmic_axis_of_times_that_are_near_each_other_has_ticks_too() -> None:
    axis = Axis("connect time", scale="log", words="microseconds")
    assert [words for _, words in fit(axis, [2.9, 3.5]).ticks()] == ["3 us", "4 us"]
    assert [words for _, words in fit(axis, [0.4, 1500]).ticks()][:2] == ["1 us", "10 us"]
    assert [words for _, words in fit(axis, [0.25, 4]).ticks()] == ["200 ns", "500 ns", "1 us", "2 us", "5 us"]


def test_drawings_have_neither_styles_nor_scripts_and_escape_names() -> None:
    record = made_up_record(test='<script>alert("x")</script>')
    searched = search_chart(record)
    assert searched is not None
    charts = [*scaling_charts([record, conntrack(1, 2, 5)], NONE), searched]
    for svg in [
        *map(draw.draw, charts),
        draw.margin_bar(-12.0, "missed"),
        draw.swatch(LegendItem("line", "floor", "a")),
    ]:
        for element in ET.fromstring(svg).iter():
            assert element.tag not in ("script", "style")
            assert not {"style", "onclick", "href"} & set(element.attrib)
