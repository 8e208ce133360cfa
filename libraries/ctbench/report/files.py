"""The figures of a report for others: sla.md for a merge request, junit.xml for Jenkins and GitLab, summary.json and
results.csv for programs.

In the last two numbers are not rounded. Figures are named as the metrics of `ctbench.results.metrics`, in their units:
per second, ratios, seconds; what ends in `_pct` is percent.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.sax.saxutils import escape, quoteattr

from pydantic_core import to_json

from ctbench.base.text import code, escaped, printable
from ctbench.report import figures, headline, labels
from ctbench.report.labels import LIMITS
from ctbench.report.page import NEAREST, NOT_RUN, RESULTS, UNSEEN, Page, Row
from ctbench.report.published import published_of
from ctbench.report.runs import RunSet, relative
from ctbench.results.metrics import METRICS, RELATIVE
from ctbench.results.record import Record
from ctbench.results.store import Stored

_SIGNS = {"met": "✅", "missed": "❌", "unmeasured": "⚠️", "skipped": "\u2796"}
Texts = Mapping[str, str]
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
#: What an attribute of XML holds as it is: ASCII that can be shown, without its signs. Nearly all texts, and quicker.
_PLAIN = re.compile(r"[ !#-%'-;=?-~]*")
#: What a formula begins with in spreadsheets, some of which take the wide forms too, or skip the tab and the newline.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def report_md(page: Page) -> str:
    """The page in the same order as GitHub, GitLab and Gerrit render it, without what opens and without charts. What
    others wrote in it is escaped."""
    lines = [f"## {_SIGNS[page.tone]} {escaped(page.sentence)}", "", *map(escaped, page.details), ""]
    lines += [" · ".join(f"**{count.number}** {count.word}" for count in page.counts), ""]
    lines += [f"- {name}: {'; '.join(map(escaped, values))}" for name, values in page.facts.items()]
    if page.nearest:
        lines += ["", f"### {NEAREST}", "", *_table(page.nearest)]
    if page.unseen:
        lines += ["", f"### {UNSEEN}", "", *(f"- {escaped(text)}" for text in page.unseen)]
    room = LIMITS.merge_request
    for suite, rows in page.results.items():
        if room > 0:
            lines += ["", f"### {escaped(suite)}", "", *_table(rows[:room])]
        room -= len(rows)
    if more := labels.more(len(page.rows) - LIMITS.merge_request, "test", "see sla.html and results.csv"):
        lines += ["", more]
    if page.not_run or page.unreadable:
        lines += ["", f"### {NOT_RUN}", ""]
        lines += [
            f"- {escaped(each.need)}: {labels.plural(each.number, 'test')}, {each.outcome}" for each in page.not_run
        ]
        lines += [f"- {escaped(reason)}" for reason in page.unreadable]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row]) -> list[str]:
    """A line for each test; below the table why, where it is not met."""
    alike = len({row.head for row in rows}) == 1
    head = rows[0].head if alike else RESULTS
    lines = [f"| {' | '.join(line)} |" for line in (head, ("---", "---:", "---:", "---:", "---"))]
    for row in rows:
        first, figure, last = row.line.values() if alike else (row.minimum, row.measured, row.margin)
        texts = (f"{escaped(row.subject)} {code(row.topology)}", first, f"**{figure}**", last)
        lines.append(f"| {' | '.join(texts)} | {_SIGNS[row.tone]} {row.verdict} |")
    reasons = [f"- {escaped(row.test)}: {escaped(row.reason)}" for row in rows if row.verdict != "met"]
    return [*lines, *([""] if reasons else []), *reasons]


#: Properties of a test that the body of its failure repeats.
_TOLD = ("Floor", "Measured", "Margin", "Record")


class _Case(NamedTuple):
    """A test in junit.xml: `failure`, `error`, `skipped`, or nothing of these; its seconds; its element."""

    kind: str
    seconds: float
    text: str


def junit_xml(runs: RunSet, rows: Sequence[Row]) -> str:
    """A case for each test, with Floor, Measured, Margin and Verdict as properties. Missed is a failure, not measured
    an error: both are red, and told apart. Skipped stays skipped; so does what is nightly only, and a miss that is
    accepted. `rows` are those of the page, in the order of `runs.newest`."""
    suites: dict[str, list[_Case]] = {}
    for each, row in zip(runs.newest, rows, strict=True):
        suites.setdefault(each.record.suite, []).append(_measured(each, row))
    for test in runs.without_record:
        kind = "error" if test.outcome == "failed" else "skipped"
        suites.setdefault(test.suite, []).append(_case(test.suite, test.test, kind, {"message": test.reason}))
    for broken in runs.broken:
        why = {"type": "unreadable", "message": "is not a record, see sla.html"}
        suites.setdefault("records", []).append(_case("records", broken.path.name, "error", why))
    text = [_DECLARATION, '<testsuites name="conntrack performance SLA">\n']
    for name, cases in suites.items():
        start = _start("testsuite", {"name": name, **_counts(cases)})
        text += [start, *(case.text for case in cases), "</testsuite>\n"]
    return "".join([*text, "</testsuites>\n"])


def _start(name: str, attributes: Texts, end: str = ">\n") -> str:
    """How an element of XML begins, or all of one that is empty. Without a tree: that of a year takes a second."""
    return f"<{name}{''.join([f' {key}={_attribute(value)}' for key, value in attributes.items()])}{end}"


def _attribute(text: str) -> str:
    return f'"{text}"' if _PLAIN.fullmatch(text) else quoteattr(printable(text))


def _case(suite: str, test: str, kind: str, why: Texts, seconds: float = 0.0, properties: Texts | None = None) -> _Case:
    text = [_start("testcase", {"classname": suite, "name": test, "time": f"{seconds:.3f}"})]
    if properties:
        each = [f'<property name="{name}" value={_attribute(value)}/>\n' for name, value in properties.items()]
        text += ["<properties>\n", *each, "</properties>\n"]
    if kind:
        # Jenkins shows the attributes, GitLab the body alone.
        told = [why["message"], *(f"{name}: {value}" for name, value in (properties or {}).items() if name in _TOLD)]
        text.append(f"{_start(kind, why, '>')}{escape(printable(chr(10).join(told)))}</{kind}>\n")
    return _Case(kind, seconds, "".join([*text, "</testcase>\n"]))


def _measured(each: Stored, row: Row) -> _Case:
    record = each.record
    kinds = {"met": "", "missed": "failure", "missed, accepted": "skipped", "met, failed": "failure"}
    kinds |= {"no slower seen": "skipped"}
    why = {"type": record.outcome, "message": record.message}
    kind = kinds.get(record.outcome, "error")
    return _case(record.suite, record.test, kind, why, record.wall_s, _properties(each, row))


def _properties(each: Stored, row: Row) -> dict[str, str]:
    """What Robot Framework's metadata of the test say too, and where the figures are from."""
    record, (spread, spread_of) = each.record, figures.spread(each.record)
    found = {
        "Floor": row.minimum,
        "Measured": row.measured,
        "Margin": row.margin,
        "Verdict": row.verdict,
        "Kind": figures.kind(shown) if (shown := figures.deciding(record)) else "",
        "Relative": figures.relation(record),
        "Thrown away": labels.thrown_away(each.thrown_away, each.trials),
        "Spread": f"{spread or labels.DASH} {spread_of}".strip(),
        "Topology": row.topology,
        "Profile": row.profile,
        "Metric": figures.metric_of(record).title,
        "Procedure": record.procedure,
        "Campaign": record.campaign.name,
        "Started": labels.moment(record.started),
        "Record": unquote(row.record.href),
    }
    return {name: value for name, value in found.items() if value}


