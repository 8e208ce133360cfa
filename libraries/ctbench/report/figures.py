"""How the figures of a record read for people: what was promised, what was measured, and how sure that is.

The metric says which direction is better, how a value is written and how a limit is put into words. A text is empty
where there is nothing to say; console and page have their own signs for that.
"""

from dataclasses import dataclass

from ctbench.base.units import format_margin, format_ratio, format_share
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, RATE_OF, Metric
from ctbench.results.record import Record, ThresholdRecord


@dataclass(frozen=True)
class Deciding:
    """The promise that a line shows of a record, and what was measured of it, in the unit of `metric`."""

    metric: Metric
    limit: float
    measured: float | None


def metric_of(record: Record) -> Metric:
    """What the procedure looked for."""
    return METRICS[record.metric]


def is_rate(record: Record) -> bool:
    """Whether the figure is a load that the DUT holds, as a search finds it."""
    return record.metric == RATE_OF[record.profile.kind].name


def value_of(record: Record, metric: str) -> float | None:
    """What was measured of a metric; None where it was not."""
    figure = record.figures.get(metric)
    return figure.value if figure else None


def deciding(record: Record) -> Deciding | None:
    """The promise to show: that of the metric that was looked for, unless another one alone is broken, or the
    comparison with another topology is harder to keep. Of a comparison, the rate that it asks for. None where nothing
    is promised."""
    chosen = _chosen(record)
    if chosen is None:
        return None
    base = record.evidence.baseline.rate if record.evidence.baseline else None
    if chosen.metric != "ratio" or not base:
        return Deciding(METRICS[chosen.metric], chosen.limit, chosen.measured)
    measured = None if chosen.measured is None else chosen.measured * base
    return Deciding(metric_of(record), chosen.limit * base, measured)


def _chosen(record: Record) -> ThresholdRecord | None:
    promises = [each for each in record.thresholds if METRICS[each.metric].role == "promise"]
    promises.sort(key=lambda each: each.metric != record.metric)
    known = [each for each in promises if each.margin_pct is not None]
    some = [each for each in known if not each.met] or known
    candidates = (some or promises)[:1] + [each for each in some if each.metric == "ratio"]
    return min(candidates, key=lambda each: each.margin_pct or 0.0, default=None)


def limit(metric: Metric, value: float) -> str:
    """A promise: a least value needs no word, as a floor is one; a largest value has one: `at most 5.0 s`."""
    return metric.format(value) if metric.better == "higher" else f"{metric.bound} {metric.format(value)}"


def floor(record: Record) -> str:
    """The promise that decides."""
    shown = deciding(record)
    return limit(shown.metric, shown.limit) if shown else ""


def measured(record: Record) -> str:
    """What was measured of the promise that decides; where nothing was promised, what was found."""
    shown, result = deciding(record), record.result
    if result is None:
        return ""
    if shown is None:
        return found(record, metric_of(record), result.value)
    return "" if shown.measured is None else found(record, shown.metric, shown.measured)


def found(record: Record, metric: Metric, value: float) -> str:
    """A figure of a record. Of a lower bound, in words, that the DUT may do better: `at least 99.6 k/s`; where a lower
    value is better, `at most 3.2 s`."""
    return f"{metric.bound} {metric.format(value)}" if record.is_lower_bound else metric.format(value)


def margin(record: Record) -> str:
    """How much better than its promises a record is."""
    return format_margin(record.margin_pct) if record.margin_pct is not None else ""


def relation(record: Record) -> str:
    """How the figure compares with that of another topology, where that is promised and was measured."""
    ratio, baseline = record.threshold("ratio"), record.evidence.baseline
    if ratio is None or ratio.measured is None or baseline is None or not baseline.rate:
        return ""
    return baseline.relation(ratio.measured, ratio.limit, metric_of(record))


def repetitions(record: Record) -> str:
    """What several searches found, in a sentence; empty for one."""
    result, metric = record.result, metric_of(record)
    if result is None or result.spread is None:
        return ""
    low, high = (metric.format(end(result.samples)) for end in (min, max))
    return f"{_times(record, result)} found {low} to {high}, a spread of {format_ratio(result.spread)}"


def spread(record: Record) -> tuple[str, str]:
    """How sure the figure is: the spread of its repetitions, or its `width`. And in words which of the two it is."""
    result, one = record.result, width(record)
    if result is not None and result.spread is not None:
        return format_share(result.spread), f"over {_times(record, result)}"
    return one, ("one search" if is_rate(record) else "one measurement") if one else ""


def width(record: Record) -> str:
    """Of one measurement, how far the figure is from the farther of its bounds: of a search, from the load that did not
    hold. Where it is bounded on both sides."""
    result = record.result
    if result is None or result.samples or result.low is None or result.high is None or result.value <= 0:
        return ""
    return f"± {format_share(max(result.high - result.value, result.value - result.low) / result.value)}"


def _times(record: Record, result: Figure) -> str:
    return f"{len(result.samples)} {'searches' if is_rate(record) else 'repetitions'}"


def difference_pct(value: float, other: float) -> float | None:
    """How much larger a value is than another one, in percent of that; None where that is 0."""
    return (value / other - 1) * 100 if other else None


def direction(metric: Metric) -> str:
    """What has to be known to read a difference; nothing where more is better, as everybody expects."""
    return "" if metric.better == "higher" else f"{metric.better} is better"


def name(metric: Metric) -> str:
    """A metric with its unit, and with its direction where lower is better: `packets (packets/s)`."""
    return ", ".join(part for part in (f"{metric.title} ({metric.unit.name})", direction(metric)) if part)
