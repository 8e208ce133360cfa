"""The verdict on all rows of a gate together: the mean of their ratios, the rows that may stay open in a green gate,
and why a gate without a missed row is not green."""

import math
from collections.abc import Sequence
from statistics import fmean

from ctbench.results.evidence import PairRecord
from ctbench.results.floor import Threshold
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code

#: A gate is green where the candidate keeps so much of its base (ratio) in the mean of all rows, by its lower bound. So
#: many rows that are too close to call may stay open then, if it keeps so much in each of them. How often a gate of
#: like rows is green by that, and one with a row that is 5 % slower: docs/evidence/gate-status.csv.
LEAST_IN_ALL, MOST_OPEN, LEAST_IN_ONE = 0.985, 2, 0.955
#: Rows that tell, from which on their mean has to keep that. Of two rows the mean is hardly known better than each: it
#: fell below in one of ten gates of like builds that were simulated, and in one of a hundred with three.
ROWS_OF_MEAN = 3
#: Bounds of a row err in 5 % of all its looks together, of which there are three or more: they lie 2.13 standard errors
#: (normal quantile of 1 - 5 % / 3) from its value, or farther. Bounds of the mean, which is looked at once, lie 1.645.
OF_REACH = 0.77


def starts_of(record: Record) -> PairRecord | None:
    """Return the pair of a candidate and its base, measured in starts; None where there is none."""
    return next((pair for pair in record.evidence.pairs if pair.starts), None)


def tells(record: Record) -> bool:
    """Return True where a row shows how much of its base a candidate keeps. Where the generator limited both, they look
    alike whatever their speed."""
    return record.verdict_code != Code.NO_SLOWER_SEEN


def of_newest(records: Sequence[Record]) -> list[Record]:
    """Return the rows of the newest candidate and its base: those of the run that compared them last, and those of
    other runs with the same builds. Without a candidate return all rows."""
    compared = [record for record in records if record.threshold("of_build")]
    last = max(compared, key=lambda record: record.started, default=None)
    return [record for record in records if last is None or record.run_id == last.run_id or _are_alike(record, last)]


def _are_alike(one: Record, another: Record) -> bool:
    """Return True where two rows are of the same builds, as far as both know them: one that compared nothing knows no
    base."""
    same_host = one.environment.testbed.name == another.environment.testbed.name
    both = zip(_builds(one, whole=same_host), _builds(another, whole=same_host), strict=False)
    return all(ours == theirs for ours, theirs in both)


def _builds(record: Record, *, whole: bool) -> list[tuple[object, ...]]:
    """Return the product of the candidate, and of its base where that was compared; `whole`: with the program, which
    differs on another host, as the identity of its libraries is in it."""
    dut, bases = record.environment.dut, [pair.other for pair in record.evidence.pairs if pair.starts]
    found: list[tuple[object, ...]] = [(dut.product, dut.program), *((base.product, base.program) for base in bases)]
    return found if whole else [each[:1] for each in found]


def mean_of(shares: Sequence[Threshold]) -> Estimate:
    """Return the geometric mean of the ratios of all rows through which something came. Each of its bounds errs in at
    most 5 % of gates: starts of one row say nothing of another row's, so errors add up by squares. The scatter from row
    to row of builds of one source is not an error of this mean, which is of these rows."""
    some = [found for share in shares if (found := share.found) and found.value]
    if len(some) < 2:
        return some[0] if some else Estimate(0.0, "ratio")
    mean = math.exp(fmean(math.log(each.value) for each in some))
    reach = OF_REACH * math.sqrt(sum(each.reach**2 for each in some)) / len(some)
    return Estimate(mean, "ratio", mean - reach, mean + reach)


def _asked(records: Sequence[Record]) -> list[tuple[Record, Threshold]]:
    """Return the rows whose mean has to keep its share, with their ratios. Rows of accepted misses do not count."""
    told = filter(tells, of_newest(records))
    known = [(record, share) for record in told if (share := record.threshold("of_build"))]
    return [(record, share) for record, share in known if not record.accepted]


def left_open(records: Sequence[Record]) -> list[Record]:
    """Return the rows that stay open and do not count; none where they are too many, or the mean's lower bound is too
    low."""
    known = _asked(records)
    close = [
        record
        for record, share in known
        if record.outcome == "not measured"
        and record.verdict_code == Code.TOO_CLOSE
        and share.found
        and share.found.ends[0] >= LEAST_IN_ONE
        and not any(each.undecided for each in record.thresholds if each is not share)
    ]
    least = mean_of([share for _, share in known]).ends[0]
    return close if len(close) <= MOST_OPEN and least >= LEAST_IN_ALL else []


def doubt(records: Sequence[Record]) -> str:
    """Return why a gate is not measured as a whole; empty where it is measured, or where a row is missed."""
    records = of_newest(records)
    compared = [record for record in records if record.threshold("of_build")]
    telling = [*filter(tells, compared)]
    if any(record.outcome == "missed" for record in records):
        return ""
    if 2 * len(telling) < len(compared):
        told = f"{len(telling)} of {len(compared)} rows"
        return f"what the candidate keeps is told by {told}, as the traffic generator was the limit of the others"
    found = [share for _, share in _asked(records) if share.found]
    least = mean_of(found).ends[0]
    if len(found) < ROWS_OF_MEAN or least >= LEAST_IN_ALL:
        return ""
    promised = f"{100 * LEAST_IN_ALL:g} % promised"
    return f"the lower bound of the mean of all rows is {100 * least:.2f} % of the base, at least {promised}"