def _counts(cases: Sequence[_Case]) -> dict[str, str]:
    """Attributes of a suite."""
    kinds = Counter(case.kind for case in cases)
    found = {"failures": kinds["failure"], "errors": kinds["error"], "skipped": kinds["skipped"]}
    seconds = sum(case.seconds for case in cases)
    return {"tests": str(len(cases)), **{kind: str(count) for kind, count in found.items()}, "time": f"{seconds:.3f}"}


#: A record with what both files below say of it: which test it is with what was found, and where that is from.
Told = tuple[Record, dict[str, Any], dict[str, Any]]


def told(newest: Sequence[Stored], output: Path) -> list[Told]:
    """Each test for `summary_json` and `results_csv`; paths are relative to `output`."""
    return [(each.record, _result(each), _origin(each, output)) for each in newest]


def summary_json(runs: RunSet, tests: Sequence[Told], output: Path) -> bytes:
    """The verdict with its counts, and every test: figures by metric, every promise with what was measured of it."""
    tally = headline.tally_of(runs)
    words = ("met", "missed", "not measured", "skipped", "nightly only", "no floor yet")
    document = {
        "schema_version": 3,
        "verdict": headline.word(tally),
        "sentence": headline.sentence(tally),
        "counts": {
            **{word: tally[word] for word in words},
            "accepted": tally["missed, accepted"],
            "met, failed": tally["met, failed"],
            "no slower seen": tally["no slower seen"],
            "failed without record": tally["failed"],
            "unreadable": tally["unreadable"],
        },
        "kinds": headline.kinds([record for record, *_ in tests]),
        "run_ids": list(dict.fromkeys(each.record.run_id for each in runs.stored)),
        # One after another: those of a year are many.
        "tests": (
            {**result, "figures": record.values, "thresholds": record.thresholds, **origin}
            for record, result, origin in tests
        ),
        "without_record": [test.model_dump() for test in runs.without_record],
        "unreadable": [_path(broken.path, output) for broken in runs.broken],
    }
    return to_json(document, indent=1) + b"\n"


