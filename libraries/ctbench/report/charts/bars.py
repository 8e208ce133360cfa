"""Bars of a run: how far set-ups get, and what each of them costs."""

from collections.abc import Hashable, Mapping, Sequence

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import PortSetup, Topology
from ctbench.report import figures, labels
from ctbench.report.charts.chart import Bar, Bars, LegendItem, short_count
from ctbench.results.metrics import METRICS, RATE_OF, RELATIVE, Metric, Operator
from ctbench.results.record import Record
from ctbench.results.record_model import ThresholdRecord

#: Ruleset, ports, CPUs and queues.
Setup = tuple[str, PortSetup, int, int]
#: The ruleset that others are compared with.
_FORWARD = "forward"
_PPS = METRICS["pps"]
#: Topologies that a chart has at least: one alone compares nothing.
_LEAST_SETUPS = 2
#: Stands before the figure of a lower bound.
_SIGNS: dict[Operator, str] = {">=": "≥", "<=": "≤"}
#: What tells the bars of one chart apart.
_SETUP = {"ruleset", "ports", "cpus", "rx_queues"}


def _setup(made: Topology) -> Setup:
    return made.ruleset, made.ports, made.cpus, made.rx_queues


# What was measured by topology: figures 2 and 3 of the 2022 article.


def rate_charts(records: Sequence[Record]) -> list[Bars]:
    """A chart for each datapath and profile that was measured with several numbers of CPUs or queues, or
    rulesets: of the metric that was looked for, and of packets where that is connections."""
    groups: dict[Hashable, list[Record]] = {}
    for record in records:
        made = record.topology
        # Ratios have denominators of their own.
        if record.result and made.datapath != CABLE.datapath and record.metric not in RELATIVE:
            others = made.model_dump(exclude=_SETUP).values()
            groups.setdefault((*others, record.profile.name, record.metric), []).append(record)
    charts = [_rates(group, metric) for group in groups.values() for metric in _metrics_of(group)]
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
    for setup in sorted(by_setup, key=lambda setup: (does.index(setup[:2]), setup))[: labels.MOST_BARS]:
        record, value = by_setup[setup], values[setup]
        promised, single = record.threshold(metric.name), ideal.get(setup[:2])
        sign = f"{_SIGNS[metric.operator]} " if record.says_at_least else ""
        what = f"{_what(setup[:2])}, " if len(does) > 1 else ""
        row = Bar(
            label=f"{what}{labels.cpus_and_queues(*setup[2:])}",
            text=f"{sign}{short_count(float(f'{value:.3g}'))}",
            value=value,
            hint=f"{labels.name(record.test)}: {figures.written(metric, value)}, {record.verdict}",
            style="measured unsure" if record.verdict == "not measured" else "measured",
            floor=promised.limit if promised else None,
            ideal=single * setup[2] if single else None,
        )
        rows.append(row)
    legend = [LegendItem("bar", "measured", "measured in this run")]
    legend += [LegendItem("line", "floor", "floor of the SLA")] if any(row.floor for row in rows) else []
    legend += [LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs")] if ideal else []
    alone = [_what(does[0])] if len(does) == 1 else []
    which = ", ".join([registry.title(one.topology.datapath), *alone, *figures.options(one.topology)])
    return Bars(
        title=f"{which}: {one.profile.name}, {figures.unit(metric) or metric.title}",
        caption=figures.name(metric),
        legend=tuple(legend),
        rows=tuple(rows),
    )


def _what(does: tuple[str, PortSetup]) -> str:
    return registry.what_it_does(Topology(ruleset=does[0], ports=does[1]))


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
    found: dict[str, dict[str, Bar]] = {}
    for record in records:
        made, promise = record.topology, record.threshold("ratio")
        if promise is None or not promise.measured or promise.undecided:
            continue
        other = Topology.of_key(promise.to or "")
        if other and other.label == made.label and _setup(other) != _setup(made):
            cpus = labels.cpus_and_queues(made.cpus, made.rx_queues)
            which = ", ".join([registry.title(made.datapath), cpus, *figures.options(made)])
            rows, row = found.setdefault(f"{which}: {record.profile.name}", {}), _share(record, other, promise)
            if row.floor or row.label not in rows:
                rows[row.label] = row
    return [
        Bars(
            title=title,
            caption="Each as a share of what it is compared with, which was measured in turn with it.",
            legend=(
                LegendItem("bar", "measured", "share of the rate"),
                *([LegendItem("line", "floor", "promised share")] if any(row.floor for row in rows.values()) else []),
                LegendItem("line", "ideal", "it costs nothing"),
            ),
            rows=tuple(sorted(rows.values(), key=lambda row: row.value)[: labels.MOST_BARS]),
        )
        for title, rows in found.items()
    ]


def _share(record: Record, other: Topology, promise: ThresholdRecord) -> Bar:
    """Of plain forwarding, what the other one leaves of it: then the promise, which is of the inverse, has no place."""
    made, share, rates = record.topology, promise.measured or 1.0, figures.made_of(record, promise)
    if made.ruleset == _FORWARD and made.ports == "plain":
        dear, cheap, share, floor = other, made, 1 / share, None
    else:
        dear, cheap, floor = made, other, promise.limit
    return Bar(
        label=f"{registry.what_it_does(dear)}, of {registry.what_it_does(cheap)}",
        text=f"{format_share(share)} · {rates}" if floor and rates else format_share(share),
        value=share,
        hint=f"{labels.name(record.test)}: {promise.relation}",
        floor=floor,
        ideal=1.0,
    )
