"""A candidate against its base, over all rows of a run: which keep their share, which lost how much, and what such a
run could see."""

import math
from collections.abc import Sequence
from statistics import fmean, median

from ctbench.base.units import format_share
from ctbench.report import figures, labels
from ctbench.results.evidence import PairRecord
from ctbench.results.record import Record
from ctbench.results.record_model import ThresholdRecord

#: Rows that are named at most.
_NAMED = 3


def _rows(records: Sequence[Record]) -> list[tuple[Record, ThresholdRecord, PairRecord]]:
    """Those in which both were measured in several starts."""
    found = []
    for record in records:
        share, pair = record.threshold("of_build"), figures.starts_of(record)
        if share and share.measured and pair:
            found.append((record, share, pair))
    return found


def sentence(records: Sequence[Record]) -> str:
    """`3.3.0 against 3.1.0: 20 of 21 topologies keep at least 97 %; SNAT, short-lived lost 6.2 % (± 1.4). Over all
    rows: -0.4 % (± 0.5).` Empty where no candidate was measured."""
    rows = _rows(records)
    if not rows:
        return ""
    shares = [share for _, share, _ in rows]
    missed = [each for each in rows if not each[1].met and not each[1].undecided]
    missed.sort(key=lambda each: each[1].measured or 0.0)
    met, unknown = sum(each.met for each in shares), sum(each.undecided for each in shares)
    limits = " or ".join(dict.fromkeys(f"{share.limit * 100:g} %" for share in shares))
    said = [f"{met} of {labels.plural(len(rows), 'topology', 'topologies')} keep at least {limits}"]
    if len(rows) == 1:
        said = [f"the topology keeps at least {limits}"] if met else []
    said += [f"{_short(record)} lost {_lost(share)}" for record, share, _ in missed[:_NAMED]]
    said += [f"{len(missed) - _NAMED} more are missed"] if len(missed) > _NAMED else []
    said += [f"{unknown} too close to call"] if unknown else []
    return f"{_versus(rows[0][2])}: {'; '.join(said)}. Over all rows: {_overall(shares)}."


def could_see(records: Sequence[Record]) -> str:
    """What such a run would have found; empty where no candidate was measured."""
    rows = _rows(records)
    seen = [pair.sees for _, _, pair in rows if pair.sees]
    if not seen:
        return ""
    cpus = sorted({record.topology.cpus for record, _, _ in rows})
    which = f"{labels.plural(cpus[0], 'CPU')} only" if len(cpus) == 1 else f"{cpus[0]} to {cpus[-1]} CPUs"
    sizes = format_share(seen[0]) if len(seen) == 1 else f"{format_share(median(seen))} in the median row"
    worst = f", {format_share(max(seen))} in the worst" if len(seen) > 1 else ""
    return f"This run could see a loss of {sizes}{worst} (in nine of ten such runs); {which}."


def _versus(pair: PairRecord) -> str:
    ours, theirs = pair.tested.product or "The candidate", pair.other.product or "the base"
    if ours != theirs:
        return f"{ours} against {theirs}"
    base = "the packaged build" if pair.other.build == "distribution" else f"the one in {pair.other.build}"
    return f"{ours} against {base}"


def _short(record: Record) -> str:
    return labels.name(figures.subject(record).partition(", against")[0])


def _lost(share: ThresholdRecord) -> str:
    assert share.measured is not None
    return f"{(1 - share.measured) * 100:.1f} % (± {_reach(share) * 100:.1f})"


def _reach(share: ThresholdRecord) -> float:
    """Half of the interval."""
    return (share.high - share.low) / 2 if share.low is not None and share.high is not None else 0.0


def _overall(shares: Sequence[ThresholdRecord]) -> str:
    """The mean of the rows, of their logarithms; each has an interval of its own, and they are independent."""
    mean = math.expm1(fmean(math.log(max(each.measured or 0.0, 1e-9)) for each in shares))
    reach = math.sqrt(sum(_reach(each) ** 2 for each in shares)) / len(shares)
    return f"{mean * 100:+.1f} % (± {reach * 100:.1f})"
