"""The composition of a report's page from the records and files in the folders of its runs."""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import get_args

from ctbench.base.text import printable
from ctbench.base.units import format_count, format_duration, format_ratio, format_share, plural, thousands
from ctbench.report import candidate, figures, headline, labels, method, setups, trend
from ctbench.report.charts import lines
from ctbench.report.charts.bars import rate_charts
from ctbench.report.charts.chart import Chart
from ctbench.report.page import COMPARED, RESULTS, Article, Fields, KnownMiss, NotRun, Page, ReportRow
from ctbench.report.runs import RunSet, href, relative
from ctbench.results.evidence import TrialRecord
from ctbench.results.floor import Accepted
from ctbench.results.metrics import METRICS, RATE_OF
from ctbench.results.record import Record
from ctbench.results.store import Broken, Ending, Stored, WithoutRecord, read_whole

#: Stands between a suite and the one below it: a single angle quotation mark.
_INTO = " \u203a "
#: Tests on the first screen, and runs whose files are listed.
_NEAREST, _RUNS = 3, 10
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
    """Compose the page. Links are relative to `output`, the folder that the page will be in."""
    newest, tally = runs.newest, headline.tally_of(runs)
    records = [each.record for each in newest]
    of_candidate, color = candidate.sentence(records), headline.tone(tally)
    seen = candidate.could_see(records) if of_candidate else headline.would_pass(records, color)
    histories = [[each.record for each in test] for test in runs.by_test.values()]
    answer = () if of_candidate else setups.charts(records, histories)
    verdict, said = of_candidate or headline.sentence(tally), setups.lines(answer)
    # Where all is met, what was measured is the news; else what is missed or not known comes before it.
    leads = bool(said) and color == "met"
    first = said if leads else (verdict, *said)
    compared = candidate.charts(records, [each.record for each in runs.stored])
    drawn: list[Chart] = [*compared, *rate_charts(records), *lines.history_charts(histories)]
    rows, hidden = make_rows(newest, output), len(drawn) - labels.MOST_CHARTS
    doubtful = sorted((row for row in rows if row.verdict != "met" or not answer), key=_matters)
    run_ids = list(dict.fromkeys(each.record.run_id for each in runs.stored))
    results: dict[str, list[ReportRow]] = {}
    for row in rows:
        results.setdefault(row.suite, []).append(row)
    return Page(
        title=_title(records),
        tone=color,
        sentence=first[0],
        answers=first[1:],
        details=(
            *filter(None, [seen, trend.sentence(histories), verdict if leads else ""]),
            *headline.details(tally, records),
        ),
        counts=headline.counts(tally),
        facts=method.first_screen(records, len(run_ids)),
        unseen=headline.unseen(tally, newest),
        setups=answer,
        nearest=tuple(doubtful[:_NEAREST]),
        known=known_misses(histories, rows),
        rows=tuple(rows),
        results=results,
        charts=tuple(drawn[: labels.MOST_CHARTS]),
        more=f"{plural(hidden, 'more chart')}: see the records, or make a report of fewer tests." if hidden > 0 else "",
        searches=_searches(runs, rows),
        environment=method.environment(records, run_ids),
        methodology=(*headline.judged(records), *method.methodology(records)),
        deviations=method.deviations(newest),
        sources=method.counted(record.floor.source for record in records),
        notes=method.counted(note for record in records for note in dict.fromkeys(record.notes)),
        links=_links(runs.folders, output),
        runs=tuple((folder.resolve().name, href(folder, output)) for folder in runs.folders),
        not_run=_not_run(runs.without_record),
        unreadable=labels.some([unreadable(broken, output) for broken in runs.broken]),
    )


def _title(records: Sequence[Record]) -> str:
    """Return the title: the versions of the devices under test."""
    duts = labels.once(labels.name(method.dut(record)) for record in records)
    return labels.name(f"Performance SLA of {' and '.join(duts)}") if duts else "Performance SLA"


def _matters(row: ReportRow) -> tuple[int, float]:
    """Return the sort key of a row: missed, then not measured, then met; within each the smallest margin first."""
    return labels.WORST_FIRST.index(row.tone), math.inf if row.margin_pct is None else row.margin_pct


