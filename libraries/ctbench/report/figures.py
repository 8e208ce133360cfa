"""The figures of a record in words for people: what was promised, what was measured, and how sure that is.

The metric determines which direction is better, and the format of values and limits. A text is empty where there is
nothing to show; console and page have their own signs for that.
"""

from collections.abc import Collection, Iterable, Mapping

from ctbench.base.units import format_count, format_duration, format_rate, format_ratio, format_share, thousands
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.report import labels
from ctbench.results import gate, metrics
from ctbench.results.evidence import (
    GoalRecord,
    ProfileRecord,
    SideRecord,
    TableCount,
    TimesBelow,
)
from ctbench.results.floor import Threshold
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.traffic.generator import Times

#: Metrics that are about entries of a table, although their unit is one of connections.
_OF_ENTRIES = ("table_level", "table_slope", "reaped_rate")
_RATES = (metrics.CONNECTION_RATE, metrics.PACKET_RATE, metrics.BIT_RATE)
#: Options of a topology that a reader is told of.
_OPTIONS = {
    "mtu": "MTU {}",
    "emc_insert_inv_prob": "EMC takes 1 in {}",
    "idle_ports": "{} idle ports",
    "revalidators": "{} revalidators",
    "handlers": "{} handlers",
    "timeout_s": "timeouts of {} s",
    "max_connections": "at most {} entries",
}


def metric_of(record: Record) -> metrics.Metric:
    """Return the metric that the procedure measured."""
    return metrics.METRICS[record.metric]


def is_rate(record: Record) -> bool:
    """True where the figure is the rate that the DUT holds (NDR), as a search finds it."""
    return record.metric == metrics.RATE_OF[record.profile.kind].name


def deciding(record: Record) -> Threshold | None:
    """Return the promise to show; None where nothing is promised. It is that of the metric that was measured, unless
    another one alone is broken, or a ratio has a smaller margin. For a candidate it is the share of its base."""
    promises = [each for each in record.thresholds if each.is_promise]
    if len(promises) < 2:
        return promises[0] if promises else None
    promises.sort(key=lambda each: each.metric != record.metric)
    known = [each for each in promises if each.margin_pct is not None]
    broken = [each for each in known if not each.met]
    open_ones = [each for each in broken if each.undecided] if record.verdict == "not measured" else []
    some = open_ones or [each for each in broken if not each.undecided] or known
    of_build = [each for each in some if each.kind == "of_build"]
    candidates = of_build or (some or promises)[:1] + [each for each in some if each.kind != "absolute"]
    return min(candidates, key=lambda each: each.margin_pct or 0.0, default=None)


def shown(record: Record) -> tuple[Threshold | None, metrics.Metric, Estimate | None]:
    """Return the deciding promise, its metric and its estimate. Without a promise: None, the metric that the procedure
    measured, and its result."""
    if promise := deciding(record):
        return promise, metrics.METRICS[promise.metric], promise.found
    return None, metric_of(record), record.result


def written(metric: metrics.Metric, value: float) -> str:
    """Return a figure with its unit: connections per second are `171.3 k CPS`, packets `1.19 M pps`, entries `3.0
    k/s`."""
    unit = {"connections/s": " CPS", "connections": " connections"}.get(metric.unit.name)
    return f"{format_count(value)}{unit}" if unit and metric.name not in _OF_ENTRIES else metric.format(value)


def limit(metric: metrics.Metric, value: float) -> str:
    """Return the limit of a promise. A least value needs no word, as it is a floor; a largest value has one: `at most
    5.0 s`."""
    said = written(metric, value)
    return said if metric.better == "higher" else f"{metric.bound} {said}"


def floor(record: Record) -> str:
    """Return the deciding promise. A rate comes with the other promised rates: `48.2 k CPS, 334.9 k pps`. A share of
    another build comes with that build's rate: `97 % of 120.4 k CPS = 116.8 k CPS`."""
    promise = deciding(record)
    if promise is None:
        return ""
    if both := against_base(record):
        metric, base = metrics.RATE_OF[record.profile.kind], both[0]
        return f"{promise.limit * 100:g} % of {written(metric, base)} = {written(metric, promise.limit * base)}"
    promised = {each.metric: each.limit for each in record.thresholds if each.kind == "absolute" and each.is_promise}
    return ", ".join(
        limit(metrics.METRICS[name], promised.get(name, promise.limit)) for name in _together(promise.metric, promised)
    )


