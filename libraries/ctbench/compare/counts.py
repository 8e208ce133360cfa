"""The judgement of instructions that were counted of both sides, test by test, in an emulated machine.

A count does not scatter: the same machine counts the same every time. What moves it is the seed of the kernel's hash
functions, so the range over the seeds is all the uncertainty there is.
"""

import statistics
from collections.abc import Sequence

from ctbench.base.units import format_margin
from ctbench.compare.limits import LEAST_OF_COUNTS
from ctbench.compare.side import TestKey, without
from ctbench.compare.verdicts import overall
from ctbench.results.comparison import JUDGEMENTS, CountedTest, Counts, Judgement
from ctbench.results.metrics import COSTS, METRICS
from ctbench.results.store import Stored

#: What has to be the same on both sides, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "the packages in the machine", "seeds": "the number of seeds"}


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
    tests = [_judged(ours.get(key), theirs.get(key), least_difference) for key in dict.fromkeys([*ours, *theirs])]
    if not tests:
        return nothing_counted("no test of the emulated machine left a record")
    every = [each.record.environment.dut for each in (*base, *candidate)]
    return Counts(
        machines=list(dict.fromkeys(dut.product for dut in every if dut.product)),
        least_difference=least_difference,
        tests=tests,
        sentence=_sentence(tests),
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
        words = f"{one.suite} {one.test} {one.topology.key} {one.profile.name} {one.metric}".lower()
        if one.metric in COSTS and (not only or any(text.lower() in words for text in only)):
            found.setdefault((one.topology, one.profile.name, one.metric), each)
    return found


def _seeds(stored: Stored | None) -> list[float]:
    """What was counted with each seed; none where it was not proved."""
    figure = stored.record.figures.get(stored.record.metric) if stored else None
    return list(figure.repetitions) if figure else []


def _judged(base: Stored | None, candidate: Stored | None, least: float) -> CountedTest:
    known = base or candidate
    assert known is not None, "a side has it"
    one, ours, theirs = known.record, _seeds(base), _seeds(candidate)
    difference = low = high = None
    if ours and theirs and min(ours) > 0:
        difference = _pct(statistics.median(theirs), statistics.median(ours))
        low, high = _pct(min(theirs), max(ours)), _pct(max(theirs), min(ours))
        judgement, reason = _weigh(difference, low, high, least)
    else:
        name, lacking = ("base", base) if not ours else ("candidate", candidate)
        judgement, reason = "not measurable", f"Of the {name}: {without([lacking] if lacking else [])}."
    return CountedTest(
        suite=one.suite, test=one.test, topology=one.topology.key, profile=one.profile.name,
        metric=one.metric, unit=METRICS[one.metric].unit.name,
        base=ours, candidate=theirs,
        base_record=str(base.path) if base else "", candidate_record=str(candidate.path) if candidate else "",
        difference_pct=difference, low_pct=low, high_pct=high,
        judgement=judgement, reason=reason,
    )  # fmt: skip


def _weigh(difference: float, low: float, high: float, least: float) -> tuple[Judgement, str]:
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


def _sentence(tests: Sequence[CountedTest]) -> str:
    words = {"regressed": "cost more", "not measurable": "could not be counted", "improved": "cost less",
             "no evidence": "cost the same"}  # fmt: skip
    count = {word: sum(test.judgement == word for test in tests) for word in JUDGEMENTS}
    said = ", ".join(f"{number} {words[word]}" for word, number in count.items() if number)
    return f"Of {len(tests)} test{'s' * (len(tests) != 1)} whose instructions were counted: {said}."
