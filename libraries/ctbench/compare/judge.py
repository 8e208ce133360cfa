"""The judgement of finished runs: did the candidate regress against the base, test by test, and how sure is that?

They were made one after another, so what drifts falls on one of them: see `ctbench.compare.paired` for the better way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.comparability import notes
from ctbench.compare.limits import ALPHA, LEAST_OF_RUNS, WEAKER
from ctbench.compare.side import Runs, compared_metric, samples, without
from ctbench.compare.verdicts import whole
from ctbench.results.comparison import ComparedTest, Comparison, Judgement, Samples
from ctbench.results.metrics import RATE_OF, Metric
from ctbench.results.record import Record
from ctbench.results.statistics import holm, least_p, needed_samples, p_smaller
from ctbench.results.store import Stored


@dataclass(frozen=True)
class _Pair:
    """One test on both sides."""

    base: Sequence[Stored]
    candidate: Sequence[Stored]
    base_samples: Samples | None
    candidate_samples: Samples | None

    @property
    def sides(self) -> tuple[Samples, Samples] | None:
        """The samples of both sides where they can be compared: not where each is only a bound."""
        base, candidate = self.base_samples, self.candidate_samples
        if base is None or candidate is None or (base.censored and candidate.censored):
            return None
        return base, candidate

    @property
    def any(self) -> Record:
        """A record to take the names from."""
        return [*self.base, *self.candidate][0].record

    @property
    def metric(self) -> Metric:
        """What is compared."""
        return compared_metric(self.any)

    @property
    def resolution(self) -> float:
        """How far the load that did not hold was above the highest that did, in the median over the records; 0 where
        the metric is not what the load counts."""
        if self.metric != RATE_OF[self.any.profile.kind]:
            return 0.0
        widths = [
            upper / result.value - 1
            for each in (*self.base, *self.candidate)
            if (upper := each.record.evidence.upper_bound) and (result := each.record.result) and result.value > 0
        ]
        return median(widths) if widths else 0.0

    def lacks(self) -> str:
        """Why there is nothing to compare, as a sentence."""
        for name, stored, found in (
            ("base", self.base, self.base_samples),
            ("candidate", self.candidate, self.candidate_samples),
        ):
            if found is None:
                return f"Of the {name}: {without(stored)}."
        return "Both sides reached the end of the campaign's range: raise loads.max in the campaign."


@dataclass(frozen=True)
class _P:
    """The p of a pair in each direction, before and after the correction."""

    regressed: float
    improved: float
    regressed_corrected: float
    improved_corrected: float


def compare(
    base: Runs, candidate: Runs, *, least_difference: float = LEAST_OF_RUNS, only: Sequence[str] = ()
) -> Comparison:
    """Compare two sides. `only` keeps the tests that have one of these texts in their name, topology, profile or
    metric: fewer tests need fewer samples."""
    pairs = _pairs(base, candidate, only)
    ps = _ps(pairs)
    family = sum(p is not None for p in ps)
    tests = [
        _judge(pair, p, family=family, least_difference=least_difference) for pair, p in zip(pairs, ps, strict=True)
    ]
    return whole(
        "runs", base, candidate, tests,
        family=family, least_difference=least_difference, notes=[WEAKER, *notes(base, candidate)],
    )  # fmt: skip


def _pairs(base: Runs, candidate: Runs, only: Sequence[str]) -> list[_Pair]:
    ours, theirs = base.tests(), candidate.tests()
    found = []
    for key in dict.fromkeys([*ours, *theirs]):
        first, second = ours.get(key, []), theirs.get(key, [])
        pair = _Pair(first, second, samples(first), samples(second))
        one = pair.any
        words = f"{one.suite} {one.test} {one.topology.key} {one.profile.name} {pair.metric.name}".lower()
        if not only or any(text.lower() in words for text in only):
            found.append(pair)
    return found


def _ps(pairs: Sequence[_Pair]) -> list[_P | None]:
    """The p of each pair that can be compared, corrected for their number in each direction."""
    found = [(pair.metric, *pair.sides) for pair in pairs if pair.sides]
    worse = [_p_worse(metric, base, candidate) for metric, base, candidate in found]
    better = [_p_worse(metric, candidate, base) for metric, base, candidate in found]
    made = iter([_P(*each) for each in zip(worse, better, holm(worse), holm(better), strict=True)])
    return [next(made) if pair.sides else None for pair in pairs]


def _p_worse(metric: Metric, base: Samples, candidate: Samples) -> float:
    """How often, with no difference between the sides, the candidate is as much worse as it was, or more."""
    if metric.better == "higher":
        return p_smaller(base.values, candidate.values)
    return p_smaller(candidate.values, base.values)


def _judge(pair: _Pair, p: _P | None, *, family: int, least_difference: float) -> ComparedTest:
    record, base, candidate = pair.any, pair.base_samples, pair.candidate_samples
    difference = (candidate.median / base.median - 1) * 100 if base and candidate and base.median > 0 else None
    if p is None or base is None or candidate is None:
        judgement, reason = _not_measurable(pair.lacks())
    else:
        judgement, reason = _weigh(pair.metric, base, candidate, p, family, max(least_difference, pair.resolution))
    return ComparedTest(
        suite=record.suite,
        test=record.test,
        topology=record.topology.key,
        profile=record.profile.name,
        metric=pair.metric.name,
        unit=pair.metric.unit.name,
        base=base,
        candidate=candidate,
        difference_pct=difference,
        resolution=pair.resolution,
        p_regressed=p and p.regressed,
        p_improved=p and p.improved,
        p_regressed_corrected=p and p.regressed_corrected,
        p_improved_corrected=p and p.improved_corrected,
        judgement=judgement,
        reason=reason,
    )


def _weigh(
    metric: Metric, base: Samples, candidate: Samples, p: _P, family: int, threshold: float
) -> tuple[Judgement, str]:
    """Weigh the samples: the medians have to differ by more than the threshold, and the corrected p has to be small."""
    gain = _gain(metric, base.median, candidate.median)
    worse, better = gain < -threshold, gain > threshold
    by = f"by {format_margin(abs(gain) * 100).lstrip('+')}" if base.median > 0 else "from 0"
    changed = f"The median got {'worse' if worse else 'better'} {by}"
    seen = "with no difference between the sides, samples this far apart are seen with p = "
    if worse and p.regressed_corrected < ALPHA:
        return "regressed", f"{changed}; {seen}{p.regressed_corrected:.2g}."
    if better and p.improved_corrected < ALPHA:
        return "improved", f"{changed}; {seen}{p.improved_corrected:.2g}."
    counts = len(base.values), len(candidate.values)
    if least_p(*counts) * family >= ALPHA:
        return _not_measurable(
            f"{counts[0]} against {counts[1]} samples cannot show p < {ALPHA:g} among {family} tests: "
            f"{needed_samples(ALPHA / family)} on either side are needed."
        )
    if worse or better:
        corrected = p.regressed_corrected if worse else p.improved_corrected
        return "no evidence", f"{changed}, but {seen}{corrected:.2g}."
    change = format_margin((candidate.median / base.median - 1) * 100) if base.median > 0 else "nothing"
    return "no evidence", f"The median changed by {change}, which is within {format_ratio(threshold)}."


def _gain(metric: Metric, base: float, candidate: float) -> float:
    """By how much the candidate is better, relative to the base (0.1 is 10 %); negative where it is worse."""
    change = candidate / base - 1 if base > 0 else math.inf if candidate > 0 else 0.0
    return change if metric.better == "higher" else -change


def _not_measurable(reason: str) -> tuple[Judgement, str]:
    return "not measurable", reason
