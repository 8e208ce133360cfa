"""junit.xml for Jenkins and GitLab: a case for each test, with Floor, Measured, Margin and Verdict as properties."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from ctbench.base.plain_text import printable
from ctbench.report import figures, labels
from ctbench.report.page import Row
from ctbench.report.runs import RunSet
from ctbench.results.record import Record
from ctbench.results.store import Stored

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def junit_xml(runs: RunSet, rows: Sequence[Row]) -> str:
    """Missed is a failure, not measured an error: both are red, and told apart. Skipped stays skipped, and
    what is left for the night is. `rows` are those
    of the page, in the order of `runs.newest`."""
    suites: dict[str, list[ET.Element]] = {}
    for each, row in zip(runs.newest, rows, strict=True):
        suites.setdefault(each.record.suite, []).append(_case(each, row))
    for test in runs.without_record:
        case = ET.Element("testcase", classname=printable(test.suite), name=printable(test.test), time="0")
        kind = "error" if test.outcome == "failed" else "skipped"
        ET.SubElement(case, kind, message=printable(test.reason))
        suites.setdefault(test.suite, []).append(case)
    for broken in runs.broken:
        case = ET.Element("testcase", classname="records", name=printable(broken.path.name), time="0")
        ET.SubElement(case, "error", type="unreadable", message="is no record, see report.html")
        suites.setdefault("records", []).append(case)
    root = ET.Element("testsuites", name="conntrack performance SLA")
    for name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=printable(name), **_counts(cases))
        suite.extend(cases)
    ET.indent(root, " ")
    return _DECLARATION + ET.tostring(root, encoding="unicode") + "\n"


def _case(each: Stored, row: Row) -> ET.Element:
    record = each.record
    case = ET.Element(
        "testcase", classname=printable(record.suite), name=printable(record.test), time=f"{record.wall_s:.3f}"
    )
    properties = ET.SubElement(case, "properties")
    for name, value in _properties(record, row).items():
        ET.SubElement(properties, "property", name=name, value=printable(value))
    if record.verdict == "missed":
        ET.SubElement(case, "failure", type="missed", message=printable(f"Missed: {record.verdict_reason}"))
    elif record.verdict == "not measured":
        ET.SubElement(case, "error", type="not measured", message=printable(f"Not measured: {record.verdict_reason}"))
    return case


def _properties(record: Record, row: Row) -> dict[str, str]:
    """What Robot Framework's metadata of the test say too, and where the figures are from."""
    found = {
        "Floor": row.floor,
        "Measured": row.measured,
        "Margin": row.margin,
        "Verdict": row.verdict,
        "Kind": row.kind,
        "Relative": figures.relation(record),
        "Thrown away": row.thrown_away,
        "Spread": f"{row.spread} {row.spread_of}".strip(),
        "Topology": row.topology,
        "Profile": row.profile,
        "Metric": figures.metric_of(record).title,
        "Procedure": record.procedure,
        "Campaign": record.campaign.name,
        "Started": labels.moment(record.started),
        "Record": unquote(row.record.href),
    }
    return {name: value for name, value in found.items() if value}


def _counts(cases: Sequence[ET.Element]) -> dict[str, Any]:
    """Attributes of a suite."""
    found = {kind: str(sum(case.find(tag) is not None for case in cases)) for kind, tag in
             (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))}  # fmt: skip
    seconds = sum(float(case.get("time", "0")) for case in cases)
    return {"tests": str(len(cases)), **found, "time": f"{seconds:.3f}"}
