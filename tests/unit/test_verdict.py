"""The verdict: green always means measured, and at or above the floor. Every way to fail is proved to fail."""

from dataclasses import replace

import pytest

from ctbench.dut.base import Problem
from ctbench.measure.campaign import GateSettings
from ctbench.measure.gate import GateResult, gate
from ctbench.measure.procedure import Outcome
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import Baseline
from ctbench.sla.threshold import parse
from ctbench.sla.verdict import Verdict, judge

from .simulated import (
    FORWARDING,
    SimulatedDut,
    found,
    found_packets,
    judged,
    made_up_floor,
    made_up_packet_floor,
    outcome_of,
    seen,
    seen_packets,
)

FLOOR = made_up_floor()
GATE = GateSettings.model_validate({"trial_duration": "5s", "headroom": "1%"})


def message(verdict: Verdict) -> str:
    """Word and sentence, as a failing test says them."""
    return f"{verdict.word.capitalize()}: {verdict.reason}"


def gated(capacity: float, **dut: float) -> GateResult:
    return gate(SimulatedDut(capacity, **dut), 48_700, GATE)  # type: ignore[arg-type]


def test_a_capacity_above_the_floor_is_met_with_its_margin() -> None:
    verdict = judged(found(381_000), FLOOR, ceiling=900_000)
    assert verdict.word == "met"
    assert message(verdict) == "Met: new connections: 381.0 k/s, +690 % against the floor of 48.2 k/s"
    assert verdict.margin_pct == pytest.approx(690.4, abs=0.1)
    assert [(each.metric, each.met) for each in verdict.thresholds] == [
        ("cps", True),
        ("pps", True),
        ("loss_ratio", True),
    ]


def test_exactly_the_floor_is_met_and_a_connection_less_is_missed() -> None:
    assert judged(found(48_200), made_up_floor(pps=None)).word == "met"
    assert judged(found(48_199), made_up_floor(pps=None)).word == "missed"


def test_an_impossible_floor_is_missed_with_what_was_measured() -> None:
    verdict = judged(found(381_000), made_up_floor(">= 900M"), ceiling=1_000_000_000)
    assert verdict.word == "missed"
    assert verdict.margin_pct == pytest.approx(-99.96, abs=0.01)
    assert message(verdict) == "Missed: new connections: 381.0 k/s instead of at least 900.00 M/s (-100.0 %)"


def test_packets_alone_can_miss_the_floor() -> None:
    verdict = judged(found(50_000), made_up_floor(pps=">= 400k"))
    assert verdict.word == "missed"
    assert message(verdict).startswith("Missed: packets: 350.0 k pps instead of at least 400.0 k pps (-12.5 %)")
    assert verdict.margin_pct == pytest.approx(-12.5)


def test_the_margin_is_the_worst_of_the_rates_and_not_that_of_the_loss() -> None:
    verdict = judged(found(96_400, loss=0.0001), made_up_floor(pps=">= 600k"))
    assert verdict.word == "met"
    assert verdict.margin_pct == pytest.approx(12.4, abs=0.1)


def test_a_set_up_time_over_its_limit_is_missed_and_counts_for_the_margin() -> None:
    verdict = judged(found(381_000, p99_us=10_000), made_up_floor(p99="<= 5ms"))
    assert verdict.word == "missed"
    assert verdict.margin_pct == pytest.approx(-50)
    assert "TCP connect time (p99): 10.0 ms instead of at most 5.0 ms" in verdict.reason


def test_a_set_up_time_that_was_not_measured_is_not_met() -> None:
    assert judged(found(381_000, p99_us=None), made_up_floor(p99="<= 5ms")).word == "missed"


def test_a_dut_that_holds_nothing_is_missed() -> None:
    verdict = judged(found(0), FLOOR, ceiling=900_000)
    assert (verdict.word, verdict.margin_pct) == ("missed", -100)
    assert verdict.reason == "not even the lowest load held, the floor is 48.2 k/s: as it was tried"


def test_a_ceiling_below_the_floor_is_not_measured() -> None:
    verdict = judged(found(30_000), FLOOR, ceiling=48_100)
    assert (verdict.word, verdict.margin_pct) == ("not measured", None)
    assert message(verdict).startswith(
        "Not measured: the traffic generator reaches only 48.1 k/s, the floor is 48.2 k/s"
    )
    assert judged(found(30_000), FLOOR, ceiling=48_300).word == "missed"