#: What a test needs, by how it ended.
_NEEDED: dict[Ending, str] = {
    "not begun": "the rest of the run",
    "nightly only": "more time",
    "no floor yet": "figures of a second machine",
}
#: What a test needs, by how the reason that it was skipped for says so.
_NEEDS = (
    (re.compile(r"need (\d+ CPUs?)\b"), "{}"),
    (re.compile(r"kernel module (\S+) is missing"), "kernel module {}"),
    (re.compile(r"^[^:`]*: (.{1,80}?) (?:is|are) missing"), "{}"),
    (re.compile(r"skips tests tagged (\S+) "), "tests tagged {}"),
)


def _need(test: WithoutRecord) -> str:
    """Return what a test needs in a few words: `8 CPUs`; else the beginning of its reason."""
    if test.outcome != "skipped":
        return _NEEDED.get(test.outcome, "failed before anything was measured")
    said = (words.format(found[1]) for pattern, words in _NEEDS if (found := pattern.search(test.reason)))
    return labels.name(next(said, re.split(r"[.;:(`\n]", test.reason, maxsplit=1)[0][:80]))


def _not_run(tests: Sequence[WithoutRecord]) -> tuple[NotRun, ...]:
    """Return the tests without a record by their need: failed ones first, then the others in the order of `Ending`, the
    commonest need first."""
    by_need: dict[tuple[Ending, str], dict[str, list[str]]] = {}
    for test in tests:
        name = labels.name(f"{test.suite.rpartition('.')[2]}: {test.test}")
        by_need.setdefault((test.outcome, _need(test)), {}).setdefault(test.reason, []).append(name)
    found = [
        NotRun(need, outcome, sum(map(len, reasons.values())), tuple(
            (labels.sentence(reason), "; ".join(labels.some(names)))
            for reason, names in reasons.items()
        ))
        for (outcome, need), reasons in by_need.items()
    ]  # fmt: skip
    outcomes = get_args(Ending)
    return tuple(sorted(found, key=lambda each: (outcomes.index(each.outcome), -each.number)))


# Misses that an SLA file accepts, and what became of them from release to release.


def known_misses(tests: Iterable[Sequence[Record]], rows: Iterable[ReportRow]) -> tuple[KnownMiss, ...]:
    """Return the tests whose miss an SLA file accepted in at least one run, with the newest entry. `rows` are those of
    the `tests`, whose records are oldest first."""
    found = []
    for test, row in zip(tests, rows, strict=True):
        entry = next((record.floor.accepted for record in reversed(test) if record.floor.accepted), None)
        if entry:
            ticket, because = labels.sentence(entry.ticket), labels.sentence(entry.because)
            found.append(KnownMiss(row, ticket, because, _accepted(test[-1], entry), labels.some(_became(test))))
    return tuple(found)


def _accepted(newest: Record, entry: Accepted) -> str:
    """Return who accepted a miss and until when, and what to do about the entry."""
    said = f"until {entry.until} by {labels.name(entry.by)}"
    if newest.floor.accepted is None:
        return f"{said}; the SLA file no longer says so"
    if newest.verdict == "met":
        return f"{said}; it is met: remove the entry"
    if newest.ended.date() > entry.until:
        return f"{said}; that day has passed"
    another = newest.verdict == "missed" and not newest.accepted and not newest.failed
    return f"{said}; this is another miss" if another else said


def _became(test: Sequence[Record]) -> list[str]:
    """Return the verdict of each release, the newest first; of several consecutive runs of one, that of the newest."""
    releases = [(release, list(runs)) for release, runs in groupby(test, method.dut)]
    return [_did(release, runs) for release, runs in reversed(releases)]


def _did(release: str, runs: Sequence[Record]) -> str:
    found = figures.margin_pct(runs[-1])
    margin = f", {labels.margin(found)}" if found is not None else ""
    several = f" (the newest of {len(runs)} runs)" if len(runs) > 1 else ""
    return f"{labels.name(release) or 'unknown release'}: {runs[-1].verdict}{margin}{several}"


