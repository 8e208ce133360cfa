"""Bars of a run: how far set-ups get, and what each of them costs."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.report import figures, labels
from ctbench.report.charts.chart import Bar, BarRow, Bars, LegendItem, short_count
from ctbench.report.labels import LIMITS
from ctbench.report.reference import Elsewhere, References, profiles
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, Metric, Operator
from ctbench.results.record import Record

Item = TypeVar("Item")
#: CPUs and queues.
Setup = tuple[int, int]

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


# Scaling: figures 2 and 3 of the 2022 article.

#: Setups that a chart has at least: one alone shows no scaling.
_LEAST_SETUPS = 2
#: Bars of references next to the measured one, at most.
_MOST_REFERENCES = 2
#: Name of the references that the SLA file itself has next to its floors.
_OF_THE_SLA = "Published"
#: Stands before the figure of a lower bound.
_SIGNS: dict[Operator, str] = {">=": "≥", "<=": "≤"}


def scaling_charts(records: Sequence[Record], references: References) -> list[Bars]:
    """A chart for each datapath, ruleset and profile that was measured, or published, with several numbers of CPUs or
    queues: of the metric that was looked for, and of packets where that is connections."""

    def key(record: Record) -> Hashable:
        made = record.topology
        return made.datapath, made.ruleset, made.ports, record.profile.name, made.mtu, record.metric

    some = [record for record in records if record.result and record.topology.datapath != CABLE.datapath]
    charts = [
        _scaling(group, metric, references) for group in _grouped(some, key) for metric in _metrics_of_scaling(group)
    ]
    return [chart for chart in charts if len(chart.rows) >= _LEAST_SETUPS]


def _metrics_of_scaling(group: Sequence[Record]) -> list[Metric]:
    own = figures.metric_of(group[0])
    also = figures.is_rate(group[0]) and own is not _PPS and all(_PPS.name in record.figures for record in group)
    return [own, _PPS] if also else [own]


def _scaling(group: Sequence[Record], metric: Metric, references: References) -> Bars:
    one = group[0]
    by_setup = {(record.topology.cpus, record.topology.rx_queues): record for record in group}  # the newest counts
    values = {setup: figures.value_of(record, metric.name) or 0.0 for setup, record in by_setup.items()}
    ideal = _ideal(values) if metric in RATE_OF.values() else None
    found: dict[Setup, list[Bar]] = {}
    for setup, record in by_setup.items():
        hint = f"{labels.name(record.test)}: {metric.format(values[setup])}, {record.verdict}"
        found[setup] = [Bar(values[setup], hint, "measured unsure" if record.verdict == "not measured" else "measured")]
    legend = [LegendItem("bar", "measured", "measured in this run")]
    for number, name in enumerate(list(references.series)[:_MOST_REFERENCES] or [_OF_THE_SLA], 1):
        bars = _reference_bars(one, metric, f"published-{number}", _elsewhere(one, name, references, by_setup))
        for setup, bar in bars.items():
            found.setdefault(setup, []).append(bar)
        legend += [LegendItem("bar", f"published-{number}", f"{name} (other hardware)")] if bars else []
    legend += [LegendItem("line", "floor", "floor of the SLA")]
    legend += [LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs")] if ideal else []
    rows = []
    for setup in sorted(found)[: LIMITS.bars]:
        text, floor = labels.DASH, None
        if setup in by_setup:
            promised = by_setup[setup].threshold(metric.name)
            floor = promised.limit if promised else None
            sign = f"{_SIGNS[metric.operator]} " if by_setup[setup].is_lower_bound else ""
            text = f"{sign}{short_count(float(f'{values[setup]:.3g}'))}"
        label, perfect = labels.cpus_and_queues(*setup), ideal * setup[0] if ideal else None
        rows.append(BarRow(label, text, tuple(found[setup]), floor, perfect))
    return Bars(
        title=f"{registry.title(one.topology.datapath)}, {registry.what_it_does(one.topology).lower()}: "
        f"{one.profile.name}, {metric.title}",
        caption=_from_worst_to_best(by_setup, values, metric),
        legend=tuple(legend),
        rows=tuple(rows),
        axis=figures.name(metric),
    )


def _elsewhere(
    one: Record, name: str, references: References, by_setup: Mapping[Setup, Record]
) -> dict[Setup, Elsewhere]:
    """What one reference has of this topology with any number of CPUs and queues."""
    if name not in references.series:
        none = References({})
        own = ((setup, none.find(record)) for setup, record in by_setup.items())
        return {setup: figure for setup, figure in own if figure and figure.cpus_given}
    found: dict[Setup, Elsewhere] = {}
    for (key, profile), figure in references.series[name].items():
        made = Topology.parse(key) if key and profile in profiles(one) else None
        if made and made.model_copy(update=one.topology.model_dump(include={"cpus", "rx_queues"})) == one.topology:
            found.setdefault((made.cpus, made.rx_queues), figure)
    return found


def _reference_bars(one: Record, metric: Metric, style: str, found: Mapping[Setup, Elsewhere]) -> dict[Setup, Bar]:
    """Connections of another length cannot be compared; their packets are."""
    return {
        setup: Bar(value, f"{figure.label}: {metric.format(value)}, other hardware", style)
        for setup, figure in found.items()
        if (metric is _PPS or figure.profile == one.profile.name) and (value := figure.figures.get(metric.name))
    }


def _ideal(rates: Mapping[Setup, float]) -> float | None:
    """The rate of one CPU with the fewest queues, which perfect scaling multiplies; None where nothing scales."""
    if len({cpus for cpus, _ in rates}) < _LEAST_SETUPS:
        return None
    single = min((setup for setup in rates if setup[0] == 1), default=None)
    return rates[single] if single else None


def _from_worst_to_best(by_setup: Mapping[Setup, Record], values: Mapping[Setup, float], metric: Metric) -> str:
    best = (max if metric.better == "higher" else min)(values.values())
    ordered = sorted(values, key=lambda setup: abs(values[setup] - best), reverse=True)
    worst, best_setup = ordered[0], ordered[-1]
    low, high = (figures.found(by_setup[setup], metric, values[setup]) for setup in (worst, best_setup))
    if worst == best_setup:
        return f"{labels.cpus_and_queues(*worst)}: {high}."
    return f"From {low} with {labels.cpus_and_queues(*worst)} to {high} with {labels.cpus_and_queues(*best_setup)}."


# What connection tracking and NAT cost: the rate that is left of plain forwarding.

#: Nothing makes a DUT faster than plain forwarding; this much is within what two searches differ by.
_MORE_THAN_ALL = 1.1


def cost_charts(records: Sequence[Record]) -> list[Bars]:
    """A chart for each datapath, number of CPUs and queues, and profile where plain forwarding and something else
    were measured. What was not measured for certain, or only tried at its floor, says nothing about costs, and nothing
    but a rate is a share of another one."""

    def key(record: Record) -> Hashable:
        made = record.topology
        return made.datapath, made.label, record.profile.name, made.mtu

    sure = [record for record in records if record.verdict != "not measured" and record.limited_by != "floor"]
    charts = []
    for group in _grouped([record for record in sure if record.result and figures.is_rate(record)], key):
        whole = _yardstick(group)
        others = [record for record in group if not _is_yardstick(record.topology)]
        if whole and others:
            charts.append(_cost(group[0], whole, sorted(others, key=lambda record: -_value(record))))
    return charts


def _is_yardstick(topology: Topology) -> bool:
    return topology.ruleset == _FORWARD and topology.ports == "plain"


def _yardstick(group: Sequence[Record]) -> float | None:
    """The rate of plain forwarding. None where it is not known, or only known to be at least something: then no share
    is."""
    plain = next((record for record in group if _is_yardstick(record.topology)), None)
    return None if plain is None or plain.is_lower_bound else _value(plain)


def _cost(one: Record, whole: float, ordered: Sequence[Record]) -> Bars:
    metric = figures.metric_of(one)
    rows = [BarRow(registry.ruleset_title(_FORWARD), metric.format(whole), (Bar(whole, "the baseline", "baseline"),))]
    caption = f"Plain forwarding does {metric.format(whole)}."
    for record in ordered[-LIMITS.bars :]:  # the dearest matter most
        share = _value(record) / whole
        promised = record.threshold("ratio")
        plain = record.topology.model_copy(update={"ruleset": _FORWARD, "ports": "plain"}).key
        least = f"{metric.bound} " if record.is_lower_bound else ""
        hint = f"{labels.name(record.test)}: {least}{format_share(share)} of plain forwarding"
        label = registry.what_it_does(record.topology)
        rows.append(
            BarRow(
                label=label,
                text=f"{figures.found(record, metric, _value(record))} · {format_share(share)}",
                bars=(Bar(_value(record), hint, "measured unsure" if least else "measured"),),
                floor=promised.limit * whole if promised and promised.to == plain else None,
            )
        )
        if not least:
            caption = f"Plain forwarding does {metric.format(whole)}; {label} leaves {format_share(share)} of that."
    floors = [LegendItem("line", "floor", "least share that is promised")] if any(row.floor for row in rows) else []
    if len(ordered) > LIMITS.bars:
        caption += f" Shown are the {LIMITS.bars} dearest of {labels.thousands(len(ordered))}."
    if max(row.bars[0].value for row in rows) > _MORE_THAN_ALL * whole:
        caption += " More than 100 %: the machine was probably slower during plain forwarding, so measure again."
    return Bars(
        title=f"{registry.title(one.topology.datapath)}, "
        f"{labels.cpus_and_queues(one.topology.cpus, one.topology.rx_queues)}: {one.profile.name}",
        caption=caption,
        legend=(LegendItem("bar", "measured", "rate, as a share of plain forwarding"), *floors),
        rows=tuple(rows),
    )


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
            bars=(Bar(_value(record), "", "baseline" if _is_yardstick(record.topology) else "measured"),),
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
