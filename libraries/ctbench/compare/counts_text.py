"""Instructions of both sides as text: cells of a table, and what a reader has to know of them. Pure functions."""

from collections.abc import Sequence
from textwrap import wrap

from ctbench.base.markdown_text import escaped
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_margin
from ctbench.compare.counts import counts_note
from ctbench.compare.limits import SEES
from ctbench.results.comparison import Comparison, CountedTest, Counts, Functions, Grown
from ctbench.results.metrics import METRICS

WIDTH = 120


def counts_words(comparison: Comparison) -> list[str]:
    """What is said of the instructions, one sentence each; nothing where nobody asked for them."""
    counts = comparison.counts
    if counts is None:
        return []
    both = counts_note(comparison.judgement, counts) if comparison.kind == "pairs" else ""
    said = [] if comparison.kind == "counts" else [counts.sentence]
    return [*said, *([both] if both else []), *counts.notes, *([SEES] if counts.tests else [])]


def counted_cells(test: CountedTest) -> tuple[str, str, str, str]:
    """Base, candidate, difference, and what it is from the least to the most over the seeds."""
    difference = "-" if test.difference_pct is None else format_margin(test.difference_pct)
    known = test.low_pct is not None and test.high_pct is not None
    over = " to ".join(format_margin(end) for end in (test.low_pct or 0, test.high_pct or 0)) if known else "-"
    return _seeds(test.base), _seeds(test.candidate), difference, over


def _seeds(values: Sequence[float]) -> str:
    """What was counted with all seeds: `4,633.3`, `22,015.6 to 22,023.4`."""
    ends = list(dict.fromkeys(f"{end(values):,.1f}" for end in (min, max))) if values else ["-"]
    return " to ".join(ends)


def counted_table(counts: Counts) -> list[str]:
    """A table of a merge request's page."""
    lines = [
        "| instructions | topology, profile, metric | base | candidate | difference | over the seeds | judgement |",
        "|---|---|---|---|---|---|---|",
    ]
    for test in counts.tests:
        what = f"{escaped(test.topology)}, {escaped(test.profile)}, {escaped(METRICS[test.metric].title)}"
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {escaped(test.test)} | {what} | {' | '.join(counted_cells(test))} | {judged} |")
    return lines


def functions_title(functions: Functions) -> str:
    """What a table of functions is of."""
    return (
        f"{functions.test}: functions that grew most, of {functions.base:,.1f} and {functions.candidate:,.1f} "
        f"{METRICS[functions.metric].title} with wires and traffic"
    )


def grown_cells(each: Grown) -> tuple[str, str, str, str]:
    """A function, its instructions on both sides, and the difference."""
    return each.function, f"{each.base:,.1f}", f"{each.candidate:,.1f}", f"{each.candidate - each.base:+,.1f}"


def functions_lines(every: Sequence[Functions]) -> list[str]:
    """Tables of functions for the console."""
    lines = []
    for functions in every:
        lines += ["", *wrap(one_line(functions_title(functions)), WIDTH)]
        lines += ["  {:<70.70} {:>14} {:>14} {:>14}".format(*grown_cells(each)) for each in functions.grown]
    return lines


def functions_tables(every: Sequence[Functions]) -> list[str]:
    """The same for a merge request's page."""
    lines = []
    for functions in every:
        lines += [f"**{escaped(functions_title(functions))}**", ""]
        lines += ["| function | base | candidate | difference |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(map(escaped, grown_cells(each)))} |" for each in functions.grown] + [""]
    return lines


def counts_method(least: str) -> str:
    """How instructions were judged; `least`: what is no regression."""
    return (
        "Each side was booted in an emulated machine whose clock counts its instructions, once for each seed of the "
        "kernel's hash functions; figures are net of the wires and the traffic alone. *Over the seeds*: the least and "
        "the most that a seed of one side differs from a seed of the other. *Regressed*: the candidate costs more with "
        f"every seed, and by more than {least} in the median. *Not measurable*: a side was not counted."
    )
