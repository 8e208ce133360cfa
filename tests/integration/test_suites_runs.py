"""Whole runs as a user starts them, in processes of their own: how they end, what they say, and what they leave."""

import pytest
from integration.whole_run import GATE, TEST, Start, assert_nothing_is_left, finished, traces

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
