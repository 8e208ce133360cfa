"""All rows of a gate together: their mean, and which of them may stay open although the gate is green."""

import math
from collections.abc import Sequence
from statistics import fmean

from ctbench.results.floor import Threshold
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code

#: So many rows that are too close to call may stay open, if the candidate keeps so much of its base (ratios) in each of
#: them, and in the mean of all rows. How often a gate of like rows is green by that, and one with a row that is 5 %
#: slower: docs/evidence/gate-status.csv.
MOST_OPEN, LEAST_IN_ONE, LEAST_IN_ALL = 2, 0.955, 0.985


def tells(record: Record) -> bool:
    """Whether a row tells how much of its base a candidate keeps: where the generator was the limit of both, they look
    alike whatever they are."""
    return record.verdict_code != Code.NO_SLOWER_SEEN


def mean_of(shares: Sequence[Threshold]) -> Estimate:
    """The mean ratio of the rows through which something came, of their logarithms: each has an interval of its own,
    and they are independent."""
    some = [found for share in shares if (found := share.found) and found.value]
    if not some:
        return Estimate(0.0, "ratio")
    mean = math.exp(fmean(math.log(each.value) for each in some))
    reach = math.sqrt(sum(each.reach**2 for each in some)) / len(some)
    return Estimate(mean, "ratio", mean - reach, mean + reach)


def left_open(records: Sequence[Record]) -> list[Record]:
    """The rows that stay open and do not count; none where they are too many, or too little is known."""
    known = [(record, share) for record in filter(tells, records) if (share := record.threshold("of_build"))]
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