def margin_pct(record: Record) -> float | None:
    """Return the least margin of the promises that `floor` shows, percent; None where nothing decided, and where only
    the floor was tried."""
    promise = deciding(record)
    if promise is None or record.margin_pct is None:
        return None
    decided = {each.metric: each.margin_pct for each in record.thresholds if each.is_promise and not each.undecided}
    margins = [decided.get(name) for name in _together(promise.metric, decided)]
    return min((each for each in margins if each is not None), default=None)


def _together(metric: str, known: Collection[str]) -> list[str]:
    """Return a metric; for a rate also the `known` rates of connections and packets."""
    if metric not in ("cps", "pps", "bps"):
        return [metric]
    return [name for name in ("cps", "pps", "bps") if name == metric or (name in known and name != "bps")]


def floor_kind(promise: Threshold) -> str:
    """Return the kind of a promise: `smoke`, `ratios`, `of_build`, `of_any_machine`, `of_this_machine`, `of_image`,
    `of_another`."""
    if promise.smoke:
        return "smoke"
    if promise.kind != "absolute":
        return "of_build" if promise.kind == "of_build" else "ratios"
    if not promise.bound_to:
        return "of_any_machine"
    if promise.elsewhere:
        return "of_another"
    return "of_image" if promise.metric in metrics.COSTS else "of_this_machine"


def kind(record: Record) -> str:
    """Return the kind of the deciding promise: `smoke test`, or the machine or image that it is bound to; empty for
    other kinds."""
    promise = deciding(record)
    if promise is None:
        return ""
    said = {
        "smoke": "smoke test",
        "of_another": f"made on {promise.bound_to}",
        "of_this_machine": "of this machine",
        "of_image": "of this image",
    }
    return said.get(floor_kind(promise), "")


def measured(record: Record) -> str:
    """Return the figure of the deciding promise; without one, that of the metric that was measured. A rate comes with
    the other rates: `171.3 k CPS, 1.19 M pps for 1 s`; a candidate with its difference to the base; a ratio with its
    two rates: `64.2 % (264.4 k of 412.0 k pps)`."""
    promise, metric, found = shown(record)
    if found is None:
        return ""
    if both := against_base(record):
        return f"{written(metrics.RATE_OF[record.profile.kind], both[1])} ({found.difference})"
    if promise and promise.kind != "absolute":
        rates = made_of(record, promise.metric, found)
        said = found.deciding_end(promise.limit) or metric.format(found.value)
        return f"{said}{f' ({rates})' if rates else ''}"
    known = record.values | {metric.name: found.value}
    return in_words(record, {each: known[each] for each in _together(metric.name, known)})


def in_words(record: Record, values: Mapping[str, float]) -> str:
    """Return figures of a record in words. An offered rate comes with the seconds for which it was held: `at least 20.0
    k CPS for 40 s`."""
    said, name = ", ".join(written(metrics.METRICS[each], value) for each, value in values.items()), next(iter(values))
    if name in metrics.SERVED:
        return said
    least = f"{metrics.METRICS[name].bound} " if record.says_at_least else ""
    return f"{least}{said}{f' {for_seconds(record)}' if name in metrics.OFFERED and record.held_s else ''}"


def for_seconds(record: Record) -> str:
    """Return the time for which the rate of a record was held: `for 1 s`."""
    return f"for {record.held_s:g} s"


def against_base(record: Record) -> tuple[float, float, Estimate] | None:
    """Return the rates of base and candidate, and the candidate's share, where that is the promise to show; else None.
    The rates are those that the builds serve, or hold where each turn was a search."""
    pair = gate.starts_of(record)
    promise = deciding(record) if pair else None
    if not pair or not promise or promise.kind != "of_build" or promise.found is None:
        return None
    ours, theirs = (side.serves.value if side.serves else side.rate for side in (pair.tested, pair.other))
    return (theirs, ours, promise.found) if ours and theirs else None


