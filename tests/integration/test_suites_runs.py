"""Whole runs as a user starts them, in processes of their own: how they end, what they say, and what they leave."""

import re
from pathlib import Path

import pytest
from integration.whole_run import GATE, HERE, TEST, Start, assert_nothing_is_left, finished, traces

from ctbench.base.units import format_margin


@pytest.mark.root_too
def test_a_floor_that_is_held_ends_with_0_and_the_figures_are_in_robots_output(start: Start) -> None:
    before = traces()
    run = start("robot", *GATE)
    status = finished(run)

    assert status == 0, run.said
    result, message, metadata = run.tests()[TEST]
    assert (result, metadata["Verdict"]) == ("PASS", "met")
    assert [metadata[name].partition(",")[0] for name in ("Floor", "Measured")] == ["1.0 k CPS", "1.0 k CPS"]
    assert message.startswith("Met: the floor of 1.0 k/s was held")
    (record,) = run.records()
    assert (record.suite, record.test, record.verdict) == ("Conntrack", TEST, "met")
    assert record.margin_pct is not None and 0 <= record.margin_pct <= 1.01  # 1 % more than the floor was offered
    assert metadata["Margin"] == format_margin(record.margin_pct)
    assert set(record.tags) >= {"ovs-dpdk", "conntrack", "1cpu", "1rxq", "short-lived"}
    assert "1 met" in run.said
    assert_nothing_is_left(run, before, set())


def test_a_floor_out_of_reach_ends_with_1_and_the_sentence_for_the_product_manager(
    start: Start, tmp_path: Path
) -> None:
    # In 1 us light gets 300 metres far.
    floors = tmp_path / "floors.yaml"
    floors.write_text((HERE / "floors.yaml").read_text().replace('">= 1k"', '">= 1k", connect_time_p99: "<= 1us"'))

    run = start("sla", *GATE, floors=floors)
    status = finished(run)

    assert status == 1, run.said
    result, message, metadata = run.tests()[TEST]
    assert (result, metadata["Verdict"]) == ("FAIL", "missed")
    assert re.fullmatch(
        r"Missed: TCP connect time \(p99\): \S+ \S+ instead of at most 1 us \(-\d+\.\d %\); "
        r"0 of \d trials at 1\.0 k/s held",
        message,
    ), message
    assert [record.verdict for record in run.records()] == ["missed"]
    assert "An SLA is missed (0 met, 1 missed, 0 not measured)." in run.said
