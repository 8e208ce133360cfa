"""The judgement of each test, and of the whole comparison: did the candidate regress against the base, and how sure is
that?

Here of finished runs and of instructions that were counted; `ctbench.compare.starts` has that of starts side by side,
which is the better way: finished runs were made one after another, so what drifts falls on one of them.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.limits import ALPHA, LEAST_OF_COUNTS, LEAST_OF_RUNS, WEAKER
from ctbench.compare.sides import (
    Runs,
    TestKey,
    compared_metric,
    differences,
    is_chosen,
    names_of,
    notes,
    samples,
    without,
)
from ctbench.dut.abilities import ByFunction
from ctbench.results.comparison import (
    JUDGEMENTS,
    ComparedTest,
    Comparison,
    CountedTest,
    Counts,
    Functions,
    Grown,
    Judgement,
    Kind,
    Samples,
)
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, Metric
from ctbench.results.record import Record
from ctbench.results.statistics import holm, least_p, needed_samples, p_smaller
from ctbench.results.store import Stored

#: What has to be the same on both sides where instructions are counted, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "the packages in the machine", "seeds": "the number of seeds"}
#: As many functions are shown, of so many tests at most.
SHOWN, TESTS = 10, 5
#: What a compiler adds to the name of a part or a copy of a function, not the same way in every build.
_COPY = re.compile(r"\.(constprop|isra|part|cold)(\.\d+)*(?=\s|$|\.)")


def whole(
    kind: Kind,
    base: Runs,
    candidate: Runs,
    tests: Sequence[ComparedTest],
    *,
    family: int,
    least_difference: float,
    notes: Sequence[str],
    counts: Counts | None = None,
) -> Comparison:
    """The comparison of two sides whose tests were judged, made now; see `Comparison` for `family` and the others.
    Where nothing but `counts` is compared, they are judged; beside rates they are shown."""
    alone = kind == "counts" and counts is not None
    judged = counts.tests if alone and counts else tests
    judgement = overall(judged)
    return Comparison(
        kind=kind,
        tool_version=__version__,
        made=datetime.now(UTC),
        base=base.as_side(),
        candidate=candidate.as_side(),
        least_difference=least_difference,
        alpha=ALPHA,
        family=family,
        tests=list(tests),
        counts=counts,
        differences=[] if alone else differences(base, candidate),
        notes=list(notes),
        judgement=judgement,
        sentence=sentence(judgement, judged),
    )


def overall(tests: Sequence[ComparedTest | CountedTest]) -> Judgement:
    """The worst news; without any test nothing can be said."""
    found = {test.judgement for test in tests}
    return next((judgement for judgement in JUDGEMENTS if judgement in found), "not measurable")


def sentence(judgement: Judgement, tests: Sequence[ComparedTest | CountedTest]) -> str:
    """That in words, with counts."""
    counts = _tally(tests, {word: word for word in JUDGEMENTS}) or "no test in common"
    return {
        "regressed": f"The candidate regressed ({counts}).",
        "not measurable": f"Not everything could be compared ({counts}).",
        "improved": f"The candidate is better in places, with no evidence that it is worse elsewhere ({counts}).",
        "no evidence": f"There is no evidence that the candidate is worse or better ({counts}).",
    }[judgement]


def _tally(tests: Sequence[ComparedTest | CountedTest], words: Mapping[Judgement, str]) -> str:
    count = Counter(test.judgement for test in tests)
    return ", ".join(f"{count[judgement]} {words[judgement]}" for judgement in JUDGEMENTS if count[judgement])


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
        return statistics.median(widths) if widths else 0.0

    def lacks(self) -> str:
        """Why there is nothing to compare, as a sentence."""
        if self.base_samples is None:
            return f"Of the base: {without(self.base)}."
        if self.candidate_samples is None:
            return f"Of the candidate: {without(self.candidate)}."
        return "Both sides reached the end of the campaign's range: raise loads.max in the campaign."


def compare(
    base: Runs, candidate: Runs, *, least_difference: float = LEAST_OF_RUNS, only: Sequence[str] = ()
) -> Comparison:
    """Compare two sides. `only` keeps the tests that have one of these texts in their name, topology, profile or
    metric: fewer tests need fewer samples."""
    ours, theirs = base.tests(), candidate.tests()
    both = [(ours.get(key, []), theirs.get(key, [])) for key in dict.fromkeys([*ours, *theirs])]
    pairs = [_Pair(first, second, samples(first), samples(second)) for first, second in both]
    pairs = [pair for pair in pairs if is_chosen(pair.any, pair.metric.name, only)]
    ps = _ps(pairs)
    family = sum(map(bool, ps))
    tests = [_judge(pair, p, family, least_difference) for pair, p in zip(pairs, ps, strict=True)]
    return whole(
        "runs", base, candidate, tests,
        family=family, least_difference=least_difference, notes=[WEAKER, *notes(base, candidate)],
    )  # fmt: skip


#: As a compared test has its p.
P_NAMES = "p_regressed", "p_improved", "p_regressed_corrected", "p_improved_corrected"
#: The p of a test in each direction, before and after the correction for the number of tests; empty where its sides
#: cannot be compared.
_P = Mapping[str, float]


def _ps(pairs: Sequence[_Pair]) -> list[_P]:
    found = [(pair.metric, *pair.sides) for pair in pairs if pair.sides]
    worse = [_p_worse(metric, base, candidate) for metric, base, candidate in found]
    better = [_p_worse(metric, candidate, base) for metric, base, candidate in found]
    every = zip(worse, better, holm(worse), holm(better), strict=True)
    made = (dict(zip(P_NAMES, each, strict=True)) for each in every)
    return [next(made) if pair.sides else {} for pair in pairs]


def _p_worse(metric: Metric, base: Samples, candidate: Samples) -> float:
    """How often, with no difference between the sides, the candidate is as much worse as it was, or more."""
    if metric.better == "higher":
        return p_smaller(base.values, candidate.values)
    return p_smaller(candidate.values, base.values)


def _judge(pair: _Pair, p: _P, family: int, least_difference: float) -> ComparedTest:
    base, candidate = pair.base_samples, pair.candidate_samples
    difference = (candidate.median / base.median - 1) * 100 if base and candidate and base.median > 0 else None
    judgement: Judgement = "not measurable"
    reason = pair.lacks()
    if p and base and candidate:
        judgement, reason = _weigh(pair.metric, base, candidate, p, family, max(least_difference, pair.resolution))
    return ComparedTest(
        **names_of(pair.any, pair.metric),
        base=base,
        candidate=candidate,
        difference_pct=difference,
        resolution=pair.resolution,
        **(p or dict.fromkeys(P_NAMES)),
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
    regressed, improved = p["p_regressed_corrected"], p["p_improved_corrected"]
    if worse and regressed < ALPHA:
        return "regressed", f"{changed}; {seen}{regressed:.2g}."
    if better and improved < ALPHA:
        return "improved", f"{changed}; {seen}{improved:.2g}."
    counts = len(base.values), len(candidate.values)
    if least_p(*counts) * family >= ALPHA:
        return "not measurable", (
            f"{counts[0]} against {counts[1]} samples cannot show p < {ALPHA:g} among {family} tests: "
            f"{needed_samples(ALPHA / family)} on either side are needed."
        )
    if worse or better:
        corrected = regressed if worse else improved
        return "no evidence", f"{changed}, but {seen}{corrected:.2g}."
    change = format_margin((candidate.median / base.median - 1) * 100) if base.median > 0 else "nothing"
    return "no evidence", f"The median changed by {change}, which is within {format_ratio(threshold)}."


def _gain(metric: Metric, base: float, candidate: float) -> float:
    """By how much the candidate is better, relative to the base (0.1 is 10 %); negative where it is worse."""
    change = candidate / base - 1 if base > 0 else math.inf if candidate > 0 else 0.0
    return change if metric.better == "higher" else -change


def nothing_counted(why: str) -> Counts:
    """Counts that there are none of; `why`: a part of a sentence."""
    sentence = f"No instructions were counted: {why.rstrip('.')}."
    return Counts(machines=[], least_difference=LEAST_OF_COUNTS, tests=[], sentence=sentence, notes=[])


def judge_counts(
    base: Sequence[Stored],
    candidate: Sequence[Stored],
    *,
    least_difference: float = LEAST_OF_COUNTS,
    only: Sequence[str] = (),
) -> Counts:
    """Compare what was counted of the two sides, matched by topology, profile and metric. `only` keeps the tests that
    have one of these texts in their names."""
    ours, theirs = _by_test(base, only), _by_test(candidate, only)
    tests = [
        _judge_counted(ours.get(key), theirs.get(key), least_difference) for key in dict.fromkeys([*ours, *theirs])
    ]
    if not tests:
        return nothing_counted("no test of the emulated machine left a record")
    every = [each.record.environment.dut for each in (*base, *candidate)]
    return Counts(
        machines=list(dict.fromkeys(dut.product for dut in every if dut.product)),
        least_difference=least_difference,
        tests=tests,
        sentence=_counts_sentence(tests),
        notes=[
            f"The sides differ in {name} as well, so a difference may not be what is compared."
            for key, name in _ALIKE.items()
            if len({str(dut.model_dump().get(key)) for dut in every}) > 1
        ],
    )


def counts_note(rates: Judgement, counts: Counts) -> str:
    """Whether rates and instructions say the same, a sentence; empty where one of them says nothing."""
    found = overall(counts.tests)
    if not counts.tests or "not measurable" in (rates, found):
        return ""
    agree = f"Rates and instructions agree: {found}."
    return agree if rates == found else f"Rates and instructions disagree: {rates} by rates, {found} by instructions."


def _by_test(stored: Sequence[Stored], only: Sequence[str]) -> dict[TestKey, Stored]:
    """The record of each test that counts; of rows that count the same, the first."""
    found: dict[TestKey, Stored] = {}
    for each in stored:
        one = each.record
        if one.metric in COSTS and is_chosen(one, one.metric, only):
            found.setdefault((one.topology, one.profile.name, one.metric), each)
    return found


def _by_seed(stored: Stored | None) -> list[float]:
    """What was counted with each seed; none where it was not proved."""
    figure = stored.record.figures.get(stored.record.metric) if stored else None
    return list(figure.repetitions) if figure else []


def _judge_counted(base: Stored | None, candidate: Stored | None, least: float) -> CountedTest:
    known = base or candidate
    assert known is not None, "a side has it"
    one, ours, theirs = known.record, _by_seed(base), _by_seed(candidate)
    difference = low = high = None
    if ours and theirs and min(ours) > 0:
        difference = _pct(statistics.median(theirs), statistics.median(ours))
        low, high = _pct(min(theirs), max(ours)), _pct(max(theirs), min(ours))
        judgement, reason = _weigh_counted(difference, low, high, least)
    else:
        name, lacking = ("base", base) if not ours else ("candidate", candidate)
        judgement, reason = "not measurable", f"Of the {name}: {without([lacking] if lacking else [])}."
    return CountedTest(
        **names_of(one, METRICS[one.metric]), base=ours, candidate=theirs,
        base_record=str(base.path) if base else "", candidate_record=str(candidate.path) if candidate else "",
        difference_pct=difference, low_pct=low, high_pct=high,
        judgement=judgement, reason=reason,
    )  # fmt: skip


def _weigh_counted(difference: float, low: float, high: float, least: float) -> tuple[Judgement, str]:
    """The ranges over the seeds have to be apart, and the medians by more than the least difference."""
    if low == high == 0:
        return "no evidence", "Both count the same, to the last digit."
    seen = f"{format_margin(difference)}, {format_margin(low)} to {format_margin(high)} over the seeds"
    if low <= 0 <= high:
        return "no evidence", f"{seen}: no more than one seed differs from the next."
    if abs(difference) <= least * 100:
        return "no evidence", f"{seen}: there is a difference, and it is within {least * 100:g} %."
    return ("regressed" if difference > 0 else "improved"), f"{seen}."


def _pct(value: float, of: float) -> float:
    return (value / of - 1) * 100


def _counts_sentence(tests: Sequence[CountedTest]) -> str:
    words: dict[Judgement, str] = {"regressed": "cost more", "not measurable": "could not be counted",
                                   "improved": "cost less", "no evidence": "cost the same"}  # fmt: skip
    return f"Of {len(tests)} test{'s' * (len(tests) != 1)} whose instructions were counted: {_tally(tests, words)}."


def that_differ(tests: Sequence[CountedTest]) -> list[CountedTest]:
    """The tests that are worth a look: those whose seeds are apart, the farthest first."""
    apart = [test for test in tests if test.low_pct is not None and test.high_pct is not None
             and not test.low_pct <= 0 <= test.high_pct]  # fmt: skip
    return sorted(apart, key=lambda test: -abs(test.difference_pct or 0))[:TESTS]


def grown(test: CountedTest, base: ByFunction, candidate: ByFunction) -> Functions:
    """What grew of a test, most first."""
    ours, theirs = _whole(base.functions), _whole(candidate.functions)
    every = [Grown(function=name, base=ours[name], candidate=theirs[name]) for name in {*ours, *theirs}]
    every.sort(key=lambda each: (each.base - each.candidate, each.function))
    return Functions(
        test=test.test, metric=test.metric, base=base.clock, candidate=candidate.clock,
        grown=[each for each in every if each.candidate > each.base][:SHOWN],
    )  # fmt: skip


def _whole(functions: Mapping[str, float]) -> Counter[str]:
    """By function, with its parts and copies."""
    found: Counter[str] = Counter()
    for name, instructions in functions.items():
        found[_COPY.sub("", name)] += instructions  # type: ignore[assignment]  # a Counter counts anything
    return found
