"""The page of a report from what was found in the folders of its runs. Reads nothing but that."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from ctbench.base.text import printable
from ctbench.report import headline, labels, method
from ctbench.report.labels import LIMITS
from ctbench.report.page import Cell, Column, Line, Link, Page, Table
from ctbench.report.reference import NONE, References
from ctbench.report.rows import make_rows, results_table
from ctbench.report.runs import RunSet, href, relative
from ctbench.report.sections import Shown, sections
from ctbench.results.record import Record
from ctbench.results.store import Broken, Ending, WithoutRecord

#: Files of a run besides its records, with what is in them.
_FILES = (
    ("log.html", "Robot Framework's log", "every keyword and trial as it ran"),
    ("robot-report.html", "Robot Framework's report", "the tests by suite and tag"),
    ("output.xml", "output.xml", "for Jenkins' Robot publisher, rebot and pabot"),
    ("records", "records/", "one JSON file per test, with every trial"),
    ("captures", "captures/", "what the device under test said when a test failed, one folder per test"),
    ("dut", "dut/", "logs of the device under test"),
)


def compose(runs: RunSet, output: Path, references: References = NONE) -> Page:
    """Everything that the page says; links are relative to `output`, the folder that it will be in."""
    newest, tally = runs.newest, headline.tally_of(runs)
    records = [each.record for each in newest]
    rows = make_rows(newest, output, references)
    reference = _reference_note(records, references)
    run_ids = list(dict.fromkeys(each.record.run_id for each in runs.stored))
    problems = [row for row in sorted(rows, key=lambda row: row.verdict) if row.verdict != "met"]
    return Page(
        title=_title(records),
        tone=headline.tone(tally),
        sentence=headline.sentence(tally),
        details=headline.details(tally, newest),
        counts=headline.counts(tally),
        facts=method.first_screen(records, len(run_ids)),
        problems=tuple(problems[: LIMITS.rows]),
        more_problems=labels.more(len(problems) - LIMITS.rows, "row", "see results.csv"),
        without_record=_reasons(runs.without_record),
        unreadable=labels.some([unreadable(broken, output) for broken in runs.broken], LIMITS.rows),
        rows=tuple(rows),
        results=results_table(rows, compared=bool(reference)),
        more_results=labels.more(len(rows) - LIMITS.results, "test", "see results.csv, and records/"),
        reference=reference,
        sections=sections(Shown(runs, rows, references, output)),
        environment=method.environment(records, run_ids),
        methodology=method.methodology(records),
        deviations=method.deviations(newest),
        sources=method.floor_sources(records),
        notes=method.notes(records),
        links=_links(runs.folders, output),
        runs=tuple(Link(folder.resolve().name, href(folder, output)) for folder in runs.folders[: LIMITS.rows]),
        more_runs=labels.more(len(runs.folders) - LIMITS.rows, "run", "their records are counted above"),
    )


def _title(records: Sequence[Record]) -> str:
    """What was tested: the versions of the devices under test."""
    duts = labels.once(labels.name(method.dut(record)) for record in records)
    return labels.name(f"Performance SLA of {' and '.join(duts)}") if duts else "Performance SLA"


def _reasons(tests: Sequence[WithoutRecord]) -> Table | None:
    """Tests without a record by their outcome and reason; the failed ones first, then those that were skipped, the
    commonest reasons first."""
    by_reason: dict[tuple[Ending, str], list[str]] = {}
    for test in tests:
        name = labels.name(f"{test.suite.rpartition('.')[2]}: {test.test}")
        by_reason.setdefault((test.outcome, test.reason), []).append(name)
    if not by_reason:
        return None
    outcomes = get_args(Ending)
    ordered = sorted(by_reason.items(), key=lambda item: (outcomes.index(item[0][0]), -len(item[1])))
    lines = []
    for (outcome, reason), names in ordered[: LIMITS.rows]:
        failed = outcome == "failed"
        badge = Cell(outcome, sign="!" if failed else labels.DASH, tone="unmeasured" if failed else "skipped")
        listed = Cell("; ".join(labels.some(names, LIMITS.rows)))
        lines.append(Line((badge, Cell(labels.sentence(reason)), Cell(str(len(names)), notes=(listed,)))))
    columns = (Column("Outcome", right=False), Column("Why", right=False), Column("Tests", right=False, strong=True))
    return Table.of(columns, tuple(lines))


def unreadable(broken: Broken, output: Path) -> str:
    """Why a file is not a record, with its name as the links have it."""
    return broken.reason.replace(printable(str(broken.path)), printable(relative(broken.path, output)))


def _reference_note(records: Sequence[Record], references: References) -> str:
    """What the column `against` compares the figures with."""
    if references.series:
        others = " Published figures are from other hardware." if references.published else ""
        return f"Reference: {', '.join(labels.some(list(references.series), LIMITS.values))}.{others}"
    if any(record.floor.reference for record in records):
        return "Reference: figures published elsewhere, as the SLA file has them next to its floors; other hardware."
    return ""


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
