"""The table of mobile traffic: its figures, and a dash for what was not measured."""

from pathlib import Path

import pytest
from pages import read_page

from ctbench.report import labels
from ctbench.report.compose import compose
from ctbench.report.html import report_html
from ctbench.report.mobile import COLUMNS, mobile_lines
from ctbench.report.runs import read_runs
from ctbench.results.figure import Figure
from ctbench.results.record import Record
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


def mobile() -> Record:
    record = made_up_record(test="Mobile Traffic")
    return record.model_copy(update={"profile": load_profile("mobile"), "figures": FIGURES})


def test_a_line_has_the_rate_what_was_open_and_how_long_a_message_took() -> None:
    short = made_up_record()
    (line,) = mobile_lines([(short, "Short", "#test-1"), (mobile(), "Mobile Traffic", "#test-2")])
    assert (line.test, line.href) == ("Mobile Traffic", "#test-2")
    assert dict(zip(COLUMNS, line.cells, strict=True)) == {
        "cps": "17.7 k/s", "active_connections": "100.1 k", "pps": "345.0 k pps", "bps": labels.DASH,
        "cycles_per_packet": labels.DASH, "latency_p50": "20 us", "latency_p99": "900 us", "latency_jitter": "31 us",
    }  # fmt: skip


def test_the_page_has_the_table_where_there_is_such_a_test(tmp_path: Path) -> None:
    write(made_up_record(), tmp_path)
    assert 'id="mobile"' not in report_html(compose(read_runs([tmp_path]), tmp_path))
    write(mobile(), tmp_path)
    section = read_page(report_html(compose(read_runs([tmp_path]), tmp_path))).by_id("mobile")
    assert [each.text for each in section.all("th")][:2] == ["Test", "New connections"]
    assert "RFC 4689, section 3.2.5" in section.text and "31 us" in section.text
