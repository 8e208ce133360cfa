"""Starts of two installations side by side: which there are, and their judgement. Each start of both is a sample, a
ratio.

A start is one run of the suites in which each test sets both builds up again and serves them in turn
(`ctbench.measure.procedures.pair`). The builds change roles from start to start: what favours the one that is set up
first favours each as often. A start is the unit of replication: slices within one start share what a start decides
(where memory lies, which core's cache), so however many there are, their interval is that of one start.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

from ctbench.base.units import format_margin, format_ratio
from ctbench.compare.judge import P_NAMES, whole
from ctbench.compare.limits import ALPHA, LEAST_OF_PAIRS
from ctbench.compare.sides import Role, Runs, is_chosen, names_of, versions_note
from ctbench.results.comparison import ComparedTest, Comparison, Counts, Judgement, Starts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.statistics import (
    hodges_lehmann,
    holm,
    least_sign_flip_p,
    needed_signs,
    sign_flip_interval,
    sign_flip_p,
    to_be_seen,
)
from ctbench.results.store import Broken, Stored, read_stored

#: Folders of the base against itself, and of the candidate against the base.
SAME, PAIRS = "base-against-itself", "starts"
_RATIO = METRICS["of_build"]
#: A test: its topology's key and its profile.
_Key = tuple[str, str]


@dataclass(frozen=True)
class Start:
    """One start of both builds."""

    number: int
    #: Which is set up first, and whose rate is divided by the other's; and which is the other.
    first: Role
    second: Role
    folder: Path

    @property
    def exponent(self) -> int:
        """What turns `first / second` into `candidate / base`; of the base against itself, by turns as well."""
        return 1 if self.number % 2 else -1


def same_starts(output: Path, starts: int) -> Iterator[Start]:
    """The base against itself: `<output>/base-against-itself/01` and so on."""
    for number in range(1, starts + 1):
        yield Start(number, "base", "base", output / SAME / f"{number:02d}")


def pair_starts(output: Path, starts: int) -> Iterator[Start]:
    """The candidate against the base: `<output>/starts/01` and so on."""
    for number in range(1, starts + 1):
        roles: tuple[Role, Role] = ("candidate", "base") if number % 2 else ("base", "candidate")
        yield Start(number, *roles, output / PAIRS / f"{number:02d}")


@dataclass(frozen=True)
class Measured:
    """A start with its records."""

    start: Start
    stored: tuple[Stored, ...]
    broken: tuple[Broken, ...] = ()


def read_starts(starts: Sequence[Start]) -> list[Measured]:
    """The starts that left records."""
    found = ((start, *read_stored(start.folder)) for start in starts)
    return [Measured(start, tuple(stored), tuple(broken)) for start, stored, broken in found if stored or broken]


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
    return {found.any.test: found.logs for found in _tests(same) if found.logs}


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
    instructions of both are shown with the rates, and do not count in the judgement."""
    chosen = [test for test in _tests(pairs, same) if is_chosen(test.any, "", only)]
    corrected = iter(holm([sign_flip_p(test.logs) for test in chosen if test.logs]))
    family = sum(bool(test.logs) for test in chosen)
    tests = [_judge(test, next(corrected) if test.logs else None, family, least_difference) for test in chosen]
    base, candidate = (_side(role, names[role], [*same, *pairs]) for role in ("base", "candidate"))
    notes = versions_note(base, candidate)
    if not same:
        notes.append("The base was not measured against itself: what this machine can show is not known.")
    return whole(
        "pairs", base, candidate, tests, family=family, least_difference=least_difference,
        notes=[*notes, *base.broken_note, *candidate.broken_note], counts=counts,
    )  # fmt: skip


