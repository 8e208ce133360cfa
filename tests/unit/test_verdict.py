"""The verdict: green always means measured, and at or above the floor. Every way to fail is proved to fail."""

from dataclasses import replace

import pytest

from ctbench.dut.base import Problem
from ctbench.measure.procedure import Outcome
from ctbench.measure.sequential import Known, SequentialResult, SequentialTest
from ctbench.measure.trial import TrialFn
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, Metric
from ctbench.sla.threshold import parse
from ctbench.sla.verdict import Verdict, judge

from .judging import FLOOR, message, sprt
from .simulated import (
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


def gate(trial_fn: TrialFn, load: float) -> SequentialResult:
    """The trials at a floor, of a DUT of which nothing is known yet."""
    return SequentialTest(trial_fn, load, 5.0, Known()).run()


def gated(capacity: float, **dut: float) -> SequentialResult:
    return gate(SimulatedDut(capacity, **dut), 48_700)  # type: ignore[arg-type]


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


def test_a_ceiling_below_the_floor_is_not_measured_unless_the_dut_ends_well_below_it() -> None:
    verdict = judged(found(44_000), FLOOR, ceiling=48_100)
    assert (verdict.word, verdict.margin_pct) == ("not measured", None)
    assert judged(found(44_000, "floor"), FLOOR, ceiling=60_000).word == "missed"
    gate_only = judged(found(30_000, "floor"), FLOOR, ceiling=48_100)
    assert message(gate_only).startswith(
        "Not measured: the traffic generator reaches only 48.1 k/s, the floor is 48.2 k/s"
    )
    assert judged(found(30_000), FLOOR, ceiling=48_100).word == "missed"


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
    assert message(met) == "Met: the floor of 48.2 k/s was held: 4 of 4 trials at 48.7 k/s held"
    assert met.margin_pct == pytest.approx(1.04, abs=0.05)
    assert missed.word == "missed"
    assert missed.margin_pct is not None
    assert missed.margin_pct < -10
    assert missed.reason.startswith("new connections: 40.0 k/s instead of at least 48.2 k/s (-17.0 %)")


def test_a_gate_that_completes_the_floor_but_loses_too_many_is_missed() -> None:
    def leaks(load: float, duration: float) -> object:
        return seen(load=load, duration=duration, loss=0.001)

    verdict = judged(gate(leaks, 48_700), FLOOR)
    assert verdict.word == "missed"
    assert verdict.reason == (
        "lost connections: 0.100 % instead of at most 0.020 % (-80.0 %); 0 of 4 trials at 48.7 k/s held"
    )


def test_a_gate_that_completes_the_floor_but_is_late_names_the_lateness_once() -> None:
    floor, limits = made_up_floor(p99="<= 5ms"), {"loss_ratio": 0.0002, "connect_time_p99": 0.005}

    def late(load: float, duration: float) -> object:
        return seen(load=load, duration=duration, p99_us=10_000, conditions=limits)

    verdict = judged(gate(late, 48_700), floor)
    assert message(verdict) == (
        "Missed: TCP connect time (p99): 10.0 ms instead of at most 5.0 ms (-50.0 %); 0 of 4 trials at 48.7 k/s held"
    )


def test_a_gate_that_is_too_slow_says_why_once_and_how_many_trials_held() -> None:
    (rate, loss) = judged(gated(40_000), made_up_floor(pps=None)).reason.split("; ")
    assert rate == "new connections: 40.0 k/s instead of at least 48.2 k/s (-17.0 %): 0 of 4 trials at 48.7 k/s held"
    assert loss.startswith("lost connections: 17.9 % instead of at most 0.020 %")


def test_a_gate_that_the_generator_spoilt_or_that_broke_is_not_measured() -> None:
    assert judged(gated(60_000, generator_limit=1_000), FLOOR).word == "not measured"

    def breaks(load: float, duration: float) -> object:
        return seen((Problem("fatal", "ovs-vswitchd was restarted"),), load=load, duration=duration)

    verdict = judged(gate(breaks, 48_700), FLOOR)
    assert (
        message(verdict)
        == "Not measured: the measurement broke off: ovs-vswitchd was restarted, in trial 1, at 48.7 k/s"
    )


def test_a_gate_near_the_ceiling_and_below_the_floor_is_not_measured() -> None:
    assert judged(gated(45_000), FLOOR, ceiling=49_000).word == "not measured"


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

    verdict = judged(gate(leaks, 303_000), made_up_packet_floor())
    assert (
        verdict.reason == "lost packets: 0.100 % instead of at most 0.020 % (-80.0 %); 0 of 4 trials at 303.0 k/s held"
    )


def test_trials_at_the_floor_decide_and_a_figure_on_the_other_side_does_not_contradict_them() -> None:
    met = judged(sprt(True, "3 of 3 trials at 48.7 k/s held", 47_000.0), FLOOR)
    assert (met.word, met.margin_pct) == ("met", 0.0)
    assert met.reason.endswith("(3 of 3 trials at 48.7 k/s held)")
    missed = judged(sprt(False, "3 of 3 trials at 48.7 k/s failed"), FLOOR)
    assert (missed.word, missed.margin_pct) == ("missed", 0.0)
    assert missed.reason == "new connections: 48.2 k/s not held: 3 of 3 trials at 48.7 k/s failed"
    close = judged(sprt(None, "within 3 % of the floor, this machine scatters by 7 %."), FLOOR)
    assert message(close) == "Not measured: within 3 % of the floor, this machine scatters by 7 %"


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


def test_a_trial_that_was_good_lost_no_more_than_it_may_whatever_share_that_is() -> None:
    few = outcome_of(found(50_000, loss=0.01))
    assert judged(few, FLOOR).word == "met"
    assert judged(replace(few, held=False), FLOOR).word == "missed"
