"""One trial over its sustain phase: connections that were open, their set-up time, and connections completed."""

from collections.abc import Sequence

from ctbench.base.units import format_count, format_rate
from ctbench.report import labels
from ctbench.report.charts.model import Axis, Chart, Guide, LegendItem, Panels, Point, Series, XyChart
from ctbench.results.record import Record, TrialRecord
from ctbench.traffic.generator import Trial

_TIME = Axis("time in the sustain phase", words="seconds")


def proof(record: Record) -> tuple[int, TrialRecord] | None:
    """The trial that a result rests on, with its number: the last good one, else the last one; None without trials."""
    numbered = list(enumerate(record.trials, 1))
    good = [each for each in numbered if each[1].state == "good"]
    return (good or numbered)[-1] if numbered else None


def timeline_charts(record: Record) -> list[Chart]:
    """Connections open at the same time with their set-up time, and completed per second, over the trial that the
    result rests on; each where the record has it. Packets have no such points in their records."""
    found = proof(record)
    if found is None or not found[1].trial.timeline_active or not found[1].trial.timeline_step_s:
        return []
    number, trial = found[0], found[1].trial
    of = f"Trial {number}, {format_rate(trial.load)} offered"
    times = trial.setup_time_us
    waited = f" Set-up: {labels.times(times.p50, times.p99, times.max)}." if times else ""
    caption = (
        f"{of}: {format_count(trial.active_mean)} open in the mean, {format_count(trial.active_max)} at most.{waited}"
    )
    active, setup = _active(number, trial, caption), _setup(number, trial)
    charts: list[Chart] = [active]
    if setup:
        title = f"Open connections and their set-up time, over trial {number}"
        charts = [Panels(title, caption, (*active.legend, *setup.legend), (active, setup))]
    if trial.timeline_completed:
        charts.append(_completed(number, trial, f"{of}: {format_rate(trial.rate)} completed."))
    return charts


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
    """Mean and longest set-up time of each step; None where no step has one."""
    step, means, longest = trial.timeline_step_s, trial.timeline_setup_mean_us, trial.timeline_setup_max_us
    if not any(means):
        return None
    return XyChart(
        title=f"Set-up time, over trial {number}",
        caption=f"From SYN to SYN-ACK, in the mean and at most, of each {step * 1000:g} ms.",
        x=_TIME,
        y=Axis("set-up time", scale="log", words="microseconds"),
        legend=(
            LegendItem("line", "wait-mean", f"mean set-up time of each {step * 1000:g} ms"),
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


def _lines(values: Sequence[float | None], step: float, style: str) -> tuple[Series, ...]:
    """Each value at the end of its step, joined with its neighbours. Where there is none the line breaks off; a value
    alone between two such gaps is a dot."""
    runs: list[list[Point]] = [[]]
    for number, value in enumerate(values, 1):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(Point(number * step, value))
    return tuple(
        Series(tuple(run), style, mark="dot" if len(run) == 1 else None, joined=len(run) > 1) for run in runs if run
    )
