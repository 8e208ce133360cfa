"""A whole comparison, and its judgement, from those of its tests."""

from collections.abc import Sequence
from datetime import UTC, datetime

from ctbench import __version__
from ctbench.compare.comparability import differences
from ctbench.compare.limits import ALPHA
from ctbench.compare.side import Runs
from ctbench.results.comparison import (
    JUDGEMENTS,
    ComparedTest,
    Comparison,
    CountedTest,
    Counts,
    Judgement,
    Kind,
)


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
    count = {word: sum(test.judgement == word for test in tests) for word in JUDGEMENTS}
    counts = ", ".join(f"{number} {word}" for word, number in count.items() if number) or "no test in common"
    return {
        "regressed": f"The candidate regressed ({counts}).",
        "not measurable": f"Not everything could be compared ({counts}).",
        "improved": f"The candidate is better in places, with no evidence that it is worse elsewhere ({counts}).",
        "no evidence": f"There is no evidence that the candidate is worse or better ({counts}).",
    }[judgement]
