"""The answers of a run without a candidate. For each set-up with connection tracking they give the rate that it
sustains, the rate that it holds for the seconds of a trial, its cost against another set-up, and the floor of the
SLA."""

from collections.abc import Hashable, Sequence

from ctbench.base.units import format_count, format_share
from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.report import figures, labels, method
from ctbench.report.charts.chart import Bar, Bars, Chart, LegendItem
from ctbench.report.charts.lines import history_charts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record

#: What is shown of a set-up, in this order: the metric, its verb, and what it is called where it was not measured.
_RATES = (("sustained_cps", "sustains", "sustained rate"), ("cps", "holds", "rate of a trial"))
_METRICS = tuple(metric for metric, *_ in _RATES)
#: The bars by their style, as the legend has them.
_STYLES = {
    "measured": "sustained",
    "measured brief": "held for the seconds of a trial",
    "served": "served in turn with another set-up",
}


def charts(records: Sequence[Record], histories: Sequence[Sequence[Record]]) -> tuple[Chart, ...]:
    """Return a chart with the bars of each set-up, and the history of the first set-up where several runs measured it.
    Empty where no connection rate was measured with connection tracking. `histories`: the records of each test, oldest
    first."""
    found = _setups(records)
    if not found:
        return ()
    of_first = [test for test in histories if any(test[-1] is each for each in found[0].values())]
    made: list[Chart] = [_picture(found, records), *history_charts(of_first)]
    return tuple(made)


def _picture(found: Sequence[dict[str, Record]], records: Sequence[Record]) -> Bars:
    alone = any(record.limited_by == "floor" for some in found for record in some.values())
    only = " Sustained rates were tried at their floor only: more may last." if alone else ""
    one, bars = next(iter(found[0].values())), tuple(bar for some in found for bar in _bars(some, records))
    legend = [
        LegendItem("bar", style, said) for style, said in _STYLES.items() if any(bar.style == style for bar in bars)
    ]
    legend += [LegendItem("line", "ideal", "that other set-up")] if any(bar.ideal for bar in bars) else []
    return Bars(
        title="New connections per second (CPS)",
        caption=f"{labels.cpus_and_queues(one.topology.cpus, one.topology.rx_queues)}, profile {one.profile.name}. "
        "Sustained: it lasts, with the connection table as full as this rate makes it. Held: for the seconds of a "
        "trial, which begins with an empty table. Served: in a closed loop, in turn with the set-up of the dashed "
        f"line, which is what to compare it with.{only}",
        legend=(*legend, LegendItem("line", "floor", "floor of the SLA")),
        rows=bars,
        scale="new connections per second",
    )


def lines(answer: Sequence[Chart]) -> tuple[str, ...]:
    """Return the charts in words: a sentence for each bar, the first set-up first."""
    return tuple(row.hint for chart in answer if isinstance(chart, Bars) for row in chart.rows)


def _setups(records: Sequence[Record]) -> list[dict[str, Record]]:
    """Return up to two set-ups for each DUT of a testbed and campaign, in the order of the run: the first that tracks
    connections without NAT, and the first with NAT. One whose sustained rate was measured comes before one without. A
    set-up is its records by metric."""
    groups: dict[Hashable, list[Record]] = {}
    for record in records:
        ruleset = registry.catalogued(record.topology.ruleset)
        if ruleset and ruleset.tracks and record.metric in _METRICS:
            key = record.topology.datapath, ruleset.translates != "nothing", *figures.measured_in(record)
            groups.setdefault(key, []).append(record)
    found = []
    for group in groups.values():
        one = min(group, key=lambda each: _METRICS.index(each.metric))
        alike = [each for each in group if (each.topology, each.profile) == (one.topology, one.profile)]
        found.append({each.metric: each for each in alike})
    return found


def _bars(some: dict[str, Record], records: Sequence[Record]) -> list[Bar]:
    """Return the bars of a set-up; the `hint` of each is a sentence of its own. A rate without a row in this run has no
    bar. Nor has a trial rate without a floor where the set-up was compared in turn. `records`: all of the report."""
    where = figures.told_apart(next(iter(some.values())), records)
    compared = _compared(some["cps"], where) if "cps" in some else None
    shown = [
        rate for rate in _RATES if rate[0] in some and not (rate[0] == "cps" and compared and not _least(some["cps"]))
    ]
    rates = (_bar(some, *rate, where, follows=place > 0) for place, rate in enumerate(shown))
    return [*rates, *filter(None, [compared])]


