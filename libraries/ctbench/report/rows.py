"""The results: a line for each test, and what opens below it."""

from collections.abc import Sequence
from pathlib import Path

from ctbench.report import figures, labels
from ctbench.report.labels import LIMITS
from ctbench.report.page import Fact, Link, Row, Tone
from ctbench.report.reference import References, against
from ctbench.report.runs import href
from ctbench.results.record import Record
from ctbench.results.store import Stored

_TONES: dict[str, Tone] = {"met": "met", "missed": "missed", "not measured": "unmeasured"}
#: Stands between a suite and the one below it: a single angle quotation mark.
_INTO = " \u203a "


def make_rows(newest: Sequence[Stored], output: Path, references: References) -> list[Row]:
    """A row for each record, in their order."""
    names = suite_names([each.record.suite for each in newest])
    return [_row(number, each, output, references, names[each.record.suite]) for number, each in enumerate(newest, 1)]


def suite_names(suites: Sequence[str]) -> dict[str, str]:
    """The long names of suites as a page shows them: without what all begin with, an arrow between the other parts."""
    parts = {suite: suite.split(".") for suite in suites}
    starts = list(zip(*(names[:-1] for names in parts.values()), strict=False))
    shared = next((number for number, some in enumerate(starts) if len(set(some)) > 1), len(starts))
    return {suite: labels.name(_INTO.join(names[shared:])) for suite, names in parts.items()}


def _row(number: int, each: Stored, output: Path, references: References, suite: str) -> Row:
    record = each.record
    return Row(
        anchor=f"test-{number}" if number <= LIMITS.results else "",
        test=labels.name(record.test),
        suite=suite,
        subject=labels.name(figures.subject(record)),
        topology=labels.name(record.topology.key),
        profile=labels.name(record.profile.name),
        verdict=record.verdict,
        sign=labels.SIGNS[record.verdict],
        tone=_TONES[record.verdict],
        minimum=figures.floor(record) or labels.DASH,
        measured=figures.measured(record) or labels.DASH,
        margin=labels.margin(record.margin_pct),
        margin_pct=record.margin_pct,
        reason=_reason(record),
        details=tuple(
            Fact(name, (labels.sentence(text),)) for name, text in _details(each, references).items() if text
        ),
        record=Link("record", href(each.path, output)),
        capture=_capture(each, output),
    )


def _details(each: Stored, references: References) -> dict[str, str]:
    """What has to be known of a test besides its line."""
    record, shown = each.record, figures.deciding(each.record)
    thrown_away = labels.thrown_away(each.thrown_away, each.trials)
    return {
        "Kind of promise": figures.kind(shown) if shown else "",
        "Compared": figures.relation(record),
        "Spread": ", ".join(filter(None, figures.spread(record))),
        "Trials": thrown_away or (labels.plural(each.trials, "trial") if each.trials else ""),
        "Against reference": _against(record, references),
        "Source of the minimum": record.floor.source,
        "Took": f"{labels.length(record.wall_s)}, from {labels.moment(record.started)}",
    }


def _against(record: Record, references: References) -> str:
    compared = against(record, references.find(record))
    if compared is None:
        return ""
    known = (
        f"{labels.margin(compared.difference_pct)} against {compared.metric.format(compared.theirs)}",
        compared.figure.label,
        "other hardware" if compared.other_hardware else "same CPU model",
        figures.direction(compared.metric),
    )
    return "; ".join(filter(None, known))


def _capture(each: Stored, output: Path) -> Link | None:
    """What the DUT said of its failure, where it is still there."""
    folder = each.path.parent.parent / each.record.capture if each.record.capture else None
    return Link("what the DUT said", href(folder, output) + "/") if folder and folder.is_dir() else None


def _reason(record: Record) -> str:
    """The verdict's reason as a sentence of its own."""
    reason = labels.sentence(record.verdict_reason.strip())
    # Keys of topologies keep their spelling.
    first = reason if "/" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
    return f"{first.rstrip('.')}." if reason else ""
