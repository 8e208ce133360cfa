"""Charts of points over an axis: the trials of a search, one trial over time, the rounds of a pair, a test over its
runs."""

from collections import Counter
from collections.abc import Mapping, Sequence

from ctbench.base.units import format_duration, format_ratio, format_share, plural
from ctbench.report import figures, labels, trend
from ctbench.report.charts import chart
from ctbench.results.evidence import PairRecord, Series, TrialRecord
from ctbench.results.metrics import RATE_OF, SATURATION_OF
from ctbench.results.record import Record


def _marked(
    points: Sequence[tuple[str, chart.Point]], marks: Mapping[str, tuple[chart.Mark, str, str]]
) -> tuple[list[chart.Points], list[chart.LegendItem]]:
    """Return the points of each kind and their legend. A kind has a mark, a class of the style sheet and words; kinds
    without a point are left out."""
    series, legend = [], []
    for kind, (mark, style, words) in marks.items():
        if some := tuple(point for its, point in points if its == kind):
            series.append(chart.Points(some, style, mark=mark))
            legend.append(chart.LegendItem(mark, style, words))
    return series, legend


# The trials of a search: load against loss.

_TRIAL_MARKS: dict[str, tuple[chart.Mark, str, str]] = {
    "good": ("dot", "trial-good", "good: lost no more than the limit"),
    "bad": ("cross", "trial-bad", "bad: lost more, or too slow"),
    "invalid": ("ring", "trial-invalid", "invalid: says nothing about the DUT"),
}


def search_chart(record: Record) -> chart.XyChart | None:
    """Return a chart of the trials of a record: offered load against loss ratio. None where no trial offered a load."""
    counted = RATE_OF[record.profile.kind]
    numbered = [each for each in enumerate(record.evidence.trials, 1) if each[1].offers_a_load]
    found = Counter[str](made.state for _, made in numbered)
    if not found:
        return None
    points = [
        (made.state, chart.Point(made.trial.load, made.trial.loss_ratio, _sentence(number, made)))
        for number, made in numbered
    ]
    series, legend = _marked(points, _TRIAL_MARKS)
    own = record.threshold("loss_ratio")
    limit = own.limit if own else record.campaign.loss_ratio
    if record.profile.kind == "connections" and record.threshold("packet_loss_ratio"):
        limit = 0.0  # of packets, and the chart shows what was lost of connections
    guides = [chart.Guide("y", limit, f"limit {format_ratio(limit)}", "limit")] if limit else []
    if promised := record.threshold(counted.name):
        guides.append(chart.Guide("x", promised.limit, f"promised {counted.format(promised.limit)}", "floor"))
    held = record.result.value if record.result and figures.is_rate(record) else 0.0
    if held and found["good"]:
        said = f"{'tried' if record.limited_by == 'floor' else 'holds'} {counted.format(held)}"
        guides.append(chart.Guide("x", held, f"{said} {figures.for_seconds(record)}", "capacity"))
    counts = ", ".join(f"{found[state]} {state}" for state in _TRIAL_MARKS if found[state])
    return chart.XyChart(
        title="Trials: load against loss",
        caption=f"{plural(len(numbered), 'trial')}: {counts}.",
        x=chart.Axis(f"offered {record.profile.kind} per second", scale="log"),
        y=chart.Axis("lost", scale="loss", words=chart.short_share),
        legend=tuple(legend),
        series=tuple(series),
        guides=tuple(guides),
    )


def _sentence(number: int, made: TrialRecord) -> str:
    trial, lost = made.trial, format_ratio(max(0.0, made.trial.loss_ratio))
    what = f"trial {number}: {labels.rate(trial.load, trial.unit)} offered, {lost} lost"
    return labels.sentence(f"{what}, {made.state}{': ' + made.reason if made.reason else ''}")


# One trial over time: what probes saw, and of its connections how many were open, and their times.