def test_a_result_near_the_ceiling_and_below_the_floor_is_not_measured() -> None:
    assert judged(found(45_000), FLOOR, ceiling=50_000).word == "not measured"
    assert judged(found(44_900), FLOOR, ceiling=50_000).word == "missed"
    assert judged(found(49_000), made_up_floor(pps=None), ceiling=50_000).word == "met"


def test_a_generator_that_was_the_limit_below_the_floor_is_not_measured() -> None:
    verdict = judged(found(30_000, "generator"), FLOOR, ceiling=900_000)
    assert message(verdict) == (
        "Not measured: the traffic generator was the limit below the floor of 48.2 k/s: as it was tried"
    )


@pytest.mark.parametrize("limited_by", ["generator", "range"])
def test_above_the_floor_it_is_met_whatever_the_limit_and_says_at_least(limited_by: str) -> None:
    verdict = judged(found(381_000, limited_by), FLOOR, ceiling=400_000)
    assert verdict.word == "met"
    assert verdict.reason.startswith("new connections: at least 381.0 k/s")


def test_a_range_that_ends_below_the_floor_is_not_measured() -> None:
    verdict = judged(found(2_000, "range"), made_up_floor(">= 4.8k", pps=None))
    assert verdict.word == "not measured"
    assert "the campaign's range ended at 2.0 k/s" in verdict.reason
    assert "raise loads.max" in verdict.reason


def test_a_fault_is_not_measured_whatever_was_found_before_it() -> None:
    verdict = judged(found(381_000, "fault"), FLOOR)
    assert message(verdict) == "Not measured: the measurement broke off: as it was tried"


def test_an_oversubscribed_testbed_never_measures() -> None:
    for result in (found(381_000), found(0), gated(100_000)):
        verdict = judged(result, FLOOR, oversubscribed=True)
        assert (verdict.word, verdict.margin_pct) == ("not measured", None)


def test_where_nothing_was_offered_nothing_was_measured() -> None:
    result = found(381_000, attempted=0)
    nothing = tuple(type(step)(step.number, step.phase, seen(attempted=0, loss=1.0), 0.0) for step in result.steps)
    object.__setattr__(result, "steps", nothing)
    assert judged(result, FLOOR).word == "not measured"


def test_a_gate_that_held_is_met_and_one_that_did_not_is_missed() -> None:
    met, missed = judged(gated(60_000), FLOOR), judged(gated(40_000), FLOOR)
    assert message(met) == "Met: the floor of 48.2 k/s was held: 2 of 2 trials at 48.7 k/s held"
    assert met.margin_pct == pytest.approx(1.04, abs=0.05)
    assert missed.word == "missed"
    assert missed.margin_pct is not None
    assert missed.margin_pct < -10
    assert missed.reason.startswith("new connections: 40.0 k/s instead of at least 48.2 k/s (-17.0 %)")


def test_a_gate_that_completes_the_floor_but_loses_too_many_is_missed() -> None:
    def leaks(load: float, duration: float) -> object:
        return seen(load=load, duration=duration, loss=0.001)

    verdict = judged(gate(leaks, 48_700, GATE), FLOOR)  # type: ignore[arg-type]
    assert verdict.word == "missed"
    assert verdict.reason.startswith("lost connections: 0.100 % instead of at most 0.020 % (-80.0 %)")


def test_a_gate_that_the_generator_spoilt_or_that_broke_is_not_measured() -> None:
    assert judged(gated(60_000, generator_limit=1_000), FLOOR).word == "not measured"

    def breaks(load: float, duration: float) -> object:
        return seen((Problem("fatal", "ovs-vswitchd was restarted"),), load=load, duration=duration)

    verdict = judged(gate(breaks, 48_700, GATE), FLOOR)  # type: ignore[arg-type]
    assert (
        message(verdict)
        == "Not measured: the measurement broke off: ovs-vswitchd was restarted, in trial 1, at 48.7 k/s"
    )


def test_a_gate_near_the_ceiling_and_below_the_floor_is_not_measured() -> None:
    assert judged(gated(45_000), FLOOR, ceiling=49_000).word == "not measured"


