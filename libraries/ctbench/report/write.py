"""The writer of reports for one run or several: the page with its style sheet, and the files for other programs.

The page has nothing that Jenkins' default Content-Security-Policy forbids. That policy is `sandbox; default-src 'none';
img-src 'self'; style-src 'self';`: no script, no style element, no style attribute, no font or image from elsewhere.
Charts are inline SVG with presentation attributes and classes.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ctbench.base.errors import OutputError
from ctbench.base.files import write_whole
from ctbench.base.text import code, escaped, printable
from ctbench.base.units import plural, thousands
from ctbench.report.charts.chart import RUN_MARKS
from ctbench.report.compose import compose
from ctbench.report.files import junit_xml, outcomes, results_csv, summary_json, test_of
from ctbench.report.history import history, history_csv, history_openmetrics
from ctbench.report.labels import Tone
from ctbench.report.page import KNOWN, NEAREST, NOT_RUN, RESULTS, UNSEEN, Page
from ctbench.report.runs import RunSet, read_runs

#: Not `report.html`, which is what Robot Framework calls its own: a plain `robot` leaves that in the same folder.
PAGE = "sla.html"
#: The space between a number and `%`, `k` or `±`.
_UNIT = re.compile(r"(?<=\d) (?=%|[kMG]\b)|(?<=±) (?=\d)")
#: Of Markdown, which has no colours.
_SIGNS: dict[Tone, str] = {"met": "✅", "missed": "❌", "unmeasured": "⚠️", "skipped": "\u2796"}
#: Of a merge request's comment, which takes so many characters; and the rows that are tried.
MOST_CHARACTERS, _ROWS = 65_536, (200, 100, 50, 25, 0)
TEMPLATES = Path(__file__).with_name("templates")
STYLE_SHEET = TEMPLATES / "report.css"
#: What the numbers mean, made of docs/numbers.md by tools/reference.py.
NUMBERS = TEMPLATES / "numbers.html"


def write_reports(folders: Sequence[Path], output: Path) -> Page:
    """Write all files of the report into `output` and return the page. Raise `ConfigError` where a folder holds no run,
    `OutputError` where `output` cannot be written."""
    runs = read_runs(folders)
    page = compose(runs, output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in documents(runs, page, output).items():
            write_whole(output / name, text)
    except OSError as error:
        raise OutputError(
            f"{output}: the report could not be written: {error.strerror}.\n  Expected a folder that you may write to, "
            "on a disk with space left."
        ) from None
    return page


def documents(runs: RunSet, page: Page, output: Path) -> dict[str, str | bytes]:
    """Return the content of each file of a report, by its name."""
    tests = [test_of(each, outcome, output) for each, outcome in zip(runs.newest, outcomes(runs), strict=True)]
    lines = history(runs)
    return {
        PAGE: _template("report.html.j2").render(page=page),
        STYLE_SHEET.name: STYLE_SHEET.read_text(encoding="utf-8"),
        NUMBERS.name: NUMBERS.read_text(encoding="utf-8"),
        "sla.md": _for_merge_request(page),
        "junit.xml": junit_xml(runs, page.rows),
        "summary.json": summary_json(runs, tests, output),
        "results.csv": results_csv(tests),
        "history.csv": history_csv(lines),
        "history.openmetrics": history_openmetrics(lines),
    }


def _for_merge_request(page: Page) -> str:
    """Return sla.md with as many rows as leave it short enough: those with a long reason take many characters."""
    text = ""
    for rows in _ROWS:
        text = _template("sla.md.j2").render(page=page, most=rows)
        if len(text) < MOST_CHARACTERS:
            break
    return text


@cache
def _template(name: str) -> Template:
    """Return the template of a document. An HTML template escapes every value that it places, and breaks no line
    between a number and its unit. A Markdown template escapes the texts of others itself."""
    is_html = name.endswith(".html.j2")
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable if is_html else None,
    )
    made.filters |= {"thousands": thousands, "plural": plural, "escaped": escaped, "code": code}
    made.globals |= {"NEAREST": NEAREST, "UNSEEN": UNSEEN, "KNOWN": KNOWN, "NOT_RUN": NOT_RUN, "RESULTS": RESULTS}
    made.globals |= {"RUN_MARKS": RUN_MARKS, "SIGNS": _SIGNS}
    made.globals["TONES"] = {"good": "met", "bad": "missed", "invalid": "unmeasured"}
    return made.get_template(name)


def _printable(value: object) -> object:
    """Return a text without characters that a page cannot hold, and with a no-break space between a number and its
    unit."""
    return _UNIT.sub("\u00a0", printable(value)) if type(value) is str else value