def metadata(record: Record, margin: str, none: str) -> dict[str, str]:
    """Return the metadata of a test for Robot Framework's log and junit.xml. `margin` has the caller's minus sign;
    `none` is the caller's sign for a missing floor or figure. Both callers drop empty texts."""
    return {
        "Floor": floor(record) or none,
        "Measured": measured(record) or none,
        "Margin": margin,
        "Verdict": record.outcome,
        "Kind": kind(record),
        "Relative": relation(record),
    }


#: What is rounded away of a rate as it is shown, at most (ratio).
_ROUNDED = 0.001


def made_of(record: Record, of: str, found: Estimate) -> str:
    """Return the two rates of a ratio of the metric `of`: those of both sides, or the measured rate and the other rate
    that follows from it. Where the two rates scatter and make another ratio, that is added."""
    metric = metric_of(record) if record.metric in metrics.COSTS else metrics.RATE_OF[record.profile.kind]
    own, whole = record.values.get(metric.name), found.value + (of == "added_cost")
    sides = served(record, found)
    if not record.evidence.pairs and own and whole:
        sides = own, own / whole
    if not sides:
        return ""
    said = f"{format_count(sides[0])} of {format_count(sides[1])} {unit(metric) or metric.unit.name}"
    return f"{said}{scatter(found, *sides)}"


def served(record: Record, found: Estimate) -> tuple[float, float] | None:
    """Return what both sides of the record's pair served: preferably the two rates whose ratio was found. None without
    a pair, or where a side has no valid rate."""
    sides = []
    for pair in record.evidence.pairs[:1]:
        both = ((pair.tested.rate, pair.other.rate), (pair.tested.middle, pair.other.middle))
        sides = [(ours, theirs) for ours, theirs in both if ours is not None and theirs is not None]
    return next((each for each in sides if _makes(found, *each)), sides[0] if sides else None)


def scatter(found: Estimate, ours: float, theirs: float) -> str:
    """Return the ratio that two rates make, where it differs from the one that was found; else empty."""
    return "" if _makes(found, ours, theirs) else f", which make {format_share(ours / theirs)}: they scatter"


def _makes(found: Estimate, ours: float, theirs: float) -> bool:
    """True where the ratio of two rates lies within the measured interval, to the precision that is shown, and where
    there is no interval to compare it with."""
    if found.low is None or found.high is None or theirs <= 0:
        return True
    return found.low * (1 - _ROUNDED) <= ours / theirs <= found.high * (1 + _ROUNDED)


def unit(metric: metrics.Metric) -> str:
    """Return CPS or pps; empty for any other unit."""
    return {"connections/s": "CPS", "packets/s": "pps"}.get(metric.unit.name, "")


def measured_in(record: Record) -> tuple[str, str]:
    """Return the names of testbed and campaign. Rates of several are not compared."""
    return record.environment.testbed.name, record.campaign.name


def told_apart(record: Record, others: Iterable[Record]) -> str:
    """Return the testbed and the campaign of a record, each where the `others` have several: `lab, gate`."""
    names = zip(measured_in(record), *map(measured_in, others), strict=True)
    return ", ".join(own for own, *theirs in names if len(set(theirs)) > 1)


def subject(record: Record) -> str:
    """Return what was set up, offered and compared, or measured where that is not a rate: `1 CPU, 1 queue, SNAT,
    iptables, udp-64-10k, against Plain forwarding`."""
    made, (promise, metric, _) = record.topology, shown(record)
    if made.datapath == CABLE.datapath:
        parts = ["traffic generator alone"]
    else:
        parts = [labels.cpus_and_queues(made.cpus, made.rx_queues), registry.what_it_does(made), *options(made)]
    if promise and promise.kind == "ratio":
        return f"{', '.join([*parts, record.profile.name])}, against {other_words(promise, made)}"
    known = metric.name == "of_build" or (metric.unit in _RATES and metric.name not in metrics.SERVED)
    about = "" if known else f": {metric.title}"
    return f"{', '.join([*parts, record.profile.name])}{about}"


