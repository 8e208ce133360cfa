"""Writes the reports of a run, or of several, into a folder: the page with its style sheet, and the same for others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ctbench.base.errors import OutputError
from ctbench.base.plain_text import printable
from ctbench.report.compose import compose
from ctbench.report.html import STYLE_SHEET, part_html, report_html
from ctbench.report.junit import junit_xml
from ctbench.report.markdown import report_md
from ctbench.report.page import Page
from ctbench.report.parts import FILE, by_anchor
from ctbench.report.reference import NONE, References
from ctbench.report.runs import RunSet, read_runs
from ctbench.report.tables import results_csv, summary_json
from ctbench.results.store import Stored

PAGE = "report.html"


def write_reports(folders: Sequence[Path], output: Path, references: References = NONE) -> Page:
    """Write everything into `output` and return what the page says. Raises `ConfigError` where a folder holds no run,
    `OutputError` where `output` cannot be written."""
    page, texts = _rendered(read_runs(folders), output, references)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _place(output / name, text)
        _remove_parts(output, texts)
    except OSError as error:
        raise OutputError(
            f"{output}: the report could not be written: {error.strerror}.\n  Expected a folder that you may write to, "
            "on a disk with space left."
        ) from None
    return page


def _rendered(runs: RunSet, output: Path, references: References) -> tuple[Page, dict[str, str]]:
    """The page and all texts. The last line of defence: records that pass as such and cannot be shown are named among
    the broken ones, and the others are shown without them."""
    try:
        page = compose(runs, output, references)
        return page, documents(runs, page, output, references)
    except Exception:  # whatever it is, and it is raised where no record is the cause
        odd = {each.path: why for each in runs.stored if (why := _why_odd(each, output, references))}
        if not odd:
            raise
        return _rendered(runs.without(odd), output, references)


def _why_odd(each: Stored, output: Path, references: References) -> str:
    """Why the report of one record alone cannot be made; empty where it can."""
    runs = RunSet((), (each, each), (), ())  # twice, so that it has a history
    try:
        documents(runs, compose(runs, output, references), output, references)
    except Exception as error:
        return f"{printable(str(each.path))}: cannot be shown ({type(error).__name__}: {printable(str(error))})."
    return ""


def documents(runs: RunSet, page: Page, output: Path, references: References = NONE) -> dict[str, str]:
    """Text of each file by its name."""
    return {
        PAGE: report_html(page),
        **{part.file: part_html(page, part) for part in page.parts},
        "report.css": STYLE_SHEET.read_text(encoding="utf-8"),
        "report.md": report_md(page),
        "junit.xml": junit_xml(runs, list(by_anchor(page.rows))),
        "summary.json": summary_json(runs, output, references),
        "results.csv": results_csv(runs.newest, output, references),
    }


def _remove_parts(output: Path, texts: Mapping[str, str]) -> None:
    """Remove the pages that an earlier report with more tests left."""
    for path in output.glob(FILE.format("*")):
        if path.name not in texts:
            path.unlink()


def _place(path: Path, text: str) -> None:
    """Write a file whole or not at all: somebody may have the page open."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
