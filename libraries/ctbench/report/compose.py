"""The page of a report from what was found in the folders of its runs. Reads nothing but that, and what the gate of a
candidate was found to see on this machine."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from ctbench.base.text import printable
from ctbench.base.units import format_share
from ctbench.report import candidate, figures, headline, labels, method, trend
from ctbench.report.labels import LIMITS
from ctbench.report.page import COMPARED, RESULTS, Facts, Link, NotRun, Page, Row, Tone
from ctbench.report.published import published_of
from ctbench.report.runs import RunSet, href, relative
from ctbench.report.sections import Shown, sections
from ctbench.results.metrics import RATE_OF
from ctbench.results.record import Outcome, Record
from ctbench.results.store import Broken, Ending, Stored, WithoutRecord

_TONES: dict[Outcome, Tone] = {
    "met": "met", "missed": "missed", "not measured": "unmeasured",
    "missed, accepted": "missed", "met, failed": "missed", "no slower seen": "skipped",
}  # fmt: skip
#: Stands between a suite and the one below it: a single angle quotation mark.
_INTO = " \u203a "
#: Files of a run besides its records, with what is in them.
_FILES = (
    ("log.html", "Robot Framework's log", "every keyword and trial as it ran"),
    ("report.html", "Robot Framework's report", "the tests by suite and tag"),
    ("output.xml", "output.xml", "for Jenkins' Robot publisher, rebot and pabot"),
    ("records", "records/", "one JSON file per test, with every trial"),
    ("captures", "captures/", "what the device under test said when a test failed, one folder per test"),
    ("dut", "dut/", "logs of the device under test"),
)


def compose(runs: RunSet, output: Path) -> Page:
    """Everything that the page says; links are relative to `output`, the folder that it will be in."""
    newest, tally = runs.newest, headline.tally_of(runs)
    records = [each.record for each in newest]
    of_candidate = candidate.sentence(records)
    seen = candidate.could_see(records) if of_candidate else ""
    changed = trend.sentence([each.record for each in test] for test in runs.by_test.values())
    rows = make_rows(newest, output)
    run_ids = list(dict.fromkeys(each.record.run_id for each in runs.stored))
    results: dict[str, list[Row]] = {}
    for row in rows[: LIMITS.results]:
        results.setdefault(row.suite, []).append(row)
    return Page(
        title=_title(records),
        tone=headline.tone(tally),
        sentence=of_candidate or headline.sentence(tally),
        details=(*filter(None, [seen, changed]), *headline.details(tally, records)),
        counts=headline.counts(tally),
        facts=method.first_screen(records, len(run_ids)),
        unseen=headline.unseen(tally, newest),
        nearest=tuple(sorted(rows, key=_matters)[: LIMITS.nearest]),
        rows=tuple(rows),
        results=results,
        more_results=labels.more(len(rows) - LIMITS.results, "test", "see results.csv, and records/"),
        sections=sections(Shown(runs, rows)),
        environment=method.environment(records, run_ids),
        methodology=method.methodology(records),
        deviations=method.deviations(newest),
        sources=method.counted(record.floor.source for record in records),
        notes=method.counted(note for record in records for note in dict.fromkeys(record.notes)),
        links=_links(runs.folders, output),
        runs=tuple(Link(folder.resolve().name, href(folder, output)) for folder in runs.folders[: LIMITS.rows]),
        more_runs=labels.more(len(runs.folders) - LIMITS.rows, "run", "their records are counted above"),
        not_run=_not_run(runs.without_record),
        unreadable=labels.some([unreadable(broken, output) for broken in runs.broken], LIMITS.rows),
    )


def _title(records: Sequence[Record]) -> str:
    """What was tested: the versions of the devices under test."""
    duts = labels.once(labels.name(method.dut(record)) for record in records)
    return labels.name(f"Performance SLA of {' and '.join(duts)}") if duts else "Performance SLA"


def _matters(row: Row) -> tuple[int, float]:
    """Missed first, then not measured, then met; of each the least margin first."""
    return labels.WORST_FIRST.index(row.tone), math.inf if row.margin_pct is None else row.margin_pct


#: What a test needs, by how the reason that it was skipped for says so.
_NEEDS = (
    (re.compile(r"need (\d+ CPUs?)\b"), "{}"),
    (re.compile(r"kernel module (\S+) is missing"), "kernel module {}"),
    (re.compile(r"^[^:`]*: (.{1,80}?) (?:is|are) missing"), "{}"),
    (re.compile(r"skips tests tagged (\S+) "), "tests tagged {}"),
)


def _need(test: WithoutRecord) -> str:
    """What a test needs in a few words: `8 CPUs`; else how its reason begins."""
    if test.outcome != "skipped":
        words = {"nightly only": "more time", "no floor yet": "figures of a second machine"}
        return words.get(test.outcome, "failed before anything was measured")
    said = (words.format(found[1]) for pattern, words in _NEEDS if (found := pattern.search(test.reason)))
    return labels.name(next(said, re.split(r"[.;:(`\n]", test.reason, maxsplit=1)[0][:80]))


def _not_run(tests: Sequence[WithoutRecord]) -> tuple[NotRun, ...]:
    """Tests without a record by what they need: the failed ones first, then those that were skipped, the commonest need
    first."""
    by_need: dict[tuple[Ending, str], dict[str, list[str]]] = {}
    for test in tests:
        name = labels.name(f"{test.suite.rpartition('.')[2]}: {test.test}")
        by_need.setdefault((test.outcome, _need(test)), {}).setdefault(test.reason, []).append(name)
    found = [
        NotRun(need, outcome, sum(map(len, reasons.values())), tuple(
            (labels.sentence(reason), "; ".join(labels.some(names, LIMITS.rows)))
            for reason, names in list(reasons.items())[: LIMITS.rows]
        ))
        for (outcome, need), reasons in by_need.items()
    ]  # fmt: skip
    outcomes = get_args(Ending)
    return tuple(sorted(found, key=lambda each: (outcomes.index(each.outcome), -each.number))[: LIMITS.rows])


def unreadable(broken: Broken, output: Path) -> str:
    """Why a file is not a record, with its name as the links have it."""
    return broken.reason.replace(printable(str(broken.path)), printable(relative(broken.path, output)))


def _links(folders: Sequence[Path], output: Path) -> tuple[Link, ...]:
    """The files that are there, of each run."""
    links = []
    for folder in folders[-LIMITS.runs :]:
        name = f"{folder.resolve().name}: " if len(folders) > 1 else ""
        links += [
            Link(f"{name}{text}", href(folder / file, output), about)
            for file, text, about in _FILES
            if (folder / file).exists()
        ]
    return tuple(links)


# The rows: a line for each test, and what opens below it.


def make_rows(newest: Sequence[Stored], output: Path) -> list[Row]:
    """A row for each record, in their order."""
    names = suite_names([each.record.suite for each in newest])
    return [_row(number, each, output, names[each.record.suite]) for number, each in enumerate(newest, 1)]


def suite_names(suites: Sequence[str]) -> dict[str, str]:
    """The long names of suites as a page shows them: without what all begin with, an arrow between the other parts."""
    parts = {suite: suite.split(".") for suite in suites}
    starts = list(zip(*(names[:-1] for names in parts.values()), strict=False))
    shared = next((number for number, some in enumerate(starts) if len(set(some)) > 1), len(starts))
    return {suite: labels.name(_INTO.join(names[shared:])) for suite, names in parts.items()}


def _row(number: int, each: Stored, output: Path, suite: str) -> Row:
    record, both = each.record, figures.against_base(each.record)
    minimum, measured = figures.floor(record) or labels.DASH, figures.measured(record) or labels.DASH
    margin = labels.margin(record.margin_pct)
    names, texts = RESULTS[1:-1], (minimum, measured, margin)
    if both and (shown := figures.deciding(record)):
        rate = RATE_OF[record.profile.kind]
        base, ours = (figures.written(rate, value) for value in both)
        names, texts = COMPARED, (base, ours, figures.difference(shown))
    return Row(
        anchor=f"test-{number}" if number <= LIMITS.results else "",
        test=labels.name(record.test),
        suite=suite,
        subject=labels.name(figures.subject(record) if number <= LIMITS.results else record.test),
        topology=labels.name(record.topology.key),
        profile=labels.name(record.profile.name),
        verdict=record.outcome,
        sign=labels.SIGNS["missed" if record.failed else record.verdict],
        tone=_TONES[record.outcome],
        minimum=minimum,
        measured=measured,
        margin=margin,
        margin_pct=record.margin_pct,
        line=dict(zip(names, texts, strict=True)),
        reason=_reason(record),
        details=_details(each) if number <= LIMITS.results else {},
        record=Link("record", href(each.path, output)),
        capture=_capture(each, output),
    )


def _details(each: Stored) -> Facts:
    """What has to be known of a test besides its line."""
    record, shown = each.record, figures.deciding(each.record)
    known = {
        "Minimum": figures.floor(record) if figures.against_base(record) else "",
        "Kind of promise": figures.kind(shown) if shown else "",
        "Compared": figures.relation(record),
        "Catches": "" if (seen := figures.catches(record)) is None else f"a slowdown of {format_share(seen)} or more",
        "Spread": ", ".join(filter(None, figures.spread(record))),
        "In a closed loop": f"serves {served}" if (served := figures.saturation(record)) else "",
        "Trials": labels.thrown_away(each.thrown_away, each.trials) or labels.plural(each.trials, "trial"),
        "Published elsewhere": _published(record),
        "Source of the minimum": record.floor.source,
        "Took": f"{labels.length(record.wall_s)}, from {labels.moment(record.started)}",
    }
    return {name: (labels.sentence(text),) for name, text in known.items() if text}


def _published(record: Record) -> str:
    """How much larger the figure is than one that others published, which is of other hardware."""
    published = published_of(record)
    if published is None:
        return ""
    known = (
        f"{labels.margin(published.difference_pct)} against {published.metric.format(published.theirs)}",
        published.label,
        "other hardware",
        figures.direction(published.metric),
    )
    return "; ".join(filter(None, known))


def _capture(each: Stored, output: Path) -> Link | None:
    """What the DUT said of its failure, where it is still there."""
    folder = each.path.parent.parent / each.record.capture if each.record.capture else None
    return Link("what the DUT said", href(folder, output) + "/") if folder and folder.is_dir() else None


def _reason(record: Record) -> str:
    """The verdict's reason as a sentence of its own."""
    reason = labels.sentence(record.reason.strip())
    # Keys of topologies keep their spelling.
    first = reason if "/" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
    return f"{first.rstrip('.')}." if reason else ""