def series_charts(record: Record) -> list[chart.XyChart]:
    """Return the series sampled over the trial that the result rests on, by probes and of its connections. That is the
    last good trial, else the last one that offered a load, else the last one that was sampled; trials below the held
    rate do not count."""
    trials = record.evidence.trials
    numbered = [each for each in enumerate(trials, 1) if each[1].offers_a_load and each[1].phase != "below"]
    found = ([each for each in numbered if each[1].state == "good"] or numbered)[-1:]
    both = [*record.evidence.series, *(series for each in found for series in _of_connections(*each))]
    sampled = [each for each in both if any(value is not None for value in each.values)]
    number = found[0][0] if found else max((each.trial for each in sampled), default=0)
    return [_sampled(each) for each in sampled if each.trial == number]


def _of_connections(number: int, made: TrialRecord) -> list[Series]:
    """Return the series of a trial's connections: how many were open, handshake times, completions. Empty for
    packets."""
    trial = made.trial
    if trial.unit == "packets" or not trial.timeline_step_s:
        return []
    known = (
        ("open_connections", "connections", trial.timeline_active),
        ("mean_TCP_connect_time", "us", trial.timeline_connect_mean_us),
        ("longest_TCP_connect_time", "us", trial.timeline_connect_max_us),
        ("completed_connections", "per second", [count / trial.timeline_step_s for count in trial.timeline_completed]),
    )
    return [
        Series(name=name, unit=unit, trial=number, every_s=trial.timeline_step_s, values=list(values))
        for name, unit, values in known
    ]


def _sampled(seen: Series) -> chart.XyChart:
    what, most = labels.name(seen.name.replace("_", " ")), max(value for value in seen.values if value is not None)
    return chart.XyChart(
        f"{what[0].upper()}{what[1:]} over trial {seen.trial}",
        f"At most {chart.short_count(most)} {labels.name(seen.unit)}, sampled each {format_duration(seen.every_s)}.",
        chart.Axis("time since the trial began", words="{:g} s".format),
        chart.Axis(f"{what} ({labels.name(seen.unit)})"),
        (),
        _lines(seen.values, seen.every_s),
    )


