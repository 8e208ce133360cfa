"""The comparison of a candidate with its base over all rows of a run, in sentences and charts: rows that keep their
share, rows that lost, and the loss that such a run can see."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ctbench.base.units import format_share, plural
from ctbench.dut import registry
from ctbench.report import labels
from ctbench.report.charts.chart import RUN_MARKS, Bar, Bars, LegendItem
from ctbench.results import gate
from ctbench.results.evidence import PairRecord
from ctbench.results.floor import Threshold
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Word, word_of

_WORDS: dict[Word, str] = {"met": "met", "missed": "missed", "not measured": "too close to call"}


class _Compared(NamedTuple):
    """A row in which candidate and base were measured in several starts."""

    record: Record
    share: Threshold
    #: Candidate to base.
    found: Estimate
    pair: PairRecord

    @property
    def word(self) -> Word:
        """The verdict on its share. The row may be missed by another promise, or have broken off."""
        return word_of(self.share, self.record.verdict)


def _compared(record: Record) -> _Compared | None:
    """Return the comparison of a record; None where its share was not measured."""
    share, pair = record.threshold("of_build"), gate.starts_of(record)
    return _Compared(record, share, share.found, pair) if share and share.found and pair else None


def _rows(records: Sequence[Record]) -> list[_Compared]:
    """Return the comparisons of the newest builds."""
    return [row for row in map(_compared, gate.of_newest(records)) if row]


#: What else became of rows, in the order in which it is said.
_OTHERS = (
    "missed and accepted",
    "too close to call",
    "limited by the generator",
    "no slower than the traffic generator can see",
    "not measured",
    "missed: it crashed",
    "missed by another promise",
    "not measured for another promise",
    "missed by other builds",
    "of other builds",
)

#: Those of a row whose share is met, or which has none, by its outcome.
_BY_ANOTHER = {
    "missed": "missed by another promise",
    "missed, accepted": "missed and accepted",
    "not measured": "not measured for another promise",
}
#: Those of a row that is not measured, by the code of its verdict.
_DOUBTS: dict[str, str] = {
    Code.FAULT: "not measured",
    Code.NO_SLOWER_SEEN: "no slower than the traffic generator can see",
    Code.GENERATOR: "limited by the generator",
}


def sentence(records: Sequence[Record]) -> str:
    """Return the result: `Open vSwitch 3.3.0 against 3.1.0: 20 of 21 topologies keep at least 97 %; SNAT with
    short-lived connections lost 6.2 % ± 1.4 %. Over all rows: -0.4 % ± 0.5 %.` Empty where no candidate was
    measured."""
    rows = _rows(records)
    if not rows:
        return ""
    newest = gate.of_newest(records)
    others = [record for record in records if not any(record is each for each in newest)]
    lost = sum(record.outcome == "missed" for record in others)
    fates = _fates(newest) + Counter({"missed by other builds": lost, "of other builds": len(others) - lost})
    limits, met = dict.fromkeys(f"{row.share.limit * 100:g} %" for row in rows), fates["met"]
    whole = sum(bool(record.threshold("of_build")) for record in newest)
    which = f"{met} of {plural(whole, 'topology', 'topologies')}" if whole > 1 else "the topology"
    said = [f"{which} {'keeps' if met == 1 else 'keep'} at least {' or '.join(limits)}"] if met or whole > 1 else []
    missed = [row for row in rows if row.word == "missed"]
    if missed:
        worst = min(missed, key=lambda row: (row.record.accepted is not None, row.found.value))
        fates["missed and accepted" if worst.record.accepted else "missed"] -= 1
        said += [_lost(worst, rows), _count(fates["missed"], "missed", "more ")]
    more = "more " if missed else ""
    left = [row for row in rows if any(row.record is each for each in gate.left_open(records))]
    fates["too close to call"] -= len(left)
    said += [f"{_name(row, rows)} stays open (at least {format_share(row.found.ends[0])})" for row in left]
    said += [_count(fates[fate], fate, more if fate == "missed and accepted" else "") for fate in _OTHERS]
    found = [row for row in rows if gate.tells(row.record)]
    where = "Over all rows" if len(found) > 1 else "Difference"
    if 0 < sum(bool(row.found.value) for row in found) < len(found):
        where += " through which something came"  # a mean of ratios needs all above 0
    mean = gate.mean_of([row.share for row in found])
    overall = f" {where}: {mean.difference}." if found and found != missed[:1] else ""
    doubt = f" Not measured as a whole: {why}." if (why := gate.doubt(records)) else ""
    return f"{_versus(rows[0].pair)}: {'; '.join(filter(None, said))}.{overall}{doubt}"


def _fates(records: Sequence[Record]) -> Counter[str]:
    """Count what became of the shares that rows promise, and of rows by another promise."""
    fates = Counter[str]()
    for record in records:
        share = record.threshold("of_build")
        of_share = _fate(record, share) if share else ""
        fates[of_share] += 1
        if of_share in ("", "met") or (record.verdict == "missed" and not of_share.startswith("missed")):
            fates[_BY_ANOTHER.get(record.outcome, "")] += 1
    return fates


def _fate(record: Record, share: Threshold) -> str:
    """Return the outcome of the share that a row promises."""
    if share.measured is None and share.reason and not share.undecided:
        return "missed: it crashed"
    if (row := _compared(record)) is None:
        return "not measured"
    if row.word != "not measured":
        return "missed and accepted" if row.word == "missed" and record.accepted else row.word
    return _DOUBTS.get(record.verdict_code, "too close to call")


def could_see(records: Sequence[Record]) -> str:
    """Return the loss that nine of ten such runs would find; empty where no candidate was measured."""
    rows = _rows(records)
    seen = [row.pair.sees for row in rows if row.pair.sees]
    if not seen:
        return ""
    cpus = sorted({row.record.topology.cpus for row in rows})
    which = f"{plural(cpus[0], 'CPU')} only" if len(cpus) == 1 else f"{cpus[0]} to {cpus[-1]} CPUs"
    sizes = format_share(seen[0]) if len(seen) == 1 else f"{format_share(median(seen))} in the median row"
    worst = f", {format_share(max(seen))} in the worst" if len(seen) > 1 else ""
    shared = max(row.pair.gated_rows or 0 for row in rows)
    # One by its starts, one by the loads in turn and what lasts (`ctbench.measure.loads_in_turn`).
    gated = plural(shared, "row")
    red = f" A like build is red by what is compared with its base in at most 1 of 100 such runs ({gated})."
    return f"This run could see a loss of {sizes}{worst} (in nine of ten such runs); {which}.{red if shared else ''}"


def _count(number: int, word: str, more: str = "") -> str:
    return f"{number} {more}{'is' if number == 1 else 'are'} {word}" if number > 0 else ""


def _versus(pair: PairRecord) -> str:
    ours, theirs = pair.tested.product or "The candidate", pair.other.product or "the base"
    if ours != theirs:
        # Packages follow in brackets, with versions of their own.
        name = ours.partition(" (")[0].rpartition(" ")[0]
        return f"{ours} against {theirs.removeprefix(f'{name} ')}"
    base = "the packaged build" if pair.other.build == "distribution" else f"the one in {pair.other.build}"
    return f"{ours} against {base}"


def _name(row: _Compared, rows: Sequence[_Compared]) -> str:
    """Return the name of a row: `SNAT with short-lived connections`; with CPUs and queues where the rows differ in
    them."""
    made, profile = row.record.topology, row.record.profile
    offered = f"{profile.name} connections" if profile.kind == "connections" else profile.name
    cpus = labels.cpus_and_queues(made.cpus, made.rx_queues)
    alike = len({each.record.topology.label for each in rows}) == 1
    return labels.name(f"{registry.what_it_does(made)} with {offered}{'' if alike else f' ({cpus})'}")


def _lost(row: _Compared, rows: Sequence[_Compared]) -> str:
    lost = row.found.lost.as_share() if row.found.value else "everything"
    known = row.record.accepted
    return f"{_name(row, rows)} lost {lost}{f', accepted until {known.until}' if known else ''}"


# The charts: differences with their intervals, around no difference.


def charts(newest: Sequence[Record], every: Sequence[Record]) -> list[Bars]:
    """Return a chart with the difference of each of the newest records, the worst first. Where `every` record is of
    several gates, add a chart with the mean of each gate, the oldest first."""
    rows = sorted(_rows(newest), key=lambda row: row.found.value)
    if not rows:
        return []
    title, said = f"{_versus(rows[0].pair)}: each row", "The worst first. Left of the middle the candidate is slower."
    bars = [_bar(_name(row, rows), row.found.difference, row.found, row.word, row.share.limit - 1) for row in rows]
    made = [_around_zero(title, said, bars[: labels.MOST_BARS])]
    gates: dict[str, list[Record]] = {}
    for record in every:
        gates.setdefault(record.run_id, []).append(record)
    found = [_bar_of_gate(some) for records in gates.values() if (some := _rows([*filter(gate.tells, records)]))]
    if len(found) > 1:
        said = "The mean of all rows of each gate, the oldest first, each against its own base."
        made.append(_around_zero("Candidates, one gate after another", said, found[-labels.MOST_BARS :]))
    return made


def _bar_of_gate(rows: Sequence[_Compared]) -> Bar:
    mean, words = gate.mean_of([row.share for row in rows]), [row.word for row in rows]
    label = labels.name(f"{rows[0].record.started:%Y-%m-%d}, {_versus(rows[0].pair)}")
    text = f"{mean.difference}, {words.count('met')} of {len(words)} met"
    return _bar(label, text, mean, max(words, key=("met", "not measured", "missed").index))


def _bar(label: str, text: str, found: Estimate, verdict: Word, floor: float | None = None) -> Bar:
    """Return the bar of a ratio: its difference from one."""
    low, high = found.ends
    return Bar(label, text, found.value - 1, floor=floor, ideal=0.0, low=low - 1, high=high - 1, verdict=verdict)


def _around_zero(title: str, caption: str, rows: Sequence[Bar]) -> Bars:
    words, floors = {row.verdict for row in rows}, [row.floor for row in rows if row.floor is not None]
    legend = [LegendItem(*RUN_MARKS[word], said) for word, said in _WORDS.items() if word in words]
    legend += [LegendItem("line", "span", "its bounds, 95 % each"), LegendItem("line", "ideal", "no difference")]
    legend += [LegendItem("line", "floor", f"{format_share(min(floors))}: the SLA")] if floors else []
    return Bars(title, caption, tuple(legend), tuple(rows), around_zero=True)