# Files.


def unreadable(broken: Broken, output: Path) -> str:
    """Return why a file is not a record, with the file's name as in the links."""
    return broken.reason.replace(printable(str(broken.path)), printable(relative(broken.path, output)))


def _links(folders: Sequence[Path], output: Path) -> tuple[tuple[str, str, str], ...]:
    """Return links to the existing files of the last ten runs."""
    links = []
    for folder in folders[-_RUNS:]:
        name = f"{folder.resolve().name}: " if len(folders) > 1 else ""
        links += [
            (f"{name}{text}", href(folder / file, output), about)
            for file, text, about in _FILES
            if (folder / file).exists()
        ]
    return tuple(links)


# How results came about.

#: Tests that are shown for being missed or not measured.
_DOUBTFUL = 3


def _searches(runs: RunSet, rows: Sequence[ReportRow]) -> tuple[Article, ...]:
    """Return the evidence of up to three tests that are not met, of the met one nearest to its floor, and of the tests
    that watched the connection table over time. `rows` are those of `runs.newest`."""
    tests = [(each, row) for each, row in zip(runs.newest, rows, strict=True) if _has_evidence(each)]
    doubtful = [test for test in tests if test[1].verdict != "met"]
    met = [test for test in tests if test[1].verdict == "met" and test[1].margin_pct is not None]
    chosen = sorted(doubtful, key=lambda test: test[1].verdict)[:_DOUBTFUL]
    chosen += sorted(met, key=lambda test: test[1].margin_pct or 0.0)[:1]
    watched = [test for test in tests if METRICS[test[0].record.metric].of_table and test not in chosen]
    return tuple(_article(read_whole(each.path), row) for each, row in (chosen + watched)[: labels.MOST_CHARTS])


def _has_evidence(each: Stored) -> bool:
    return each.sustain_s is not None or bool(each.record.evidence.pairs)


def _article(record: Record, row: ReportRow) -> Article:
    made = (*lines.pair_charts(record), lines.search_chart(record), *lines.series_charts(record))
    charts = tuple(chart for chart in made if chart)
    return Article(row, figures.goal(record), charts, tuple(map(_trial, record.evidence.trials)))


def _trial(made: TrialRecord) -> dict[str, str]:
    trial, waited_s = made.trial, made.waited_p99_s
    reasons = dict.fromkeys([made.reason, *(problem.text for problem in made.problems)])
    return {
        "Phase": labels.name(made.phase),
        "Offered": labels.rate(trial.load, trial.unit),
        "Completed": labels.rate(trial.rate, trial.unit),
        "Loss": format_ratio(max(0.0, trial.loss_ratio)),
        "Packets/s": format_count(trial.pps),
        f"{'Connect' if trial.unit == 'connections' else 'Latency'} p99": (
            labels.DASH if waited_s is None else format_duration(waited_s)
        ),
        "State": made.state,
        "Reason": labels.sentence("; ".join(reasons).strip("; ")),
    }


# The rows: a line for each test, and what opens below it.


def make_rows(newest: Sequence[Stored], output: Path) -> list[ReportRow]:
    """Return a row for each record, in their order."""
    names = suite_names([each.record.suite for each in newest])
    return [_row(number, each, output, names[each.record.suite]) for number, each in enumerate(newest, 1)]


def suite_names(suites: Sequence[str]) -> dict[str, str]:
    """Return the long names of suites as a page shows them: without their common beginning, an arrow between the other
    parts."""
    parts = {suite: suite.split(".") for suite in suites}
    starts = list(zip(*(names[:-1] for names in parts.values()), strict=False))
    shared = next((number for number, some in enumerate(starts) if len(set(some)) > 1), len(starts))
    return {suite: labels.name(_INTO.join(names[shared:])) for suite, names in parts.items()}


