"""A pair: the ratio of each round, with the interval that they come to and the promise."""

from ctbench.base.units import format_interval, format_share
from ctbench.report import figures, labels
from ctbench.report.charts.model import Axis, Guide, LegendItem, Point, Series, XyChart
from ctbench.results.evidence import PairRecord
from ctbench.results.metrics import RATE_OF
from ctbench.results.promised import ThresholdRecord
from ctbench.results.record import Record


def pair_charts(record: Record) -> list[XyChart]:
    """A strip for each pair of a record; none for one without any round that counts."""
    return [_strip(record, pair) for pair in record.evidence.pairs if pair.ratios]


def _strip(record: Record, pair: PairRecord) -> XyChart:
    promise, found = _promise(record, pair), pair.result
    what = "round" if pair.how == "side by side" else "block"
    points = tuple(
        Point(float(number), ratio, f"{what} {number}: {format_share(ratio)}")
        for number, ratio in enumerate(pair.ratios, 1)
    )
    guides = [Guide("y", promise.limit, f"promised {format_share(promise.limit)}", "floor")] if promise else []
    if found:
        guides += [Guide("y", each, "", "capacity") for each in (found.low, found.high)]
    return XyChart(
        title=f"Pair: the ratio of each {what}",
        caption=_caption(record, pair, what),
        x=Axis(f"{what}, in their order"),
        y=Axis("ratio", words="share"),
        legend=(
            LegendItem("dot", "trial-good", f"the ratio of a {what}"),
            LegendItem("line", "capacity", "the ends of the 99 % interval"),
            *([LegendItem("line", "floor", "the promise")] if promise else []),
        ),
        series=(Series(points, "trial-good", mark="dot"),),
        guides=tuple(guides),
    )


def _promise(record: Record, pair: PairRecord) -> ThresholdRecord | None:
    """The promise that a pair is about: that of another build where the topology is the same."""
    return record.threshold("ratio" if pair.other.profile or pair.other.key != pair.tested.key else "of_build")


def _caption(record: Record, pair: PairRecord, what: str) -> str:
    found, metric = pair.result, RATE_OF[record.profile.kind]
    dropped = f", {pair.dropped} dropped" if pair.dropped else ""
    said = f"{labels.plural(len(pair.ratios), what)}{dropped}, {pair.how}"
    if found:
        said += f": {format_share(found.value)} {format_interval(found.value, found.low, found.high)}"
    rates = [metric.format(side.rate) for side in (pair.tested, pair.other) if side.rate]
    of = " of ".join((figures.side(pair.tested), figures.side(pair.other)))
    loop = f" ({' and '.join(rates)} in a closed loop: no SLA figures)" if rates and pair.how == "side by side" else ""
    return f"{said}, {of}{loop}."
