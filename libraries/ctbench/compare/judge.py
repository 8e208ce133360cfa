"""The judgement of each test, and of the whole comparison: did the candidate regress against the base, and how sure is
that?

Of finished runs, and of instructions that were counted. Rates side by side (./run sla --candidate) are the better way:
finished runs were made one after another, so what drifts falls on one of them.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.base.units import format_margin, format_ratio
from ctbench.compare import sides
from ctbench.compare.limits import ALPHA, LEAST_OF_COUNTS, LEAST_OF_RUNS, WEAKER
from ctbench.compare.sides import Runs
from ctbench.dut.abilities import ByFunction
from ctbench.report.labels import once, plural
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
)
from ctbench.results.metrics import COSTS, METRICS, RATE_OF
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
    tests: Sequence[ComparedTest] = (),
    *,
    least_difference: float,
    notes: Sequence[str] = (),
    counts: Counts | None = None,
) -> Comparison:
    """The comparison of two sides whose tests, or `counts`, were judged, made now."""
    judged = counts.tests if counts else tests
    judgement = overall(judged)
    return Comparison(
        kind=kind,
        tool_version=__version__,
        made=datetime.now(UTC),
        base=base.as_side(),
        candidate=candidate.as_side(),
        least_difference=least_difference,
        alpha=ALPHA,
        family=family_of(tests),
        tests=list(tests),
        counts=counts,
        differences=[] if counts else sides.differences(base, candidate),
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


def family_of(tests: Sequence[ComparedTest]) -> int:
    """How many tests can be compared, which their p are corrected for."""
    return sum(test.p_regressed is not None for test in tests)


def judged(tests: Sequence[ComparedTest], least_difference: float) -> list[ComparedTest]:
    """The tests with their p corrected, and weighed by that; one without a p stays as it is."""
    corrected = {
        name: iter(holm([p for test in tests if (p := getattr(test, name)) is not None]))
        for name in ("p_regressed", "p_improved")
    }
    found, family = [], family_of(tests)
    for test in tests:
        if test.p_regressed is not None:
            test = test.model_copy(update={f"{name}_corrected": next(each) for name, each in corrected.items()})  # noqa: PLW2901
            judgement, reason = _weigh(test, family, least_difference)
            test = test.model_copy(update={"judgement": judgement, "reason": reason})  # noqa: PLW2901
        found.append(test)
    return found


def compare(
    base: Runs, candidate: Runs, *, least_difference: float = LEAST_OF_RUNS, only: Sequence[str] = ()
) -> Comparison:
    """Compare two sides. `only` keeps the tests that have one of these texts in their name, topology, profile or
    metric: fewer tests need fewer samples."""
    ours, theirs = sides.by_test(base.stored), sides.by_test(candidate.stored)
    both = [(ours.get(key, []), theirs.get(key, [])) for key in dict.fromkeys([*ours, *theirs])]
    chosen = [_both(*each) for each in both if sides.is_chosen([*each[0], *each[1]][0].record, only)]
    tests = judged(chosen, least_difference)
    notes_of_both = [WEAKER, *sides.notes(base, candidate)]
    return whole("runs", base, candidate, tests, least_difference=least_difference, notes=notes_of_both)


def _both(base: Sequence[Stored], candidate: Sequence[Stored]) -> ComparedTest:
    """One test on both sides: with the p in either direction where it can be compared, else with the reason."""
    both = [each.record for each in (*base, *candidate)]
    metric, ours, theirs = sides.compared_metric(both[0]), sides.samples(base), sides.samples(candidate)
    lacks, ps = "", {}
    if ours is None:
        lacks = f"Of the base: {sides.without(base)}."
    elif theirs is None:
        lacks = f"Of the candidate: {sides.without(candidate)}."
    elif ours.censored and theirs.censored:  # each is only a bound
        lacks = "Both sides reached the end of the campaign's range: raise loads.max in the campaign."
    else:
        falls, rises = p_smaller(ours.values, theirs.values), p_smaller(theirs.values, ours.values)
        names = ("p_regressed", "p_improved") if metric.better == "higher" else ("p_improved", "p_regressed")
        ps = dict(zip(names, (falls, rises), strict=True))
    return ComparedTest(
        **sides.names_of(both[0]),
        base=ours,
        candidate=theirs,
        difference_pct=(theirs.median / ours.median - 1) * 100 if ours and theirs and ours.median > 0 else None,
        resolution=_resolution(both) if metric is RATE_OF[both[0].profile.kind] else 0.0,
        **ps,
        judgement="not measurable",
        reason=lacks,
    )


def _resolution(records: Sequence[Record]) -> float:
    """How far the load that did not hold was above the highest that did, in the median over the records."""
    widths = [
        upper / result.value - 1
        for record in records
        if (upper := record.evidence.upper_bound) and (result := record.result) and result.value > 0
    ]
    return statistics.median(widths) if widths else 0.0


def _weigh(test: ComparedTest, family: int, least_difference: float) -> tuple[Judgement, str]:
    """Weigh the samples: the medians have to differ by more than the threshold, and the corrected p has to be small."""
    base, candidate, threshold = test.base, test.candidate, max(least_difference, test.resolution)
    assert base and candidate, "it has a p"
    change = candidate.median / base.median - 1 if base.median > 0 else math.inf if candidate.median > 0 else 0.0
    better = (change > 0) == (METRICS[test.metric].better == "higher")
    p = test.p_improved_corrected if better else test.p_regressed_corrected
    by = f"by {format_margin(abs(change) * 100).lstrip('+')}" if base.median > 0 else "from 0"
    changed = f"The median got {'better' if better else 'worse'} {by}"
    seen = f"with no difference between the sides, samples this far apart are seen with p = {p:.2g}."
    differs, counts = abs(change) > threshold, (len(base.values), len(candidate.values))
    if differs and p is not None and p < ALPHA:
        return "improved" if better else "regressed", f"{changed}; {seen}"
    if least_p(*counts) * family >= ALPHA:
        return "not measurable", (
            f"{counts[0]} against {counts[1]} samples cannot show p < {ALPHA:g} among {family} tests: "
            f"{needed_samples(ALPHA / family)} on either side are needed."
        )
    if differs:
        return "no evidence", f"{changed}, but {seen}"
    by = format_margin(change * 100) if base.median > 0 else "nothing"
    return "no evidence", f"The median changed by {by}, which is within {format_ratio(threshold)}."


def judge_counts(
    base: Sequence[Stored],
    candidate: Sequence[Stored],
    *,
    least_difference: float = LEAST_OF_COUNTS,
    only: Sequence[str] = (),
) -> Counts:
    """Compare what was counted of the two sides, matched by topology, profile and metric. `only` keeps the tests that
    have one of these texts in their names."""
    # Of rows that count the same, the first.
    ours, theirs = (
        {
            key: first
            for key, (first, *_) in sides.by_test(side).items()
            if key[2] in COSTS and sides.is_chosen(first.record, only)
        }
        for side in (base, candidate)
    )
    tests = [_counted(ours.get(key), theirs.get(key), least_difference) for key in dict.fromkeys([*ours, *theirs])]
    if not tests:
        nothing = "No instructions were counted: no test of the emulated machine left a record."
        return Counts(machines=[], least_difference=least_difference, tests=[], sentence=nothing, notes=[])
    words: dict[Judgement, str] = {"regressed": "cost more", "not measurable": "could not be counted",
                                   "improved": "cost less", "no evidence": "cost the same"}  # fmt: skip
    every = [each.record.environment.dut for each in (*base, *candidate)]
    return Counts(
        machines=once(dut.product for dut in every),
        least_difference=least_difference,
        tests=tests,
        sentence=f"Of {plural(len(tests), 'test')} whose instructions were counted: {_tally(tests, words)}.",
        notes=[
            f"The sides differ in {name} as well, so a difference may not be what is compared."
            for key, name in _ALIKE.items()
            if len({str(getattr(dut, key, None)) for dut in every}) > 1
        ],
    )


def _counted(base: Stored | None, candidate: Stored | None, least: float) -> CountedTest:
    """One test on both sides, by what was counted with each seed. The ranges over the seeds have to be apart, and the
    medians by more than `least`; a side that was not proved has no figure."""
    known = next(each.record for each in (base, candidate) if each)
    figures = [each.record.figures.get(known.metric) if each else None for each in (base, candidate)]
    ours, theirs = (list(figure.repetitions) if figure else [] for figure in figures)
    difference = low = high = None
    if ours and theirs and min(ours) > 0:
        difference = _pct(statistics.median(theirs), statistics.median(ours))
        low, high = _pct(min(theirs), max(ours)), _pct(max(theirs), min(ours))
        judgement, reason = _weigh_counted(difference, low, high, least)
    else:
        name, lacking = ("base", base) if not ours else ("candidate", candidate)
        judgement, reason = "not measurable", f"Of the {name}: {sides.without([lacking] if lacking else [])}."
    return CountedTest(
        **sides.names_of(known), base=ours, candidate=theirs,
        base_record=str(base.path) if base else "", candidate_record=str(candidate.path) if candidate else "",
        difference_pct=difference, low_pct=low, high_pct=high,
        judgement=judgement, reason=reason,
    )  # fmt: skip


def _weigh_counted(difference: float, low: float, high: float, least: float) -> tuple[Judgement, str]:
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
