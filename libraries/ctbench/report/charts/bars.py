"""Bars of a run: how far set-ups get, and what each of them costs."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import PortSetup, Topology
from ctbench.report import figures, labels
from ctbench.report.charts.chart import Bar, BarRow, Bars, LegendItem, short_count
from ctbench.report.labels import LIMITS
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, RELATIVE, Metric, Operator
from ctbench.results.record import Record
from ctbench.results.record_model import ThresholdRecord

Item = TypeVar("Item")
#: Ruleset, ports, CPUs and queues.
Setup = tuple[str, PortSetup, int, int]
#: The ruleset that others are compared with.
_FORWARD = "forward"
_PPS = METRICS["pps"]


def _grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Items by what they have in common, in their order."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _value(record: Record) -> float:
    return record.result.value if record.result else 0.0


# Rates by topology: figures 2 and 3 of the 2022 article.

#: Topologies that a chart has at least: one alone compares nothing.
_LEAST_SETUPS = 2
#: Stands before the figure of a lower bound.
_SIGNS: dict[Operator, str] = {">=": "≥", "<=": "≤"}
#: What tells the bars of one chart apart.
_SETUP = {"ruleset", "ports", "cpus", "rx_queues"}


def _setup(made: Topology) -> Setup:
    return made.ruleset, made.ports, made.cpus, made.rx_queues


def rate_charts(records: Sequence[Record]) -> list[Bars]:
    """A chart for each datapath and profile that was measured with several numbers of CPUs or queues, or
    rulesets: of the metric that was looked for, and of packets where that is connections."""

    def key(record: Record) -> Hashable:
        others = record.topology.model_dump(exclude=_SETUP).values()
        return *others, record.profile.name, record.metric

    some = [record for record in records if record.result and record.topology.datapath != CABLE.datapath]
    # Ratios have denominators of their own, and rows of match fields a table.
    some = [record for record in some if record.metric not in RELATIVE and "match-fields" not in record.tags]
    charts = [_rates(group, metric) for group in _grouped(some, key) for metric in _metrics_of(group)]
    return [chart for chart in charts if len(chart.rows) >= _LEAST_SETUPS]


def _metrics_of(group: Sequence[Record]) -> list[Metric]:
    own = figures.metric_of(group[0])
    also = figures.is_rate(group[0]) and own is not _PPS and all(_PPS.name in record.figures for record in group)
    return [own, _PPS] if also else [own]


def _rates(group: Sequence[Record], metric: Metric) -> Bars:
    one = group[0]
    by_setup = {_setup(record.topology): record for record in group}  # the newest counts
    values = {setup: record.values.get(metric.name, 0.0) for setup, record in by_setup.items()}
    ideal = _ideal(values) if metric in RATE_OF.values() else {}
    does = list(dict.fromkeys(setup[:2] for setup in by_setup))
    rows = []
    for setup in sorted(by_setup, key=lambda setup: (does.index(setup[:2]), setup))[: LIMITS.bars]:
        record, value = by_setup[setup], values[setup]
        promised = record.threshold(metric.name)
        sign = f"{_SIGNS[metric.operator]} " if record.says_at_least else ""
        text = f"{sign}{short_count(float(f'{value:.3g}'))}"
        hint = f"{labels.name(record.test)}: {figures.written(metric, value)}, {record.verdict}"
        bar = Bar(value, hint, "measured unsure" if record.verdict == "not measured" else "measured")
        label, single = _words(setup, whole=len(does) > 1), ideal.get(setup[:2])
        floor = promised.limit if promised else None
        rows.append(BarRow(label, text, bar, floor, single * setup[2] if single else None))
    legend = [LegendItem("bar", "measured", "measured in this run")]
    legend += [LegendItem("line", "floor", "floor of the SLA")] if any(row.floor for row in rows) else []
    legend += [LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs")] if ideal else []
    unit = figures.unit(metric) or metric.title
    alone = f", {_what(does[0])}" if len(does) == 1 else ""
    return Bars(
        title=f"{registry.title(one.topology.datapath)}{alone}: {one.profile.name}, {unit}",
        caption=figures.name(metric),
        legend=tuple(legend),
        rows=tuple(rows),
    )


def _what(does: tuple[str, PortSetup]) -> str:
    return registry.what_it_does(Topology(ruleset=does[0], ports=does[1]))


def _words(setup: Setup, *, whole: bool) -> str:
    """`2 CPUs, 1 queue`; `whole`: with what it does."""
    return f"{f'{_what(setup[:2])}, ' if whole else ''}{labels.cpus_and_queues(*setup[2:])}"


def _ideal(rates: Mapping[Setup, float]) -> dict[tuple[str, PortSetup], float]:
    """Of what scales, the rate of one CPU with the fewest queues, which perfect scaling multiplies."""
    found = {}
    for does in {setup[:2] for setup in rates}:
        some = sorted(setup for setup in rates if setup[:2] == does)
        if len({setup[2] for setup in some}) >= _LEAST_SETUPS and some[0][2] == 1:
            found[does] = rates[some[0]]
    return found


# What a feature costs: the rate that is left of the one that it is compared with.


def share_charts(records: Sequence[Record]) -> list[Bars]:
    """A chart for each datapath and profile whose topologies were measured in turn with others of as many CPUs and
    queues: the rate that is left of those. Nothing is drawn of what was not measured for certain."""
    found: dict[tuple[str, str], dict[str, BarRow]] = {}
    for record in records:
        made, promise = record.topology, record.threshold("ratio")
        other = Topology.of_key(promise.to or "") if promise and promise.measured else None
        sure = promise and promise.measured and not promise.undecided and "match-fields" not in record.tags
        if other and promise and sure and other.label == made.label and _setup(other) != _setup(made):
            key = f"{registry.title(made.datapath)}, {labels.cpus_and_queues(made.cpus, made.rx_queues)}"
            rows, row = found.setdefault((key, record.profile.name), {}), _share(record, made, other, promise)
            if row.floor or row.label not in rows:
                rows[row.label] = row
    return [
        Bars(
            title=f"{key}: {profile}",
            caption="Each as a share of what it is compared with, which was measured in turn with it.",
            legend=(
                LegendItem("bar", "measured", "share of the rate"),
                *([LegendItem("line", "floor", "promised share")] if any(row.floor for row in rows.values()) else []),
                LegendItem("line", "ideal", "it costs nothing"),
            ),
            rows=tuple(sorted(rows.values(), key=lambda row: row.bar.value)[: LIMITS.bars]),
        )
        for (key, profile), rows in found.items()
    ]


def _is_yardstick(topology: Topology) -> bool:
    return topology.ruleset == _FORWARD and topology.ports == "plain"


def _share(record: Record, made: Topology, other: Topology, promise: ThresholdRecord) -> BarRow:
    """Of plain forwarding, what the other one leaves of it: then the promise, which is of the inverse, has no place."""
    share, rates = promise.measured or 1.0, figures.made_of(record, promise)
    dear, cheap, floor = (other, made, None) if _is_yardstick(made) else (made, other, promise.limit)
    share = 1 / share if floor is None else share
    label = f"{registry.what_it_does(dear)}, of {registry.what_it_does(cheap)}"
    text = f"{format_share(share)} · {rates}" if floor and rates else format_share(share)
    return BarRow(label, text, Bar(share, f"{labels.name(record.test)}: {promise.relation}", "measured"), floor, 1.0)


# Instructions.


def instruction_charts(records: Sequence[Record]) -> list[Bars]:
    """A chart for each machine and profile where several topologies were counted, from the cheapest on."""
    counted = [record for record in records if record.metric in COSTS and record.result]
    groups = _grouped(counted, lambda record: (str(record.environment.dut.image), record.profile.name))
    return [_instructions(group) for group in groups if len(group) > 1]


def _instructions(group: Sequence[Record]) -> Bars:
    metric, ordered = figures.metric_of(group[0]), sorted(group, key=_value)[-LIMITS.bars :]
    rows = tuple(
        BarRow(
            label=registry.what_it_does(record.topology),
            text=f"{_value(record):,.1f}",
            bar=Bar(_value(record), "", "baseline" if _is_yardstick(record.topology) else "measured"),
        )
        for record in ordered
    )
    share = format_share(_value(ordered[0]) / (_value(ordered[-1]) or 1.0))
    return Bars(
        title=f"{metric.title.capitalize()}: {group[0].profile.name}",
        caption=f"{rows[-1].label} costs most, {metric.format(_value(ordered[-1]))}; {rows[0].label} least, {share} of "
        f"that. {labels.name(group[0].environment.dut.product)}.",
        legend=(LegendItem("bar", "baseline", "plain forwarding"), LegendItem("bar", "measured", "other topologies")),
        rows=rows,
    )
