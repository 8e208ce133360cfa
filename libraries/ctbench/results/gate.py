"""All rows of a gate together: their mean, and which of them may stay open although the gate is green."""

import math
from collections.abc import Sequence
from statistics import fmean

from ctbench.results.record import Record
from ctbench.results.record_model import Threshold
from ctbench.results.verdict import Code

#: So many rows that are too close to call may stay open, if the candidate keeps so much of its base (ratios) in each of
#: them, and in the mean of all rows. How often a gate of like rows is green by that, and one with a row that is 5 %
#: slower: docs/evidence/gate-status.csv.
MOST_OPEN, LEAST_IN_ONE, LEAST_IN_ALL = 2, 0.955, 0.985


def mean_of(shares: Sequence[Threshold]) -> tuple[float, float]:
    """The mean difference (ratio) of the rows through which something came, of their logarithms, and how far it is
    sure: each has an interval of its own, and they are independent."""
    some = [share for share in shares if share.measured]
    if not some:
        return -1.0, 0.0
    reach = math.sqrt(sum(((share.ends[1] - share.ends[0]) / 2) ** 2 for share in some)) / len(some)
    return math.expm1(fmean(math.log(share.measured) for share in some if share.measured)), reach


def left_open(records: Sequence[Record]) -> list[Record]:
    """The rows that stay open and do not count; none where they are too many, or too little is known."""
    known = [(record, share) for record in records if (share := record.threshold("of_build")) and share.measured]
    close = [
        record
        for record, share in known
        if record.outcome == "not measured"
        and record.verdict_code == Code.TOO_CLOSE
        and share.ends[0] >= LEAST_IN_ONE
        and not any(each.undecided for each in record.thresholds if each is not share)
    ]
    mean, reach = mean_of([share for _, share in known])
    return close if len(close) <= MOST_OPEN and 1 + mean - reach >= LEAST_IN_ALL else []
