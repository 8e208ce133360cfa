"""Charts: what they show is what the records hold, and nothing uncertain is drawn as if it were certain."""

from dataclasses import replace

import pytest

from ctbench.dut.topology import Topology
from ctbench.report.charts.bars import rate_charts
from ctbench.report.charts.chart import Axis, short_share
from ctbench.report.charts.lines import history_charts, search_chart, series_charts
from ctbench.results.evidence import TrialRecord
from ctbench.results.record import Record
from ctbench.results.record_model import Figure

from .simulated import found, made_up_record


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
    assert [(row.text, row.style) for row in two.rows] == [("100 k", "measured"), ("30 k", "measured unsure")]


def test_every_trial_is_a_point_whose_mark_tells_its_state() -> None:
    record = made_up_record()
    chart = search_chart(record)
    assert chart is not None
    assert {series.style: len(series.points) for series in chart.series} == {"trial-good": 1, "trial-bad": 1}
    assert {series.mark for series in chart.series} == {"dot", "cross"}
    assert [guide.text for guide in chart.guides] == ["limit 0.020 %", "promised 48.2 k/s", "holds 381.0 k/s for 10 s"]


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
    assert series_charts(made_up_record()) == []
    series = {
        "timeline_active": [10, 12, 11, 9],
        "timeline_connect_mean_us": [20.0, 30.0, None, 25.0],
        "timeline_connect_max_us": [40.0, 900.0, None, 25.0],
        "timeline_completed": [100, 110],
    }
    charts = series_charts(with_timeline(made_up_record(), **series))
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
    served = {"saturation_cps": Figure(value=450_000.0, unit="connections/s")}
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
