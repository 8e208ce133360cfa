"""A comparison as text: a table for the console, and compare.md for a merge request. Pure functions.

Every line for the console fits 120 columns.
"""

from textwrap import wrap

from ctbench.base.markdown_text import escaped
from ctbench.base.plain_text import one_line
from ctbench.base.units import format_margin, format_ratio
from ctbench.results.comparison import ComparedTest, Comparison, Judgement, Samples, Side
from ctbench.results.metrics import METRICS

WIDTH = 120
_ROW = "{:<50.50}  {:>12}  {:>12}  {:>10}  {:>8}  {}"
_HEAD = ("test", "base", "candidate", "difference", "p", "judgement")
_WORDS: dict[Judgement, str] = {
    "regressed": "REGRESSED", "not measurable": "NOT MEASURABLE", "improved": "IMPROVED", "no evidence": "no evidence",
}  # fmt: skip


def console(comparison: Comparison) -> str:
    """What was compared, a row for each test with the reason where it is not plain, and the judgement."""
    lines = [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
    lines += [f"NOT ALIKE: {text}" for text in comparison.differences]
    lines += ["", _ROW.format(*_HEAD), "-" * WIDTH]
    for test in comparison.tests:
        lines.append(_ROW.format(one_line(test.test), *_cells(test), _WORDS[test.judgement]))
        if test.judgement == "not measurable":
            lines += wrap(test.reason, WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += ["-" * WIDTH, comparison.sentence]
    return "\n".join([*lines, *comparison.notes])


def markdown(comparison: Comparison) -> str:
    """The same as a page for a merge request, with the spread of each side and every reason."""
    lines = [f"# {comparison.sentence}", ""]
    if comparison.differences:
        lines += ["> **These runs are not alike**, so a difference may not be the build's:", ">"]
        lines += [f"> - {escaped(text)}" for text in comparison.differences] + [""]
    lines += [
        "| test | topology, profile, metric | base | candidate | difference | p | judgement |",
        "|---|---|---|---|---|---|---|",
    ]
    for test in comparison.tests:
        what = f"{escaped(test.topology)}, {escaped(test.profile)}, {escaped(METRICS[test.metric].title)}"
        values = f"{_with_spread(test, test.base)} | {_with_spread(test, test.candidate)}"
        _, _, difference, p = _cells(test)
        judged = f"**{test.judgement}**: {escaped(test.reason)}"
        lines.append(f"| {escaped(test.test)} | {what} | {values} | {difference} | {p} | {judged} |")
    lines += [
        "",
        *(
            f"- {escaped(line)}"
            for line in [*_side("base", comparison.base), *_side("candidate", comparison.candidate)]
        ),
    ]
    lines += [f"- {escaped(text)}" for text in comparison.notes]
    lines += ["", method(comparison)]
    return "\n".join(lines) + "\n"


def method(comparison: Comparison) -> str:
    """How it was judged, for a reader who has nothing but the page."""
    least = f"{comparison.least_difference * 100:g} %"
    tests = "one test" if comparison.family == 1 else f"{comparison.family} tests"
    return (
        "Medians of the samples; spread is (maximum - minimum) / median. *p*: how often samples are as far apart as "
        "these, or farther, when the sides do not differ (exact one-sided permutation test of the ranks, corrected for "
        f"{tests} by Holm's method). *Regressed*: the median got worse by more than {least} and by more than the "
        f"search can tell, and p < {comparison.alpha:g}. *Not measurable*: with so few samples no p could be that "
        "small, or a side measured nothing."
    )


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
