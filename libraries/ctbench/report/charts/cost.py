"""What connection tracking and NAT cost: the rate that is left of plain forwarding."""

from collections.abc import Sequence

from ctbench.report import enough, words
from ctbench.report.charts.model import LegendItem, Share, ShareChart
from ctbench.results.record import Record
from ctbench.sla.floors import topology_key
from ctbench.units import format_share, parse_share

#: The ruleset that the others are held against.
_YARDSTICK = "forward"
_LEGEND = (
    LegendItem("bar", "measured", "rate, as a share of plain forwarding"),
    LegendItem("line", "floor", "least share that is promised"),
)
#: Nothing makes a DUT faster than plain forwarding; this much is within what two searches differ by.
_MORE_THAN_ALL = 1.1


def cost_charts(records: Sequence[Record]) -> list[ShareChart]:
    """A chart for each datapath, number of CPUs and queues, and profile where plain forwarding and something else
    were measured. What was not measured for certain, or only tried at its floor, says nothing about costs."""
    groups: dict[tuple[str, str, str, int], list[Record]] = {}
    for record in records:
        if record.measured and record.verdict != "not measured" and record.limited_by != "floor":
            made = record.topology
            groups.setdefault((made.datapath, made.label, record.profile.name, made.mtu), []).append(record)
    charts = []
    for group in groups.values():
        whole = _yardstick(group)
        others = [record for record in group if record.topology.ruleset != _YARDSTICK]
        if whole and others:
            charts.append(_chart(group[0], whole, others))
    return charts


def _yardstick(group: Sequence[Record]) -> float | None:
    """The rate of plain forwarding: of its own test, else what the others were compared with. None where it is not
    known, or only known to be at least something: then no share is."""
    for record in group:
        if record.topology.ruleset == _YARDSTICK:
            return None if words.at_least(record) else _rate(record)
    key = topology_key(group[0].topology.model_copy(update={"ruleset": _YARDSTICK}))
    known = [record.baseline for record in group if record.baseline and record.baseline.key == key]
    return next((baseline.rate for baseline in known if baseline.rate and not baseline.doubt), None)


def _chart(one: Record, whole: float, others: Sequence[Record]) -> ShareChart:
    unit = one.profile.kind
    first = Share(words.ruleset(_YARDSTICK), 1.0, words.rate(whole, unit), "the yardstick", "yardstick")
    shares = [first]
    sure: list[Share] = []
    ordered = sorted(others, key=lambda record: -_rate(record))
    # The dearest matter most.
    for record in ordered[-enough.BARS :]:
        share = _rate(record) / whole
        floors = record.floors
        promised = floors.relative if (floors.relative_to or "").split("/")[1:2] == [_YARDSTICK] else None
        least = "at least " if words.at_least(record) else ""
        shares.append(
            Share(
                label=words.ruleset(record.topology.ruleset),
                share=share,
                text=f"{least}{words.rate(_rate(record), unit)} · {format_share(share)}",
                hint=f"{enough.name(record.test)}: {least}{format_share(share)} of plain forwarding",
                style="measured unsure" if least else "measured",
                floor=parse_share(promised.removeprefix(">=").strip()) if promised else None,
            )
        )
        sure += [] if least else shares[-1:]
    caption = f"Plain forwarding does {words.rate(whole, unit)}."
    if sure:
        dearest = sure[-1]
        caption = f"{caption[:-1]}; {dearest.label} leaves {format_share(dearest.share)} of that."
    if len(ordered) > enough.BARS:
        caption += f" Shown are the {enough.BARS} dearest of {words.thousands(len(ordered))}."
    if max(share.share for share in shares) > _MORE_THAN_ALL:
        caption += " More than 100 %: the machine was probably slower during plain forwarding, so measure again."
    legend = _LEGEND if any(share.floor for share in shares) else _LEGEND[:1]
    return ShareChart(
        title=f"{words.datapath(one.topology.datapath)}, "
        f"{words.cpus_and_queues(one.topology.pmd_cpus, one.topology.rx_queues)}: {one.profile.name}",
        caption=caption,
        legend=legend,
        shares=tuple(shares),
    )


def _rate(record: Record) -> float:
    return record.measured.rate if record.measured else 0.0
