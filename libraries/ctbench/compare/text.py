"""A comparison as text: tables for the console, and compare.md for a merge request. Pure functions.

Every line for the console fits 120 columns. `ctbench.compare.page` says the same on a page.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from ctbench.base.text import escaped, one_line
from ctbench.base.units import format_margin
from ctbench.compare.limits import SEES
from ctbench.results.comparison import ComparedSide, Comparison, CountedTest, Functions, Grown
from ctbench.results.metrics import METRICS

WIDTH = 120
_ROW = "{:<34.34}  {:>18}  {:>18}  {:>10}  {:>18}  {}"
#: The columns between a test and its judgement. The console has the first four.
COLUMNS = ("base", "candidate", "difference", "over the seeds")
_METHOD = (
    "Each side was booted in an emulated machine whose clock counts its instructions, once for each seed of the "
    "kernel's hash functions; figures are net of the wires and the traffic alone. *Over the seeds*: the least and "
    "the most that a seed of one side differs from a seed of the other. *Regressed*: the candidate costs more with "
    "every seed, and by more than {least} in the median. *Not measurable*: a side was not counted."
)


class Figure(NamedTuple):
    """A place of a row: a figure, and the record that it is from."""

    text: str
    record: str = ""


def console(comparison: Comparison) -> str:
    """What was compared, a row for each test with the reason where it is not plain, and the judgement."""
    lines = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    if tests := comparison.counts.tests:
        lines += ["", _ROW.format("instructions", *COLUMNS, "judgement"), "-" * WIDTH]
    for test in tests:
        word = test.judgement if test.judgement == "no evidence" else test.judgement.upper()
        lines.append(_ROW.format(one_line(test.test), *(each.text for each in figures(test)), word))
        if test.judgement == "not measurable":
            lines += wrap(test.reason, WIDTH, initial_indent="    ", subsequent_indent="    ")
    for functions in comparison.counts.functions:
        lines += ["", *wrap(one_line(functions_title(functions)), WIDTH)]
        lines += ["  {:<70.70} {:>14} {:>14} {:>14}".format(*grown_cells(each)) for each in functions.grown]
    lines += ["-" * WIDTH, comparison.sentence]
    for note in counts_words(comparison):
        lines += wrap(note, WIDTH)
    return "\n".join(lines)


def markdown(comparison: Comparison) -> str:
    """The same as a page for a merge request, with every reason."""
    lines = [f"# {comparison.sentence}", ""]
    if comparison.counts.tests:
        lines += [*_markdown_table(comparison.counts.tests), ""]
    for functions in comparison.counts.functions:
        lines += [f"**{escaped(functions_title(functions))}**", ""]
        lines += ["| function | base | candidate | difference |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(map(escaped, grown_cells(each)))} |" for each in functions.grown] + [""]
    said = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    lines += [f"- {escaped(text)}" for text in (*said, *counts_words(comparison))]
    return "\n".join([*lines, "", method(comparison)]) + "\n"


def _markdown_table(tests: Sequence[CountedTest]) -> list[str]:
    heads = ["instructions", "topology, profile, metric", *COLUMNS, "judgement"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for test in tests:
        told = [each.text for each in figures(test)]
        of = f"{escaped(test.topology)}, {escaped(what_of(test))}"
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {' | '.join([escaped(test.test), of, *told, judged])} |")
    return lines


def what_of(test: CountedTest) -> str:
    """What a row is of besides its topology."""
    return f"{test.profile}, {METRICS[test.metric].title}"


def figures(test: CountedTest) -> list[Figure]:
    """A row's figures, one for each of its `COLUMNS`."""
    difference = Figure("-" if test.difference_pct is None else format_margin(test.difference_pct))
    sides = ((test.base, test.base_record), (test.candidate, test.candidate_record))
    counted = [Figure(_seeds(values), record) for values, record in sides]
    return [*counted, difference, Figure(_between(test.low_pct, test.high_pct))]


def _seeds(values: Sequence[float]) -> str:
    """What was counted with all seeds: `4,633.3`, `22,015.6 to 22,023.4`."""
    ends = list(dict.fromkeys(f"{end(values):,.1f}" for end in (min, max))) if values else ["-"]
    return " to ".join(ends)


def _between(low: float | None, high: float | None) -> str:
    """From one difference in percent to another; a dash where there is none."""
    return "-" if low is None or high is None else f"{format_margin(low)} to {format_margin(high)}"


def counts_words(comparison: Comparison) -> list[str]:
    """What is said of the instructions, one sentence each."""
    counts = comparison.counts
    return [*counts.notes, *([SEES] if counts.tests else [])]


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
    return _METHOD.format(least=f"{comparison.least_difference * 100:g} %")
