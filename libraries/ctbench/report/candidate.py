"""A candidate against its base, over all rows of a run: which keep their share, which lost how much, and what such a
run could see; in sentences and as charts."""

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from ctbench.base.units import format_share
from ctbench.dut import registry
from ctbench.measure.procedures.pair import MOST_WAITED
from ctbench.report import figures, labels
from ctbench.report.charts.chart import RUN_MARKS, LegendItem, Span, Spans
from ctbench.report.labels import LIMITS
from ctbench.results.evidence import PairRecord
from ctbench.results.record import Record, Word
from ctbench.results.record_model import ThresholdRecord

_WORDS: dict[Word, str] = {"met": "met", "missed": "missed", "not measured": "too close to call"}


class _Row(NamedTuple):
    """A row in which both were measured in several starts."""

    record: Record
    share: ThresholdRecord
    pair: PairRecord

    @property
    def word(self) -> Word:
        """What became of its share; the row may be missed by another promise, or have broken off."""
        return "met" if self.share.met else "not measured" if self.share.undecided else self.record.verdict

    @property
    def ratio(self) -> float:
        """Candidate to base."""
        return self.share.measured or 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the ratio."""
        low, high = self.share.low, self.share.high
        return self.ratio if low is None else low, self.ratio if high is None else high

    @property
    def reach(self) -> float:
        """Half of the interval."""
        return (self.ends[1] - self.ends[0]) / 2


def _rows(records: Sequence[Record]) -> list[_Row]:
    shares = ((row, share) for row in records if (share := row.threshold("of_build")) and share.measured is not None)
    return [_Row(row, share, pair) for row, share in shares if (pair := figures.starts_of(row))]


def sentence(records: Sequence[Record]) -> str:
    """`Open vSwitch 3.3.0 against 3.1.0: 20 of 21 topologies keep at least 97 %; SNAT with short-lived connections lost
    6.2 % (± 1.4). Over all rows: -0.4 % (± 0.5).` Empty where no candidate was measured."""
    rows = _rows(records)
    if not rows:
        return ""
    missed = [row for row in rows if row.word == "missed"]
    missed.sort(key=lambda row: (row.record.accepted is not None, row.ratio))
    met = sum(row.word == "met" for row in rows)
    open_rows = [row for row in rows if row.word == "not measured" and row.record.limited_by != "fault"]
    alike = sum(row.record.outcome == "no slower seen" for row in open_rows)
    open_rows = [row for row in open_rows if row.record.outcome != "no slower seen"]
    held = [max(row.pair.tested.held, row.pair.other.held) > MOST_WAITED for row in open_rows]
    shares = [share for record in records if (share := record.threshold("of_build"))]
    crashed = sum(share.measured is None and bool(share.reason) and not share.undecided for share in shares)
    others = sum(record.verdict == "missed" for record in records) - len(missed) - crashed
    limits = " or ".join(dict.fromkeys(f"{row.share.limit * 100:g} %" for row in rows))
    whole = len(shares)
    which = f"{met} of {labels.plural(whole, 'topology', 'topologies')}" if whole > 1 else "the topology"
    said = [f"{which} {'keeps' if met == 1 else 'keep'} at least {limits}"] if met or whole > 1 else []
    said += [_lost(row, rows) for row in missed[:1]]
    spared = sum(row.record.accepted is not None for row in missed[1:])
    said += [_count(len(missed) - 1 - spared, "more", "missed"), _count(spared, "more", "missed and accepted")]
    said += [_count(held.count(False), "", "too close to call"), _count(sum(held), "", "limited by the generator")]
    said += [_count(alike, "", "no slower than the traffic generator can see")]
    rest = whole - met - len(missed) - len(held) - alike - crashed
    said += [_count(rest, "", "not measured"), _count(crashed, "", "missed: it crashed")]
    said += [_count(others, "", "missed by another promise")]
    where = "Over all rows" if len(rows) > 1 else "Difference"
    return f"{_versus(rows[0].pair)}: {'; '.join(filter(None, said))}. {where}: {_overall(rows)}."


def could_see(records: Sequence[Record]) -> str:
    """What such a run would have found; empty where no candidate was measured."""
    rows = _rows(records)
    seen = [row.pair.sees for row in rows if row.pair.sees]
    if not seen:
        return ""
    cpus = sorted({row.record.topology.cpus for row in rows})
    which = f"{labels.plural(cpus[0], 'CPU')} only" if len(cpus) == 1 else f"{cpus[0]} to {cpus[-1]} CPUs"
    sizes = format_share(seen[0]) if len(seen) == 1 else f"{format_share(median(seen))} in the median row"
    worst = f", {format_share(max(seen))} in the worst" if len(seen) > 1 else ""
    return f"This run could see a loss of {sizes}{worst} (in nine of ten such runs); {which}."


def _count(number: int, what: str, word: str) -> str:
    return " ".join(filter(None, (str(number), what, "is" if number == 1 else "are", word))) if number > 0 else ""


def _versus(pair: PairRecord) -> str:
    ours, theirs = pair.tested.product or "The candidate", pair.other.product or "the base"
    if ours != theirs:
        return f"{ours} against {theirs.removeprefix(ours.rpartition(' ')[0] + ' ')}"
    base = "the packaged build" if pair.other.build == "distribution" else f"the one in {pair.other.build}"
    return f"{ours} against {base}"


def _name(row: _Row, rows: Sequence[_Row]) -> str:
    """`SNAT with short-lived connections`; with CPUs and queues where those of the rows differ."""
    made, profile = row.record.topology, row.record.profile
    offered = f"{profile.name} connections" if profile.kind == "connections" else profile.name
    cpus = labels.cpus_and_queues(made.cpus, made.rx_queues)
    alike = len({each.record.topology.label for each in rows}) == 1
    return labels.name(f"{registry.what_it_does(made)} with {offered}{'' if alike else f' ({cpus})'}")


def _lost(row: _Row, rows: Sequence[_Row]) -> str:
    lost = f"{(1 - row.ratio) * 100:.1f} % (± {row.reach * 100:.1f})" if row.ratio else "everything"
    known = row.record.accepted
    return f"{_name(row, rows)} lost {lost}{f', accepted until {known.until}' if known else ''}"


def _mean(rows: Sequence[_Row]) -> tuple[float, float]:
    """The mean difference of the rows through which something came, of their logarithms, and how far it is sure: each
    has an interval of its own, and they are independent."""
    some = [row for row in rows if row.ratio]
    if not some:
        return -1.0, 0.0
    reach = math.sqrt(sum(row.reach**2 for row in some)) / len(some)
    return math.expm1(fmean(math.log(row.ratio) for row in some)), reach


def _overall(rows: Sequence[_Row]) -> str:
    mean, reach = _mean(rows)
    return f"{mean * 100:+.1f} % (± {reach * 100:.1f})"


# The charts: differences with their intervals, around no difference.


def charts(newest: Sequence[Record], every: Sequence[Record]) -> list[Spans]:
    """Of the newest records the difference of each row, the worst first; of all gates that are `every` record's, one
    after another, their means."""
    rows = sorted(_rows(newest), key=lambda row: row.ratio)
    if not rows:
        return []
    spans = []
    for row in rows[: LIMITS.bars]:
        low, high = row.ends
        text = figures.difference(row.share)
        spans.append(Span(_name(row, rows), text, row.ratio - 1, low - 1, high - 1, row.word))
    floor = min(row.share.limit - 1 for row in rows)
    said = "The worst first. Left of the middle the candidate is slower."
    charts = [_spans(f"{_versus(rows[0].pair)}: each row", said, spans, floor)]
    gates: dict[str, list[Record]] = {}
    for record in every:
        gates.setdefault(record.run_id, []).append(record)
    found = [_gate(some) for records in gates.values() if (some := _rows(records))]
    if len(found) > 1:
        charts.append(_spans("Candidates, one gate after another", "The mean of all rows of each gate, the oldest "
                             "first, each against its own base.", found[-LIMITS.bars :], None))  # fmt: skip
    return charts


def _gate(rows: Sequence[_Row]) -> Span:
    (mean, reach), words = _mean(rows), [row.word for row in rows]
    worst = max(words, key=("met", "not measured", "missed").index)
    label = labels.name(f"{rows[0].record.started:%Y-%m-%d}, {_versus(rows[0].pair)}")
    text = f"{_overall(rows)}, {words.count('met')} of {len(words)} met"
    return Span(label, text, mean, mean - reach, mean + reach, worst)


def _spans(title: str, caption: str, spans: Sequence[Span], floor: float | None) -> Spans:
    words = {each.verdict for each in spans}
    legend = [LegendItem(*RUN_MARKS[word], said) for word, said in _WORDS.items() if word in words]
    legend += [LegendItem("line", "span", "its bounds, 95 % each"), LegendItem("line", "ideal", "no difference")]
    legend += [LegendItem("line", "floor", f"{format_share(floor)}: the SLA")] if floor is not None else []
    return Spans(title, caption, tuple(legend), tuple(spans), floor)
