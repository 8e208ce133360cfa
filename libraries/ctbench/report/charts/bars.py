"""Bar charts of a run: the rates of each datapath, by ruleset and by CPUs and queues, as in figures 2 and 3 of the 2022
article."""

from collections.abc import Hashable, Sequence

from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.report import figures, labels
from ctbench.report.charts.chart import Bar, Bars, LegendItem
from ctbench.results.metrics import RATE_OF, RELATIVE
from ctbench.results.record import Record

#: What tells the bars of one chart apart.
_SETUP = {"ruleset", "ports", "cpus", "rx_queues"}


def rate_charts(records: Sequence[Record]) -> list[Bars]:
    """Return a chart for each datapath, profile and metric that one testbed and campaign measured with several rulesets
    or numbers of CPUs or queues. The last record of a topology counts."""
    groups: dict[Hashable, dict[str, Record]] = {}
    for record in records:
        made = record.topology
        # Ratios have denominators of their own.
        if record.result and made.datapath != CABLE.datapath and record.metric not in RELATIVE:
            others = made.model_dump(exclude=_SETUP).values()
            key = *others, record.profile.name, record.metric, *figures.measured_in(record)
            groups.setdefault(key, {})[made.key] = record
    found = [[*group.values()] for group in groups.values() if len(group) > 1]
    return [_rates(group, figures.told_apart(group[0], records)) for group in found]


def _rates(group: Sequence[Record], where: str) -> Bars:
    one, metric = group[0], figures.metric_of(group[0])
    does = list(dict.fromkeys(registry.what_it_does(record.topology) for record in group))
    # Of one CPU with the fewest queues, which perfect scaling multiplies.
    single: dict[str, float] = {}
    rows = []
    for place, cpus, queues, record in sorted(map(_placed, group), key=lambda each: (does.index(each[0]), *each[1:3])):
        value = record.values[metric.name]
        if cpus == 1:
            single.setdefault(place, value)
        scales = cpus > 1 and place in single and metric in RATE_OF.values()
        promised = record.threshold(metric.name)
        row = Bar(
            label=f"{f'{place}, ' if len(does) > 1 else ''}{labels.cpus_and_queues(cpus, queues)}",
            text=figures.written(metric, value),
            value=value,
            hint=f"{labels.name(record.test)}: {figures.in_words(record, {metric.name: value})}, {record.verdict}",
            style="measured unsure" if record.verdict == "not measured" else "measured",
            floor=promised.limit if promised else None,
            ideal=single[place] * cpus if scales else None,
        )
        rows.append(row)
    legend = [LegendItem("bar", "measured", "measured in this run")]
    legend += [LegendItem("line", "floor", "floor of the SLA")] if any(row.floor for row in rows) else []
    if any(row.ideal for row in rows):
        legend.append(LegendItem("line", "ideal", "ideal: the rate of 1 CPU times the CPUs"))
    alone, held_s = does if len(does) == 1 else [], {record.held_s for record in group}
    which = ", ".join([registry.title(one.topology.datapath), *alone, *figures.options(one.topology)])
    held = f", held {figures.for_seconds(one)}" if one.held_s and held_s == {one.held_s} else ""
    return Bars(
        title=", ".join(filter(None, [f"{which}: {one.profile.name}", figures.unit(metric) or metric.title, where])),
        caption=f"{figures.name(metric)}{held}",
        legend=tuple(legend),
        rows=tuple(rows[: labels.MOST_BARS]),
    )


def _placed(record: Record) -> tuple[str, int, int, Record]:
    """Return what the set-up of a record does, its CPUs and its queues, which give its place among the bars; and the
    record."""
    return registry.what_it_does(record.topology), record.topology.cpus, record.topology.rx_queues, record
