"""The page of a report from what was found in the folders of its runs. Reads nothing but that."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from ctbench.base.plain_text import printable
from ctbench.report import enough, facts, headline, labels, method
from ctbench.report.charts.control import control_charts
from ctbench.report.charts.cost import cost_charts
from ctbench.report.charts.history import history_charts
from ctbench.report.charts.instructions import instruction_charts
from ctbench.report.charts.match_fields import match_charts
from ctbench.report.charts.model import Chart
from ctbench.report.charts.scaling import scaling_charts
from ctbench.report.charts.table import table_charts
from ctbench.report.control import control_rows
from ctbench.report.mobile import mobile_lines
from ctbench.report.page import Gallery, Link, Page, Reasons
from ctbench.report.parts import by_anchor, split, suites
from ctbench.report.published import NOTE, published_tables
from ctbench.report.reference import NONE, References
from ctbench.report.rows import INTO, group_rows, href, make_rows, relative, saturations, searches, suite_name
from ctbench.report.runs import RunSet
from ctbench.report.time_shares import time_tables
from ctbench.results.record import Record
from ctbench.results.store import Broken
from ctbench.results.without_record import Outcome, WithoutRecord

#: Runs whose files are listed, at most: those of the others are in their folders.
_MOST_RUNS_WITH_FILES = 10
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
    newest, tally = runs.newest, headline.Tally.of(runs)
    records = [each.record for each in newest]
    groups = group_rows(make_rows(newest, output, references), newest)
    parts = split(groups)
    placed = [group for part in parts for group in part.groups] or groups
    rows = list(by_anchor([row for group in placed for row in group.rows]))
    closed_loops = saturations(newest, rows)
    mobile = mobile_lines((each.record, row.test, row.href) for each, row in zip(newest, rows, strict=True))
    control, times = control_rows(newest, rows), time_tables(newest, rows, references)
    run_ids = list(dict.fromkeys(each.record.run_id for each in runs.stored))
    problems = [row for row in sorted(rows, key=lambda row: row.verdict) if row.verdict != "met"]
    return Page(
        title=_title(records),
        tone=tally.tone,
        sentence=headline.sentence(tally),
        details=headline.details(tally, newest),
        counts=headline.counts(tally),
        facts=facts.first_screen(records, len(run_ids)),
        problems=tuple(problems[: enough.PROBLEMS]),
        more_problems=_more(
            len(problems) - enough.PROBLEMS,
            "test is missed or not measured",
            "tests are missed or not measured",
            "see the table below and results.csv",
        ),
        without_record=_reasons(runs.without_record),
        unreadable=enough.some([_unreadable(broken, output) for broken in runs.broken], enough.PROBLEMS),
        groups=() if parts else groups,
        suites=suites(parts),
        more_suites=_more(len(groups) - enough.SUITES if parts else 0, "suite", "suites", "see the pages of the tests"),
        parts=parts,
        reference=_reference_note(records, references),
        galleries=tuple(gallery for gallery in _galleries(runs, records, references) if gallery.charts),
        times=tuple(times[: enough.CHARTS]),
        more_times=_more(len(times) - enough.CHARTS, "table", "tables", "see the records (evidence.profiles)"),
        mobile=tuple(mobile[: enough.PROBLEMS]),
        more_mobile=_more(len(mobile) - enough.PROBLEMS, "test", "tests", "see results.csv"),
        control=tuple(control[: enough.PROBLEMS]),
        more_control=_more(len(control) - enough.PROBLEMS, "line", "lines", "see the records (evidence.control)"),
        saturation=tuple(closed_loops[: enough.PROBLEMS]),
        more_saturation=_more(len(closed_loops) - enough.PROBLEMS, "test", "tests", "see results.csv"),
        published=published_tables(newest, references, output),
        published_note=NOTE,
        searches=searches(newest, rows),
        environment=facts.environment(records, run_ids),
        methodology=method.methodology(records),
        deviations=method.deviations(newest),
        sources=method.floor_sources(records),
        notes=method.notes(records),
        links=_links(runs.folders, output),
        runs=tuple(Link(folder.resolve().name, href(folder, output)) for folder in runs.folders[: enough.PROBLEMS]),
        more_runs=_more(len(runs.folders) - enough.PROBLEMS, "run", "runs", "their records are counted above"),
    )


def _title(records: Sequence[Record]) -> str:
    """What was tested: the versions of the devices under test."""
    duts = enough.once(enough.name(facts.dut(record)) for record in records)
    return enough.name(f"Performance SLA of {' and '.join(duts)}") if duts else "Performance SLA"


def _galleries(runs: RunSet, records: Sequence[Record], references: References) -> list[Gallery]:
    tests = [[each.record for each in test] for test in runs.by_test().values()]
    return [
        _gallery(
            "scaling",
            "Scaling with CPUs and queues",
            "How far a device under test gets with more CPUs and receive queues. Published figures are from other "
            "hardware.",
            scaling_charts(records, references),
        ),
        _gallery(
            "cost",
            "What connection tracking and NAT cost",
            "The rate that is left of plain forwarding, with the same profile on the same machine.",
            cost_charts(records),
        ),
        _gallery(
            "instructions",
            "What packets and connections cost in instructions",
            "Counted in an emulated machine, the same on every host, net of the wires and the traffic alone. A bar is "
            "made of what its topology adds to a simpler one. Caches, locks and several CPUs are not in it.",
            instruction_charts(records),
        ),
        _gallery(
            "match-fields",
            "What match fields cost",
            "Packets per second with connection tracking, by the fields that rules match and by the number of flows.",
            match_charts(records),
        ),
        _gallery(
            "control-times",
            "How long the control plane takes",
            "Beside a load that the device under test holds alone. The table below has the spread.",
            control_charts(records),
        ),
        _gallery(
            "table",
            "The connection table",
            "How many connections are held, by the count of the device under test and of the traffic generator; and "
            "entries over time.",
            table_charts(runs.newest),
        ),
        _gallery(
            "history",
            "History over the runs",
            "Tests that were measured in more than one of the runs on this page.",
            history_charts(tests),
        ),
    ]


def _gallery(anchor: str, title: str, intro: str, charts: Sequence[Chart]) -> Gallery:
    more = _more(len(charts) - enough.CHARTS, "chart", "charts", "make a report of fewer tests to see them")
    return Gallery(anchor, title, intro, tuple(charts[: enough.CHARTS]), more)


def _more(count: int, singular: str, many: str, where: str) -> str:
    """How many of something are not on the page, and where they are; empty where all are."""
    return f"{labels.plural(count, f'more {singular}', f'more {many}')}: {where}." if count > 0 else ""


def _reasons(tests: Sequence[WithoutRecord]) -> tuple[Reasons, ...]:
    """Tests without a record by their outcome and reason; the failed ones first, then those that were skipped, the
    commonest reasons first."""
    by_reason: dict[tuple[Outcome, str], list[str]] = {}
    for test in tests:
        name = enough.name(f"{suite_name(test.suite).rpartition(INTO)[2]}: {test.test}")
        by_reason.setdefault((test.outcome, test.reason), []).append(name)
    outcomes = get_args(Outcome)
    ordered = sorted(by_reason.items(), key=lambda item: (outcomes.index(item[0][0]), -len(item[1])))
    return tuple(
        Reasons(outcome, enough.sentence(reason), len(names), enough.some(names, enough.PROBLEMS))
        for (outcome, reason), names in ordered[: enough.PROBLEMS]
    )


def _unreadable(broken: Broken, output: Path) -> str:
    """Why a file is no record, with its name as the links have it."""
    return broken.reason.replace(printable(str(broken.path)), printable(relative(broken.path, output)))


def _reference_note(records: Sequence[Record], references: References) -> str:
    """What the column `against` compares the figures with."""
    if references.series:
        others = " Published figures are from other hardware." if references.published else ""
        return f"Reference: {', '.join(enough.some(list(references.series), enough.VALUES))}.{others}"
    if any(record.floor.reference for record in records):
        return "Reference: figures published elsewhere, as the SLA file has them next to its floors; other hardware."
    return ""


def _links(folders: Sequence[Path], output: Path) -> tuple[Link, ...]:
    """The files that are there, of each run."""
    links = []
    for folder in folders[-_MOST_RUNS_WITH_FILES:]:
        name = f"{folder.resolve().name}: " if len(folders) > 1 else ""
        links += [
            Link(f"{name}{text}", href(folder / file, output), about)
            for file, text, about in _FILES
            if (folder / file).exists()
        ]
    return tuple(links)
