"""One row for each test, and the details of the searches that deserve them."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

from ctbench.base.units import format_count, format_duration, format_ratio
from ctbench.report import enough, figures, labels
from ctbench.report.charts.pairs import pair_charts
from ctbench.report.charts.search import search_chart, waiting_chart
from ctbench.report.charts.timeline import series_charts, timeline_charts
from ctbench.report.page import Group, Link, Row, Saturation, Search, Tone, TrialRow
from ctbench.report.reference import References, against
from ctbench.results.evidence import TrialRecord
from ctbench.results.record import Record, RecordError
from ctbench.results.store import SUFFIX, Stored, read_whole

_TONES: dict[str, Tone] = {"met": "met", "missed": "missed", "not measured": "unmeasured"}
_STATES: dict[str, Tone] = {"good": "met", "bad": "missed", "invalid": "unmeasured"}
#: Stands between a suite and the one below it: a single angle quotation mark.
INTO = " \u203a "
#: Searches shown in full, at most.
_MOST_SEARCHES = 4


def href(path: Path, output: Path) -> str:
    """A relative link from the page to a file, as URLs are written: nothing in a file's name is more than a name."""
    return quote(os.fsencode(relative(path, output)))


def relative(path: Path, output: Path) -> str:
    """The path of a file, or of a run's folder, from another folder. Links in it are followed, but not a record's."""
    real = os.path.join(_real(path.parent), path.name) if path.suffix == SUFFIX else _real(path)  # noqa: PTH118
    return os.path.relpath(real, _real(output))


@cache
def _real(folder: Path) -> str:
    return os.path.realpath(folder)


def make_rows(newest: Sequence[Stored], output: Path, references: References) -> list[Row]:
    """A row for each record, in their order. The run is named where there are several."""
    _real.cache_clear()  # results/latest may lead elsewhere by now
    several = len({each.record.run_id for each in newest}) > 1
    start = labels.common_start([each.record.suite for each in newest])
    return [_row(f"test-{number}", each, output, references, several, start) for number, each in enumerate(newest, 1)]


def group_rows(rows: Sequence[Row], newest: Sequence[Stored]) -> tuple[Group, ...]:
    """The rows by suite, suites in the order in which they ran."""
    start = labels.common_start([each.record.suite for each in newest])
    groups: dict[str, list[Row]] = {}
    for row, each in zip(rows, newest, strict=True):
        groups.setdefault(suite_name(each.record.suite, start), []).append(row)
    return tuple(Group(name, tuple(some)) for name, some in groups.items())


def suite_name(suite: str, start: str = "") -> str:
    """The suite's long name without its start, with an arrow between its parts."""
    return enough.name(suite.removeprefix(start).replace(".", INTO))


def searches(newest: Sequence[Stored], rows: Sequence[Row]) -> tuple[Search, ...]:
    """The searches of tests that are missed or not measured, and of the one that is nearest to its floor."""
    pairs = [
        (each, row) for each, row in zip(newest, rows, strict=True) if each.sustain_s or each.record.evidence.pairs
    ]
    doubtful = [pair for pair in pairs if pair[1].verdict != "met"]
    met = [pair for pair in pairs if pair[1].verdict == "met" and pair[1].margin_pct is not None]
    nearest = min(met, key=lambda pair: pair[1].margin_pct or 0.0, default=None)
    chosen = sorted(doubtful, key=lambda pair: pair[1].verdict)[: _MOST_SEARCHES - 1]
    chosen += [nearest] if nearest else []
    return tuple(search for each, row in chosen for search in _search(each, row))


def saturations(newest: Sequence[Stored], rows: Sequence[Row]) -> list[Saturation]:
    """What was served in closed loops, in the order of the tests."""
    return [
        _saturation(each.record, row) for each, row in zip(newest, rows, strict=True) if figures.saturation(each.record)
    ]