def _tests(pairs: Sequence[Measured], same: Sequence[Measured] = ()) -> list[_Test]:
    """What the starts measured. One start is one sample: where rows measure the same, the first one counts. What only
    the base against itself has is not a test."""
    tests: dict[_Key, _Test] = {}
    for number, measured in enumerate((*pairs, *same)):
        of_pairs, seen = number < len(pairs), set[_Key]()
        for each in measured.stored:
            key = (each.record.topology.key, each.record.profile.name)
            if key in seen or not (of_pairs or key in tests):
                continue
            seen.add(key)
            test = tests.setdefault(key, _Test([], [], [], []))
            logs, records = (test.logs, test.records) if of_pairs else (test.same, test.same_records)
            records.append(each)
            figure = each.record.figures.get(_RATIO.name)
            if figure and figure.value > 0 and each.record.verdict != "not measured":
                logs.append(measured.start.exponent * math.log(figure.value))
    return list(tests.values())


def _side(role: Role, name: str, measured: Sequence[Measured]) -> Runs:
    """What a side is made of: the starts in which it was set up first, whose records have its facts."""
    own = [each for each in measured if each.start.first == role]
    return Runs(
        name,
        tuple(each.start.folder for each in own),
        tuple(stored for each in own for stored in each.stored),
        tuple(broken for each in own for broken in each.broken),
    )


def _judge(test: _Test, corrected: float | None, family: int, least_difference: float) -> ComparedTest:
    """The test with its judgement; `corrected`: its p after the correction for all tests."""
    interval = sign_flip_interval(test.logs, 1 - ALPHA) if test.logs else None
    middle = hodges_lehmann(test.logs) if test.logs else None
    judgement, reason = _weigh(test, middle, interval, corrected, family, least_difference)
    p = sign_flip_p(test.logs) if test.logs else None
    return ComparedTest(
        **names_of(test.any, _RATIO),
        starts=Starts(
            ratios=[math.exp(each) for each in test.logs],
            records=[str(each.path) for each in test.records],
            ratio=None if middle is None else math.exp(middle),
            low=interval and math.exp(interval[0]),
            high=interval and math.exp(interval[1]),
            same=[math.exp(each) for each in test.same],
            same_records=[str(each.path) for each in test.same_records],
            shows=shows(test.same, len(test.logs), family, least_difference),
        ),
        base=None,
        candidate=None,
        difference_pct=None if middle is None else math.expm1(middle) * 100,
        **dict(zip(P_NAMES, (p, p, corrected, corrected), strict=True)),
        judgement=judgement,
        reason=reason,
    )


def _weigh(
    test: _Test,
    middle: float | None,
    interval: tuple[float, float] | None,
    corrected: float | None,
    family: int,
    least_difference: float,
) -> tuple[Judgement, str]:
    if middle is None or corrected is None:
        last = test.records[-1].record
        return "not measurable", f"No start measured it; the last one says: {last.verdict_reason.rstrip('.')}."
    starts = len(test.logs)
    if least_sign_flip_p(starts) * family >= ALPHA:
        return "not measurable", (
            f"{starts} start{'s' * (starts != 1)} cannot show p < {ALPHA:g} among {family} "
            f"test{'s' * (family != 1)}: {needed_starts(family)} are needed."
        )
    assert interval is not None, "so many starts have one"
    between = " to ".join(map(_percent, interval))
    seen = f"{_percent(middle)}, 99 % interval {between}, of {starts} starts"
    said = f"{seen}: with no difference between the builds that is seen with p = {corrected:.2g}"
    if corrected >= ALPHA:
        ruled_out = format_ratio(max(0.0, -math.expm1(interval[0])))
        return "no evidence", f"{said}; a loss of more than {ruled_out} is ruled out."
    if abs(math.expm1(middle)) <= least_difference:
        return "no evidence", f"{seen}: there is a difference, and it is within {format_ratio(least_difference)}."
    return ("regressed" if middle < 0 else "improved"), f"{said}."


def _percent(log: float) -> str:
    """A log ratio as people read it: `-4.9 %`."""
    return format_margin(math.expm1(log) * 100)
