"""What more CPUs and queues give, as figures 2 and 3 of the 2022 article show it."""

from collections.abc import Mapping, Sequence

from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.report import enough, figures, labels
from ctbench.report.charts.model import Bar, BarChart, Category, LegendItem
from ctbench.report.charts.scale import three_digits
from ctbench.report.reference import Elsewhere, References, profiles
from ctbench.results.metrics import METRICS, RATE_OF, Metric, Operator
from ctbench.results.record import Record

#: Setups that a chart has at least: one alone shows no scaling.
_LEAST_SETUPS = 2
#: Bars of references next to the measured one, at most.
_MOST_REFERENCES = 2
#: Name of the references that the SLA file itself has next to its floors.
_OF_THE_SLA = "Published"

#: Stands before the bar of a lower bound.
_SIGNS: dict[Operator, str] = {">=": "≥", "<=": "≤"}

#: CPUs and queues.
Setup = tuple[int, int]


def scaling_charts(records: Sequence[Record], references: References) -> list[BarChart]:
    """A chart for each datapath, ruleset and profile that was measured, or published, with several numbers of CPUs or
    queues: of the metric that was looked for, and of packets where that is connections."""
    groups: dict[tuple[str, str, str, str, int, str], list[Record]] = {}
    for record in records:
        if record.result and record.topology.datapath != CABLE.datapath:
            made = record.topology
            key = (made.datapath, made.ruleset, made.ports, record.profile.name, made.mtu, record.metric)
            groups.setdefault(key, []).append(record)
    charts = [_chart(group, metric, references) for group in groups.values() for metric in _metrics(group)]
    return [chart for chart in charts if len(chart.categories) >= _LEAST_SETUPS]


def _metrics(group: Sequence[Record]) -> list[Metric]:
    """What is drawn of some records."""
    own, packets = figures.metric_of(group[0]), METRICS["pps"]
    also = figures.is_rate(group[0]) and own is not packets
    return [own, packets] if also and all(packets.name in record.figures for record in group) else [own]


def _chart(group: Sequence[Record], metric: Metric, references: References) -> BarChart:
    by_setup = {_setup(record): record for record in group}  # the newest counts
    values = {setup: figures.value_of(record, metric.name) or 0.0 for setup, record in by_setup.items()}
    one = group[0]
    ideal = _ideal(values) if metric in RATE_OF.values() else None
    columns = {name: _reference_bars(one, metric, name, references, by_setup) for name in _names(one, references)}
    columns = {name: bars for name, bars in columns.items() if bars}
    categories = []
    for setup in sorted({*by_setup, *(setup for bars in columns.values() for setup in bars)}):
        record = by_setup.get(setup)
        promised = record.threshold(metric.name) if record else None
        categories.append(
            Category(
                label=(str(setup[0]), str(setup[1])),
                bars=(_bar(record, metric) if record else None, *(bars.get(setup) for bars in columns.values())),
                floor=promised.limit if promised else None,
                ideal=ideal * setup[0] if ideal else None,
            )
        )
    legend = [LegendItem("bar", "measured", "measured in this run")]
    legend += [
        LegendItem("bar", f"published-{number}", f"{name} (other hardware)") for number, name in enumerate(columns, 1)
    ]
    legend += [LegendItem("line", "floor", "floor of the SLA")]
    legend += [LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs")] if ideal else []
    return BarChart(
        title=f"{registry.title(one.topology.datapath)}, {registry.what_it_does(one.topology).lower()}: "
        f"{one.profile.name}, {metric.title}",
        caption=_caption(by_setup, values, metric),
        axis=figures.name(metric),
        labels=("CPUs", "queues"),
        legend=tuple(legend),
        categories=tuple(categories[: enough.BARS]),
    )


def _bar(record: Record, metric: Metric) -> Bar:
    value = figures.value_of(record, metric.name) or 0.0
    unsure = record.verdict == "not measured"
    hint = f"{enough.name(record.test)}: {metric.format(value)}, {record.verdict}"
    bound = f"{_SIGNS[metric.operator]} " if record.is_lower_bound else ""
    return Bar(value, f"{bound}{three_digits(value)}", hint, "measured unsure" if unsure else "measured")


def _names(one: Record, references: References) -> list[str]:
    return list(references.series)[:_MOST_REFERENCES] or [_OF_THE_SLA]


def _reference_bars(
    one: Record, metric: Metric, name: str, references: References, by_setup: dict[Setup, Record]
) -> dict[Setup, Bar]:
    """The bars of one reference, by setup."""
    found: dict[Setup, Elsewhere] = {}
    if name in references.series:
        for setup in [*by_setup, *_published_setups(one, references)]:
            like = one.topology.model_copy(update={"cpus": setup[0], "rx_queues": setup[1]})
            for profile in profiles(one):
                figure = references.series[name].get((like.key, profile))
                if figure:
                    found.setdefault(setup, figure)
    else:
        for setup, record in by_setup.items():
            if figure := References({}).find(record):
                found[setup] = figure
    bars = {}
    for setup, figure in found.items():
        # Connections of another length are no comparison; their packets are.
        alike = metric is METRICS["pps"] or figure.profile == one.profile.name
        if alike and (value := figure.figures.get(metric.name)):
            number = _names(one, references).index(name) + 1
            hint = f"{figure.label}: {metric.format(value)}, other hardware"
            bars[setup] = Bar(value, "", hint, f"published-{number}")
    return bars


def _published_setups(one: Record, references: References) -> list[Setup]:
    """CPUs and queues of the published figures for this datapath, ruleset and profile."""
    setups = []
    for figure in references.published:
        made = figure.topology
        same = (made.datapath, made.ruleset) == (one.topology.datapath, one.topology.ruleset)
        if same and figure.profile in profiles(one) and made.cpus and made.rx_queues:
            setups.append((made.cpus, made.rx_queues))
    return setups


def _ideal(rates: Mapping[Setup, float]) -> float | None:
    """The rate of one CPU with the fewest queues, which perfect scaling multiplies; None where nothing scales."""
    if len({cpus for cpus, _ in rates}) < _LEAST_SETUPS:
        return None
    single = min((setup for setup in rates if setup[0] == 1), default=None)
    return rates[single] if single else None


def _caption(by_setup: Mapping[Setup, Record], values: Mapping[Setup, float], metric: Metric) -> str:
    """The worst and the best, in one sentence."""
    best = metric.better_of(values.values())
    ordered = sorted(values, key=lambda setup: abs(values[setup] - best), reverse=True)
    worst, best_setup = ordered[0], ordered[-1]
    low, high = (figures.found(by_setup[setup], metric, values[setup]) for setup in (worst, best_setup))
    if worst == best_setup:
        return f"{labels.cpus_and_queues(*worst)}: {high}."
    return f"From {low} with {labels.cpus_and_queues(*worst)} to {high} with {labels.cpus_and_queues(*best_setup)}."


def _setup(record: Record) -> Setup:
    return record.topology.cpus, record.topology.rx_queues
