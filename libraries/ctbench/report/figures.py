"""How the figures of a record read for people: what was promised, what was measured, and how sure that is.

The metric says which direction is better, how a value is written and how a limit is put into words. A text is empty
where there is nothing to say; console and page have their own signs for that.
"""

from ctbench.base.units import format_duration, format_margin, format_ratio, format_share
from ctbench.results.evidence import SideRecord
from ctbench.results.metrics import METRICS, RATE_OF, SATURATION_OF, Metric
from ctbench.results.record import Record
from ctbench.results.record_model import Figure, ThresholdRecord


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


def deciding(record: Record) -> ThresholdRecord | None:
    """The promise to show: that of the metric that was looked for, unless another one alone is broken, or a comparison
    is nearer to its promise. None where nothing is promised."""
    promises = [each for each in record.thresholds if each.is_promise]
    promises.sort(key=lambda each: each.metric != record.metric)
    known = [each for each in promises if each.margin_pct is not None]
    broken = [each for each in known if not each.met]
    open_ones = [each for each in broken if each.undecided] if record.verdict == "not measured" else []
    some = open_ones or [each for each in broken if not each.undecided] or known
    candidates = (some or promises)[:1] + [each for each in some if each.kind != "absolute"]
    return min(candidates, key=lambda each: each.margin_pct or 0.0, default=None)


def limit(metric: Metric, value: float) -> str:
    """A promise: a least value needs no word, as a floor is one; a largest value has one: `at most 5.0 s`."""
    return metric.format(value) if metric.better == "higher" else f"{metric.bound} {metric.format(value)}"


def floor(record: Record) -> str:
    """The promise that decides."""
    shown = deciding(record)
    return limit(METRICS[shown.metric], shown.limit) if shown else ""


def kind(promise: ThresholdRecord) -> str:
    """What a reader has to know of a promise besides its limit; empty where nothing is."""
    if promise.smoke:
        return "smoke test"
    if not promise.bound_to:
        return ""
    return f"made on {promise.bound_to}" if promise.elsewhere else "of this machine"


def measured(record: Record) -> str:
    """What was measured of the promise that decides; where nothing was promised, what was found."""
    shown, result = deciding(record), record.result
    if shown is None:
        return found(record, metric_of(record), result.value) if result else ""
    if shown.measured is None:
        return ""
    if shown.kind == "absolute":
        return found(record, METRICS[shown.metric], shown.measured)
    return " ".join(part for part in (METRICS[shown.metric].format(shown.measured), shown.width) if part)


def measured_of(record: Record) -> str:
    """What was measured there, where it is not the load that the profile counts: `latency (p99)`, `of …/forward/…`."""
    shown = deciding(record)
    if shown and shown.kind != "absolute":
        return f"of {shown.other}"
    metric = METRICS[shown.metric] if shown else metric_of(record)
    return "" if metric is RATE_OF[record.profile.kind] else metric.title


def found(record: Record, metric: Metric, value: float) -> str:
    """A figure of a record. Of a lower bound, in words, that the DUT may do better: `at least 99.6 k/s`; where a lower
    value is better, `at most 3.2 s`."""
    return f"{metric.bound} {metric.format(value)}" if record.is_lower_bound else metric.format(value)


def margin(record: Record) -> str:
    """How much better than its promises a record is."""
    return format_margin(record.margin_pct) if record.margin_pct is not None else ""


def relation(record: Record) -> str:
    """How the figure compares with those of others, where that is promised and was measured."""
    return "; ".join(each.relation for each in record.thresholds if each.relation)


def goal(record: Record) -> str:
    """What RFC 9971 asks a report of a search to say: the goal's attributes, the relevant bounds and the conditional
    throughput; empty for another kind of search."""
    found, metric = record.evidence.goal, RATE_OF[record.profile.kind]
    if found is None:
        return ""
    attributes = (
        f"Goal of the search (RFC 9971): loss ratio {format_ratio(found.loss_ratio)}, final trial duration "
        f"{format_duration(found.final_duration_s)}, duration sum {format_duration(found.duration_sum_s)}, exceed "
        f"ratio {format_share(found.exceed_ratio)}, width {format_share(found.relative_width)}."
    )
    rates = (
        ("relevant lower bound", found.relevant_lower_bound),
        ("relevant upper bound", found.relevant_upper_bound),
        ("conditional throughput", found.conditional_throughput),
    )
    said = "; ".join(f"{name} {'unknown' if rate is None else metric.format(rate)}" for name, rate in rates)
    return f"{attributes} {said[0].upper()}{said[1:]}."


def side(one: SideRecord) -> str:
    """A side of a pair, with the build where it is one of several: `ovs-dpdk/nat/1cpu-1rxq, distribution`."""
    return ", ".join(part for part in (one.key, one.build, one.profile) if part)


def other_side(record: Record) -> SideRecord | None:
    """What served in a closed loop in turn with what was tested; None where nothing did."""
    return next((pair.other for pair in record.evidence.pairs if pair.how == "side by side" and pair.other.rate), None)


def saturation(record: Record) -> str:
    """What the DUT served in a closed loop, which is no SLA figure; empty where that was not measured."""
    metric = SATURATION_OF[record.profile.kind]
    value = value_of(record, metric.name)
    return "" if value is None else metric.format(value)


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