COMPARED = made_up_packet_floor(">= 100k", share=">= 60%")
BASELINE = Baseline(key=FORWARDING, rate=412_000.0)


def test_packets_above_their_floor_are_met_and_called_packets() -> None:
    verdict = judged(found_packets(412_000), made_up_packet_floor(), ceiling=3_000_000)
    assert message(verdict) == "Met: packets: 412.0 k pps, +37.3 % against the floor of 300.0 k pps"
    assert [each.metric for each in verdict.thresholds] == ["pps", "loss_ratio"]


def test_packets_below_their_floor_are_missed() -> None:
    verdict = judged(found_packets(270_000), made_up_packet_floor(), ceiling=3_000_000)
    assert message(verdict) == "Missed: packets: 270.0 k pps instead of at least 300.0 k pps (-10.0 %)"


def test_a_throughput_below_its_floor_is_missed_though_the_packets_are_enough() -> None:
    verdict = judged(found_packets(412_000), made_up_packet_floor(bps=">= 2G"))
    assert verdict.word == "missed"
    assert verdict.reason.startswith("throughput: 197.76 Mbit/s instead of at least 2.00 Gbit/s (-90.1 %)")


def test_a_latency_over_its_limit_is_missed_and_one_that_was_not_measured_is_not_met() -> None:
    verdict = judged(found_packets(412_000, p99_us=10_000), made_up_packet_floor(p99="<= 5ms"))
    assert (verdict.word, verdict.margin_pct) == ("missed", pytest.approx(-50))
    assert "latency (p99): 10.0 ms instead of at most 5.0 ms" in verdict.reason
    assert judged(found_packets(412_000, p99_us=None), made_up_packet_floor(p99="<= 5ms")).word == "missed"


def test_lost_packets_over_their_limit_are_missed() -> None:
    def leaks(load: float, duration: float) -> object:
        return seen_packets(load=load, duration=duration, loss=0.001)

    verdict = judged(gate(leaks, 303_000, GATE), made_up_packet_floor())  # type: ignore[arg-type]
    assert verdict.reason.startswith("lost packets: 0.100 % instead of at most 0.020 % (-80.0 %)")


def test_a_share_above_the_promised_one_is_met_and_said() -> None:
    verdict = judged(found_packets(264_400), COMPARED, 3_000_000, BASELINE)
    assert message(verdict) == (
        "Met: packets: 264.4 k pps, +7.0 % against the floor of 247.2 k pps; "
        "64.2 % of linux-router/forward/1cpu-1rxq (412.0 k pps), at least 60 % promised"
    )
    (_, relative, _) = verdict.thresholds
    assert (relative.metric, relative.written, relative.to, relative.met) == ("ratio", ">= 60%", FORWARDING, True)
    assert relative.measured == pytest.approx(264.4 / 412)


def test_a_share_below_the_promised_one_is_missed_though_the_rate_is_enough() -> None:
    verdict = judged(found_packets(240_000), COMPARED, 3_000_000, BASELINE)
    assert message(verdict) == (
        "Missed: packets: 58.3 % of linux-router/forward/1cpu-1rxq (412.0 k pps), at least 60 % promised (-2.9 %)"
    )
    assert verdict.margin_pct == pytest.approx(-2.9, abs=0.1)


def test_a_share_that_is_enough_does_not_make_up_for_a_rate_below_its_floor() -> None:
    slow = Baseline(key=FORWARDING, rate=100_000.0)
    verdict = judged(found_packets(90_000), COMPARED, 3_000_000, slow)
    assert message(verdict) == "Missed: packets: 90.0 k pps instead of at least 100.0 k pps (-10.0 %)"


@pytest.mark.parametrize("baseline", [None, Baseline(key=FORWARDING, rate=None, doubt="the link broke.")])
def test_without_anything_to_compare_with_a_relative_floor_is_not_measured(baseline: Baseline | None) -> None:
    verdict = judged(found_packets(264_400), COMPARED, 3_000_000, baseline)
    assert message(verdict).startswith(
        "Not measured: the rate of linux-router/forward/1cpu-1rxq, to compare with, could not be measured"
    )
    assert message(verdict).endswith(": the link broke" if baseline else "measured")
    assert verdict.margin_pct is None


