"""What a packet or a connection costs in an emulated machine, by topology: instructions, from the cheapest on."""

from collections.abc import Sequence

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.report import enough, figures
from ctbench.report.charts.model import LegendItem, Share, ShareChart
from ctbench.results.metrics import COSTS
from ctbench.results.record import Record

#: The ruleset that the others are compared with.
_YARDSTICK = "forward"
_LEGEND = (LegendItem("bar", "measured", "instructions, net of the wires and the traffic alone"),)


def instruction_charts(records: Sequence[Record]) -> list[ShareChart]:
    """A chart for each machine and profile where several topologies were counted."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.metric in COSTS and record.result:
            machine = str(record.environment.dut.image)
            groups.setdefault((machine, record.profile.name), []).append(record)
    return [_chart(group) for group in groups.values() if len(group) > 1]


def _chart(group: Sequence[Record]) -> ShareChart:
    metric, ordered = figures.metric_of(group[0]), sorted(group, key=_value)[-enough.BARS :]
    plain = next((_value(each) for each in group if _is_yardstick(each)), None)
    whole = _value(ordered[-1]) or 1.0
    shares = tuple(
        Share(
            label=registry.what_it_does(record.topology),
            share=_value(record) / whole,
            text=_text(record, plain),
            hint=f"{enough.name(record.test)}: {metric.format(_value(record))}",
            style="baseline" if _is_yardstick(record) else "measured",
        )
        for record in ordered
    )
    least, most = shares[0], shares[-1]
    return ShareChart(
        title=f"{metric.title.capitalize()}: {group[0].profile.name}",
        caption=f"{most.label} costs most, {metric.format(whole)}; {least.label} least, {format_share(least.share)} of "
        f"that. {enough.name(group[0].environment.dut.product)}.",
        legend=_LEGEND,
        shares=shares,
    )


def _text(record: Record, plain: float | None) -> str:
    """The figure, and what it is more than plain forwarding."""
    value = _value(record)
    more = "" if plain is None or _is_yardstick(record) else f" · {value - plain:+,.1f}"
    return f"{value:,.1f}{more}"


def _is_yardstick(record: Record) -> bool:
    return record.topology.ruleset == _YARDSTICK and record.topology.ports == "plain"


def _value(record: Record) -> float:
    return record.result.value if record.result else 0.0
