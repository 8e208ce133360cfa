"""The judgement: did the candidate regress against the base, test by test, and how sure is that?"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from ctbench import __version__
from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.comparability import differences, notes
from ctbench.compare.limits import ALPHA, LEAST_DIFFERENCE
from ctbench.compare.side import Runs, samples, without
from ctbench.results.comparison import JUDGEMENTS, ComparedTest, Comparison, Judgement, Samples
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
        """The samples of both sides where they can be compared: not where each only says "at least"."""
        base, candidate = self.base_samples, self.candidate_samples
        if base is None or candidate is None or (base.at_least and candidate.at_least):
            return None
        return base, candidate

    @property
    def any(self) -> Record:
        """A record to take the names from."""
        return [*self.base, *self.candidate][0].record

    @property
    def resolution(self) -> float:
        """How far the load that did not hold was above the capacity, in the median over the records."""
        widths = [
            each.record.upper_bound / each.record.measured.rate - 1
            for each in (*self.base, *self.candidate)
            if each.record.upper_bound and each.record.measured and each.record.measured.rate > 0
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
    """What chance alone makes of a pair, before and after the correction."""

    regressed: float
    improved: float
    regressed_corrected: float
    improved_corrected: float


def compare(
    base: Runs, candidate: Runs, *, least_difference: float = LEAST_DIFFERENCE, only: Sequence[str] = ()
) -> Comparison:
    """Compare two sides. `only` keeps the tests that have one of these texts in their name, topology or profile: fewer
    tests need fewer samples."""
    pairs = _pairs(base, candidate, only)
    chances = _chances(pairs)
    tests = [
        _judge(pair, chance, family=sum(each is not None for each in chances), least_difference=least_difference)
        for pair, chance in zip(pairs, chances, strict=True)
    ]
    judgement = _overall(tests)
    return Comparison(
        tool_version=__version__,
        made=datetime.now(UTC),
        base=base.as_side(),
        candidate=candidate.as_side(),
        least_difference=least_difference,
        alpha=ALPHA,
        family=sum(each is not None for each in chances),
        tests=tests,
        differences=differences(base, candidate),
        notes=notes(base, candidate),
        judgement=judgement,
        sentence=_sentence(judgement, tests),
    )


def _pairs(base: Runs, candidate: Runs, only: Sequence[str]) -> list[_Pair]:
    ours, theirs = base.tests(), candidate.tests()
    found = []
    for key in dict.fromkeys([*ours, *theirs]):
        first, second = ours.get(key, []), theirs.get(key, [])
        pair = _Pair(first, second, samples(first), samples(second))
        words = f"{pair.any.suite} {pair.any.test} {pair.any.topology.key} {pair.any.profile.name}".lower()
        if not only or any(text.lower() in words for text in only):
            found.append(pair)
    return found


def _chances(pairs: Sequence[_Pair]) -> list[_P | None]:
    """The p of each pair that can be compared, corrected for their number in each direction."""
    sides = [pair.sides for pair in pairs]
    fell = [p_smaller(both[0].rates, both[1].rates) for both in sides if both]
    rose = [p_smaller(both[1].rates, both[0].rates) for both in sides if both]
    made = iter([_P(*each) for each in zip(fell, rose, holm(fell), holm(rose), strict=True)])
    return [next(made) if both else None for both in sides]


def _judge(pair: _Pair, p: _P | None, *, family: int, least_difference: float) -> ComparedTest:
    record, base, candidate = pair.any, pair.base_samples, pair.candidate_samples
    difference = (candidate.median / base.median - 1) * 100 if base and candidate and base.median > 0 else None
    if p is None or base is None or candidate is None:
        judgement, reason = _not_measurable(pair.lacks())
    else:
        judgement, reason = _weigh(base, candidate, p, family, max(least_difference, pair.resolution))
    return ComparedTest(
        suite=record.suite,
        test=record.test,
        topology=record.topology.key,
        profile=record.profile.name,
        unit=record.profile.kind,
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


def _weigh(base: Samples, candidate: Samples, p: _P, family: int, threshold: float) -> tuple[Judgement, str]:
    """Weigh the samples: the median has to differ by more than the threshold, and chance has to be unlikely."""
    fell, rose = candidate.median < base.median * (1 - threshold), candidate.median > base.median * (1 + threshold)
    by = format_margin((candidate.median / base.median - 1) * 100) if base.median > 0 else "from nothing"
    if fell and p.regressed_corrected < ALPHA:
        return "regressed", f"The median changed by {by}; chance alone does that with p = {p.regressed_corrected:.2g}."
    if rose and p.improved_corrected < ALPHA:
        return "improved", f"The median changed by {by}; chance alone does that with p = {p.improved_corrected:.2g}."
    counts = len(base.rates), len(candidate.rates)
    if least_p(*counts) * family >= ALPHA:
        return _not_measurable(
            f"{counts[0]} against {counts[1]} samples cannot show p < {ALPHA:g} among {family} tests: "
            f"{needed_samples(ALPHA / family)} on either side are needed."
        )
    if fell or rose:
        corrected = p.regressed_corrected if fell else p.improved_corrected
        return "no evidence", f"The median changed by {by}; chance alone may do that (p = {corrected:.2g})."
    return "no evidence", f"The median changed by {by}, which is within {format_ratio(threshold)}."


def _not_measurable(reason: str) -> tuple[Judgement, str]:
    return "not measurable", reason


def _overall(tests: Sequence[ComparedTest]) -> Judgement:
    """The worst news; without any test nothing can be said."""
    found = {test.judgement for test in tests}
    return next((judgement for judgement in JUDGEMENTS if judgement in found), "not measurable")


def _sentence(judgement: Judgement, tests: Sequence[ComparedTest]) -> str:
    count = {word: sum(test.judgement == word for test in tests) for word in JUDGEMENTS}
    counts = ", ".join(f"{number} {word}" for word, number in count.items() if number) or "no test in common"
    return {
        "regressed": f"The candidate regressed ({counts}).",
        "not measurable": f"Not everything could be compared ({counts}).",
        "improved": f"The candidate is no slower, and faster in places ({counts}).",
        "no evidence": f"There is no evidence that the candidate is slower or faster ({counts}).",
    }[judgement]
