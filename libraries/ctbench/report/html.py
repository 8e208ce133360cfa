"""Pages as HTML: one file and its style sheet, with nothing that Jenkins' default Content-Security-Policy forbids.

That policy is `sandbox; default-src 'none'; img-src 'self'; style-src 'self';`: no script, no style element, no style
attribute, no font or image from elsewhere. Charts are inline SVG with presentation attributes and classes.
"""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ctbench.base.plain_text import printable
from ctbench.report import labels
from ctbench.report.charts import draw
from ctbench.report.mobile import COLUMNS
from ctbench.report.page import Page, Part, Row

TEMPLATES = Path(__file__).with_name("templates")
STYLE_SHEET = TEMPLATES / "report.css"


def report_html(page: Page) -> str:
    """The page of a run, or of several."""
    return environment().get_template("report.html.j2").render(page=page)


def part_html(page: Page, part: Part) -> str:
    """One page of rows, of a run that has too many for one."""
    return environment().get_template("tests.html.j2").render(page=page, part=part)


@cache
def environment() -> Environment:
    """The templates, with the filters that draw. Everything that is not drawn here is escaped."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
    )
    # What these draw is marked as safe in the templates: it is made of escaped elements.
    made.filters |= {"svg": draw.draw, "swatch": draw.swatch, "margin_bar": _margin_bar}
    made.filters["thousands"] = labels.thousands
    made.globals["mobile_columns"] = tuple(COLUMNS.values())
    return made


def _printable(value: object) -> object:
    """Texts without what a page cannot hold; what was drawn is made of such texts."""
    return printable(value) if type(value) is str else value


def _margin_bar(row: Row) -> str:
    return draw.margin_bar(row.margin_pct or 0.0, row.tone)
