"""What a packet or a connection costs in an emulated machine, by topology: instructions, from the cheapest on, each bar
made of what its topology adds to the simpler one that it builds upon."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.dut.rulesets import Ruleset
from ctbench.dut.topology import Topology
from ctbench.report import enough, figures
from ctbench.report.charts.model import LegendItem, Share, ShareChart, SharePart
from ctbench.results.metrics import COSTS
from ctbench.results.record import Record

#: The ruleset that only forwards, and tools that have one of their own.
_FORWARD, _OF_ITS_OWN = "forward", ("ovs",)
#: What a topology adds, in the order of a packet's way, with its class in the style sheet.
_ADDED = {
    "forwarding": "baseline",
    "bonds, VLANs": "part-ports",
    "conntrack and its rules": "measured",
    "more rules": "part-rules",
    "NAT": "part-nat",
    "not divided": "part-whole",
}


def instruction_charts(records: Sequence[Record]) -> list[ShareChart]:
    """A chart for each machine and profile where several topologies were counted."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.metric in COSTS and record.result:
            machine = str(record.environment.dut.image)
            groups.setdefault((machine, record.profile.name), []).append(record)
    return [_chart(group) for group in groups.values() if len(group) > 1]


@dataclass(frozen=True)
class _Cost:
    """What one topology costs, and what of that each feature adds."""

    value: float
    added: tuple[tuple[str, float], ...]


def _costs(group: Sequence[Record]) -> dict[Topology, _Cost]:
    """Of each topology. What is cheaper than what it builds upon (a shortcut) adds nothing, and is one bar."""
    values = {record.topology: _value(record) for record in group}
    found: dict[Topology, _Cost] = {}

    def cost(topology: Topology) -> _Cost:
        if topology in found:
            return found[topology]
        value, (feature, below) = values[topology], _below(topology, values)
        simpler = cost(below) if below else None
        if below is None:
            parts: tuple[tuple[str, float], ...] = ((feature, value),)
        elif simpler is None or value < simpler.value:
            parts = (("not divided", value),)
        else:
            parts = (*simpler.added, (feature, value - simpler.value))
        return found.setdefault(topology, _Cost(value, parts))

    return {topology: cost(topology) for topology in values}


def _below(topology: Topology, values: Mapping[Topology, float]) -> tuple[str, Topology | None]:
    """What a topology adds, and the one that it adds it to; None where that was not counted, or it adds to no other."""
    ruleset = _ruleset(topology)
    if topology.ports != "plain":
        ports = ["vlan", "plain"] if topology.ports == "bond-vlan" else ["plain"]
        feature, known = "bonds, VLANs", [topology.model_copy(update={"ports": each}) for each in ports]
    elif ruleset is None or not ruleset.tracks:
        return "forwarding", None
    else:
        feature, names = _simpler(ruleset)
        known = [topology.model_copy(update={"ruleset": name}) for name in names]
    below = next((each for each in known if each in values), None)
    return (feature, below) if below else ("not divided", None)


def _ruleset(topology: Topology) -> Ruleset | None:
    """None for one that the catalogue does not have any more."""
    with suppress(ConfigError):
        return registry.ruleset_of(topology)
    return None


def _simpler(ruleset: Ruleset) -> tuple[str, list[str]]:
    """What a ruleset with connection tracking adds, and what the simpler one may be called: of the same tool
    (`ovs-user`, else `ovs`) with tracking alone, or without any."""
    words = ruleset.name.split("-")
    tools = ["-".join(words[:count]) for count in range(len(words) - 1, 0, -1)]
    tracking = [f"{tool}-{kind}" for tool in tools for kind in ("conntrack", "stateful")]
    if ruleset.translates != "nothing":
        return "NAT", tracking[:2] if words[0] in _OF_ITS_OWN else tracking
    if "rules" in ruleset.tags:
        return "more rules", tracking
    return "conntrack and its rules", [f"{tools[0]}-{_FORWARD}"] if words[0] in _OF_ITS_OWN else [_FORWARD]


def _chart(group: Sequence[Record]) -> ShareChart:
    metric, ordered = figures.metric_of(group[0]), sorted(group, key=_value)[-enough.BARS :]
    costs, whole = _costs(group), _value(ordered[-1]) or 1.0
    shares = tuple(_share(record, costs[record.topology], whole) for record in ordered)
    seen = {part.style for share in shares for part in share.parts}
    legend = tuple(LegendItem("bar", style, name) for name, style in _ADDED.items() if style in seen)
    least, most = shares[0], shares[-1]
    return ShareChart(
        title=f"{metric.title.capitalize()}: {group[0].profile.name}",
        caption=f"{most.label} costs most, {metric.format(whole)}; {least.label} least, {format_share(least.share)} of "
        f"that. {enough.name(group[0].environment.dut.product)}.",
        legend=legend,
        shares=shares,
    )


def _share(record: Record, cost: _Cost, whole: float) -> Share:
    metric = figures.metric_of(record)
    said = [f"{name} {value:,.1f}" for name, value in cost.added]
    return Share(
        label=registry.what_it_does(record.topology),
        share=cost.value / whole,
        text=f"{cost.value:,.1f}",
        hint=f"{enough.name(record.test)}: {metric.format(cost.value)}",
        style="measured",
        parts=tuple(
            SharePart(value / whole, f"{name}: {metric.format(value)}", _ADDED[name]) for name, value in cost.added
        ),
        note=" + ".join(said) if len(said) > 1 else "",
    )


def _value(record: Record) -> float:
    return record.result.value if record.result else 0.0
