"""The judgement of what was counted of two sides: does the candidate cost more instructions than the base?"""

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.base.units import format_margin
from ctbench.compare import sides
from ctbench.compare.limits import LEAST_OF_COUNTS
from ctbench.compare.sides import Runs
from ctbench.dut.abilities import ByFunction
from ctbench.report.labels import once, plural
from ctbench.results.comparison import JUDGEMENTS, Comparison, CountedTest, Counts, Functions, Grown, Judgement
from ctbench.results.metrics import COSTS
from ctbench.results.store import Stored

#: What has to be the same on both sides where instructions are counted, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "the packages in the machine", "seeds": "the number of seeds"}
#: As many functions are shown, of so many tests at most.
SHOWN, TESTS = 10, 5
#: What a compiler adds to the name of a part or a copy of a function, not the same way in every build.
_COPY = re.compile(r"\.(constprop|isra|part|cold)(\.\d+)*(?=\s|$|\.)")


def whole(base: Runs, candidate: Runs, *, least_difference: float, counts: Counts) -> Comparison:
    """The comparison of two sides of which this was counted, made now."""
    judgement = overall(counts.tests)
    return Comparison(
        tool_version=__version__,
        made=datetime.now(UTC),
        base=base.as_side(),
        candidate=candidate.as_side(),
        least_difference=least_difference,
        counts=counts,
        judgement=judgement,
        sentence=sentence(judgement, counts.tests),
    )


def overall(tests: Sequence[CountedTest]) -> Judgement:
    """The worst news; without any test nothing can be said."""
    found = {test.judgement for test in tests}
    return next((judgement for judgement in JUDGEMENTS if judgement in found), "not measurable")


def sentence(judgement: Judgement, tests: Sequence[CountedTest]) -> str:
    """That in words, with counts."""
    counts = _tally(tests, {word: word for word in JUDGEMENTS}) or "no test in common"
    return {
        "regressed": f"The candidate regressed ({counts}).",
        "not measurable": f"Not everything could be compared ({counts}).",
        "improved": f"The candidate is better in places, with no evidence that it is worse elsewhere ({counts}).",
        "no evidence": f"There is no evidence that the candidate is worse or better ({counts}).",
    }[judgement]


def _tally(tests: Sequence[CountedTest], words: Mapping[Judgement, str]) -> str:
    count = Counter(test.judgement for test in tests)
    return ", ".join(f"{count[judgement]} {words[judgement]}" for judgement in JUDGEMENTS if count[judgement])


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
