"""The files of a report for other programs: junit.xml for Jenkins and GitLab, summary.json and results.csv for any.

Numbers in the last two are not rounded. Figures have the names of the metrics in `ctbench.results.metrics`, each with
its unit and the ends of its interval; names that end in `_pct` are percent.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from pydantic_core import to_json

from ctbench.base.text import printable
from ctbench.report import candidate, figures, headline, labels
from ctbench.report.labels import OUTCOMES
from ctbench.report.page import ReportRow
from ctbench.report.runs import RunSet, named, relative
from ctbench.results.floor import Threshold
from ctbench.results.gate import doubt, left_open
from ctbench.results.metrics import METRICS, RELATIVE
from ctbench.results.store import Stored

#: The outcome in junit.xml of a row that a gate leaves open (`ctbench.results.gate`).
_LEFT_OPEN = "left open"
#: Names of outcomes in summary.json and results.csv, where they have others there.
_COUNTED_AS = {"missed, accepted": "accepted", "failed": "failed without record"}
#: What a formula begins with in spreadsheets, some of which take the wide forms too, or skip the tab and the newline.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


#: Properties of a test that the body of its failure repeats.
_TOLD = ("Floor", "Measured", "Margin", "Record")


def junit_xml(runs: RunSet, rows: Sequence[ReportRow]) -> str:
    """Return junit.xml: a case for each test, with Floor, Measured, Margin and Verdict as properties. A missed test is
    a failure, one that is not measured an error: both are red, and distinguishable. Cases that do not count for the
    status are skipped: skipped tests, nightly-only tests, accepted misses, and rows that a gate leaves open. A gate
    that is not measured as a whole adds a case. `rows` are those of the page, in the order of `runs.newest`."""
    suites: dict[str, list[ET.Element]] = {}
    for each, row, outcome in zip(runs.newest, rows, outcomes(runs), strict=True):
        record, properties = each.record, _properties(each, row)
        case = _case(record.suite, record.test, outcome, record.message, properties, record.wall_s)
        suites.setdefault(record.suite, []).append(case)
    for test in runs.without_record:
        suites.setdefault(test.suite, []).append(_case(test.suite, test.test, test.outcome, test.reason))
    if why := doubt([each.record for each in runs.newest]):
        suites.setdefault("gate", []).append(_case("gate", "all rows together", "gate not measured", why))
    for broken in runs.broken:
        case = _case("records", broken.path.name, "unreadable", "is not a record, see sla.html")
        suites.setdefault("records", []).append(case)
    root = ET.Element("testsuites", name="conntrack performance SLA")
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=printable(name), tests=str(len(cases)))
        suite.extend(cases)
        for kind, counted in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(counted, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def outcomes(runs: RunSet) -> list[str]:
    """Return the outcome of each test of `runs.newest`, by the names of `labels.OUTCOMES`."""
    records = [each.record for each in runs.newest]
    is_open = {id(record) for record in left_open(records)}
    return [_LEFT_OPEN if id(record) in is_open else record.outcome for record in records]


def _case(
    suite: str, test: str, outcome: str, why: str, properties: Mapping[str, str] | None = None, seconds: float = 0.0
) -> ET.Element:
    case = ET.Element("testcase", classname=printable(suite), name=printable(test), time=f"{seconds:.3f}")
    known = {name: printable(value) for name, value in (properties or {}).items()}
    if known:
        listed = ET.SubElement(case, "properties")
        for name, value in known.items():
            ET.SubElement(listed, "property", name=name, value=value)
    if kind := OUTCOMES[outcome].case:
        # Jenkins shows the attributes, GitLab the body alone.
        failure = ET.SubElement(case, kind, type=outcome, message=printable(why))
        failure.text = "\n".join([printable(why), *(f"{name}: {known[name]}" for name in _TOLD if name in known)])
    return case


def _properties(each: Stored, row: ReportRow) -> dict[str, str]:
    """Return the properties of a test: those of Robot Framework's metadata, and the origin of its figures."""
    record, (spread, spread_of) = each.record, figures.spread(each.record)
    found = figures.metadata(record, row.margin, none=labels.DASH) | {
        "Thrown away": labels.thrown_away(each.thrown_away, each.trials),
        "Spread": f"{spread or labels.DASH} {spread_of}".strip(),
        "Topology": row.topology,
        "Profile": row.profile,
        "Metric": figures.metric_of(record).title,
        "Procedure": record.procedure,
        "Campaign": record.campaign.name,
        "Started": labels.moment(record.started),
        "Record": unquote(row.record),
    }
    return {name: value for name, value in found.items() if value}


