"""The judgement of two installations that were measured side by side: each start of both is a sample, a ratio.

A start is the unit of replication: slices within one start share what a start decides (where memory lies, which core's
cache), so however many there are, their interval is that of one start.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.comparability import versions_note
from ctbench.compare.limits import ALPHA, LEAST_OF_PAIRS
from ctbench.compare.side import Runs
from ctbench.compare.starts import Role, Start
from ctbench.compare.verdicts import whole
from ctbench.results.comparison import ComparedTest, Comparison, Counts, Judgement, Starts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.sign_flip import (
    hodges_lehmann,
    least_sign_flip_p,
    needed_signs,
    sign_flip_interval,
    sign_flip_p,
    to_be_seen,
)
from ctbench.results.statistics import holm
from ctbench.results.store import Broken, Stored, read_stored

_RATIO = METRICS["of_build"]
#: A test: its topology's key and its profile.
_Key = tuple[str, str]


@dataclass(frozen=True)
class Measured:
    """A start with its records."""

    start: Start
    stored: tuple[Stored, ...]
    broken: tuple[Broken, ...] = ()


@dataclass
class _Test:
    """One test: the log ratios, candidate to base, of the starts that measured it, and the records of all."""

    records: list[Stored]
    logs: list[float]
    same_records: list[Stored]
    same: list[float]

    @property
    def any(self) -> Record:
        """A record to take the names from."""
        return self.records[0].record

    def says(self, only: Sequence[str]) -> bool:
        """Whether it has one of these texts in its names; where there are none, always."""
        one = self.any
        words = f"{one.suite} {one.test} {one.topology.key} {one.profile.name}".lower()
        return not only or any(text.lower() in words for text in only)


def read_starts(starts: Sequence[Start]) -> list[Measured]:
    """The starts that left records."""
    found = []
    for start in starts:
        stored, broken = read_stored(start.folder)
        if stored or broken:
            found.append(Measured(start, tuple(stored), tuple(broken)))
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


def scatters(same: Sequence[Measured]) -> dict[str, list[float]]:
    """Of the base against itself: the log ratios of each test by its name, of those that were measured."""
    tests: dict[_Key, _Test] = {}
    for measured in same:
        _add(tests, measured, same=False)
    return {found.any.test: found.logs for found in tests.values() if found.logs}


def judge_starts(
    names: Mapping[Role, str],
    same: Sequence[Measured],
    pairs: Sequence[Measured],
    *,
    least_difference: float = LEAST_OF_PAIRS,
    only: Sequence[str] = (),
    counts: Counts | None = None,
) -> Comparison:
    """Compare the candidate with the base by starts of both, with those of the base against itself (`same`). The
    instructions of both stand beside the rates, and are no part of the judgement."""
    found: dict[_Key, _Test] = {}
    for measured in pairs:
        _add(found, measured, same=False)
    for measured in same:
        _add(found, measured, same=True)
    chosen = [test for test in found.values() if test.says(only)]
    ps = iter(holm([sign_flip_p(test.logs) for test in chosen if test.logs]))
    family = sum(bool(test.logs) for test in chosen)
    how = _How(family, least_difference)
    tests = [how.judge(test, next(ps) if test.logs else None) for test in chosen]
    base, candidate = (_side(role, names[role], [*same, *pairs]) for role in ("base", "candidate"))
    return whole(
        "pairs", base, candidate, tests,
        family=family, least_difference=least_difference, notes=_notes(base, candidate, same), counts=counts,
    )  # fmt: skip


@dataclass(frozen=True)
class _How:
    """What a test is compared with."""

    family: int
    least_difference: float

    def judge(self, test: _Test, corrected: float | None) -> ComparedTest:
        """The test with its judgement; `corrected`: its p after the correction for all tests."""
        interval = sign_flip_interval(test.logs, 1 - ALPHA) if test.logs else None
        middle = hodges_lehmann(test.logs) if test.logs else None
        judgement, reason = self._weigh(test, middle, interval, corrected)
        p = sign_flip_p(test.logs) if test.logs else None
        record = test.any
        return ComparedTest(
            suite=record.suite,
            test=record.test,
            topology=record.topology.key,
            profile=record.profile.name,
            metric=_RATIO.name,
            unit=_RATIO.unit.name,
            starts=Starts(
                ratios=[math.exp(each) for each in test.logs],
                records=[str(each.path) for each in test.records],
                ratio=None if middle is None else math.exp(middle),
                low=interval and math.exp(interval[0]),
                high=interval and math.exp(interval[1]),
                same=[math.exp(each) for each in test.same],
                same_records=[str(each.path) for each in test.same_records],
                shows=shows(test.same, len(test.logs), self.family, self.least_difference),
            ),
            base=None,
            candidate=None,
            difference_pct=None if middle is None else math.expm1(middle) * 100,
            p_regressed=p,
            p_improved=p,
            p_regressed_corrected=corrected,
            p_improved_corrected=corrected,
            judgement=judgement,
            reason=reason,
        )

    def _weigh(
        self, test: _Test, middle: float | None, interval: tuple[float, float] | None, corrected: float | None
    ) -> tuple[Judgement, str]:
        if middle is None or corrected is None:
            last = test.records[-1].record
            return "not measurable", f"No start measured it; the last one says: {last.verdict_reason.rstrip('.')}."
        starts = len(test.logs)
        if least_sign_flip_p(starts) * self.family >= ALPHA:
            return "not measurable", (
                f"{starts} start{'s' * (starts != 1)} cannot show p < {ALPHA:g} among {self.family} "
                f"test{'s' * (self.family != 1)}: {needed_starts(self.family)} are needed."
            )
        assert interval is not None, "so many starts have one"
        seen = f"{percent(middle)}, 99 % interval {between(*interval)}, of {starts} starts"
        far = abs(math.expm1(middle)) > self.least_difference
        if corrected >= ALPHA:
            ruled_out = f"a loss of more than {format_ratio(max(0.0, -math.expm1(interval[0])))} is ruled out"
            return "no evidence", (
                f"{seen}: with no difference between the builds that is seen with p = {corrected:.2g}; {ruled_out}."
            )
        if not far:
            return (
                "no evidence",
                f"{seen}: there is a difference, and it is within {format_ratio(self.least_difference)}.",
            )
        word: Judgement = "regressed" if middle < 0 else "improved"
        return word, f"{seen}: with no difference between the builds that is seen with p = {corrected:.2g}."


def percent(log: float) -> str:
    """A log ratio as people read it: `-4.9 %`."""
    return format_margin(math.expm1(log) * 100)


def between(low: float, high: float) -> str:
    """An interval of log ratios."""
    return f"{percent(low)} to {percent(high)}"


def _add(tests: dict[_Key, _Test], measured: Measured, *, same: bool) -> None:
    """Put the records of a start to their tests. One start is one sample: where rows measure the same, the first one
    counts. What only the base against itself has is no test."""
    seen: set[_Key] = set()
    for each in measured.stored:
        key = (each.record.topology.key, each.record.profile.name)
        if key in seen or (same and key not in tests):
            continue
        seen.add(key)
        test = tests.setdefault(key, _Test([], [], [], []))
        logs, records = (test.same, test.same_records) if same else (test.logs, test.records)
        records.append(each)
        figure = each.record.figures.get(_RATIO.name)
        if figure and figure.value > 0 and each.record.verdict != "not measured":
            logs.append(measured.start.exponent * math.log(figure.value))


def _side(role: Role, name: str, measured: Sequence[Measured]) -> Runs:
    """What a side is made of: the starts in which it was set up first, whose records have its facts."""
    own = [each for each in measured if each.start.first == role]
    return Runs(
        name,
        tuple(each.start.folder for each in own),
        tuple(stored for each in own for stored in each.stored),
        tuple(broken for each in own for broken in each.broken),
    )


def _notes(base: Runs, candidate: Runs, same: Sequence[Measured]) -> list[str]:
    notes = versions_note(base, candidate)
    if not same:
        notes.append("The base was not measured against itself: what this machine can show is not known.")
    notes += [
        f"{len(side.broken)} files of {side.name} are no records and were left out."
        for side in (base, candidate)
        if side.broken
    ]
    return notes