def results_csv(tests: Sequence[Told]) -> str:
    """A line for each test (RFC 4180), with a column for each metric that there is."""
    text, blank = io.StringIO(), dict.fromkeys((*METRICS, "kind", "kind_of_floor", *_COLUMNS))
    writer = csv.writer(text)
    for number, (record, result, origin) in enumerate(tests):
        line = {**result, **blank, **record.values, **_relative(record), **origin}
        if number == 0:
            writer.writerow(line)
        writer.writerow([_in_csv(value) if type(value) is str else value for value in line.values()])
    return text.getvalue() or "suite,test,verdict\r\n"


def _in_csv(text: str) -> str:
    """A text that a spreadsheet would take for a formula begins with an apostrophe, which makes it a text there."""
    return f"'{text}" if text.startswith(_FORMULA) else text


#: Of what compares with something else: its interval, and what that is.
_COLUMNS = {f"{name}_{key}": (name, key) for name in RELATIVE for key in ("low", "high", "to")}


def _relative(record: Record) -> dict[str, Any]:
    """How the floor is meant, and what is in `_COLUMNS`."""
    shown = figures.deciding(record)
    found = {"kind": shown.kind, "kind_of_floor": figures.kind(shown)} if shown else {}
    promised = {each.metric: each for each in record.thresholds if each.metric in RELATIVE}
    return found | {
        column: getattr(promised[name], key) for column, (name, key) in _COLUMNS.items() if name in promised
    }


def _result(each: Stored) -> dict[str, Any]:
    """Which test it is, and the promise that decided it: floor, measured and margin are of `metric`. Where nothing was
    promised, that is what the procedure looked for. None: there is no such figure."""
    record, searched, shown = each.record, each.record.result, figures.deciding(each.record)
    metric = METRICS[shown.metric if shown else record.metric]
    found = record.figures.get(metric.name)
    spread = found.spread if found else None
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "campaign": record.campaign.name,
        "testbed": record.environment.testbed.name,
        "procedure": record.procedure,
        "verdict": record.outcome if record.failed else record.verdict,
        "accepted_until": str(record.accepted.until) if record.accepted else None,
        "metric": metric.name,
        "unit": metric.unit.name,
        "floor": shown.limit if shown else None,
        "measured": shown.measured if shown else found.value if found else None,
        # There is none of a floor that was all that was tried, nor where nothing decided.
        "margin_pct": None if record.margin_pct is None or shown is None else shown.margin_pct,
        "limited_by": record.limited_by,
        "searches": len(searched.repetitions) if searched else 0,
        "trials": each.trials,
        "trials_thrown_away": each.thrown_away,
        "spread_pct": None if spread is None else spread * 100,
        "upper_bound": record.evidence.upper_bound,
    }


def _origin(each: Stored, output: Path) -> dict[str, Any]:
    """What others published of the test, and where its figures are from."""
    record, published = each.record, published_of(each.record)
    return {
        "reference": published.label if published else None,
        "reference_metric": published.metric.name if published else None,
        "reference_value": published.theirs if published else None,
        "reference_difference_pct": published.difference_pct if published else None,
        "reason": record.reason,
        "started": record.started.isoformat(),
        "run_id": record.run_id,
        "record": _path(each.path, output),
    }


def _path(path: Path, output: Path) -> str:
    return printable(relative(path, output))
