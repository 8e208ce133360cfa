"""Whatever a name, a reason or a fact holds: each file of a report stays what it is, and gives the text back."""

import csv
import io
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pages import Element, read_page

from ctbench.base.text import escaped, one_line, printable
from ctbench.report import console, labels
from ctbench.report.compose import compose
from ctbench.report.runs import RunSet
from ctbench.report.write import documents
from ctbench.results.environment import CampaignFacts, DutFacts, MachineFacts, TestbedFacts
from ctbench.results.record import Record
from ctbench.results.store import Broken, Stored, WithoutRecord

from .simulated import made_up_record

OUTPUT = Path("/nowhere/run")
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></tr></table>",
    "{{ 7 * 7 }}{% raw %}",
    "]]>&amp;&#0;",
    "\x00\x01\x1b[31m\x7f\x9b2J\r\n\t",
    "\ufffe\uffff\U0001fffe",
    "\u202eevil\u2028\u2029",
    "=1+1",
    "-3.2",
    "+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\uff1d1",
    "a|b\\|c\n# heading\n- list",
    "[x](javascript:alert(1)) ![y](http://z/) `code` **b** _i_ ~s~ $m$ @all",
    "``` \n```",
    "1. one",
    "x" * 5000,
]
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))
#: Each example makes a whole report.
FEW = settings(max_examples=40, derandomize=True, deadline=None)


def _record(text: str) -> Record:
    made = made_up_record(
        suite=f"S{text}", test=text, verdict="missed", verdict_reason=text, notes=[text], tags=[text], run_id=text,
        margin_pct=-3.2,
    )  # fmt: skip
    broken = [replace(made.thresholds[0], met=False, margin_pct=-3.2)]
    facts = made.environment.model_copy(
        update={
            "dut": DutFacts(product=text, version=text, machine=MachineFacts(cpu_model=text)),
            "testbed": TestbedFacts(name=text, description=text),
        }
    )
    floor = made.floor.model_copy(update={"source": text})
    topology = made.topology.model_copy(update={"datapath": text, "ruleset": text})
    campaign = CampaignFacts(name=text, description=text)
    changed = {"topology": topology, "campaign": campaign, "thresholds": broken}
    return made.model_copy(update={"environment": facts, "floor": floor, **changed})


def _runs(text: str) -> RunSet:
    record = _record(text)
    path = OUTPUT / "records" / "a.json"
    broken = Broken(OUTPUT / "records" / (re.sub("[/\0]", "", text)[:60] or "x"), f"{printable(text)}: is no record.")
    left = WithoutRecord(suite=text, test=text, outcome="skipped", reason=text)
    return RunSet((OUTPUT,), (Stored(path, record), Stored(path, record)), (broken,), (left,))


@cache
def _report(text: str) -> dict[str, str]:
    runs = _runs(text)
    made = documents(runs, compose(runs, OUTPUT), OUTPUT)
    return {name: text if isinstance(text, str) else text.decode() for name, text in made.items()}


def _no_other_elements(page: Element, harmless: Element) -> None:
    """Nothing in a text became an element, an attribute or a link to elsewhere."""
    for what in (lambda each: {each.name}, lambda each: set(each.attributes)):
        known = set[str]().union(*map(what, harmless.all()))
        assert set[str]().union(*map(what, page.all())) <= known
    links = [each.attributes[name] for each in page.all() for name in ("href", "src") if name in each.attributes]
    assert all(re.match(r"(#|[A-Za-z0-9_.~%/-]*$)", link) for link in links), links


@FEW
@given(TEXTS)
@example("<script>alert(1)</script>")
def test_every_file_of_a_report_is_that_of_a_harmless_one_with_the_text(text: str) -> None:
    files, harmless = _report(text), _report("harmless")
    _check_page(files["sla.html"], harmless["sla.html"], text)
    _check_csv(files["results.csv"], text)
    _check_merge_request(files["sla.md"], harmless["sla.md"])

    root = ET.fromstring(files["junit.xml"].encode())
    assert printable(text) in {case.get("name") for case in root.iter("testcase")}
    assert any(each.get("message") == f"Missed: {printable(text)}" for each in root.iter("failure"))

    summary = json.loads(files["summary.json"].encode())
    assert summary["tests"][0]["test"] == text
    assert summary["without_record"][0]["reason"] == text


def _check_page(html: str, other: str, text: str) -> None:
    page = read_page(html)
    _no_other_elements(page, read_page(other))
    assert " ".join(printable(labels.name(text)).split()) in page.text
    page.text.encode()


def _check_csv(content: str, text: str) -> None:
    """No cell is a formula, and numbers stay numbers."""
    (line,) = csv.DictReader(io.StringIO(content, newline=""))
    assert line["test"] in (text, f"'{text}")
    for name, cell in line.items():
        number = name in ("margin_pct", "measured", "floor")
        assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (name, cell)
    assert line["margin_pct"] == "-3.2"


def _check_merge_request(page: str, harmless: str) -> None:
    lines = page.splitlines()
    assert [line[:3] for line in lines if line.startswith(("#", "|", ">"))] == [
        line[:3] for line in harmless.splitlines() if line.startswith(("#", "|", ">"))
    ]
    without_code = [re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", line.replace("<!-- -->", "")) for line in lines]
    bare = [re.sub(r"\\.", "", line) for line in without_code]
    assert not any("<" in line or "](" in line or "\x1b" in line for line in bare)
    cells = {line.count("|") for line in bare if line.startswith("|")}
    assert len(cells) <= 1


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.one_of(st.sampled_from(HOSTILE), st.text(alphabet="ab12 \\`*_[]<>|~&$#+-.=@:/w\n", max_size=12), st.text()))
def test_escaped_text_is_that_text_once_more(text: str) -> None:
    said = escaped(text)
    assert "\n" not in said
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", said.replace("<!-- -->", "")) == one_line(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|~&$]", said.replace("<!-- -->", ""))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.one_of(st.sampled_from(HOSTILE), st.text(st.characters())))
def test_what_is_printable_moves_no_cursor_and_is_utf_8(text: str) -> None:
    said = printable(text)
    said.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said)
    assert printable(said) == said
    if not re.search("[^ -~]", text):
        assert said == text


@FEW
@given(TEXTS)
def test_the_console_has_a_line_where_it_had_one(text: str) -> None:
    record = _record(text)
    for said in (
        console.heading(record.test, record.topology.datapath, text),
        console.verdict_line(record),
        console.pool_line(record),
        console.summary([record]),
    ):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said)
    assert "\n" not in console.heading(record.test, "", text)
    assert "\n" not in console.pool_line(record)