def test_a_rate_below_its_own_floor_is_missed_whatever_there_is_to_compare_with() -> None:
    unknown = Baseline(key=FORWARDING, rate=None, doubt="the link broke")
    verdict = judged(found_packets(90_000), COMPARED, 3_000_000, unknown)
    assert message(verdict) == "Missed: packets: 90.0 k pps instead of at least 100.0 k pps (-10.0 %)"


def test_a_baseline_that_is_only_known_to_be_at_least_something_proves_no_share() -> None:
    least = Baseline(key=FORWARDING, rate=412_000.0, doubt="the generator was the limit.")
    verdict = judged(found_packets(264_400), COMPARED, 3_000_000, least)
    assert message(verdict) == (
        "Not measured: linux-router/forward/1cpu-1rxq, to compare with, does at least 412.0 k pps, perhaps more: "
        "the generator was the limit"
    )
    # A share that is too small of it is too small of more, too.
    assert judged(found_packets(240_000), COMPARED, 3_000_000, least).word == "missed"


def test_a_ceiling_below_the_share_that_is_asked_for_is_not_measured() -> None:
    verdict = judged(found_packets(200_000), COMPARED, 240_000, BASELINE)
    assert message(verdict) == "Not measured: the traffic generator reaches only 240.0 k pps, the floor is 247.2 k pps"
    assert judged(found_packets(200_000, "range"), COMPARED, 3_000_000, BASELINE).word == "not measured"
    assert judged(found_packets(200_000, "generator"), COMPARED, 3_000_000, BASELINE).word == "not measured"
    assert judged(found_packets(230_000), COMPARED, 250_000, BASELINE).word == "not measured"  # near the ceiling


def test_a_gate_tries_the_share_too() -> None:
    def holds(load: float, duration: float) -> object:
        return seen_packets(load=load, duration=duration, loss=0.0 if load < 300_000 else 0.1)

    def gated_at(baseline: Baseline) -> str:
        assert baseline.rate
        load = COMPARED.needed(baseline.rate) * 1.01
        return message(judged(gate(holds, load, GATE), COMPARED, 3_000_000, baseline))  # type: ignore[arg-type]

    assert gated_at(BASELINE).startswith(
        "Met: the floor of 247.2 k pps was held: 2 of 2 trials at 249.7 k/s held; 60.6 %"
    )
    assert gated_at(Baseline(key=FORWARDING, rate=600_000.0)).startswith("Missed: packets: 54.5 % of linux-router")


def test_repetitions_that_do_not_agree_are_not_measured() -> None:
    scattered = replace(found(381_000), capacities=(300_000.0, 381_000.0, 400_000.0))
    verdict = judged(scattered, FLOOR, max_spread=0.2)
    assert verdict.word == "not measured"
    assert verdict.reason == (
        "3 searches found 300.0 k/s to 400.0 k/s, a spread of 26.2 % where the campaign allows 20.0 %"
    )
    assert judged(scattered, FLOOR, max_spread=0.3).word == "met"
    assert judged(scattered, FLOOR).word == "met"
    assert judged(found(381_000), FLOOR, max_spread=0.01).word == "met"


DRAIN = Metric("drain_s", "time to drain", METRICS["connect_time_p99"].unit, "lower", "promise")


def drained(seconds: float, limit: str = "<= 10s") -> Verdict:
    floor = replace(FLOOR, metric=DRAIN, thresholds={"drain_s": parse(limit, DRAIN)})
    figures = {"drain_s": Figure(value=seconds, unit="s")}
    steps = outcome_of(found(381_000)).steps
    return judge(Outcome(DRAIN, figures, "dut", "", held=True, steps=steps), floor)


def test_a_metric_of_which_less_is_better_is_judged_the_right_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "drain_s", DRAIN)
    met, missed = drained(8.0), drained(12.5)
    assert message(met) == "Met: time to drain: 8.0 s, +25.0 % against the floor of 10.0 s"
    assert message(missed) == "Missed: time to drain: 12.5 s instead of at most 10.0 s (-20.0 %)"
    assert [(each.operator, each.met) for each in missed.thresholds] == [("<=", False)]
    assert drained(10.0).word == "met"
