"""compare.html: base and candidate side by side, from the comparison of what was counted."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.units import format_margin
from ctbench.compare.limits import SEES
from ctbench.report import labels
from ctbench.report.page import Cell, Column, Count, Line, Link, Table, Tone
from ctbench.report.runs import href
from ctbench.report.write import STYLE_SHEET, environment
from ctbench.results.comparison import JUDGEMENTS, ComparedSide, Comparison, CountedTest, Judgement
from ctbench.results.metrics import METRICS

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}
#: The columns between a test and its judgement.
COLUMNS = ("base", "candidate", "difference", "over the seeds")
_METHOD = (
    "Each side was booted in an emulated machine whose clock counts its instructions, once for each seed of the "
    "kernel's hash functions; figures are net of the wires and the traffic alone. *Over the seeds*: the least and "
    "the most that a seed of one side differs from a seed of the other. *Regressed*: the candidate costs more with "
    "every seed, and by more than {least} in the median. *Not measurable*: a side was not counted."
)
_INTRO = "Counted in an emulated machine ({machines}), net of the wires and the traffic alone."


def comparison_html(found: Comparison, output: Path) -> str:
    """The page of a comparison, which will stand in the folder `output`: links are relative to it. The worst news comes
    first."""
    counts = found.counts
    template = environment().get_template("compare.html.j2")
    return template.render(
        found=found,
        tone=_TONES[found.judgement],
        counts=[Count(found.count(word), word, _SIGNS[word], _TONES[word]) for word in JUDGEMENTS],
        sides={"Base": _side(found.base), "Candidate": _side(found.candidate)},
        counted=_table(counts.tests, output) if counts.tests else None,
        intro=_INTRO.format(machines=", ".join(counts.machines)),
        counts_words=counts_words(found),
        method=method(found).replace("*", ""),
    )


def write_comparison(found: Comparison, output: Path) -> Path:
    """Write the page with its style sheet and return its path. Raises `OSError` as writing does."""
    page = output / PAGE
    page.write_text(comparison_html(found, output), encoding="utf-8")
    shutil.copyfile(STYLE_SHEET, output / STYLE_SHEET.name)
    return page


def _table(tests: Sequence[CountedTest], output: Path) -> Table:
    """The tests, the worst news first."""
    columns = [Column(name.capitalize(), strong=name == "difference") for name in COLUMNS]
    ordered = sorted(tests, key=lambda test: JUDGEMENTS.index(test.judgement))
    rows = tuple(_line(test, output) for test in ordered)
    first = (Column("Test", right=False), Column("Judgement", right=False))
    return Table((*first, *columns), {"": rows}, "results")


def _line(test: CountedTest, output: Path) -> Line:
    cells = _cells(test, output)
    tone, head = _TONES[test.judgement], Cell(what_of(test), code=test.topology)
    names = Cell(test.test, notes=(head, Cell(test.reason)))
    return Line((names, Cell(test.judgement, sign=_SIGNS[test.judgement], tone=tone), *cells), f"test {tone}")


def _cells(test: CountedTest, output: Path) -> list[Cell]:
    """A row's figures, one for each of its `COLUMNS`; those of the sides lead to their records."""
    both = ((test.base, test.base_record), (test.candidate, test.candidate_record))
    difference = "-" if test.difference_pct is None else format_margin(test.difference_pct)
    others = (difference, _between(test.low_pct, test.high_pct))
    return [*(_of_side(*side, output) for side in both), *(Cell(_typeset(text)) for text in others)]


def _of_side(values: Sequence[float], record: str, output: Path) -> Cell:
    link = (Cell("", links=(Link("record", href(Path(record), output)),)),) if record else ()
    return Cell(_typeset(_seeds(values)), notes=link)


def _typeset(figure: str) -> str:
    """A figure as a page has it: a dash for none, a true minus."""
    if figure == "-":
        return labels.DASH
    return re.sub("(?<!e)-", "\u2212", figure)


def _side(side: ComparedSide) -> tuple[str, ...]:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return (side.name, *known, runs)


def what_of(test: CountedTest) -> str:
    """What a row is of besides its topology."""
    return f"{test.profile}, {METRICS[test.metric].title}"


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


def method(comparison: Comparison) -> str:
    """How it was judged, for a reader who has nothing but the page."""
    return _METHOD.format(least=f"{comparison.least_difference * 100:g} %")