def _dut(record: Record, where: str) -> str:
    return labels.name(f"{method.dut(record)}{f' ({where})' if where else ''}")


def _name(record: Record, where: str) -> str:
    return labels.name(f"{_dut(record, where)}, {registry.what_it_does(record.topology)}")


def _least(record: Record) -> float | None:
    """Return the floor of the record's metric; None where none is promised."""
    promise = record.threshold(record.metric)
    return promise.limit if promise else None


def _bar(some: dict[str, Record], metric: str, verb: str, noun: str, where: str, *, follows: bool) -> Bar:
    """Return the bar of an offered rate. `where`: its testbed and campaign, where there are several. `follows`: another
    bar of the set-up precedes it."""
    record = some[metric]
    name, least = _name(record, where), _least(record)
    if record.result is None:
        nothing = f"{noun} not measured in this run"
        return Bar(name, nothing, 0.0, hint=f"{name}: {nothing}.")
    value = record.result.value
    verb = verb if record.held_s else "does not keep up: completes"
    rate = f"{'at least ' if record.says_at_least else ''}{format_count(value)}{'' if follows else ' new connections'}"
    seconds = f" {figures.for_seconds(record)}" if record.held_s else ""
    begins = ", from an empty connection table" if metric == "cps" else ""
    said = f"{verb} {rate} a second{seconds}{begins}{f' (floor {format_count(least)})' if least else ''}"
    floor = f" (floor {figures.limit(METRICS[metric], least)})" if least else ""
    return Bar(
        label=name,
        text=f"{verb} {figures.in_words(record, {metric: value})}{floor}",
        value=value,
        hint=f"It {said}." if follows else f"{name}: {said}.",
        style="measured" if metric == _METRICS[0] else "measured brief",
        floor=least,
    )


def _compared(record: Record, where: str) -> Bar | None:
    """Return the bar of a ratio: the rate that the set-up serves in turn with another one, and its cost against that
    one. None where the ratio was not decided, and where the set-up has to serve more than the other one."""
    promise = record.threshold("ratio")
    found = promise.found if promise and not promise.undecided else None
    sides = figures.served(record, found) if found else None
    if not promise or not found or not sides or promise.limit > 1:
        return None
    ours, theirs = sides
    low, high = found.ends
    cost = found.lost.as_share()
    if found.deciding_end(promise.limit):
        end = f"at most {format_share(1 - low)}" if low >= promise.limit else f"at least {format_share(1 - high)}"
        cost = f"{format_share(1 - found.value)}, {end},"
    most = f"allowed: {(1 - promise.limit) * 100:.3g} %"
    dut, other = _dut(record, where), figures.other_words(promise, record.topology)
    rate = f"{format_count(ours)} a second with"
    turns = f"in turn{figures.scatter(found, ours, theirs)}"
    verb = "serves" if record.evidence.pairs[0].how == "side by side" else "holds"
    if _adds_nat(promise.to or "", record):
        said = f"NAT costs {cost} in {dut} ({most}): it {verb} {rate} NAT, {format_count(theirs)} without, {turns}"
    else:
        with_it = f"{dut} {verb} {rate} {registry.what_it_does(record.topology)}"
        said = f"{with_it}, {format_count(theirs)} with {other}, {turns}: {cost} less ({most})"
    least = promise.limit * theirs
    return Bar(
        label=_name(record, where),
        text=f"{verb} {format_count(ours)} CPS, {cost} less than {other} in turn (floor {format_count(least)} CPS)",
        value=ours,
        hint=f"{said}.",
        style="served",
        floor=least,
        ideal=theirs,
    )


def _adds_nat(other: str, record: Record) -> bool:
    """True where both set-ups track connections, and the record's translates addresses while the `other` does not."""
    topology = Topology.of_key(other)
    rulesets = [registry.catalogued(each.ruleset) for each in (record.topology, topology) if each]
    return [each.translates != "nothing" for each in rulesets if each and each.tracks] == [True, False]