def _row(number: int, each: Stored, output: Path, suite: str) -> ReportRow:
    record, both = each.record, figures.against_base(each.record)
    floor = figures.floor(record) or labels.DASH
    measured = figures.measured(record) or labels.DASH
    margin_pct = figures.margin_pct(record)
    margin = labels.margin(margin_pct)
    names, texts = RESULTS[1:-1], (floor, measured, margin)
    if both:
        *rates, share = both
        base, ours = (figures.written(RATE_OF[record.profile.kind], rate) for rate in rates)
        names, texts = COMPARED, (base, ours, share.difference)
    return ReportRow(
        anchor=f"test-{number}",
        test=labels.name(record.test),
        suite=suite,
        subject=labels.name(figures.subject(record)),
        topology=labels.name(record.topology.key),
        profile=labels.name(record.profile.name),
        verdict=record.outcome,
        sign=labels.OUTCOMES[record.outcome].sign,
        tone=labels.OUTCOMES[record.outcome].tone,
        floor=floor,
        measured=measured,
        margin=margin,
        margin_pct=margin_pct,
        line=dict(zip(names, texts, strict=True)),
        reason=_reason(record),
        details=_details(each),
        record=href(each.path, output),
        capture=_capture(each, output),
    )


#: What ended a measurement before the DUT did: it may do better, for as long as a trial was.
_ENDED_BY = {
    "generator": "the traffic generator: the device under test may do better",
    "range": "the campaign's range of loads: the device under test may do better",
    "floor": "the campaign, which tries the floor only: the device under test may do better",
}


def _details(each: Stored) -> Fields:
    """Return the facts of a test that open below its line."""
    record, evidence = each.record, each.record.evidence
    known: dict[str, str | tuple[str, ...]] = {
        "Floor": figures.floor(record) if figures.against_base(record) else "",
        "Kind of floor": figures.kind(record),
        "Compared": figures.relation(record),
        "Catches": "" if (seen := figures.catches(record)) is None else f"a slowdown of {format_share(seen)} or more",
        "Ended by": _ENDED_BY.get(record.limited_by, ""),
        "Spread": " ".join(figures.spread(record)).rstrip(),
        "Drop rates": figures.drop_rates(record),
        "Times below the edge": tuple(map(figures.below_edge, evidence.below)),
        "Times at the edge, those of full queues": figures.at_edge(record),
        "Also measured": figures.also_measured(record),
        "Port pairs": each.port_pairs,
        "Counted by the device under test": ", ".join(map(figures.counted_by_dut, evidence.table)),
        "Counted by conntrack": ", ".join(f"{name} {thousands(n)}" for name, n in each.conntrack.items()),
        "What was done meanwhile": tuple(each.text for each in evidence.control),
        "Time of a thread": tuple(map(figures.time_of_thread, evidence.profiles)),
        "Trials": labels.thrown_away(each.thrown_away, each.trials) or plural(each.trials, "trial"),
        "Published elsewhere": _published(record),
        "Source of the floor": record.floor.source,
        "Took": f"{labels.length(record.wall_s)}, from {labels.moment(record.started)}",
    }
    listed = {name: (said,) if isinstance(said, str) else said for name, said in known.items() if said}
    return {name: labels.some(said) for name, said in listed.items()}


def _published(record: Record) -> str:
    """Return the difference of the figure to one that others published, which was measured on other hardware."""
    known, found, metric = record.floor.reference, figures.published(record), figures.metric_of(record)
    if known is None or found is None:
        return ""
    against = f"{labels.margin(found[1])} against {metric.format(found[0])}"
    return "; ".join(filter(None, (against, known.label, "other hardware", figures.direction(metric))))


def _capture(each: Stored, output: Path) -> str:
    """Return the link to the folder with what the DUT reported of its failure; empty where the folder is gone."""
    folder = each.path.parent.parent / each.record.capture if each.record.capture else None
    return href(folder, output) + "/" if folder and folder.is_dir() else ""


def _reason(record: Record) -> str:
    """Return the reason of the verdict as a complete sentence."""
    reason = labels.sentence(record.reason.strip())
    # Keys of topologies keep their spelling.
    first = reason if "/" in reason.partition(" ")[0] else f"{reason[:1].upper()}{reason[1:]}"
    return f"{first.rstrip('.')}." if reason else ""
