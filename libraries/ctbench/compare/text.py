"""A comparison as text: tables for the console, and compare.md for a merge request. Pure functions.

Every line for the console fits 120 columns. `ctbench.compare.page` says the same on a page.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from textwrap import wrap
from typing import NamedTuple

from ctbench.base.text import escaped, one_line
from ctbench.base.units import format_margin, format_share
from ctbench.compare.judge import overall
from ctbench.compare.limits import SEES
from ctbench.report.labels import plural
from ctbench.results.comparison import (
    ComparedSide,
    ComparedTest,
    Comparison,
    CountedTest,
    Functions,
    Grown,
    Kind,
    Samples,
    Starts,
)
from ctbench.results.metrics import METRICS

WIDTH = 120
_ROW: dict[Kind, str] = {
    "counts": "{:<34.34}  {:>18}  {:>18}  {:>10}  {:>18}  {}",
    "pairs": "{:<50.50}  {:>10}  {:>18}  {:>8}  {:>8}  {}",
    "runs": "{:<50.50}  {:>12}  {:>12}  {:>10}  {:>8}  {}",
}
#: The columns of a kind, between its test and the judgement. The console has the first four.
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "counts": ("base", "candidate", "difference", "over the seeds"),
    "pairs": ("difference", "99 % interval", "p", "can show", "starts"),
    "runs": ("base", "candidate", "difference", "p"),
}
_OF_COUNTS = (
    "Each side was booted in an emulated machine whose clock counts its instructions, once for each seed of the "
    "kernel's hash functions; figures are net of the wires and the traffic alone. *Over the seeds*: the least and "
    "the most that a seed of one side differs from a seed of the other. *Regressed*: the candidate costs more with "
    "every seed, and by more than {least} in the median. *Not measurable*: a side was not counted."
)
AnyTests = Sequence[ComparedTest | CountedTest]


class Figure(NamedTuple):
    """A place of a row: a figure, what is said of it in small, and the records that it is from."""

    text: str
    small: str = ""
    records: Sequence[str] = ()


def console(comparison: Comparison) -> str:
    """What was compared, a row for each test with the reason where it is not plain, and the judgement."""
    lines = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    lines += [f"NOT ALIKE: {text}" for text in comparison.differences]
    for kind, tests in tables(comparison):
        row, what = _ROW[kind], "instructions" if kind == "counts" else "test"
        lines += ["", row.format(what, *COLUMNS[kind][:4], "judgement"), "-" * WIDTH]
        for test in tests:
            word = test.judgement if test.judgement == "no evidence" else test.judgement.upper()
            lines.append(row.format(one_line(test.test), *(each.text for each in figures(test)[:4]), word))
            if test.judgement == "not measurable":
                lines += wrap(test.reason, WIDTH, initial_indent="    ", subsequent_indent="    ")
    for functions in functions_of(comparison):
        lines += ["", *wrap(one_line(functions_title(functions)), WIDTH)]
        lines += ["  {:<70.70} {:>14} {:>14} {:>14}".format(*grown_cells(each)) for each in functions.grown]
    lines += ["-" * WIDTH, comparison.sentence]
    for note in (*counts_words(comparison), *comparison.notes):
        lines += wrap(note, WIDTH) if " " in note else [note]
    return "\n".join(lines)


def markdown(comparison: Comparison) -> str:
    """The same as a page for a merge request, with the spread of each side and every reason."""
    lines = [f"# {comparison.sentence}", ""]
    if comparison.differences:
        lines += ["> **These runs are not alike**, so a difference may not be the build's:", ">"]
        lines += [f"> - {escaped(text)}" for text in comparison.differences] + [""]
    for kind, tests in tables(comparison):
        lines += [*_markdown_table(kind, tests), ""]
    for functions in functions_of(comparison):
        lines += [f"**{escaped(functions_title(functions))}**", ""]
        lines += ["| function | base | candidate | difference |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(map(escaped, grown_cells(each)))} |" for each in functions.grown] + [""]
    said = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    lines += [f"- {escaped(text)}" for text in (*said, *counts_words(comparison), *comparison.notes)]
    return "\n".join([*lines, "", method(comparison)]) + "\n"


def _markdown_table(kind: Kind, tests: AnyTests) -> list[str]:
    names = "topology, profile" if kind == "pairs" else "topology, profile, metric"
    heads = ["instructions" if kind == "counts" else "test", names, *COLUMNS[kind], "judgement"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for test in tests:
        told = [f"{text} ({small})" if text and small else text or small for text, small, _ in figures(test)]
        of = f"{escaped(test.topology)}, {escaped(what_of(kind, test))}"
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {' | '.join([escaped(test.test), of, *told, judged])} |")
    return lines


def what_of(kind: Kind, test: ComparedTest | CountedTest) -> str:
    """What a row is of besides its topology; of pairs the metric is the same everywhere."""
    return test.profile if kind == "pairs" else f"{test.profile}, {METRICS[test.metric].title}"


def tables(comparison: Comparison) -> list[tuple[Kind, AnyTests]]:
    """The tables of a comparison: of rates, and of instructions."""
    found: list[tuple[Kind, AnyTests]] = []
    if comparison.kind != "counts":
        found.append((comparison.kind, comparison.tests))
    if comparison.counts and comparison.counts.tests:
        found.append(("counts", comparison.counts.tests))
    return found


def functions_of(comparison: Comparison) -> Sequence[Functions]:
    """The functions that grew, of tests that differ."""
    return comparison.counts.functions if comparison.counts else ()


def figures(test: ComparedTest | CountedTest) -> list[Figure]:
    """A row's figures, one for each of its `COLUMNS`."""
    difference = Figure("-" if test.difference_pct is None else format_margin(test.difference_pct))
    if isinstance(test, CountedTest):
        sides = ((test.base, test.base_record), (test.candidate, test.candidate_record))
        counted = [Figure(_seeds(values), "", [record] if record else []) for values, record in sides]
        return [*counted, difference, Figure(_between(test.low_pct, test.high_pct))]
    p, starts = Figure("-" if test.p is None else f"{test.p:.2g}"), test.starts
    if starts is None:
        return [_samples(test, test.base), _samples(test, test.candidate), difference, p]
    shows = "-" if starts.shows is None else format_share(starts.shows)
    same = f"base against itself: {plural(len(starts.same), 'start')}" if starts.same else ""
    ends = [_pct(end(starts.ratios)) for end in (min, max)] if starts.ratios else []
    made = plural(len(starts.ratios), "start") + (f", {_between(*ends)}" if ends else "")
    return [
        difference, Figure(interval(starts)), p, Figure(shows, same, starts.same_records),
        Figure("", made, starts.records),
    ]  # fmt: skip