def _lines(values: Sequence[float | None], step: float) -> tuple[chart.Points, ...]:
    """Return lines that join neighbouring values. A line breaks where a value is missing; a value between two gaps is a
    dot."""
    runs: list[list[chart.Point]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(chart.Point(number * step, value))
    return tuple(chart.Points(tuple(run), "line-active", mark="dot" if len(run) == 1 else None) for run in runs if run)


# A pair: the ratio of each round, with its interval and the promise.


def pair_charts(record: Record) -> list[chart.XyChart]:
    """Return a chart for each pair of a record that has a valid round."""
    return [_pair_chart(record, pair) for pair in record.evidence.pairs if pair.ratios]


def _pair_chart(record: Record, pair: PairRecord) -> chart.XyChart:
    # The promise that it is about: that of another build where the topology is the same.
    promise = record.threshold("ratio" if pair.other.profile or pair.other.key != pair.tested.key else "of_build")
    found, metric = pair.result, RATE_OF[record.profile.kind]
    what = "block" if pair.how == "reconfigured" else "start" if pair.starts else "round"
    dropped = f", {pair.dropped} dropped" if pair.dropped else ""
    said = f"{plural(len(pair.ratios), what)}{dropped}, {pair.how}"
    guides = [chart.Guide("y", promise.limit, f"promised {format_share(promise.limit)}", "floor")] if promise else []
    if found:
        said += f": {found.as_share()}"
        guides += [chart.Guide("y", each, "", "capacity") for each in found.ends]
    both = (pair.tested, pair.other)
    served = [side.serves.value if pair.starts and side.serves else side.rate for side in both]
    rates = [metric.format(rate) for rate in served if rate]
    loop = f" ({' and '.join(rates)} {pair.served})" if rates and pair.how == "side by side" else ""
    points = (
        chart.Point(float(number), ratio, f"{what} {number}: {format_share(ratio)}")
        for number, ratio in enumerate(pair.ratios, 1)
    )
    ends = "its bounds, 95 % each" if pair.starts else "the ends of the 99 % interval"
    return chart.XyChart(
        title=f"Pair: the ratio of each {what}",
        caption=f"{said}, {figures.side(pair.tested)} of {figures.side(pair.other)}{loop}.",
        x=chart.Axis(f"{what}, in their order"),
        y=chart.Axis("ratio", "share", chart.short_share),
        legend=(
            chart.LegendItem("dot", "trial-good", f"the ratio of a {what}"),
            chart.LegendItem("line", "capacity", ends),
        ),
        series=(chart.Points(tuple(points), "trial-good", mark="dot"),),
        guides=tuple(guides),
    )


# One test over several runs.


def history_charts(tests: Sequence[Sequence[Record]]) -> list[chart.XyChart]:
    """Return a chart for each test that several runs measured. The records of a test are oldest first, and of one
    metric."""
    measured = [[(record, record.result.value) for record in test if record.result] for test in tests]
    return [_history(test) for test in measured if len(test) > 1]


def _history(test: Sequence[tuple[Record, float]]) -> chart.XyChart:
    records, values = [record for record, _ in test], [value for _, value in test]
    newest, metric = records[-1], figures.metric_of(records[-1])
    points = [
        chart.Point(float(place), value, f"{labels.moment(record.started)}: {metric.format(value)}, {record.verdict}")
        for place, (record, value) in enumerate(test)
    ]
    marks: dict[str, tuple[chart.Mark, str, str]] = {word: (*each, word) for word, each in chart.RUN_MARKS.items()}
    marked, legend = _marked([(record.verdict, point) for point, record in zip(points, records, strict=True)], marks)
    served = _served(records) if metric is RATE_OF[newest.profile.kind] else ()
    if served:
        legend.append(chart.LegendItem("line", "run-served", "served in a closed loop"))
    starts = tuple(f"{each.started:%m-%d %H:%M}" for each in records)
    difference, direction = figures.difference_pct(values[-1], values[0]), figures.direction(metric)
    change = f", {labels.margin(difference)} against the first" if difference is not None else ""
    change += f" ({direction})" if change and direction else ""
    changes = trend.changes(records)
    change += "".join(f"; {each.words}" for each in changes)
    if changes:
        legend.append(chart.LegendItem("line", "run-level", "level of the runs between two changes"))
        legend.append(chart.LegendItem("line", "run-change", "change point"))
    promised = newest.threshold(metric.name)
    guides = [chart.Guide("x", float(each.after.first), "", "run-change") for each in changes]
    if promised:
        guides.append(chart.Guide("y", promised.limit, f"promised {figures.limit(metric, promised.limit)}", "floor"))
    return chart.XyChart(
        title=labels.name(newest.test),
        caption=f"{plural(len(records), 'run')}; the newest has {metric.format(values[-1])}{change}.",
        x=chart.Axis("start of the test, UTC", "labels", labels=starts),
        y=chart.Axis(figures.name(metric)),
        legend=tuple(legend),
        series=(chart.Points(tuple(points), "run-line"), *served, *_levels(changes), *marked),
        guides=tuple(guides),
    )


def _levels(changes: Sequence[trend.Change]) -> list[chart.Points]:
    """Return a line for each level, from its first run to its last; for a change in small steps, one from the run where
    the steps began to the last run."""
    steps = [each for each in changes if not each.anchor]
    levels = [each.before for each in steps[:1]] + [each.after for each in steps]
    ends = [(each, each) for each in levels] + [(each.before, each.after) for each in changes if each.anchor]
    return [
        chart.Points(
            (chart.Point(float(begin.first), begin.average), chart.Point(float(end.last), end.average)), "run-level"
        )
        for begin, end in ends
    ]


def _served(records: Sequence[Record]) -> tuple[chart.Points, ...]:
    """Return the saturation rate of each run that has one, as one line; empty where no run has one."""
    rate = SATURATION_OF[records[-1].profile.kind]
    points = tuple(
        chart.Point(float(place), value, f"{labels.moment(record.started)}: {rate.format(value)} in a closed loop")
        for place, record in enumerate(records)
        if (value := record.values.get(rate.name)) is not None
    )
    return (chart.Points(points, "run-served"),) if points else ()
