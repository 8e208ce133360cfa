"""The judgement of what was counted of two sides: does the candidate cost more instructions than the base?"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.base.units import format_margin
from ctbench.compare import sides
from ctbench.compare.limits import LEAST_OF_COUNTS
from ctbench.compare.sides import Runs
from ctbench.report.labels import once, plural
from ctbench.results.comparison import JUDGEMENTS, Comparison, CountedTest, Counts, Judgement
from ctbench.results.metrics import COSTS
from ctbench.results.store import Stored

#: What has to be the same on both sides where instructions are counted, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "the packages in the machine", "seeds": "the number of seeds"}


def whole(base: Runs, candidate: Runs) -> Comparison:
    """The comparison of two sides, made now."""
    counts = judge_counts(base.stored, candidate.stored)
    judgement = overall(counts.tests)
    return Comparison(
        tool_version=__version__,
        made=datetime.now(UTC),
        base=base.as_side(),
        candidate=candidate.as_side(),
        least_difference=LEAST_OF_COUNTS,
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


def judge_counts(base: Sequence[Stored], candidate: Sequence[Stored]) -> Counts:
    """Compare what was counted of the two sides, matched by topology, profile and metric."""
    # Of rows that count the same, the first.
    ours, theirs = (
        {key: first for key, (first, *_) in sides.by_test(side).items() if key[2] in COSTS}
        for side in (base, candidate)
    )
    tests = [_counted(ours.get(key), theirs.get(key)) for key in dict.fromkeys([*ours, *theirs])]
    if not tests:
        nothing = "No instructions were counted: no test of the emulated machine left a record."
        return Counts(machines=[], tests=[], sentence=nothing, notes=[])
    words: dict[Judgement, str] = {"regressed": "cost more", "not measurable": "could not be counted",
                                   "improved": "cost less", "no evidence": "cost the same"}  # fmt: skip
    every = [each.record.environment.dut for each in (*base, *candidate)]
    return Counts(
        machines=once(dut.product for dut in every),
        tests=tests,
        sentence=f"Of {plural(len(tests), 'test')} whose instructions were counted: {_tally(tests, words)}.",
        notes=[
            f"The sides differ in {name} as well, so a difference may not be what is compared."
            for key, name in _ALIKE.items()
            if len({str(getattr(dut, key, None)) for dut in every}) > 1
        ],
    )


def _counted(base: Stored | None, candidate: Stored | None) -> CountedTest:
    """One test on both sides, by what was counted with each seed. The ranges over the seeds have to be apart, and the
    medians by more than is no regression; a side that was not proved has no figure."""
    known = next(each.record for each in (base, candidate) if each)
    figures = [each.record.figures.get(known.metric) if each else None for each in (base, candidate)]
    ours, theirs = (list(figure.repetitions) if figure else [] for figure in figures)
    difference = low = high = None
    if ours and theirs and min(ours) > 0:
        difference = _pct(statistics.median(theirs), statistics.median(ours))
        low, high = _pct(min(theirs), max(ours)), _pct(max(theirs), min(ours))
        judgement, reason = _weigh_counted(difference, low, high)
    else:
        name, lacking = ("base", base) if not ours else ("candidate", candidate)
        judgement, reason = "not measurable", f"Of the {name}: {sides.without([lacking] if lacking else [])}."
    return CountedTest(
        **sides.names_of(known), base=ours, candidate=theirs,
        base_record=str(base.path) if base else "", candidate_record=str(candidate.path) if candidate else "",
        difference_pct=difference, low_pct=low, high_pct=high,
        judgement=judgement, reason=reason,
    )  # fmt: skip


def _weigh_counted(difference: float, low: float, high: float) -> tuple[Judgement, str]:
    if low == high == 0:
        return "no evidence", "Both count the same, to the last digit."
    seen = f"{format_margin(difference)}, {format_margin(low)} to {format_margin(high)} over the seeds"
    if low <= 0 <= high:
        return "no evidence", f"{seen}: no more than one seed differs from the next."
    if abs(difference) <= LEAST_OF_COUNTS * 100:
        return "no evidence", f"{seen}: there is a difference, and it is within {LEAST_OF_COUNTS * 100:g} %."
    return ("regressed" if difference > 0 else "improved"), f"{seen}."


def _pct(value: float, of: float) -> float:
    return (value / of - 1) * 100