def _saturation(record: Record, row: Row) -> Saturation:
    other = next((pair.other for pair in record.evidence.pairs if pair.how == "side by side" and pair.other.rate), None)
    rate = labels.rate(other.rate, record.profile.kind) if other and other.rate else ""
    return Saturation(row, figures.saturation(record), enough.name(figures.side(other)) if other else "", rate)


def _row(anchor: str, each: Stored, output: Path, references: References, several: bool, start: str) -> Row:
    record = each.record
    compared = against(record, references.find(record))
    spread, spread_of = figures.spread(record)
    what, shown = "", figures.deciding(record)
    if compared:
        where = "other hardware" if compared.other_hardware else "same CPU model"
        known = [f"{compared.metric.format(compared.theirs)}, {compared.figure.label}", where]
        what = "; ".join([*known, *filter(None, [figures.direction(compared.metric)])])
    return Row(
        anchor=anchor,
        test=enough.name(record.test),
        topology=enough.name(record.topology.key),
        profile=enough.name(record.profile.name),
        verdict=record.verdict,
        sign=labels.SIGNS[record.verdict],
        tone=_TONES[record.verdict],
        floor=labels.floor(record),
        measured=labels.measured(record),
        measured_of=labels.measured_of(record),
        kind=figures.kind(shown) if shown else "",
        compared=figures.relation(record) if shown and shown.kind == "absolute" else "",
        margin=labels.margin(record.margin_pct),
        margin_pct=record.margin_pct,
        spread=spread or labels.DASH,
        spread_of=spread_of,
        against=labels.margin(compared.difference_pct) if compared else labels.DASH,
        against_what=what,
        reason=_reason(record),
        record=Link("record", href(each.path, output), enough.name(suite_name(record.suite, start))),
        capture=_capture(each, output),
        took=labels.length(record.wall_s),
        thrown_away=f"{each.thrown_away} of {labels.plural(each.trials, 'trial')} thrown away"
        if each.thrown_away
        else "",
        run=f"{record.started:%m-%d %H:%M}" if several else "",
    )


def _capture(each: Stored, output: Path) -> Link | None:
    """What the DUT said of its failure, where it is still there."""
    folder = each.path.parent.parent / each.record.capture if each.record.capture else None
    return Link("what the DUT said", href(folder, output) + "/") if folder and folder.is_dir() else None


def _reason(record: Record) -> str:
    """The verdict's reason as a sentence of its own."""
    reason = enough.sentence(record.verdict_reason.strip())
    # Keys of topologies keep their spelling.
    first = reason if "/" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
    return f"{first.rstrip('.')}." if reason else ""


def _search(each: Stored, row: Row) -> list[Search]:
    """Its trials are read again; none where the file has gone, or has changed, since the row was made."""
    try:
        record = read_whole(each.path)
    except (RecordError, FileNotFoundError):
        return []
    made = (
        *pair_charts(record),
        search_chart(record),
        waiting_chart(record),
        *timeline_charts(record),
        *series_charts(record),
    )
    charts = tuple(chart for chart in made if chart)
    waited = "connect p99" if record.profile.kind == "connections" else "latency p99"
    trials = tuple(_trial(number, made) for number, made in enumerate(record.evidence.trials, 1))
    return [Search(row, figures.goal(record), charts, waited, trials)]


def _trial(number: int, made: TrialRecord) -> TrialRow:
    trial = made.trial
    times = made.waited
    return TrialRow(
        number=str(number),
        phase=enough.name(made.phase),
        offered=labels.rate(trial.load, trial.unit),
        completed=labels.rate(trial.rate, trial.unit),
        loss=format_ratio(max(0.0, trial.loss_ratio)),
        packets=format_count(trial.pps),
        waited=format_duration(times.p99 / 1e6) if times else labels.DASH,
        state=made.state,
        tone=_STATES[made.state],
        reason=enough.sentence(
            "; ".join(dict.fromkeys([made.reason, *(problem.text for problem in made.problems)])).strip("; ")
        ),
    )
