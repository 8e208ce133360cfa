"""One trial over its sustain phase: connections that were open, and connections that were completed."""

from ctbench.report import words
from ctbench.report.charts.model import Axis, Guide, LegendItem, Point, Series, XyChart
from ctbench.results.record import Record, TrialRecord
from ctbench.units import format_count, format_rate


def proof(record: Record) -> tuple[int, TrialRecord] | None:
    """The trial that a result rests on, with its number: the last good one, else the last one; None without trials."""
    numbered = list(enumerate(record.trials, 1))
    good = [each for each in numbered if each[1].state == "good"]
    return (good or numbered)[-1] if numbered else None


def timeline_charts(record: Record) -> list[XyChart]:
    """Connections open at the same time, and completed per second, over the trial that the result rests on. Packets
    have no such points in their records."""
    found = proof(record)
    if found is None or not found[1].trial.timeline_active or not found[1].trial.timeline_step_s:
        return []
    number, trial = found[0], found[1].trial
    step, open_now, done = trial.timeline_step_s, trial.timeline_active, trial.timeline_completed
    of = f"Trial {number}, {format_rate(trial.load)} offered"
    active = XyChart(
        title=f"Connections open at the same time, over trial {number}",
        caption=f"{of}: {format_count(trial.active_mean)} in the mean, {format_count(trial.active_max)} at most.",
        x=Axis("time in the sustain phase", words="seconds"),
        y=Axis("open connections"),
        legend=(LegendItem("line", "line-active", f"open connections, every {step * 1000:g} ms"),),
        series=(Series(_points([float(count) for count in open_now], step), "line-active", joined=True),),
    )
    times = trial.setup_time_us
    waited = f" Set-up: {words.times(times.p50, times.p99, times.max)}." if times else ""
    completed = XyChart(
        title=f"Connections completed per second, over trial {number}",
        caption=f"{of}: {format_rate(trial.rate)} completed.{waited}",
        x=Axis("time in the sustain phase", words="seconds"),
        y=Axis("completed per second"),
        legend=(LegendItem("line", "line-completed", "completed per second"),),
        series=(Series(_points([count / step for count in done], step), "line-completed", joined=True),),
        guides=(Guide("y", trial.load, f"offered {format_rate(trial.load)}", "capacity"),),
    )
    return [active, completed] if done else [active]


def _points(values: list[float], step: float) -> tuple[Point, ...]:
    """Each value at the end of its step."""
    return tuple(Point((number + 1) * step, value) for number, value in enumerate(values))
