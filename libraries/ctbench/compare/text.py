"""A comparison as text: tables for the console, and compare.md for a merge request. Pure functions.

Every line for the console fits 120 columns. `ctbench.compare.page` says the same on a page.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from ctbench.base.text import escaped, one_line
from ctbench.base.units import format_margin, format_share
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
)
from ctbench.results.metrics import METRICS

WIDTH = 120
_ROW: dict[Kind, str] = {
    "counts": "{:<34.34}  {:>18}  {:>18}  {:>10}  {:>18}  {}",
    "runs": "{:<50.50}  {:>12}  {:>12}  {:>10}  {:>8}  {}",
}
#: The columns of a kind, between its test and the judgement. The console has the first four.
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "counts": ("base", "candidate", "difference", "over the seeds"),
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
    heads = ["instructions" if kind == "counts" else "test", "topology, profile, metric", *COLUMNS[kind], "judgement"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for test in tests:
        told = [f"{text} ({small})" if text and small else text or small for text, small, _ in figures(test)]
        of = f"{escaped(test.topology)}, {escaped(what_of(test))}"
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {' | '.join([escaped(test.test), of, *told, judged])} |")
    return lines


def what_of(test: ComparedTest | CountedTest) -> str:
    """What a row is of besides its topology."""
    return f"{test.profile}, {METRICS[test.metric].title}"


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
    p = Figure("-" if test.p is None else f"{test.p:.2g}")
    return [_samples(test, test.base), _samples(test, test.candidate), difference, p]


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


def _between(low: float | None, high: float | None) -> str:
    """From one difference in percent to another; a dash where there is none."""
    return "-" if low is None or high is None else f"{format_margin(low)} to {format_margin(high)}"


def counts_words(comparison: Comparison) -> list[str]:
    """What is said of the instructions, one sentence each; nothing where they were not asked for."""
    counts = comparison.counts
    return [*counts.notes, *([SEES] if counts.tests else [])] if counts else []


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
    return (
        "Medians of the samples; spread is (maximum - minimum) / median. *p*: how often samples are as far apart as "
        "these, or farther, when the sides do not differ (exact one-sided permutation test of the ranks, corrected for "
        f"{tests} by Holm's method). *Regressed*: the median got worse by more than {least} and by more than the "
        f"search can tell, and p < {comparison.alpha:g}. *Not measurable*: with so few samples no p could be that "
        "small, or a side measured nothing."
    )
