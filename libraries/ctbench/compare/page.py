"""compare.html: base and candidate side by side, from the comparison that `./run compare` judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ctbench.base.units import format_share
from ctbench.compare.counts_text import counted_cells, counts_words, functions_title, grown_cells
from ctbench.compare.text import can_show, interval, method
from ctbench.report import labels
from ctbench.report.charts.draw import samples_strip
from ctbench.report.html import STYLE_SHEET, environment
from ctbench.report.page import Count, Fact, Link, Tone
from ctbench.report.rows import href
from ctbench.results.comparison import (
    JUDGEMENTS,
    ComparedTest,
    Comparison,
    CountedTest,
    Judgement,
    Samples,
    Side,
    Starts,
)
from ctbench.results.metrics import METRICS

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}


AnyTest = TypeVar("AnyTest", ComparedTest, CountedTest)


@dataclass(frozen=True)
class ComparedRow:
    """One test of the comparison, in labels."""

    test: str
    topology: str
    profile: str
    metric: str
    judgement: str
    sign: str
    tone: Tone
    base: str
    base_samples: str
    base_records: tuple[Link, ...]
    candidate: str
    candidate_samples: str
    candidate_records: tuple[Link, ...]
    difference: str
    p: str
    reason: str
    #: Samples of both sides on one scale, as SVG; empty where a side has none.
    strip: str


@dataclass(frozen=True)
class PairedRow:
    """One test of two builds side by side, in labels."""

    test: str
    topology: str
    profile: str
    judgement: str
    sign: str
    tone: Tone
    difference: str
    interval: str
    p: str
    can_show: str
    starts: str
    records: tuple[Link, ...]
    same: str
    same_records: tuple[Link, ...]
    reason: str
    #: The base against itself above the candidate against the base, on one scale, as SVG; empty without starts.
    strip: str


@dataclass(frozen=True)
class CountedRow:
    """Instructions of one test, in labels."""

    test: str
    topology: str
    profile: str
    metric: str
    judgement: str
    sign: str
    tone: Tone
    base: str
    base_records: tuple[Link, ...]
    candidate: str
    candidate_records: tuple[Link, ...]
    difference: str
    over_the_seeds: str
    reason: str


@dataclass(frozen=True)
class ComparisonPage:
    """Everything on the page, from top to bottom."""

    title: str
    tone: Tone
    sentence: str
    counts: tuple[Count, ...]
    differences: tuple[str, ...]
    sides: tuple[Fact, ...]
    #: Of runs; and of pairs.
    rows: tuple[ComparedRow, ...]
    paired: tuple[PairedRow, ...]
    #: Instructions, beside rates or alone; and what is said of them.
    counted: tuple[CountedRow, ...]
    #: Of tests that differ: what a table is of, and its rows.
    functions: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...]
    machines: str
    counts_words: tuple[str, ...]
    notes: tuple[str, ...]
    method: str
    broken: tuple[str, ...]


def comparison_html(found: Comparison, output: Path) -> str:
    """The page of a comparison, which will stand in the folder `output`."""
    return environment().get_template("compare.html.j2").render(page=compose_comparison(found, output))


def write_comparison(found: Comparison, output: Path) -> Path:
    """Write the page with its style sheet and return its path. Raises `OSError` as writing does."""
    page = output / PAGE
    page.write_text(comparison_html(found, output), encoding="utf-8")
    (output / "report.css").write_text(STYLE_SHEET.read_text(encoding="utf-8"), encoding="utf-8")
    return page


def compose_comparison(found: Comparison, output: Path) -> ComparisonPage:
    """What the page says; links are relative to `output`. The worst news comes first."""
    ordered = _ordered(found.tests)
    return ComparisonPage(
        title=f"{found.candidate.name} against {found.base.name}",
        tone=_TONES[found.judgement],
        sentence=found.sentence,
        counts=tuple(Count(found.count(word), word, _SIGNS[word], _TONES[word]) for word in JUDGEMENTS),
        differences=tuple(found.differences),
        sides=(_side("Base", found.base), _side("Candidate", found.candidate)),
        rows=tuple(_row(test, output) for test in ordered if test.starts is None),
        paired=tuple(_paired_row(test, test.starts, output) for test in ordered if test.starts is not None),
        counted=tuple(_counted_row(test, output) for test in _ordered(found.counts.tests)) if found.counts else (),
        functions=tuple(
            (functions_title(each), tuple(map(grown_cells, each.grown)))
            for each in (found.counts.functions if found.counts else ())
        ),
        machines=", ".join(found.counts.machines) if found.counts else "",
        counts_words=tuple(counts_words(found)),
        notes=tuple(found.notes),
        method=method(found).replace("*", ""),
        broken=(*found.base.broken, *found.candidate.broken),
    )


def _ordered(tests: Sequence[AnyTest]) -> list[AnyTest]:
    return sorted(tests, key=lambda test: JUDGEMENTS.index(test.judgement))


def _counted_row(test: CountedTest, output: Path) -> CountedRow:
    base, candidate, difference, over = counted_cells(test)
    return CountedRow(
        test=test.test,
        topology=test.topology,
        profile=test.profile,
        metric=METRICS[test.metric].title,
        judgement=test.judgement,
        sign=_SIGNS[test.judgement],
        tone=_TONES[test.judgement],
        base=base,
        base_records=_records([test.base_record] if test.base_record else [], output),
        candidate=candidate,
        candidate_records=_records([test.candidate_record] if test.candidate_record else [], output),
        difference=difference,
        over_the_seeds=over,
        reason=test.reason,
    )


def _row(test: ComparedTest, output: Path) -> ComparedRow:
    metric = METRICS[test.metric]
    return ComparedRow(
        test=test.test,
        topology=test.topology,
        profile=test.profile,
        metric=metric.title,
        judgement=test.judgement,
        sign=_SIGNS[test.judgement],
        tone=_TONES[test.judgement],
        base=_median(test, test.base),
        base_samples=_samples(test.base),
        base_records=_records(test.base.records if test.base else [], output),
        candidate=_median(test, test.candidate),
        candidate_samples=_samples(test.candidate),
        candidate_records=_records(test.candidate.records if test.candidate else [], output),
        difference=labels.margin(test.difference_pct),
        p=labels.DASH if test.p is None else f"{test.p:.2g}",
        reason=test.reason,
        strip=samples_strip(test.base.values, test.candidate.values, metric.format)
        if test.base and test.candidate
        else "",
    )


def _paired_row(test: ComparedTest, starts: Starts, output: Path) -> PairedRow:
    lowest = f"{labels.margin((min(starts.ratios) - 1) * 100)}" if starts.ratios else ""
    highest = f"{labels.margin((max(starts.ratios) - 1) * 100)}" if starts.ratios else ""
    said = f", {lowest} to {highest}" if lowest else ""
    return PairedRow(
        test=test.test,
        topology=test.topology,
        profile=test.profile,
        judgement=test.judgement,
        sign=_SIGNS[test.judgement],
        tone=_TONES[test.judgement],
        difference=labels.margin(test.difference_pct),
        interval=f"99 % interval: {interval(starts)}" if starts.low is not None else "",
        p=labels.DASH if test.p is None else f"{test.p:.2g}",
        can_show=labels.DASH if starts.shows is None else can_show(starts),
        starts=f"{labels.plural(len(starts.ratios), 'start')}{said}",
        records=_records(starts.records, output),
        same=f"base against itself: {labels.plural(len(starts.same), 'start')}" if starts.same else "",
        same_records=_records(starts.same_records, output),
        reason=test.reason,
        strip=samples_strip(
            starts.same or [1.0],
            starts.ratios,
            lambda ratio: labels.margin((ratio - 1) * 100),
            "starts of the base against itself above those of the candidate against the base",
        )
        if starts.ratios
        else "",
    )


def _median(test: ComparedTest, side: Samples | None) -> str:
    if side is None:
        return labels.DASH
    metric = METRICS[test.metric]
    return f"{f'{metric.bound} ' if side.censored else ''}{metric.format(side.median)}"


def _samples(side: Samples | None) -> str:
    if side is None:
        return ""
    spread = f", spread {format_share(side.spread)}" if side.spread is not None else ""
    return f"{labels.plural(len(side.values), 'sample')}{spread}"


def _records(paths: Sequence[str], output: Path) -> tuple[Link, ...]:
    """The records that the samples are from, numbered in their order."""
    return tuple(Link(str(number), href(Path(path), output)) for number, path in enumerate(paths, 1))


def _side(role: str, side: Side) -> Fact:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return Fact(role, (side.name, *known, runs))
