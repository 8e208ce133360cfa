"""compare.html: base and candidate side by side, from the comparison that `./run compare` judged."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.units import format_share
from ctbench.compare import text
from ctbench.report import labels
from ctbench.report.charts.chart import Strip, samples_strip
from ctbench.report.page import Cell, Column, Count, Fact, Line, Link, Table, Tone
from ctbench.report.runs import href
from ctbench.report.write import STYLE_SHEET, environment
from ctbench.results.comparison import (
    JUDGEMENTS,
    ComparedSide,
    ComparedTest,
    Comparison,
    CountedTest,
    Judgement,
    Kind,
    Samples,
    Starts,
)
from ctbench.results.metrics import METRICS

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}
_TEST = (Column("Test", right=False), Column("Judgement", right=False))
_SIDES = (Column("Base"), Column("Candidate"))
_DIFFERENCE = Column("Difference", strong=True)
_COLUMNS: dict[Kind, tuple[Column, ...]] = {
    "runs": (*_TEST, *_SIDES, _DIFFERENCE, Column("p"), Column("Samples", right=False)),
    "pairs": (*_TEST, _DIFFERENCE, Column("p"), Column("Can show"), Column("Starts", right=False)),
    "counts": (*_TEST, *_SIDES, _DIFFERENCE),
}
_INTRO: dict[Kind, str] = {
    "runs": "Samples: the base above, the candidate below, on one scale that ends at the least and the most of them.",
    "pairs": "Starts: the base against itself above, the candidate against the base below, on one scale that ends at "
    "the least and the most of them.",
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
        sides=[_side("Base", found.base), _side("Candidate", found.candidate)],
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
    """The tests of one kind, the worst news first."""
    ordered = sorted(tests, key=lambda test: JUDGEMENTS.index(test.judgement))
    rows = tuple(_line(test, output) for test in ordered)
    return Table.of(_COLUMNS[kind], rows, "results"), _INTRO[kind].format(machines=machines)


def _line(test: ComparedTest | CountedTest, output: Path) -> Line:
    starts = None if isinstance(test, CountedTest) else test.starts
    if isinstance(test, CountedTest):
        cells = _counted(test, output)
    else:
        cells = _of_runs(test, output) if starts is None else _of_starts(test, starts, output)
    what = test.profile if starts else f"{test.profile}, {METRICS[test.metric].title}"
    tone = _TONES[test.judgement]
    head = Cell(test.test, notes=(Cell(what, code=test.topology), Cell(test.reason)))
    return Line((head, Cell(test.judgement, sign=_SIGNS[test.judgement], tone=tone), *cells), f"test {tone}")


def _counted(test: CountedTest, output: Path) -> tuple[Cell, ...]:
    base, candidate, difference, over = text.cells(test)
    return (
        _cell(base, "", [test.base_record] if test.base_record else [], output),
        _cell(candidate, "", [test.candidate_record] if test.candidate_record else [], output),
        _cell(difference, f"{over} over the seeds"),
    )


def _of_runs(test: ComparedTest, output: Path) -> tuple[Cell, ...]:
    strip = None
    if test.base and test.candidate:
        strip = samples_strip(test.base.values, test.candidate.values, METRICS[test.metric].format)
    sides = (_samples(test, side, output) for side in (test.base, test.candidate))
    return *sides, Cell(labels.margin(test.difference_pct)), _p(test), Cell("", strip=strip)


def _of_starts(test: ComparedTest, starts: Starts, output: Path) -> tuple[Cell, ...]:
    said, strip = labels.plural(len(starts.ratios), "start"), None
    if starts.ratios:
        said += f", {_margin(min(starts.ratios))} to {_margin(max(starts.ratios))}"
        title = "starts of the base against itself above those of the candidate against the base"
        strip = samples_strip(starts.same or [1.0], starts.ratios, _margin, title)
    same = f"base against itself: {labels.plural(len(starts.same), 'start')}" if starts.same else ""
    shows = labels.DASH if starts.shows is None else text.can_show(starts)
    interval = f"99 % interval: {text.interval(starts)}" if starts.low is not None else ""
    return (
        _cell(labels.margin(test.difference_pct), interval),
        _p(test),
        _cell(shows, same, starts.same_records, output),
        _cell("", said, starts.records, output, strip),
    )


def _margin(ratio: float) -> str:
    return labels.margin((ratio - 1) * 100)


def _p(test: ComparedTest) -> Cell:
    return Cell(labels.DASH if test.p is None else f"{test.p:.2g}")


def _samples(test: ComparedTest, side: Samples | None, output: Path) -> Cell:
    if side is None:
        return Cell(labels.DASH)
    metric = METRICS[test.metric]
    spread = f", spread {format_share(side.spread)}" if side.spread is not None else ""
    said = f"{f'{metric.bound} ' if side.censored else ''}{metric.format(side.median)}"
    return _cell(said, f"{labels.plural(len(side.values), 'sample')}{spread}", side.records, output)


def _cell(
    said: str, small: str, records: Sequence[str] = (), output: Path = Path(), strip: Strip | None = None
) -> Cell:
    """A figure, what is said of it in small, and the records that it is from, numbered in their order."""
    links = tuple(Link(str(number), href(Path(path), output)) for number, path in enumerate(records, 1))
    notes = (*([Cell(small)] if small else []), *([Cell("record", links=links)] if links else []))
    return Cell(said, notes=notes, strip=strip)


def _side(role: str, side: ComparedSide) -> Fact:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return Fact(role, (side.name, *known, runs))
