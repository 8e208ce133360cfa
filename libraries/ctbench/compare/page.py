"""compare.html: base and candidate side by side, from the comparison of what was counted."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ctbench.compare import text
from ctbench.report import labels
from ctbench.report.page import Cell, Column, Count, Line, Link, Table, Tone
from ctbench.report.runs import href
from ctbench.report.write import STYLE_SHEET, environment
from ctbench.results.comparison import JUDGEMENTS, ComparedSide, Comparison, CountedTest, Judgement

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}
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
        functions={text.functions_title(each): map(text.grown_cells, each.grown) for each in counts.functions},
        counts_words=text.counts_words(found),
        method=text.method(found).replace("*", ""),
    )


def write_comparison(found: Comparison, output: Path) -> Path:
    """Write the page with its style sheet and return its path. Raises `OSError` as writing does."""
    page = output / PAGE
    page.write_text(comparison_html(found, output), encoding="utf-8")
    shutil.copyfile(STYLE_SHEET, output / STYLE_SHEET.name)
    return page


def _table(tests: Sequence[CountedTest], output: Path) -> Table:
    """The tests, the worst news first."""
    columns = [Column(name.capitalize(), strong=name == "difference") for name in text.COLUMNS]
    ordered = sorted(tests, key=lambda test: JUDGEMENTS.index(test.judgement))
    rows = tuple(_line(test, output) for test in ordered)
    first = (Column("Test", right=False), Column("Judgement", right=False))
    return Table((*first, *columns), {"": rows}, "results")


def _line(test: CountedTest, output: Path) -> Line:
    cells = [_cell(figure, output) for figure in text.figures(test)]
    tone, head = _TONES[test.judgement], Cell(text.what_of(test), code=test.topology)
    names = Cell(test.test, notes=(head, Cell(test.reason)))
    return Line((names, Cell(test.judgement, sign=_SIGNS[test.judgement], tone=tone), *cells), f"test {tone}")


def _cell(figure: text.Figure, output: Path) -> Cell:
    link = (Cell("", links=(Link("record", href(Path(figure.record), output)),)),) if figure.record else ()
    return Cell(_typeset(figure.text), notes=link)


def _typeset(figure: str) -> str:
    """A figure of the console as a page has it: a dash for none, a true minus."""
    if figure == "-":
        return labels.DASH
    return re.sub("(?<!e)-", "\u2212", figure)


def _side(side: ComparedSide) -> tuple[str, ...]:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return (side.name, *known, runs)
