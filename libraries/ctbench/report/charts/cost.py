"""What connection tracking and NAT cost: the rate that is left of plain forwarding."""

from collections.abc import Sequence

from ctbench.base.units import format_share, parse_share
from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.report import enough, labels
from ctbench.report.charts.model import LegendItem, Share, ShareChart
from ctbench.results.record import Record

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
        others = [record for record in group if not _is_yardstick(record.topology)]
        if whole and others:
            charts.append(_chart(group[0], whole, others))
    return charts


def _is_yardstick(topology: Topology) -> bool:
    return topology.ruleset == _YARDSTICK and topology.ports == "plain"


def _yardstick(group: Sequence[Record]) -> float | None:
    """The rate of plain forwarding: of its own test, else what the others were compared with. None where it is not
    known, or only known to be at least something: then no share is."""
    for record in group:
        if _is_yardstick(record.topology):
            return None if labels.at_least(record) else _rate(record)
    key = group[0].topology.model_copy(update={"ruleset": _YARDSTICK, "ports": "plain"}).key
    known = [record.baseline for record in group if record.baseline and record.baseline.key == key]
    return next((baseline.rate for baseline in known if baseline.rate and not baseline.doubt), None)


def _chart(one: Record, whole: float, others: Sequence[Record]) -> ShareChart:
    unit = one.profile.kind
    first = Share(registry.ruleset_title(_YARDSTICK), 1.0, labels.rate(whole, unit), "the yardstick", "yardstick")
    shares = [first]
    sure: list[Share] = []
    ordered = sorted(others, key=lambda record: -_rate(record))
    # The dearest matter most.
    for record in ordered[-enough.BARS :]:
        share = _rate(record) / whole
        floors = record.floors
        promised = floors.relative if (floors.relative_to or "").split("/")[1:2] == [_YARDSTICK] else None
        least = "at least " if labels.at_least(record) else ""
        shares.append(
            Share(
                label=registry.what_it_does(record.topology),
                share=share,
                text=f"{least}{labels.rate(_rate(record), unit)} · {format_share(share)}",
                hint=f"{enough.name(record.test)}: {least}{format_share(share)} of plain forwarding",
                style="measured unsure" if least else "measured",
                floor=parse_share(promised.removeprefix(">=").strip()) if promised else None,
            )
        )
        sure += [] if least else shares[-1:]
    caption = f"Plain forwarding does {labels.rate(whole, unit)}."
    if sure:
        dearest = sure[-1]
        caption = f"{caption[:-1]}; {dearest.label} leaves {format_share(dearest.share)} of that."
    if len(ordered) > enough.BARS:
        caption += f" Shown are the {enough.BARS} dearest of {labels.thousands(len(ordered))}."
    if max(share.share for share in shares) > _MORE_THAN_ALL:
        caption += " More than 100 %: the machine was probably slower during plain forwarding, so measure again."
    legend = _LEGEND if any(share.floor for share in shares) else _LEGEND[:1]
    return ShareChart(
        title=f"{registry.title(one.topology.datapath)}, "
        f"{labels.cpus_and_queues(one.topology.cpus, one.topology.rx_queues)}: {one.profile.name}",
        caption=caption,
        legend=legend,
        shares=tuple(shares),
    )


def _rate(record: Record) -> float:
    return record.measured.rate if record.measured else 0.0
