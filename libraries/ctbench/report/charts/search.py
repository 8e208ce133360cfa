"""The trials of one search: load against loss, and what a connection (or packet) waited at each load."""

from ctbench.base.units import format_duration, format_ratio
from ctbench.report import enough, figures, labels
from ctbench.report.charts.model import Axis, Guide, LegendItem, Mark, Point, Series, XyChart
from ctbench.report.charts.scale import loss_words
from ctbench.results.evidence import TrialRecord
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Record

_MARKS: dict[str, Mark] = {"good": "dot", "bad": "cross", "invalid": "ring"}
_MEANS = {
    "good": "good: lost no more than the limit",
    "bad": "bad: lost more, or too slow",
    "invalid": "invalid: says nothing about the DUT",
}


def search_chart(record: Record) -> XyChart | None:
    """Every trial of a record: what was offered, and what was lost of it. None where there were no trials."""
    counted = RATE_OF[record.profile.kind]
    numbered = [each for each in enumerate(record.evidence.trials, 1) if each[1].offers_a_load]
    trials = [made for _, made in numbered]
    if not trials:
        return None
    series, legend = [], []
    for state, mark in _MARKS.items():
        points = tuple(
            Point(made.trial.load, made.trial.loss_ratio, _sentence(number, made))
            for number, made in numbered
            if made.state == state
        )
        if points:
            series.append(Series(points, f"trial-{state}", mark=mark))
            legend.append(LegendItem(mark, f"trial-{state}", _MEANS[state]))
    limit = _loss_limit(record)
    guides = [Guide("y", limit, f"limit {format_ratio(limit)}", "limit")] if limit else []
    if promised := record.threshold(counted.name):
        guides.append(Guide("x", promised.limit, f"floor {counted.format(promised.limit)}", "floor"))
    held = record.result.value if record.result and figures.is_rate(record) else 0.0
    if held and any(made.state == "good" for made in trials):
        name = "tried" if record.limited_by == "floor" else "capacity"
        guides.append(Guide("x", held, f"{name} {counted.format(held)}", "capacity"))
    counts = ", ".join(
        f"{sum(made.state == state for made in trials)} {state}"
        for state in _MARKS
        if any(made.state == state for made in trials)
    )
    return XyChart(
        title="Trials: load against loss",
        caption=f"{labels.plural(len(trials), 'trial')}: {counts}.",
        x=Axis(f"offered {record.profile.kind} per second", scale="log"),
        y=Axis("lost", scale="loss", words="loss"),
        legend=tuple(legend),
        series=tuple(series),
        guides=tuple(guides),
    )


def waiting_chart(record: Record) -> XyChart | None:
    """TCP connect time (connections) or one-way latency (packets) at each load tried; None where none was seen.
    Invalid trials are left out: their times are the generator's."""
    name = "TCP connect time" if record.profile.kind == "connections" else "latency"
    valid = sorted(
        (made for made in record.evidence.trials if made.state != "invalid" and made.offers_a_load),
        key=lambda made: made.trial.load,
    )
    seen = [(made.trial.load, times) for made in valid if (times := _times(made))]
    if len({load for load, _ in seen}) < 2:
        return None
    lines = []
    for number, (style, quantile) in enumerate((("p50", "half of them"), ("p99", "99 of 100"), ("max", "the slowest"))):
        points = tuple(
            Point(load, times[number], f"{labels.rate(load, record.profile.kind)}: {quantile} within "
                  f"{format_duration(times[number] / 1e6)}")
            for load, times in seen
        )  # fmt: skip
        lines.append(Series(points, f"wait-{style}", mark="dot", joined=True))
    load, times = max(((load, times) for load, times in seen), key=lambda each: each[1][1])
    return XyChart(
        title=f"{name[0].upper()}{name[1:]} at each load",
        caption=f"At worst, 99 of 100 took at most {format_duration(times[1] / 1e6)}, at "
        f"{labels.rate(load, record.profile.kind)}.",
        x=Axis(f"offered {record.profile.kind} per second", scale="log"),
        y=Axis(name, scale="log", words="microseconds"),
        legend=(
            LegendItem("line", "wait-p50", "half of them (p50)"),
            LegendItem("line", "wait-p99", "99 of 100 (p99)"),
            LegendItem("line", "wait-max", "the slowest"),
        ),
        series=tuple(lines),
    )


def _times(made: TrialRecord) -> tuple[float, float, float] | None:
    """Median, 99th percentile and maximum, microseconds."""
    found = made.waited
    return (found.p50, found.p99, found.max) if found and found.p50 > 0 else None


def _sentence(number: int, made: TrialRecord) -> str:
    trial = made.trial
    what = f"trial {number}: {labels.rate(trial.load, trial.unit)} offered, {loss_words(trial.loss_ratio)} lost"
    return enough.sentence(f"{what}, {made.state}{': ' + made.reason if made.reason else ''}")


def _loss_limit(record: Record) -> float:
    """The loss up to which a trial was good: the floor's own, else the campaign's."""
    promised = record.threshold("loss_ratio")
    return promised.limit if promised else record.campaign.loss_ratio