def options(made: Topology) -> list[str]:
    """Return the options of a topology that differ from the default, in words."""
    changed = made.model_dump(include=set(_OPTIONS), exclude_defaults=True)
    known = {name: _OPTIONS[name].format(value) for name, value in changed.items()}
    if made.emc_insert_inv_prob == 0:
        known["emc_insert_inv_prob"] = "no exact match cache"
    return list(known.values())


def other_words(promise: Threshold, made: Topology) -> str:
    """Return the differences of a ratio's other set-up from the tested one, in words."""
    if other := Topology.of_key(promise.to or ""):
        cpus = labels.cpus_and_queues(other.cpus, other.rx_queues)
        what = registry.what_it_does(other)
        words = [cpus] if cpus != labels.cpus_and_queues(made.cpus, made.rx_queues) else []
        words += [what] if what != registry.what_it_does(made) else []
        return ", ".join(words) or promise.other
    return promise.other


def relation(record: Record) -> str:
    """Return each promised ratio that was measured, with its interval."""
    return "; ".join(each.relation for each in record.thresholds if each.relation)


def drop_rates(record: Record) -> str:
    """Return the rates held at both loss ratios of one search, with the trial duration: `NDR 171.3 k CPS (0 % lost),
    PDR 175.0 k CPS (0.5 % lost), in trials of 1 s`; empty where the search had one loss ratio."""
    rate, searched = metrics.RATE_OF[record.profile.kind], record.evidence
    if searched.goal is None or searched.partial_goal is None:
        return ""
    both = ("NDR", rate, searched.goal), ("PDR", metrics.PDR_OF[rate.name], searched.partial_goal)
    found = [_drop_rate(word, metric, record.values, its.loss_ratio) for word, metric, its in both]
    return ", ".join([*found, f"in trials of {searched.goal.final_duration_s:g} s"])


def _drop_rate(word: str, metric: metrics.Metric, values: Mapping[str, float], loss_ratio: float) -> str:
    known = written(metric, values[metric.name]) if metric.name in values else "unknown"
    return f"{word} {known} ({loss_ratio * 100:g} % lost)"


def goal(record: Record) -> str:
    """Return what RFC 9971 asks of the report of a search: for each goal its attributes, the relevant bounds and the
    conditional throughput. Empty for another kind of search."""
    metric, searched = metrics.RATE_OF[record.profile.kind], (record.evidence.goal, record.evidence.partial_goal)
    return " ".join(_goal(each, metric) for each in searched if each)


def _goal(found: GoalRecord, metric: metrics.Metric) -> str:
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


def catches(record: Record, kind: str = "") -> float | None:
    """Return the smallest slowdown (ratio) that breaks a promise of the test, or one of this `kind`; None where it is
    unknown, or the test is not met. Absolute promises do not count where the DUT may do better than measured: only the
    floor was tried, or the generator or the campaign's range was the limit."""
    bounded = not record.is_lower_bound and record.limited_by != "floor"
    known = [
        each.catches for each in record.thresholds if kind in ("", each.kind) and (each.kind != "absolute" or bounded)
    ]
    return min((each for each in known if each is not None), default=None) if record.verdict == "met" else None


def side(one: SideRecord) -> str:
    """Return a side of a pair, with its build where there are several: `ovs-dpdk/nat/1cpu-1rxq, distribution`."""
    return ", ".join(part for part in (one.key, one.build, one.profile) if part)


def also_measured(record: Record) -> str:
    """Return the figures that `measured`, the times and the drop rates do not show: `lost 0.003 %; packets 345.0 k
    pps`."""
    promise, metric, _ = shown(record)
    beside = _together(metric.name, record.values) if not promise or promise.kind == "absolute" else ()
    searched = (each.name for each in metrics.PDR_OF.values())
    told = {metric.name, *beside, *metrics.RELATIVE, *metrics.AT_EDGE, *metrics.AT_HALF, *searched}
    return _with_titles({each: value for each, value in record.values.items() if each not in told})