def summary_json(runs: RunSet, tests: Sequence[Mapping[str, Any]], output: Path) -> bytes:
    """Return summary.json: the verdict with its counts, and every test with its figures by metric and all of its
    promises."""
    tally = headline.tally_of(runs)
    document = {
        "schema_version": 4,
        "verdict": headline.word(tally),
        "sentence": candidate.sentence([each.record for each in runs.newest]) or headline.sentence(tally),
        "counts": {_COUNTED_AS.get(outcome, outcome): tally[outcome] for outcome in OUTCOMES},
        "kinds": headline.kinds([each.record for each in runs.newest]),
        "run_ids": list(dict.fromkeys(each.record.run_id for each in runs.stored)),
        "tests": tests,
        "without_record": [test.model_dump() for test in runs.without_record],
        "unreadable": [_path(broken.path, output) for broken in runs.broken],
    }
    return to_json(document, indent=1) + b"\n"


def results_csv(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return results.csv: a line for each test, with four columns for each metric: value, unit, low and high."""
    lines = [_flat(test) for test in tests]
    return csv_of(lines[0] if lines else ("suite", "test", "verdict"), lines)


def _flat(test: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {}
    for name, value in test.items():
        if name == "figures":
            for metric in METRICS:
                figure = value.get(metric)
                line[metric] = figure.value if figure else None
                line |= {f"{metric}_{key}": getattr(figure, key, None) for key in ("unit", "low", "high")}
        elif name == "thresholds":
            line |= _compared_with(value)
        else:
            line[name] = value
    return line


def csv_of(columns: Collection[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """Return a table for spreadsheets (RFC 4180). An empty cell: nothing was measured."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: _in_csv(value) for name, value in line.items()} for line in lines)
    return text.getvalue()


def _in_csv(value: Any) -> Any:
    """Mark a text that a spreadsheet would take for a formula as a text: put an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _compared_with(thresholds: Sequence[Threshold]) -> dict[str, str | None]:
    """Return the other side of each relative figure, by column."""
    promised = {each.metric: each.to for each in thresholds}
    return {f"{name}_to": promised.get(name) for name in RELATIVE}


def test_of(each: Stored, outcome: str, output: Path) -> dict[str, Any]:
    """Return a test for `summary_json` and `results_csv`: its verdict, and its `outcome` as the run counts it; the
    promise that decided it, and the origin of its figures.
    Floor, measured and margin are those of `metric`; without a promise that is the metric of the procedure. None: the
    figure is missing. Paths are relative to `output`."""
    record, searched, published = each.record, each.record.result, figures.published(each.record)
    promise, metric, shown = figures.shown(record)
    found = record.figures.get(metric.name)
    spread = found.spread if found else None
    return {
        **named(record),
        "procedure": record.procedure,
        "verdict": record.outcome if record.failed else record.verdict,
        "outcome": _COUNTED_AS.get(outcome, outcome),
        "accepted_until": str(record.accepted.until) if record.accepted else None,
        "ticket": record.accepted.ticket if record.accepted else None,
        "metric": metric.name,
        "unit": metric.unit.name,
        "kind": promise.kind if promise else None,
        "kind_of_floor": figures.kind(record),
        "floor": promise.limit if promise else None,
        "measured": shown.value if shown else None,
        # Of a rate that was offered: seconds of the longest trial that held it.
        "held_s": record.held_s or None,
        # There is none of a floor that was all that was tried, nor where nothing decided.
        "margin_pct": None if record.margin_pct is None or promise is None else promise.margin_pct,
        "limited_by": record.limited_by,
        "searches": len(searched.repetitions) if searched else 0,
        "trials": each.trials,
        "trials_thrown_away": each.thrown_away,
        "spread_pct": None if spread is None else spread * 100,
        "upper_bound": record.evidence.upper_bound,
        "figures": record.figures,
        "thresholds": record.thresholds,
        "reference": record.floor.reference.label if published and record.floor.reference else None,
        "reference_metric": record.metric if published else None,
        "reference_value": published[0] if published else None,
        "reference_difference_pct": published[1] if published else None,
        "reason": record.reason,
        "started": record.started.isoformat(),
        "run_id": record.run_id,
        "record": _path(each.path, output),
    }


def _path(path: Path, output: Path) -> str:
    return printable(relative(path, output))
