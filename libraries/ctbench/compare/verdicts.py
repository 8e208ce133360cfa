"""The judgement of a whole comparison, from those of its tests."""

from collections.abc import Sequence

from ctbench.results.comparison import JUDGEMENTS, ComparedTest, Judgement


def overall(tests: Sequence[ComparedTest]) -> Judgement:
    """The worst news; without any test nothing can be said."""
    found = {test.judgement for test in tests}
    return next((judgement for judgement in JUDGEMENTS if judgement in found), "not measurable")


def sentence(judgement: Judgement, tests: Sequence[ComparedTest]) -> str:
    """That in words, with counts."""
    count = {word: sum(test.judgement == word for test in tests) for word in JUDGEMENTS}
    counts = ", ".join(f"{number} {word}" for word, number in count.items() if number) or "no test in common"
    return {
        "regressed": f"The candidate regressed ({counts}).",
        "not measurable": f"Not everything could be compared ({counts}).",
        "improved": f"The candidate is better in places, with no evidence that it is worse elsewhere ({counts}).",
        "no evidence": f"There is no evidence that the candidate is worse or better ({counts}).",
    }[judgement]
