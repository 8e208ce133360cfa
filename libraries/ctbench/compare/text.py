"""A comparison as text: a table for the console, and compare.md for a merge request. Pure functions.

Every line for the console fits 120 columns.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from textwrap import wrap

from ctbench.base.markdown_text import escaped
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_margin, format_ratio, format_share
from ctbench.compare.counts_text import (
    WIDTH,
    counted_cells,
    counted_table,
    counts_method,
    counts_words,
    functions_lines,
    functions_tables,
)
from ctbench.results.comparison import (
    ComparedTest,
    Comparison,
    CountedTest,
    Judgement,
    Kind,
    Samples,
    Side,
    Starts,
)
from ctbench.results.metrics import METRICS

_ROW: dict[Kind, str] = {
    "counts": "{:<34.34}  {:>18}  {:>18}  {:>10}  {:>18}  {}",
    "pairs": "{:<50.50}  {:>10}  {:>18}  {:>8}  {:>8}  {}",
    "runs": "{:<50.50}  {:>12}  {:>12}  {:>10}  {:>8}  {}",
}
_HEAD: dict[Kind, tuple[str, ...]] = {
    "counts": (
        "instructions",
        "base",
        "candidate",
        "difference",
        "over the seeds",
        "judgement",
    ),
    "pairs": ("test", "difference", "99 % interval", "p", "can show", "judgement"),
    "runs": ("test", "base", "candidate", "difference", "p", "judgement"),
}
_WORDS: dict[Judgement, str] = {
    "regressed": "REGRESSED", "not measurable": "NOT MEASURABLE", "improved": "IMPROVED", "no evidence": "no evidence",
}  # fmt: skip


def console(comparison: Comparison) -> str:
    """What was compared, a row for each test with the reason where it is not plain, and the judgement."""
    lines = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    lines += [f"NOT ALIKE: {text}" for text in comparison.differences]
    if comparison.kind != "counts":
        lines += _rows(comparison.kind, comparison.tests)
    if comparison.counts:
        lines += _rows("counts", comparison.counts.tests) if comparison.counts.tests else []
        lines += functions_lines(comparison.counts.functions)
    lines += ["-" * WIDTH, comparison.sentence]
    for note in (*counts_words(comparison), *comparison.notes):
        lines += wrap(note, WIDTH) if " " in note else [note]
    return "\n".join(lines)


def _rows(kind: Kind, tests: Sequence[ComparedTest] | Sequence[CountedTest]) -> list[str]:
    """A table for the console."""
    row = _ROW[kind]
    lines = ["", row.format(*_HEAD[kind]), "-" * WIDTH]
    for test in tests:
        lines.append(row.format(one_line(test.test), *_cells_of(test), _WORDS[test.judgement]))
        if test.judgement == "not measurable":
            lines += wrap(test.reason, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return lines


def _cells_of(test: ComparedTest | CountedTest) -> tuple[str, ...]:
    if isinstance(test, CountedTest):
        return counted_cells(test)
    return _cells(test) if test.starts is None else _paired_cells(test, test.starts)


def markdown(comparison: Comparison) -> str:
    """The same as a page for a merge request, with the spread of each side and every reason."""
    lines = [f"# {comparison.sentence}", ""]
    if comparison.differences:
        lines += ["> **These runs are not alike**, so a difference may not be the build's:", ">"]
        lines += [f"> - {escaped(text)}" for text in comparison.differences] + [""]
    if comparison.kind != "counts":
        lines += [*(_paired_table(comparison) if comparison.kind == "pairs" else _table(comparison)), ""]
    if comparison.counts and comparison.counts.tests:
        lines += [*counted_table(comparison.counts), "", *functions_tables(comparison.counts.functions)]
    lines += [
        *(
            f"- {escaped(line)}"
            for line in [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
        ),
    ]
    lines += [f"- {escaped(text)}" for text in (*counts_words(comparison), *comparison.notes)]
    lines += ["", method(comparison)]
    return "\n".join(lines) + "\n"


def method(comparison: Comparison) -> str:
    """How it was judged, for a reader who has nothing but the page."""
    least = f"{comparison.least_difference * 100:g} %"
    if comparison.kind == "counts":
        return counts_method(least)
    tests = "one test" if comparison.family == 1 else f"{comparison.family} tests"
    if comparison.kind == "pairs":
        return (
            "Both builds were set up side by side and took turns of some hundredths of a second; a start of both gives "
            "one ratio, candidate to base. *Difference*: the middle of these ratios (Hodges and Lehmann, of their "
            "logarithms), with its exact 99 % interval. *p*: how often the ratios are as far from 1 as these, or "
            "farther, when the builds do not differ (exact two-sided sign-flip test of the logarithms, corrected for "
            f"{tests} by Holm's method). *Can show*: the difference that nine of ten such comparisons would find, by "
            "the scatter of the base against itself. *Regressed*: the candidate is slower by more than "
            f"{least}, and p < {comparison.alpha:g}. *Not measurable*: with so few starts no p could be that small, or "
            "no start measured it."
        )
    return (
        "Medians of the samples; spread is (maximum - minimum) / median. *p*: how often samples are as far apart as "
        "these, or farther, when the sides do not differ (exact one-sided permutation test of the ranks, corrected for "
        f"{tests} by Holm's method). *Regressed*: the median got worse by more than {least} and by more than the "
        f"search can tell, and p < {comparison.alpha:g}. *Not measurable*: with so few samples no p could be that "
        "small, or a side measured nothing."
    )


def interval(starts: Starts) -> str:
    """The 99 % interval of the difference: `-6.1 % to -3.8 %`; a dash without one."""
    if starts.low is None or starts.high is None:
        return "-"
    return " to ".join(format_margin((end - 1) * 100) for end in (starts.low, starts.high))


def can_show(starts: Starts) -> str:
    """The difference that this machine can show; a dash where it is not known."""
    return "-" if starts.shows is None else format_share(starts.shows)


def what_it_shows(shown: Mapping[str, float | None], starts: int) -> str:
    """What the base against itself says of the comparison to come, by test: `this machine can show 2.4 %`."""
    known = {test: size for test, size in shown.items() if size is not None}
    if not known:
        return f"what this machine can show with {starts} starts is not known"
    worst = max(known, key=lambda test: known[test])
    if len(known) == 1:
        return f"this machine can show {format_share(known[worst])} with {starts} starts"
    least, middle = min(known.values()), median(known.values())
    return (
        f"this machine can show {format_share(least)} to {format_share(known[worst])} with {starts} starts, "
        f"{format_share(middle)} in the median of {len(known)} tests; the least exact is {one_line(worst)}"
    )


def _table(comparison: Comparison) -> list[str]:
    lines = [
        "| test | topology, profile, metric | base | candidate | difference | p | judgement |",
        "|---|---|---|---|---|---|---|",
    ]
    for test in comparison.tests:
        what = f"{escaped(test.topology)}, {escaped(test.profile)}, {escaped(METRICS[test.metric].title)}"
        values = f"{_with_spread(test, test.base)} | {_with_spread(test, test.candidate)}"
        _, _, difference, p = _cells(test)
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {escaped(test.test)} | {what} | {values} | {difference} | {p} | {judged} |")
    return lines


def _paired_table(comparison: Comparison) -> list[str]:
    lines = [
        "| test | topology, profile | difference | 99 % interval | p | can show | starts | judgement |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for test in comparison.tests:
        assert test.starts is not None, "it is of pairs"
        what = f"{escaped(test.topology)}, {escaped(test.profile)}"
        cells = " | ".join(_paired_cells(test, test.starts))
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {escaped(test.test)} | {what} | {cells} | {len(test.starts.ratios)} | {judged} |")
    return lines


def _paired_cells(test: ComparedTest, starts: Starts) -> tuple[str, str, str, str]:
    """Difference, interval, corrected p, and what this machine can show."""
    _, _, difference, p = _cells(test)
    return difference, interval(starts), p, can_show(starts)


def _cells(test: ComparedTest) -> tuple[str, str, str, str]:
    """Base, candidate, difference and the corrected p in the direction of the difference."""
    difference = "-" if test.difference_pct is None else format_margin(test.difference_pct)
    p = "-" if test.p is None else f"{test.p:.2g}"
    return _median(test, test.base), _median(test, test.candidate), difference, p


def _median(test: ComparedTest, side: Samples | None) -> str:
    if side is None:
        return "-"
    metric = METRICS[test.metric]
    return f"{f'{metric.operator} ' if side.censored else ''}{metric.format(side.median)}"


def _with_spread(test: ComparedTest, side: Samples | None) -> str:
    if side is None:
        return "-"
    spread = "" if side.spread is None else f" (spread {format_ratio(side.spread)}, {len(side.values)} samples)"
    return f"{_median(test, side)}{spread}"


def _side(role: str, side: Side) -> list[str]:
    """What one side is made of; folders are as long as they are, everything else fits."""
    facts = [", ".join(values) for values in (side.versions, side.machines, side.kernels, side.campaigns) if values]
    runs = f"{len(side.folders)} run{'s' if len(side.folders) > 1 else ''}, {side.records} records"
    return [f"{role}: {side.name} ({runs})", f"  {'; '.join(facts)}"]
