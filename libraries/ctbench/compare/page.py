"""compare.html: base and candidate side by side, from the comparison that `./run compare` judged."""

from dataclasses import dataclass
from pathlib import Path

from ctbench.base.units import format_share
from ctbench.compare.text import method
from ctbench.report import labels
from ctbench.report.charts.draw import samples_strip
from ctbench.report.html import STYLE_SHEET, environment
from ctbench.report.page import Count, Fact, Link, Tone
from ctbench.report.rows import href
from ctbench.results.comparison import JUDGEMENTS, ComparedTest, Comparison, Judgement, Samples, Side
from ctbench.results.metrics import METRICS

PAGE = "compare.html"

_TONES: dict[Judgement, Tone] = {
    "regressed": "missed", "not measurable": "unmeasured", "improved": "met", "no evidence": "skipped",
}  # fmt: skip
_SIGNS: dict[Judgement, str] = {"regressed": "▼", "not measurable": "?", "improved": "▲", "no evidence": "="}


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
class ComparisonPage:
    """Everything on the page, from top to bottom."""

    title: str
    tone: Tone
    sentence: str
    counts: tuple[Count, ...]
    differences: tuple[str, ...]
    sides: tuple[Fact, ...]
    rows: tuple[ComparedRow, ...]
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
    ordered = sorted(found.tests, key=lambda test: JUDGEMENTS.index(test.judgement))
    return ComparisonPage(
        title=f"{found.candidate.name} against {found.base.name}",
        tone=_TONES[found.judgement],
        sentence=found.sentence,
        counts=tuple(Count(found.count(word), word, _SIGNS[word], _TONES[word]) for word in JUDGEMENTS),
        differences=tuple(found.differences),
        sides=(_side("Base", found.base), _side("Candidate", found.candidate)),
        rows=tuple(_row(test, output) for test in ordered),
        notes=tuple(found.notes),
        method=method(found).replace("*", ""),
        broken=(*found.base.broken, *found.candidate.broken),
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
        base_records=_records(test.base, output),
        candidate=_median(test, test.candidate),
        candidate_samples=_samples(test.candidate),
        candidate_records=_records(test.candidate, output),
        difference=labels.margin(test.difference_pct),
        p=labels.DASH if test.p is None else f"{test.p:.2g}",
        reason=test.reason,
        strip=samples_strip(test.base.values, test.candidate.values, metric.format)
        if test.base and test.candidate
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


def _records(side: Samples | None, output: Path) -> tuple[Link, ...]:
    """The records that the samples are from, numbered in their order."""
    paths = side.records if side else []
    return tuple(Link(str(number), href(Path(path), output)) for number, path in enumerate(paths, 1))


def _side(role: str, side: Side) -> Fact:
    runs = f"{labels.plural(len(side.folders), 'run')}, {labels.plural(side.records, 'record')}"
    facts = (("", side.versions), ("testbed ", side.testbeds), ("", side.machines), ("Linux ", side.kernels),
             ("campaign ", side.campaigns))  # fmt: skip
    known = [f"{name}{', '.join(values)}" for name, values in facts if values]
    return Fact(role, (side.name, *known, runs))
