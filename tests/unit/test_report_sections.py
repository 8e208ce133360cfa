"""The sections of the page: a line for each test that they are about, and a dash for what was not measured."""

from pathlib import Path

import pytest

from ctbench.report import labels
from ctbench.report.compose import compose
from ctbench.report.page import Page
from ctbench.report.runs import read_runs
from ctbench.report.sections import SECTIONS
from ctbench.results.record_model import Figure
from ctbench.results.store import write
from ctbench.traffic.profiles import load_profile

from .simulated import made_up_record

pytestmark = pytest.mark.unit

FIGURES = {
    "cps": Figure(17_700.0, "connections/s"),
    "active_connections": Figure(100_100.0, "connections"),
    "pps": Figure(345_000.0, "packets/s"),
    "latency_p50": Figure(20e-6, "s"),
    "latency_p99": Figure(900e-6, "s"),
    "latency_jitter": Figure(31e-6, "s"),
}


def page_of(folder: Path) -> Page:
    return compose(read_runs([folder]), folder)


def test_a_line_has_the_rate_what_was_open_and_how_long_a_message_took(tmp_path: Path) -> None:
    write(made_up_record(test="Short"), tmp_path)
    assert "mobile" not in [section.anchor for section in page_of(tmp_path).sections]
    record = made_up_record(test="Mobile Traffic")
    write(record.model_copy(update={"profile": load_profile("mobile"), "figures": FIGURES}), tmp_path)
    page = page_of(tmp_path)
    (part,) = page.section("mobile").parts
    assert part.table is not None
    (line,) = part.table.groups[0].lines
    assert line.cells[0].href in [row.href for row in page.rows if row.test == "Mobile Traffic"]
    assert {column.name: cell.text for column, cell in zip(part.table.columns, line.cells, strict=True)} == {
        "Test": "Mobile Traffic", "New connections": "17.7 k/s", "Open at once": "100.1 k", "Packets": "345.0 k pps",
        "Throughput": labels.DASH, "Cycles per packet": labels.DASH, "Latency (median)": "20 us",
        "Latency (p99)": "900 us", "Jitter": "31 us",
    }  # fmt: skip


def test_sections_stand_in_their_order_and_each_has_an_anchor_of_its_own(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    anchors = [section.anchor for section in SECTIONS]
    assert len(set(anchors)) == len(anchors)
    shown = [section.anchor for section in page_of(tmp_path).sections]
    assert shown == [anchor for anchor in anchors if anchor in shown] == ["searches"]
