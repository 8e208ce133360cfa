"""What connection tracking and NAT cost: the rate that is left of plain forwarding."""

from collections.abc import Sequence

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.report import enough, figures, labels
from ctbench.report.charts.model import LegendItem, Share, ShareChart
from ctbench.results.record import Record

#: The ruleset that the others are compared with.
_BASELINE = "forward"
_LEGEND = (
    LegendItem("bar", "measured", "rate, as a share of plain forwarding"),
    LegendItem("line", "floor", "least share that is promised"),
)
#: Nothing makes a DUT faster than plain forwarding; this much is within what two searches differ by.
_MORE_THAN_ALL = 1.1


def cost_charts(records: Sequence[Record]) -> list[ShareChart]:
    """A chart for each datapath, number of CPUs and queues, and profile where plain forwarding and something else
    were measured. What was not measured for certain, or only tried at its floor, says nothing about costs, and nothing
    but a rate is a share of another one."""
    groups: dict[tuple[str, str, str, int], list[Record]] = {}
    for record in records:
        sure = record.verdict != "not measured" and record.limited_by != "floor"
        if record.result and figures.is_rate(record) and sure:
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
    return topology.ruleset == _BASELINE and topology.ports == "plain"


def _yardstick(group: Sequence[Record]) -> float | None:
    """The rate of plain forwarding: of its own test, else what the others were compared with. None where it is not
    known, or only known to be at least something: then no share is."""
    for record in group:
        if _is_yardstick(record.topology):
            return None if record.is_lower_bound else _rate(record)
    known = [each for record in group if (each := record.evidence.baseline) and each.key == _yardstick_key(record)]
    return next((baseline.rate for baseline in known if baseline.rate and not baseline.doubt), None)


def _yardstick_key(record: Record) -> str:
    return record.topology.model_copy(update={"ruleset": _BASELINE, "ports": "plain"}).key


def _chart(one: Record, whole: float, others: Sequence[Record]) -> ShareChart:
    metric = figures.metric_of(one)
    first = Share(registry.ruleset_title(_BASELINE), 1.0, metric.format(whole), "the baseline", "baseline")
    shares = [first]
    sure: list[Share] = []
    ordered = sorted(others, key=lambda record: -_rate(record))
    # The dearest matter most.
    for record in ordered[-enough.BARS :]:
        share = _rate(record) / whole
        promised = record.threshold("ratio")
        least = f"{metric.bound} " if record.is_lower_bound else ""
        shares.append(
            Share(
                label=registry.what_it_does(record.topology),
                share=share,
                text=f"{figures.found(record, metric, _rate(record))} · {format_share(share)}",
                hint=f"{enough.name(record.test)}: {least}{format_share(share)} of plain forwarding",
                style="measured unsure" if least else "measured",
                floor=promised.limit if promised and promised.to == _yardstick_key(record) else None,
            )
        )
        sure += [] if least else shares[-1:]
    caption = f"Plain forwarding does {metric.format(whole)}."
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
    return record.result.value if record.result else 0.0
