"""One trial over time: connections that were open, their connect time, connections completed, and what probes saw."""

from collections.abc import Sequence

from ctbench.base.units import format_count, format_duration, format_rate
from ctbench.report import enough, labels
from ctbench.report.charts.model import Axis, Chart, Guide, LegendItem, Panels, Point, XyChart
from ctbench.report.charts.model import Series as Line
from ctbench.report.charts.scale import short_count
from ctbench.results.evidence import Series, TrialRecord
from ctbench.results.record import Record
from ctbench.traffic.generator import Trial

_TIME = Axis("time in the sustain phase", words="seconds")


def proof(record: Record) -> tuple[int, TrialRecord] | None:
    """The trial that a result rests on, with its number: the last good one, else the last one; None without trials."""
    numbered = [each for each in enumerate(record.evidence.trials, 1) if each[1].offers_a_load]
    good = [each for each in numbered if each[1].state == "good"]
    return (good or numbered)[-1] if numbered else None


def timeline_charts(record: Record) -> list[Chart]:
    """Connections open at the same time with their connect time, and completed per second, over the trial that the
    result rests on; each where the record has it. Of connections only: packets on their way are not connections."""
    found = proof(record)
    if found is None or found[1].trial.unit == "packets":
        return []
    if not found[1].trial.timeline_active or not found[1].trial.timeline_step_s:
        return []
    number, trial = found[0], found[1].trial
    of = f"Trial {number}, {format_rate(trial.load)} offered"
    times = trial.connect_time_us
    waited = f" TCP connect time: {labels.times(times.p50, times.p99, times.max)}." if times else ""
    caption = (
        f"{of}: {format_count(trial.active_mean)} open in the mean, {format_count(trial.active_max)} at most.{waited}"
    )
    active, setup = _active(number, trial, caption), _setup(number, trial)
    charts: list[Chart] = [active]
    if setup:
        title = f"Open connections and their connect time, over trial {number}"
        charts = [Panels(title, caption, (*active.legend, *setup.legend), (active, setup))]
    if trial.timeline_completed:
        charts.append(_completed(number, trial, f"{of}: {format_rate(trial.rate)} completed."))
    return charts


def series_charts(record: Record) -> list[XyChart]:
    """What probes sampled over the trial that the result rests on; where it rests on none, over the last one that was
    sampled."""
    found, sampled = (
        proof(record),
        [each for each in record.evidence.series if any(value is not None for value in each.values)],
    )
    number = found[0] if found else max((each.trial for each in sampled), default=0)
    return [_series(each) for each in sampled if each.trial == number]


def _series(seen: Series) -> XyChart:
    what, most = enough.name(seen.name.replace("_", " ")), max(value for value in seen.values if value is not None)
    return XyChart(
        title=f"{what.capitalize()} over trial {seen.trial}",
        caption=f"At most {short_count(most)} {enough.name(seen.unit)}, sampled each {format_duration(seen.every_s)}.",
        x=Axis("time since the trial began", words="seconds"),
        y=Axis(f"{what} ({enough.name(seen.unit)})"),
        legend=(LegendItem("line", "line-active", what),),
        series=_lines(seen.values, seen.every_s, "line-active", first=0),
    )


def _active(number: int, trial: Trial, caption: str) -> XyChart:
    return XyChart(
        title=f"Connections open at the same time, over trial {number}",
        caption=caption,
        x=_TIME,
        y=Axis("open connections"),
        legend=(LegendItem("line", "line-active", "open connections"),),
        series=_lines([float(count) for count in trial.timeline_active], trial.timeline_step_s, "line-active"),
    )


def _setup(number: int, trial: Trial) -> XyChart | None:
    """Mean and longest connect time of each step; None where no step has one."""
    step, means, longest = trial.timeline_step_s, trial.timeline_connect_mean_us, trial.timeline_connect_max_us
    if not any(means):
        return None
    return XyChart(
        title=f"TCP connect time, over trial {number}",
        caption=f"From SYN to SYN-ACK, in the mean and at most, of each {step * 1000:g} ms.",
        x=_TIME,
        y=Axis("connect time", scale="log", words="microseconds"),
        legend=(
            LegendItem("line", "wait-mean", f"mean connect time of each {step * 1000:g} ms"),
            LegendItem("line", "wait-max", "the slowest"),
        ),
        series=(*_lines(longest, step, "wait-max"), *_lines(means, step, "wait-mean")),
    )


def _completed(number: int, trial: Trial, caption: str) -> XyChart:
    step = trial.timeline_step_s
    return XyChart(
        title=f"Connections completed per second, over trial {number}",
        caption=caption,
        x=_TIME,
        y=Axis("completed per second"),
        legend=(LegendItem("line", "line-completed", "completed per second"),),
        series=_lines([count / step for count in trial.timeline_completed], step, "line-completed"),
        guides=(Guide("y", trial.load, f"offered {format_rate(trial.load)}", "capacity"),),
    )


def _lines(values: Sequence[float | None], step: float, style: str, first: int = 1) -> tuple[Line, ...]:
    """Each value at the end of its step, or with `first` 0 at its beginning, joined with its neighbours. Where there is
    none the line breaks off; a value alone between two such gaps is a dot."""
    runs: list[list[Point]] = [[]]
    for number, value in enumerate(values, first):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(Point(number * step, value))
    return tuple(
        Line(tuple(run), style, mark="dot" if len(run) == 1 else None, joined=len(run) > 1) for run in runs if run
    )
