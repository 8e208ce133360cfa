"""Starts of two installations side by side: which there are, and their judgement. Each start of both is a sample, a
ratio.

A start is one run of the suites in which each test sets both builds up again and serves them in turn
(`ctbench.measure.procedures.pair`). The builds change roles from start to start: what favours the one that is set up
first favours each as often. A start is the unit of replication: slices within one start share what a start decides
(where memory lies, which core's cache), so however many there are, their interval is that of one start.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from typing import NamedTuple

from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.judge import judged, whole
from ctbench.compare.limits import ALPHA, LEAST_OF_PAIRS
from ctbench.compare.sides import Role, Runs, TestKey, by_test, is_chosen, names_of, versions_note
from ctbench.compare.text import interval
from ctbench.report.labels import plural
from ctbench.results.comparison import ComparedTest, Comparison, Counts, Judgement, Starts
from ctbench.results.statistics import (
    hodges_lehmann,
    least_sign_flip_p,
    needed_signs,
    sign_flip_interval,
    sign_flip_p,
    to_be_seen,
)
from ctbench.results.store import Broken, Stored, read_stored

#: Folders of the base against itself, and of the candidate against the base.
SAME, PAIRS = "base-against-itself", "starts"


@dataclass(frozen=True)
class Start:
    """One start of both builds."""

    number: int
    #: Which is set up first, and whose rate is divided by the other's; and which is the other.
    first: Role
    second: Role
    folder: Path
    #: What it left, once that is read.
    stored: Sequence[Stored] = ()
    broken: Sequence[Broken] = ()

    @property
    def exponent(self) -> int:
        """What turns `first / second` into `candidate / base`; of the base against itself, by turns as well."""
        return 1 if self.number % 2 else -1


def same_starts(output: Path, starts: int) -> list[Start]:
    """The base against itself: `<output>/base-against-itself/01` and so on."""
    return [Start(number, "base", "base", output / SAME / f"{number:02d}") for number in range(1, starts + 1)]


def pair_starts(output: Path, starts: int) -> list[Start]:
    """The candidate against the base: `<output>/starts/01` and so on."""
    orders: tuple[tuple[Role, Role], ...] = (("base", "candidate"), ("candidate", "base"))
    return [Start(number, *orders[number % 2], output / PAIRS / f"{number:02d}") for number in range(1, starts + 1)]


def read_starts(starts: Sequence[Start]) -> list[Start]:
    """The starts that left records, with these."""
    found = []
    for start in starts:
        stored, broken = read_stored(start.folder)
        if stored or broken:
            found.append(replace(start, stored=stored, broken=broken))
    return found


def needed_starts(tests: int) -> int:
    """How many starts so many tests need, so that the most extreme outcome of one of them is evidence."""
    return needed_signs(ALPHA / max(1, tests))


def shows(same: Sequence[float], starts: int, tests: int, least_difference: float) -> float | None:
    """The difference (ratio) that nine of ten comparisons would show with so many starts of so many tests, if these
    scatter as the base does against itself (log ratios); None where that is not known, or they are too few."""
    if len(same) < 2 or starts < 1:
        return None
    shift = stdev(same) * to_be_seen(starts, 1 - ALPHA / max(1, tests)) if any(same) else 0.0
    return max(least_difference, math.expm1(shift)) if math.isfinite(shift) else None


def scatters(same: Sequence[Start]) -> dict[str, list[float]]:
    """Of the base against itself: the log ratios of each test by its name, of those that were measured."""
    return {records[0].record.test: logs for records, logs in _found(same).values() if logs}


def judge_starts(
    names: Mapping[Role, str],
    same: Sequence[Start],
    pairs: Sequence[Start],
    *,
    least_difference: float = LEAST_OF_PAIRS,
    only: Sequence[str] = (),
    counts: Counts | None = None,
) -> Comparison:
    """Compare the candidate with the base by starts of both, with those of the base against itself (`same`). The
    instructions of both are shown with the rates, and do not count in the judgement."""
    alone, nothing = _found(same), _Found([], [])
    chosen = {key: each for key, each in _found(pairs).items() if is_chosen(each.records[0].record, only)}
    family = sum(bool(each.logs) for each in chosen.values())
    tests = []
    for key, each in chosen.items():
        of_base = alone.get(key, nothing)
        tests.append(_compared(each, of_base, shows(of_base.logs, len(each.logs), family, least_difference)))
    base, candidate = (_side(role, names[role], [*same, *pairs]) for role in ("base", "candidate"))
    notes = versions_note(base, candidate)
    if not same:
        notes.append("The base was not measured against itself: what this machine can show is not known.")
    return whole(
        "pairs", base, candidate, judged(tests, _weigh, least_difference), least_difference=least_difference,
        notes=[*notes, *base.broken_note, *candidate.broken_note], counts=counts,
    )  # fmt: skip


class _Found(NamedTuple):
    """Of one test: the records of all starts, and the log ratios, candidate to base, of those that measured it."""

    records: list[Stored]
    logs: list[float]


def _found(starts: Sequence[Start]) -> dict[TestKey, _Found]:
    """What the starts found of each test. One start is one sample: where rows measure the same, the first one
    counts."""
    tests: dict[TestKey, _Found] = {}
    for start in starts:
        for key, (first, *_) in by_test(start.stored).items():
            test = tests.setdefault(key, _Found([], []))
            test.records.append(first)
            figure = first.record.figures.get("of_build")
            if figure and figure.value > 0 and first.record.verdict != "not measured":
                test.logs.append(start.exponent * math.log(figure.value))
    return tests


def _side(role: Role, name: str, starts: Sequence[Start]) -> Runs:
    """What a side is made of: the starts in which it was set up first, whose records have its facts."""
    own = [start for start in starts if start.first == role]
    return Runs(
        name,
        [start.folder for start in own],
        [each for start in own for each in start.stored],
        [each for start in own for each in start.broken],
    )


def _compared(test: _Found, same: _Found, can_show: float | None) -> ComparedTest:
    """The test with its p, where a start measured it."""
    logs, last = test.logs, test.records[-1].record
    ends = sign_flip_interval(logs, 1 - ALPHA) if logs else None
    ratio, p = (math.exp(hodges_lehmann(logs)), sign_flip_p(logs)) if logs else (None, None)
    return ComparedTest(
        **names_of(test.records[0].record),
        starts=Starts(
            ratios=[math.exp(each) for each in logs],
            records=[str(each.path) for each in test.records],
            ratio=ratio,
            low=ends and math.exp(ends[0]),
            high=ends and math.exp(ends[1]),
            same=[math.exp(each) for each in same.logs],
            same_records=[str(each.path) for each in same.records],
            shows=can_show,
        ),
        difference_pct=ratio and (ratio - 1) * 100,
        p_regressed=p,
        p_improved=p,
        judgement="not measurable",
        reason=f"No start measured it; the last one says: {last.verdict_reason.rstrip('.')}.",
    )


def _weigh(test: ComparedTest, family: int, least_difference: float) -> tuple[Judgement, str]:
    starts, p = test.starts, test.p_regressed_corrected
    assert starts and starts.ratio and p is not None, "a start measured it"
    count = len(starts.ratios)
    if least_sign_flip_p(count) * family >= ALPHA:
        return "not measurable", (
            f"{plural(count, 'start')} cannot show p < {ALPHA:g} among {plural(family, 'test')}: "
            f"{needed_starts(family)} are needed."
        )
    assert starts.low, "so many starts have an interval"
    difference = (starts.ratio - 1) * 100
    seen = f"{format_margin(difference)}, 99 % interval {interval(starts)}, of {count} starts"
    said = f"{seen}: with no difference between the builds that is seen with p = {p:.2g}"
    if p >= ALPHA:
        return "no evidence", f"{said}; a loss of more than {format_ratio(max(0.0, 1 - starts.low))} is ruled out."
    if abs(difference) <= least_difference * 100:
        return "no evidence", f"{seen}: there is a difference, and it is within {format_ratio(least_difference)}."
    return ("regressed" if difference < 0 else "improved"), f"{said}."
