"""The answer of a run without a candidate: what each set-up with connection tracking sustains, what it holds for the
seconds of a trial, and which floor the SLA has for both.
"""

from collections.abc import Sequence

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.report import figures, labels, method
from ctbench.report.charts.chart import Bar, Bars, Chart, LegendItem
from ctbench.report.charts.lines import history_charts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record

#: What is shown of a set-up, in this order: the metric, its verb, and what it is called where it was not measured.
_RATES = (("sustained_cps", "sustains", "sustained rate"), ("cps", "holds", "rate of a trial"))
_METRICS = tuple(metric for metric, *_ in _RATES)


def charts(records: Sequence[Record], histories: Sequence[Sequence[Record]]) -> tuple[Chart, ...]:
    """A picture with up to two bars for each set-up, and how the first one changed over the runs, where there were
    several; nothing where no rate of connections was measured with connection tracking. `histories`: the records of
    each test, oldest first."""
    found = _setups(records)
    if not found:
        return ()
    of_first = [test for test in histories if any(test[-1] is each for each in found[0].values())]
    made: list[Chart] = [_picture(found), *history_charts(of_first)]
    return tuple(made)


def _picture(found: Sequence[dict[str, Record]]) -> Bars:
    alone = any(record.limited_by == "floor" for some in found for record in some.values())
    only = " Sustained rates were tried at their floor only: more may last." if alone else ""
    one = next(iter(found[0].values()))
    return Bars(
        title="New connections per second (CPS)",
        caption=f"{labels.cpus_and_queues(one.topology.cpus, one.topology.rx_queues)}, profile {one.profile.name}. "
        "Sustained: it lasts, with the connection table as full as this rate makes it. Held: for the seconds of a "
        "trial, which begins with an empty table. Compare set-ups by the percentages, which are measured in turn, and "
        f"not by these rates, between which the machine changes.{only}",
        legend=(
            LegendItem("bar", "measured", "sustained"),
            LegendItem("bar", "measured brief", "held for the seconds of a trial"),
            LegendItem("line", "floor", "floor of the SLA"),
        ),
        # What this run has no row of is not a rate of nothing.
        rows=tuple(_bar(some, *rate) for some in found for rate in _RATES if rate[0] in some),
    )


def lines(answer: Sequence[Chart]) -> tuple[str, ...]:
    """The picture in words, a line for each set-up: `Open vSwitch 3.1.0, Connection tracking: sustains at least 20.0 k
    CPS for 40 s (floor 20.0 k CPS); holds 214.8 k CPS for 1 s (floor 48.2 k CPS).`"""
    rows = [row for chart in answer if isinstance(chart, Bars) for row in chart.rows]
    names = dict.fromkeys(row.label for row in rows)
    return tuple(f"{name}: {'; '.join(row.text for row in rows if row.label == name)}." for name in names)


def _setups(records: Sequence[Record]) -> list[dict[str, Record]]:
    """Of each device under test its first set-up that tracks connections, and its first one with NAT, in the order of
    the run: that whose sustained rate was measured, else the first of all. The records of each, by metric."""
    groups: dict[tuple[str, bool], list[Record]] = {}
    for record in records:
        ruleset = registry.catalogued(record.topology.ruleset)
        if ruleset and ruleset.tracks and record.metric in _METRICS:
            groups.setdefault((record.topology.datapath, ruleset.translates != "nothing"), []).append(record)
    found = []
    for group in groups.values():
        one = min(group, key=lambda each: _METRICS.index(each.metric))
        alike = [each for each in group if (each.topology, each.profile) == (one.topology, one.profile)]
        found.append({each.metric: each for each in alike})
    return found


def _bar(some: dict[str, Record], metric: str, verb: str, noun: str) -> Bar:
    record = some[metric]
    name = labels.name(f"{method.dut(record)}, {registry.what_it_does(record.topology)}")
    if record.result is None:
        return Bar(name, f"{noun} not measured in this run", 0.0)
    value, promise = record.result.value, record.threshold(metric)
    said = figures.in_words(record, {metric: value})
    floor = f" (floor {figures.limit(METRICS[metric], promise.limit)})" if promise else ""
    return Bar(
        label=name,
        text=f"{verb if record.held_s else 'does not keep up: completes'} {said}{floor}{_left(record)}",
        value=value,
        hint=f"{labels.name(record.test)}: {record.verdict}",
        style="measured" if metric == _METRICS[0] else "measured brief",
        floor=promise.limit if promise else None,
    )


def _left(record: Record) -> str:
    """What is left of the rate of another set-up: `; measured in turn, leaves 78.4 % of the rate of Connection tracking
    (floor 66 %)`."""
    promise = record.threshold("ratio")
    if promise is None or promise.measured is None or promise.undecided:
        return ""
    other = figures.other_words(promise, record.topology)
    left = f"{format_share(promise.measured)} of the rate of {other} (floor {promise.limit * 100:g} %)"
    return f"; measured in turn, leaves {left}"
