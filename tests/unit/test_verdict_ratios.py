"""The verdict of a ratio: to another topology, and to another build."""

from dataclasses import replace

import pytest

from ctbench.measure.procedure import Decision
from ctbench.results.figure import Figure

from .judging import COMPARED, compared, message
from .simulated import (
    FORWARDING,
    found_packets,
    judged,
    promises,
)


def test_a_ratio_whose_whole_interval_is_above_the_promise_is_met_and_said() -> None:
    verdict = judged(compared(0.642, 0.631, 0.65), COMPARED, 3_000_000)
    assert message(verdict) == (
        "Met: packets: 264.4 k pps, +164 % against the floor of 100.0 k pps; "
        "64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised"
    )
    (_, ratio, _) = verdict.thresholds
    assert (ratio.metric, ratio.kind, ratio.written, ratio.to, ratio.met) == (
        "ratio", "ratio", ">= 60%", FORWARDING, True
    )  # fmt: skip
    assert (ratio.measured, ratio.low, ratio.high) == (0.642, 0.631, 0.65)
    assert verdict.margin_pct == pytest.approx(7)


def test_a_ratio_whose_whole_interval_is_below_the_promise_is_missed_though_the_rate_is_enough() -> None:
    verdict = judged(compared(0.583, 0.57, 0.599), COMPARED, 3_000_000)
    assert message(verdict) == (
        "Missed: packets: 58.3 % ± 1.6 % of linux-router/forward/1cpu-1rxq, at least 60 % promised (-2.8 %)"
    )


def test_a_ratio_whose_interval_has_the_promise_in_it_is_too_close_to_call() -> None:
    verdict = judged(compared(0.61, 0.59, 0.63), COMPARED, 3_000_000)
    assert message(verdict) == (
        "Not measured: too close to call on this machine: 61.0 % ± 2.0 % of linux-router/forward/1cpu-1rxq, at least "
        "60 % promised"
    )
    assert verdict.margin_pct is None
    (_, ratio, _) = verdict.thresholds
    assert (ratio.met, ratio.undecided) == (False, True)


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.6, 0.7, "met"), (0.5, 0.6, "not measured"), (0.5, 0.599, "missed")]
)
def test_exactly_at_an_end_of_the_interval_the_promise_is_kept(low: float, high: float, word: str) -> None:
    assert judged(compared((low + high) / 2, low, high), COMPARED, 3_000_000).word == word


@pytest.mark.parametrize(("kept", "word"), [(True, "met"), (False, "missed"), (None, "not measured")])
def test_what_the_pairs_decided_counts_and_not_the_interval_of_the_figure(kept: bool | None, word: str) -> None:
    decision = Decision(kept, "192 rounds")
    verdict = judged(compared(0.61, 0.59, 0.63, decision), COMPARED, 3_000_000)
    assert verdict.word == word
    if kept is None:
        assert verdict.reason == "192 rounds"


def test_a_ratio_that_is_missed_outweighs_a_rate_that_is_not_decided() -> None:
    base = compared(0.5, 0.49, 0.51)
    both = replace(base, decisions={"pps": Decision(None, "within 1 % of the floor")})
    verdict = judged(both, COMPARED, 3_000_000)
    assert (verdict.word, verdict.reason[:13]) == ("missed", "packets: 50.0")


def test_a_ratio_that_is_enough_does_not_make_up_for_a_rate_below_its_floor() -> None:
    below = compared(0.9, 0.89, 0.91)
    slow = replace(below, figures={**below.figures, "pps": Figure(value=90_000.0, unit="packets/s")})
    verdict = judged(slow, COMPARED, 3_000_000)
    assert message(verdict) == "Missed: packets: 90.0 k pps instead of at least 100.0 k pps (-10.0 %)"


def test_a_ratio_that_nothing_was_measured_of_is_not_measured() -> None:
    verdict = judged(found_packets(264_400), COMPARED, 3_000_000)
    assert message(verdict) == (
        "Not measured: the rate relative to linux-router/forward/1cpu-1rxq could not be measured"
    )


ONLY_A_RATIO = replace(COMPARED, thresholds={name: each for name, each in COMPARED.thresholds.items() if name != "pps"})


def test_a_floor_may_promise_a_ratio_and_no_rate() -> None:
    assert ONLY_A_RATIO.main is None and ONLY_A_RATIO.load(0.01) == 0
    assert message(judged(compared(0.642, 0.631, 0.65), ONLY_A_RATIO)) == (
        "Met: 64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised"
    )
    assert judged(compared(0.5, 0.49, 0.51), ONLY_A_RATIO).word == "missed"


def test_a_pair_without_any_trial_has_no_condition_to_keep() -> None:
    found = compared(0.642, 0.631, 0.65, Decision(kept=True, reason="24 rounds"))
    alone = replace(found, figures={"ratio": found.figures["ratio"]}, steps=(), held=False)
    verdict = judged(alone, ONLY_A_RATIO)
    assert (verdict.word, [each.metric for each in verdict.thresholds]) == ("met", ["ratio"])
    # A search that found a rate has trials, and one that told no latency kept none.
    late = replace(ONLY_A_RATIO, thresholds={**ONLY_A_RATIO.thresholds, **promises(latency_p99="<= 5ms")})
    told = {name: figure for name, figure in found.figures.items() if name != "latency_p99"}
    assert judged(replace(found, figures=told), late).word == "missed"


OF_BUILD = replace(ONLY_A_RATIO, thresholds=promises(of_build=">= 97%"), relative_to="", base_build="distribution")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((1.01, 0.99, 1.02), "Met: 101 % ± 2.0 % of the packaged build, at least 97 % promised"),
        ((0.95, 0.94, 0.96), "Missed: packets: 95.0 % ± 1.0 % of the packaged build, at least 97 % promised (-2.1 %)"),
        ((0.97, 0.96, 0.98), "Not measured: too close to call on this machine: 97.0 % ± 1.0 % of the packaged build"),
    ],
)
def test_a_build_is_judged_by_its_share_of_another_build(found: tuple[float, float, float], said: str) -> None:
    verdict = judged(compared(*found, metric="of_build"), OF_BUILD)
    assert message(verdict).startswith(said)
    assert [(each.kind, each.to) for each in verdict.thresholds] == [("of_build", "distribution")]
