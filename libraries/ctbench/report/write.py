"""Writes the reports of a run, or of several, into a folder: the page with its style sheet, and the same for others."""

from collections.abc import Sequence
from pathlib import Path

from ctbench.errors import OutputError
from ctbench.report.compose import compose
from ctbench.report.html import STYLE_SHEET, report_html
from ctbench.report.junit import junit_xml
from ctbench.report.markdown import report_md
from ctbench.report.material import Material, read_material
from ctbench.report.page import Page, Row
from ctbench.report.reference import NONE, References
from ctbench.report.tables import results_csv, summary_json

PAGE = "report.html"


def write_reports(folders: Sequence[Path], output: Path, references: References = NONE) -> Page:
    """Write everything into `output` and return what the page says. Raises `ConfigError` where a folder holds no run,
    `OutputError` where `output` cannot be written."""
    material = read_material(folders)
    page = compose(material, output, references)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in documents(material, page, output, references).items():
            _place(output / name, text)
    except OSError as error:
        raise OutputError(
            f"{output}: the report could not be written: {error.strerror}.\n  Expected a folder that you may write to, "
            "on a disk with space left."
        ) from None
    return page


def documents(material: Material, page: Page, output: Path, references: References = NONE) -> dict[str, str]:
    """Text of each file by its name."""
    return {
        PAGE: report_html(page),
        "report.css": STYLE_SHEET.read_text(encoding="utf-8"),
        "report.md": report_md(page),
        "junit.xml": junit_xml(material, _rows_in_order(page)),
        "summary.json": summary_json(material, output, references),
        "results.csv": results_csv(material.newest, output, references),
    }


def _rows_in_order(page: Page) -> list[Row]:
    """The rows as the tests ran; on the page they stand by suite."""
    rows = [row for group in page.groups for row in group.rows]
    return sorted(rows, key=lambda row: int(row.anchor.rpartition("-")[2]))


def _place(path: Path, text: str) -> None:
    """Write a file whole or not at all: somebody may have the page open."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