def _seeds(values: Sequence[float]) -> str:
    """What was counted with all seeds: `4,633.3`, `22,015.6 to 22,023.4`."""
    ends = list(dict.fromkeys(f"{end(values):,.1f}" for end in (min, max))) if values else ["-"]
    return " to ".join(ends)


def _samples(test: ComparedTest, side: Samples | None) -> Figure:
    if side is None:
        return Figure("-")
    metric = METRICS[test.metric]
    spread = f", spread {format_share(side.spread)}" if side.spread is not None else ""
    said = f"{f'{metric.operator} ' if side.censored else ''}{metric.format(side.median)}"
    return Figure(said, f"{plural(len(side.values), 'sample')}{spread}", side.records)


def interval(starts: Starts) -> str:
    """The 99 % interval of the difference: `-6.1 % to -3.8 %`; a dash without one."""
    return _between(starts.low and _pct(starts.low), starts.high and _pct(starts.high))


def _between(low: float | None, high: float | None) -> str:
    """From one difference in percent to another; a dash where there is none."""
    return "-" if low is None or high is None else f"{format_margin(low)} to {format_margin(high)}"


def _pct(ratio: float) -> float:
    return (ratio - 1) * 100


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


def counts_words(comparison: Comparison) -> list[str]:
    """What is said of the instructions, one sentence each; nothing where they were not asked for."""
    counts = comparison.counts
    if counts is None:
        return []
    said = [] if comparison.kind == "counts" else [counts.sentence]
    rates, found = comparison.judgement, overall(counts.tests)
    if comparison.kind == "pairs" and counts.tests and "not measurable" not in (rates, found):
        differ = f"disagree: {rates} by rates, {found} by instructions"
        said.append(f"Rates and instructions {f'agree: {found}' if rates == found else differ}.")
    return [*said, *counts.notes, *([SEES] if counts.tests else [])]


def functions_title(functions: Functions) -> str:
    """What a table of functions is of."""
    return (
        f"{functions.test}: functions that grew most, of {functions.base:,.1f} and {functions.candidate:,.1f} "
        f"{METRICS[functions.metric].title} with wires and traffic"
    )


def grown_cells(each: Grown) -> tuple[str, str, str, str]:
    """A function, its instructions on both sides, and the difference."""
    return each.function, f"{each.base:,.1f}", f"{each.candidate:,.1f}", f"{each.candidate - each.base:+,.1f}"


def _side(role: str, side: ComparedSide) -> list[str]:
    """What one side is made of; folders are as long as they are, everything else fits."""
    facts = [", ".join(values) for values in (side.versions, side.machines, side.kernels, side.campaigns) if values]
    runs = f"{len(side.folders)} run{'s' if len(side.folders) > 1 else ''}, {side.records} records"
    return [f"{role}: {side.name} ({runs})", f"  {'; '.join(facts)}"]


def method(comparison: Comparison) -> str:
    """How it was judged, for a reader who has nothing but the page."""
    least = f"{comparison.least_difference * 100:g} %"
    if comparison.kind == "counts":
        return _OF_COUNTS.format(least=least)
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
