"""The console: the lines of the design, and never more than 120 columns."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.dut.base import CpuUse, Problem
from ctbench.measure.observation import Observation
from ctbench.measure.trial import Step
from ctbench.report import console, figures
from ctbench.sla.floor import BoundMachine
from ctbench.sla.verdict import compare

from .simulated import (
    FORWARDING,
    Baseline,
    found,
    found_packets,
    made_up_floor,
    made_up_packet_floor,
    made_up_packet_record,
    made_up_record,
    seen,
    seen_packets,
)


def line(observation: Observation, left_s: float = 24) -> str:
    return console.trial_line(1, Step(1, "search", observation, left_s).as_record(), left_s)


def test_a_trial_is_one_line_under_its_heading() -> None:
    shown = line(seen(load=505_000, loss=0.265, p99_us=4100)).split()
    assert " ".join(shown) == "1 505.0 k/s 371.2 k/s 26.5 % 2.60 M 4.1 ms bad ~24 s"
    assert console.trial_heading().split() == [
        "trial", "offered", "completed", "loss", "packets/s", "connect", "p99", "verdict", "left"
    ]  # fmt: skip


def test_the_columns_stand_under_their_names() -> None:
    heading, shown = console.trial_heading(), line(seen(load=252_500, p99_us=210))
    for name, text in (("offered", "252.5 k/s"), ("loss", "0.000 %"), ("connect p99", "210 us"), ("left", "~24 s")):
        assert shown.index(text) == heading.index(name)


def test_the_last_trial_has_no_time_left() -> None:
    assert line(seen(), left_s=0).endswith("good")


def test_why_a_trial_was_invalid_and_what_was_wrong_with_the_dut_is_said_below_it() -> None:
    shown = line(seen((Problem("warning", "12 packets dropped"),), generator_limited="it ran 40 ms late")).split("\n")
    assert "invalid" in shown[0]
    assert [text.strip() for text in shown[1:]] == ["it ran 40 ms late", "12 packets dropped"]


def test_a_trial_without_connect_times_shows_none() -> None:
    assert " - " in line(seen(p99_us=None))


def test_the_verdict_line_is_that_of_the_design() -> None:
    assert console.verdict_line(made_up_record()) == (
        "  capacity 381.0 k/s ± 5.0 %   floor 48.2 k/s   margin +690 %   MET"
    )


def test_a_missed_test_says_why_below_it() -> None:
    first, second, *_ = console.verdict_line(made_up_record(found(40_100.0))).split("\n")
    assert first.endswith("MISSED")
    assert second.startswith("    new connections: 40.1 k/s instead of at least 48.2 k/s (-16.8 %)")


def test_a_test_that_was_not_measured_says_so_without_a_margin() -> None:
    shown = console.verdict_line(made_up_record(found(30_000.0, "generator")))
    assert "NOT MEASURED\n" in shown
    assert "margin" not in shown
    unjudged = list(compare({}, made_up_floor()))
    nothing = made_up_record(
        figures={}, thresholds=unjudged, margin_pct=None, verdict="not measured", verdict_reason="why"
    )
    assert console.verdict_line(nothing) == "  no result   floor 48.2 k/s   NOT MEASURED\n    why"


def test_a_result_that_the_range_ended_says_at_least() -> None:
    shown = console.verdict_line(made_up_record(found(99_600.0, "range")))
    assert shown.startswith("  capacity at least 99.6 k/s   floor")


def test_the_heading_has_the_test_the_topology_and_the_version() -> None:
    shown = console.heading("1 CPU, 1 Queue", "ovs-dpdk/conntrack", "3.1.0")
    assert shown == f"{'1 CPU, 1 Queue':<50}  ovs-dpdk/conntrack  3.1.0"


def test_the_table_has_a_row_for_each_test_and_counts_the_verdicts() -> None:
    records = [made_up_record(), made_up_record(found(40_100.0)), made_up_record(found(30_000.0, "generator"))]
    lines = console.summary(records).split("\n")
    assert lines[0].split() == ["test", "floor", "measured", "margin", "verdict"]
    assert lines[2].split()[-7:] == ["48.2", "k/s", "381.0", "k/s", "+690", "%", "MET"]
    assert lines[4].strip().startswith("new connections: 40.1 k/s instead")
    assert lines[-1] == "1 met, 1 missed, 1 not measured"


def test_packets_are_shown_where_they_alone_fail() -> None:
    record = made_up_record(found(48_200.0))
    packets = [each.model_copy(update={"met": each.metric != "pps"}) for each in record.thresholds]
    row = console.summary([record.model_copy(update={"thresholds": packets})]).split("\n")[2]
    assert "334.9 k pps" in row


def test_a_trial_of_packets_has_its_own_columns() -> None:
    shown = line(seen_packets(cpu=CpuUse(0.984, 2_450.0, "link threads"), load=412_000, loss=0.021))
    assert shown.split() == [
        "1", "412.0", "k/s", "403.3", "k/s", "2.10", "%", "193.61", "Mbit/s", "80", "us", "0.98", "bad", "~24", "s"
    ]  # fmt: skip
    heading = console.trial_heading("packets")
    places = (("offered", "412.0 k/s"), ("received", "403.3 k/s"), ("throughput", "193.61 Mbit/s"),
              ("latency p99", "80 us"), ("busy CPUs", "0.98"), ("verdict", "bad"), ("left", "~24 s"))  # fmt: skip
    for name, text in places:
        assert shown.index(text) == heading.index(name)


def test_a_trial_of_packets_without_latency_and_cpu_shows_none() -> None:
    assert line(seen_packets(p99_us=None), left_s=0).split()[-3:] == ["-", "-", "good"]


def test_packets_are_shown_as_packets_in_the_verdict_and_in_the_table() -> None:
    record = made_up_packet_record()
    assert console.verdict_line(record) == ("  capacity 264.4 k pps ± 5.0 %   floor 100.0 k pps   margin +164 %   MET")
    row = console.summary([record]).split("\n")[2]
    assert row.split()[-9:] == ["100.0", "k", "pps", "264.4", "k", "pps", "+164", "%", "MET"]


def test_a_relative_floor_is_shown_as_the_ratio_it_is_and_explained_below() -> None:
    baseline = Baseline(key=FORWARDING, rate=412_000.0)
    record = made_up_packet_record(floor=made_up_packet_floor(">= 100k", share=">= 60%"), baseline=baseline)
    assert console.verdict_line(record) == (
        "  ratio 64.2 %   floor 60.0 %   margin +7.0 %   MET\n"
        "    64.2 % of linux-router/forward/1cpu-1rxq, at least 60 % promised"
    )
    missed = made_up_packet_record(floor=made_up_packet_floor(">= 100k", share=">= 80%"), baseline=baseline)
    assert "floor 80.0 %   margin -19.8 %   MISSED" in console.verdict_line(missed)
    assert figures.relation(made_up_packet_record()) == ""


def test_a_floor_whose_comparison_is_unknown_shows_what_it_promises_by_itself() -> None:
    floor = made_up_packet_floor(">= 100k", share=">= 60%")
    record = made_up_packet_record(floor=floor, baseline=Baseline(key=FORWARDING, rate=None))
    assert (figures.floor(record), figures.measured(record)) == ("100.0 k pps", "264.4 k pps")
    assert record.verdict == "not measured"
    assert figures.relation(record) == ""


def test_a_throughput_is_shown_where_it_alone_fails() -> None:
    record = made_up_packet_record(found_packets(264_400.0), made_up_packet_floor(">= 100k", bps=">= 2G"))
    assert (figures.floor(record), figures.measured(record)) == ("2.00 Gbit/s", "126.91 Mbit/s")


def test_a_run_without_records_says_so() -> None:
    assert console.summary([]).endswith("no test measured anything")


@settings(max_examples=50, deadline=None)
@given(
    test=st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=200),
    reason=st.text(st.sampled_from("ab c"), max_size=400),
    capacity=st.floats(min_value=1, max_value=1e9),
)
def test_no_line_is_wider_than_120_columns(test: str, reason: str, capacity: float) -> None:
    record = made_up_record(found(capacity), test=test, verdict_reason=reason)
    shown = [console.summary([record]), console.verdict_line(record), console.heading(test, "x" * 40, "3.1.0")]
    shown.append(line(seen(load=capacity, generator_limited=reason)))
    assert max(len(text) for part in shown for text in part.split("\n")) <= 120


@pytest.mark.parametrize("left_s", [0, 5.4, 86_400])
def test_the_time_left_fits(left_s: float) -> None:
    assert len(line(seen(load=1e9), left_s)) <= 120


def test_a_smoke_test_and_a_floor_of_another_machine_are_called_that() -> None:
    smoke = replace(made_up_floor(), smoke=frozenset({"cps", "pps"}))
    record = made_up_record(floor=smoke)
    assert "floor 48.2 k/s (smoke test)   margin" in console.verdict_line(record)
    assert console.metadata(record)["Kind"] == "smoke test"
    bound = replace(made_up_floor(), machine=BoundMachine(cpu_model="Gold 5118"))
    assert "(made on Gold 5118)" in console.verdict_line(made_up_record(floor=bound))
    assert "Kind" not in console.metadata(made_up_record())
