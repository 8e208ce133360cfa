"""What the fields cost that the rules of Open vSwitch match: packet rates by match fields and number of flows."""

from collections.abc import Sequence

from ctbench.base.units import format_count, format_share
from ctbench.dut import registry
from ctbench.report import enough, figures, labels
from ctbench.report.charts.model import HeatCell, HeatTable, LegendItem
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.traffic.profiles import PacketProfile

#: Tag of a test that is in the table, and the ruleset that the others are compared with.
TAG, BASELINE = "match-fields", "match-none"
#: Shades, the darkest for the highest rate of a table.
_SHADES = 5
_PPS = METRICS["pps"]


def match_charts(records: Sequence[Record]) -> list[HeatTable]:
    """A table for each datapath, number of CPUs, and setting of the caches; those of a datapath and its CPUs have the
    same shades. What was not measured for certain is not there."""
    groups: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in records:
        made = record.topology
        if TAG in record.tags and _rate(record) and record.verdict != "not measured":
            groups.setdefault((made.datapath, made.label), {}).setdefault(_caches(record), []).append(record)
    return [
        _table(caches, group, [_rate(record) for some in settings.values() for record in some])
        for settings in groups.values()
        for caches, group in settings.items()
    ]


def _table(caches: str, group: Sequence[Record], rates: Sequence[float]) -> HeatTable:
    """`rates`: all that have the same shades."""
    rulesets = list(dict.fromkeys(record.topology.ruleset for record in group))
    flows = sorted({_flows(record) for record in group})[: enough.BARS]
    by_place = {(record.topology.ruleset, _flows(record)): record for record in group}
    least, most = min(rates), max(rates)
    rows = tuple(
        (
            _label(ruleset),
            tuple(_cell(by_place.get((ruleset, count)), least, most) for count in flows),
        )
        for ruleset in rulesets[: enough.BARS]
    )
    made = group[0].topology
    return HeatTable(
        title=f"{registry.title(made.datapath)}: {caches}",
        caption=f"Packets per second, here from {format_count(least)} to {format_count(most)}{_below(group)}. A dash: "
        "not measured.",
        legend=tuple(
            LegendItem("bar", f"heat-{shade}", text)
            for shade, text in ((0, "lowest rate"), (_SHADES - 1, "highest rate"))
        ),
        columns=tuple(labels.plural(count, "flow") for count in flows),
        rows=rows,
    )


def _below(group: Sequence[Record]) -> str:
    """What the lines below a rate are, where any cell has them."""
    parts = [
        "the share of what it is compared with, side by side" * any(_share(record) for record in group),
        "what was published in 2017, of other hardware" * any(_published(record) for record in group),
    ]
    said = ", and ".join(filter(None, parts))
    return f"; below each {said}" if said else ""


def _share(record: Record) -> str:
    promised = record.threshold("ratio")
    return format_share(promised.measured) if promised and promised.measured is not None else ""


def _published(record: Record) -> str:
    known = record.floor.reference.figures.get(_PPS.name) if record.floor.reference else None
    return f"2017: {format_count(known)}" if known else ""


def _cell(record: Record | None, least: float, most: float) -> HeatCell | None:
    if record is None:
        return None
    rate, promised = _rate(record), record.threshold("ratio")
    share = (rate - least) / (most - least) if most > least else 1.0
    return HeatCell(
        text=f"{'≥ ' if record.is_lower_bound else ''}{format_count(rate)}",
        notes=tuple(filter(None, (_share(record), _published(record)))),
        hint=f"{enough.name(record.test)}: {promised.relation if promised else 'compared with nothing'}",
        style=f"heat-{min(_SHADES - 1, int(share * _SHADES))}",
    )


def _label(ruleset: str) -> str:
    title = registry.ruleset_title(ruleset)
    what = title.partition(", ")[2] or title
    return f"{what[:1].upper()}{what[1:]}"


def _caches(record: Record) -> str:
    made = record.topology
    emc = {None: "exact match cache as it comes", 0: "no exact match cache"}.get(
        made.emc_insert_inv_prob, f"one in {made.emc_insert_inv_prob} packets into the exact match cache"
    )
    return emc + (", signature match cache" if made.smc else "")


def _flows(record: Record) -> int:
    return record.profile.flows if isinstance(record.profile, PacketProfile) else 0


def _rate(record: Record) -> float:
    return figures.value_of(record, _PPS.name) or 0.0
