"""The console: the lines of the design, and never more than 120 columns."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctbench.dut.base import CpuUse, Problem
from ctbench.measure.observation import Observation
from ctbench.report import console, figures
from ctbench.results.floor import BoundMachine, Threshold
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import by_figure
from ctbench.run import testbed_session
from ctbench.sla.verdict import compare
from ctbench.traffic.generator import LoadUnit

from . import simulated
from .simulated import found, found_packets, seen, seen_packets


def line(observation: Observation, left_s: float = 24) -> str:
    return console.trial_line("1", observation.as_record(), left_s)


@pytest.mark.parametrize(
    ("seen_of_it", "unit", "columns", "cells"),
    [
        (
            seen(load=505_000, loss=0.265, p99_us=4100),
            "connections",
            "offered, completed, loss, packets/s, connect p99, verdict, left",
            "505.0 k/s, 371.2 k/s, 26.5 %, 2.60 M, 4.1 ms, bad, ~24 s",
        ),
        (
            seen_packets(cpu=CpuUse(0.984, 2_450.0, "link threads"), load=412_000, loss=0.021),
            "packets",
            "offered, received, loss, throughput, latency p99, busy CPUs, verdict, left",
            "412.0 k/s, 403.3 k/s, 2.10 %, 193.61 Mbit/s, 80 us, 0.98, bad, ~24 s",
        ),
    ],
)
def test_a_trial_is_one_line_whose_cells_stand_under_the_names_of_their_columns(
    seen_of_it: Observation, unit: LoadUnit, columns: str, cells: str
) -> None:
    heading, shown = console.trial_heading(unit), line(seen_of_it)
    assert shown.split() == ["1", *cells.replace(",", "").split()]
    assert heading.split() == ["trial", *columns.replace(",", "").split()]
    for name, text in zip(columns.split(", "), cells.split(", "), strict=True):
        assert shown.index(text) == heading.index(name)


def test_a_trial_shows_no_times_that_were_not_taken_and_below_it_what_was_wrong() -> None:
    assert " - " in line(seen(p99_us=None))
    assert line(seen(), left_s=0).endswith("good")
    assert line(seen_packets(p99_us=None), left_s=0).split()[-3:] == ["-", "-", "good"]
    shown = line(seen((Problem("warning", "12 packets dropped"),), generator_limited="it ran 40 ms late")).split("\n")
    assert "invalid" in shown[0]
    assert [text.strip() for text in shown[1:]] == ["it ran 40 ms late", "12 packets dropped"]


def test_the_time_left_is_what_the_procedures_of_a_test_probably_take_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [100.0], list[str]()
    monkeypatch.setattr(testbed_session, "time", SimpleNamespace(monotonic=lambda: now[0]))
    progress = testbed_session.Progress(said.append)
    progress.expect([10.0, 5.0])
    for later, ends in ((4.0, "~11 s"), (60.0, "good")):
        progress.next_procedure()
        now[0] += later
        progress.trial(replace(seen(), number=1))
        assert said[-1].endswith(ends)


def of_floor(share: str) -> Record:
    """Of another topology: 64.2 % of its rate."""
    floor = simulated.made_up_packet_floor(">= 100k", share=share)
    alone = simulated.outcome_of(found_packets(264_400.0))
    ratio = Estimate(264_400 / 412_000, METRICS["ratio"].unit.name)
    verdict = by_figure(METRICS["ratio"], ratio.value, floor.thresholds["ratio"].limit)
    compared = replace(alone, figures={**alone.figures, "ratio": ratio}, verdicts={"ratio": verdict})
    return simulated.made_up_packet_record(compared, floor)


NOTHING = simulated.made_up_record(
    figures={},
    thresholds=list(compare({}, simulated.made_up_floor())),
    margin_pct=None,
    verdict="not measured",
    verdict_reason="why",
)
#: Another promise has less room than the rate that is shown.
TIGHT = simulated.made_up_record(
    thresholds=[
        *simulated.made_up_record().thresholds,
        Threshold(
            metric="saturation_cps", operator=">=", limit=400_000.0, written=">= 400k", measured=410_000.0, met=True,
            margin_pct=2.5,
        ),
    ],
    margin_pct=2.5,
)  # fmt: skip
SMOKE = simulated.made_up_record(floor=simulated.saying(simulated.made_up_floor(), "cps", "pps", smoke=True))
BOUND = simulated.made_up_record(
    floor=simulated.bound_to(simulated.made_up_floor(), BoundMachine(cpu_model="Gold 5118"))
)


@pytest.mark.parametrize(
    ("record", "first", "below"),
    [
        (
            simulated.made_up_record(),
            "holds 381.0 k CPS, 2.67 M pps for 10 s (± 5.0 %)   floor 48.2 k CPS, 334.9 k pps   margin +690 %   MET",
            "",
        ),
        (
            TIGHT,
            "holds 381.0 k CPS, 2.67 M pps for 10 s (± 5.0 %)   floor 48.2 k CPS, 334.9 k pps   margin +690 %   MET",
            "",
        ),
        (
            simulated.made_up_record(found(40_100.0)),
            "holds 40.1 k CPS, 280.7 k pps for 10 s (± 5.0 %)   floor 48.2 k CPS, 334.9 k pps   margin -16.8 %   "
            "MISSED",
            "new connections: 40.1 k/s instead of at least 48.2 k/s (-16.8 %)",
        ),
        (
            simulated.made_up_record(found(30_000.0, "generator")),
            "holds 30.0 k CPS, 210.0 k pps for 10 s (± 5.0 %)   floor 48.2 k CPS, 334.9 k pps   NOT MEASURED",
            "",
        ),
        (NOTHING, "no result   floor 48.2 k CPS, 334.9 k pps   NOT MEASURED", "why"),
        (
            simulated.made_up_record(found(99_600.0, "range")),
            "holds 99.6 k CPS, 697.2 k pps for 10 s   floor 48.2 k CPS, 334.9 k pps   margin +107 %   MET",
            "",
        ),
        (
            simulated.made_up_packet_record(),
            "holds 264.4 k pps for 0.5 s (± 5.0 %)   floor 100.0 k pps   margin +164 %   MET",
            "",
        ),
        (
            of_floor(share=">= 60%"),
            "ratio 64.2 % (264.4 k of 412.0 k pps)   floor 60.0 %   margin +7.0 %   MET",
            "64.2 % of linux-router/forward/1cpu-1rxq, at least 60 % promised",
        ),
        (
            of_floor(share=">= 80%"),
            "ratio 64.2 % (264.4 k of 412.0 k pps)   floor 80.0 %   margin -19.8 %   MISSED",
            "",
        ),
        (
            SMOKE,
            "holds 381.0 k CPS, 2.67 M pps for 10 s (± 5.0 %)   floor 48.2 k CPS, 334.9 k pps (smoke test)   "
            "margin +690 %   MET",
            "",
        ),
    ],
)
def test_the_verdict_is_a_line_with_the_reason_below_it(record: Record, first: str, below: str) -> None:
    said, *others = console.verdict_line(record).split("\n")
    assert said == f"  {first}"
    assert " ".join(text.strip() for text in others).startswith(below)
    assert all(text.startswith("    ") for text in others)


def test_a_floor_of_another_machine_is_called_that() -> None:
    assert "(made on Gold 5118)" in console.verdict_line(BOUND)
    assert console.metadata(SMOKE)["Kind"] == "smoke test"
    assert "Kind" not in console.metadata(simulated.made_up_record())


def test_the_table_has_a_row_for_each_test_and_counts_the_verdicts() -> None:
    records = [
        simulated.made_up_record(),
        simulated.made_up_record(found(40_100.0)),
        simulated.made_up_record(found(30_000.0, "generator")),
    ]
    name = "SNAT With iptables, Short-Lived, Again"
    lines = console.summary([*records, simulated.made_up_packet_record(test=name)]).split("\n")
    assert lines[0].split() == ["test", "floor", "measured", "verdict"]
    cells = re.split(r"\s{2,}", lines[3].strip())[1:]
    assert cells == ["48.2 k CPS, 334.9 k pps", "381.0 k CPS, 2.67 M pps for 10 s", "MET"]
    assert lines[5].strip().startswith("new connections: 40.1 k/s instead")
    assert any(re.fullmatch(f"  {name}  100.0 k pps +264.4 k pps for 0.5 s  MET", row) for row in lines), "whole"
    assert lines[-1] == "2 met, 1 missed, 1 not measured"
    assert console.summary([]).endswith("no test measured anything")


def test_what_is_shown_is_the_promise_that_alone_fails_and_where_a_comparison_is_unknown_that_of_the_test() -> None:
    record = simulated.made_up_record(found(48_200.0))
    packets = [replace(each, met=each.metric != "pps") for each in record.thresholds]
    assert figures.floor(record.model_copy(update={"thresholds": packets})) == "48.2 k CPS, 334.9 k pps"
    made = simulated.made_up_packet_record(
        found_packets(264_400.0), simulated.made_up_packet_floor(">= 100k", bps=">= 2G")
    )
    assert figures.floor(made) == "100.0 k pps, 2.00 Gbit/s"
    assert figures.measured(made) == "264.4 k pps, 126.91 Mbit/s for 0.5 s"
    floor = simulated.made_up_packet_floor(">= 100k", share=">= 60%")
    record = simulated.made_up_packet_record(floor=floor)
    assert (figures.floor(record), figures.measured(record)) == ("100.0 k pps", "264.4 k pps for 0.5 s")
    assert (record.verdict, figures.relation(record)) == ("not measured", "")


@settings(max_examples=50, deadline=None)
@given(
    test=st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=200),
    reason=st.text(st.sampled_from("ab c"), max_size=400),
    capacity=st.floats(min_value=1, max_value=1e9),
)
def test_no_line_is_wider_than_120_columns(test: str, reason: str, capacity: float) -> None:
    record = simulated.made_up_record(found(capacity), test=test, verdict_reason=reason)
    shown = [console.summary([record]), console.verdict_line(record), console.heading(test, "x" * 40, "3.1.0")]
    shown += [line(seen(load=capacity, generator_limited=reason), left_s) for left_s in (0, 5.4, 86_400)]
    assert max(len(text) for part in shown for text in part.split("\n")) <= 120
    assert max(map(len, shown[0].split("\n"))) <= console.TABLE_WIDTH