def at_edge(record: Record) -> str:
    """Return the times at the rate that is held: `TCP connect time (p99) 210 us`."""
    return _with_titles({each: value for each, value in record.values.items() if each in metrics.AT_EDGE})


def _with_titles(values: Mapping[str, float]) -> str:
    known = [(metrics.METRICS[each], value) for each, value in values.items()]
    return "; ".join(f"{metric.title} {written(metric, value)}" for metric, value in known)


def below_edge(each: TimesBelow) -> str:
    """Return the times at a share of the held rate: `50 % (190.5 k/s): connect time p50 12 us, ...`."""
    times = "; ".join(f"{what} {_percentiles(times)}" for what, times in each.times_us.items())
    return f"{format_share(each.share)} of what is held ({format_rate(each.load)}): {each.reason or times}"


def _percentiles(times: Times) -> str:
    known = {"p50": times.p50, "p90": times.p90, "p99": times.p99, "p99.9": times.p999, "longest": times.max}
    return ", ".join(f"{name} {format_duration(us / 1e6)}" for name, us in known.items() if us is not None)


def counted_by_dut(each: TableCount) -> str:
    """Return the size of the connection table that the DUT reported at a moment of a test."""
    memory = f" in {thousands(round(each.memory / 2**20))} MiB" if each.memory else ""
    return f"{each.moment} {thousands(each.found)}{memory}"


#: Functions of a thread that are shown.
_FUNCTIONS = 15


def time_of_thread(profile: ProfileRecord) -> str:
    """Return the profile of a sampled thread: the sampling, the share of its time in locks, and its first functions
    with theirs."""
    locks, whole = metrics.METRICS["mutex_share"], max(1, profile.samples)
    shares = [f"{locks.format(each.samples / whole)} {each.name}" for each in profile.functions[:_FUNCTIONS]]
    cost = ""
    if profile.rate_before:
        cost = f", {format_share(profile.rate / profile.rate_before)} of the rate without samples"
    return (
        f"CPU {profile.cpu}, {thousands(profile.samples)} samples in {profile.seconds:.1f} s "
        f"({profile.hz} per second{cost}): locks {locks.format(profile.locks / whole)}; "
        f"{', '.join(shares)}"
    )


def spread(record: Record) -> tuple[str, str]:
    """Return the uncertainty of the figure and what it is over: the spread of its repetitions and their number. For a
    single measurement it is the distance to its farther bound; in a search that bound is the load that did not hold."""
    result = record.result
    if result is not None and result.spread is not None:
        what = "searches" if is_rate(record) else "repetitions"
        return format_share(result.spread), f"over {len(result.samples)} {what}"
    if result is None or result.samples or result.low is None or result.high is None or result.value <= 0:
        return "", ""
    far = max(result.high - result.value, result.value - result.low) / result.value
    return f"± {format_share(far)}", ""


def difference_pct(value: float, other: float) -> float | None:
    """Return how much larger a value is than another one, in percent of the other; None where the other is 0."""
    return (value / other - 1) * 100 if other else None


def published(record: Record) -> tuple[float, float] | None:
    """Return what others published of the metric that was measured, and how much larger the record's figure is, in
    percent. None where its SLA has no such figure, or the record has none."""
    ours, known = record.values.get(record.metric), record.floor.reference
    theirs = known.figures.get(record.metric) if known else None
    difference = None if ours is None or theirs is None else difference_pct(ours, theirs)
    return None if theirs is None or difference is None else (theirs, difference)


def direction(metric: metrics.Metric) -> str:
    """Return `lower is better` for such a metric; empty where higher is better."""
    return "" if metric.better == "higher" else f"{metric.better} is better"


def name(metric: metrics.Metric) -> str:
    """Return a metric with its unit, and with its direction where lower is better: `packets (packets/s)`."""
    return ", ".join(part for part in (f"{metric.title} ({metric.unit.name})", direction(metric)) if part)
