"""compare.html: base and candidate side by side, from the comparison that `./run compare` judged."""

import re
import shutil
from pathlib import Path

from ctbench.compare import text
from ctbench.report import labels
from ctbench.report.charts.chart import samples_strip
from ctbench.report.page import Cell, Column, Count, Line, Link, Table, Tone
from ctbench.report.runs import href
from ctbench.report.write import STYLE_SHEET, environment
from ctbench.results.comparison import JUDGEMENTS, ComparedSide, ComparedTest, Comparison, CountedTest, Judgement, Kind
from ctbench.results.metrics import METRICS

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}
_INTRO: dict[Kind, str] = {
    "runs": "Samples: the base above, the candidate below, on one scale that ends at the least and the most of them.",
    "counts": "Counted in an emulated machine ({machines}), net of the wires and the traffic alone.",
}


def comparison_html(found: Comparison, output: Path) -> str:
    """The page of a comparison, which will stand in the folder `output`: links are relative to it. The worst news comes
    first."""
    tables = dict(text.tables(found))
    counted = tables.pop("counts", None)
    of_rates = [_table(kind, tests, output) for kind, tests in tables.items() if tests or not counted]
    machines = ", ".join(found.counts.machines) if found.counts else ""
    template = environment().get_template("compare.html.j2")
    return template.render(
        found=found,
        tone=_TONES[found.judgement],
        counts=[Count(found.count(word), word, _SIGNS[word], _TONES[word]) for word in JUDGEMENTS],
        sides={"Base": _side(found.base), "Candidate": _side(found.candidate)},
        tests=next(iter(of_rates), None),
        counted=_table("counts", counted, output, machines) if counted else None,
        functions={text.functions_title(each): map(text.grown_cells, each.grown) for each in text.functions_of(found)},
        counts_words=text.counts_words(found),
        method=text.method(found).replace("*", ""),
    )


def write_comparison(found: Comparison, output: Path) -> Path:
    """Write the page with its style sheet and return its path. Raises `OSError` as writing does."""
    page = output / PAGE
    page.write_text(comparison_html(found, output), encoding="utf-8")
    shutil.copyfile(STYLE_SHEET, output / STYLE_SHEET.name)
    return page


def _table(kind: Kind, tests: text.AnyTests, output: Path, machines: str = "") -> tuple[Table, str]:
    """The tests of one kind, the worst news first; of runs with their samples drawn in a column of their own."""
    names = [name if name == "p" else name.capitalize() for name in text.COLUMNS[kind]] + ["Samples"] * (kind == "runs")
    columns = [Column(name, right=name != "Samples", strong=name == "Difference") for name in names]
    ordered = sorted(tests, key=lambda test: JUDGEMENTS.index(test.judgement))
    rows = tuple(_line(test, output) for test in ordered)
    first = (Column("Test", right=False), Column("Judgement", right=False))
    return Table((*first, *columns), {"": rows}, "results"), _INTRO[kind].format(machines=machines)


def _line(test: ComparedTest | CountedTest, output: Path) -> Line:
    cells = [_cell(figure, output) for figure in text.figures(test)]
    if isinstance(test, ComparedTest):
        both = (test.base.values, test.candidate.values) if test.base and test.candidate else None
        cells.append(Cell("", strip=samples_strip(*both, METRICS[test.metric].format) if both else None))
    tone, head = _TONES[test.judgement], Cell(text.what_of(test), code=test.topology)
    names = Cell(test.test, notes=(head, Cell(test.reason)))
    return Line((names, Cell(test.judgement, sign=_SIGNS[test.judgement], tone=tone), *cells), f"test {tone}")


def _cell(figure: text.Figure, output: Path) -> Cell:
    """The records that a figure is from are numbered in their order."""
    links = tuple(Link(str(number), href(Path(path), output)) for number, path in enumerate(figure.records, 1))
    small = [Cell(_typeset(figure.small))] if figure.small else []
    return Cell(_typeset(figure.text), notes=(*small, *([Cell("record", links=links)] if links else [])))


def _typeset(figure: str) -> str:
    """A figure of the console as a page has it: a dash for none, a true minus, operators in words."""
    if figure == "-":
        return labels.DASH
    return re.sub("(?<!e)-", "\u2212", figure.replace("<= ", "at most ").replace(">= ", "at least "))


def _side(side: ComparedSide) -> tuple[str, ...]:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return (side.name, *known, runs)
