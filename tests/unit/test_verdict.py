"""The verdict: green always means measured, and at or above the floor. Every way to fail is proved to fail."""

from dataclasses import replace
from typing import Any

import pytest

from ctbench.dut.base import Problem
from ctbench.measure.procedure import Outcome
from ctbench.measure.sequential import KnownRates, SequentialTest
from ctbench.measure.trial import TrialRunner
from ctbench.results.environment import MachineFacts
from ctbench.results.floor import BoundMachine, Floor
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict, by_values
from ctbench.sla.verdict import RowVerdict

from .simulated import (
    FORWARDING,
    SimulatedDut,
    bound_to,
    found,
    found_packets,
    judged,
    made_up_floor,
    made_up_packet_floor,
    outcome_of,
    promises,
    runner_of,
    saying,
    seen,
    seen_packets,
)

FLOOR = made_up_floor()
COMPARED = made_up_packet_floor(">= 100k", share=">= 60%")
PACKETS = made_up_packet_floor()
ONLY_CPS = made_up_floor(pps=None)
QUICK = made_up_floor(p99="<= 5ms")
FAR = made_up_floor(">= 3.9M", pps=None)
BOUND = bound_to(FLOOR, BoundMachine(cpu_model="Xeon(R) Gold 5118", cpus=24))
XEON = MachineFacts(cpu_model="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", usable_cpus=list(range(24)))
EPYC = MachineFacts(cpu_model="AMD EPYC 9R14", usable_cpus=[0, 1])
ONLY_A_RATIO = replace(COMPARED, thresholds={name: each for name, each in COMPARED.thresholds.items() if name != "pps"})
OF_BUILD = saying(replace(ONLY_A_RATIO, thresholds=promises(of_build=">= 97%")), "of_build", to="distribution")
#: A ratio that was measured on one kind of CPU.
ZEN_5, ZEN_3 = "AuthenticAMD family 26 model 2", "AuthenticAMD family 25 model 1"
TRAVELS = replace(COMPARED, known_kinds=(ZEN_5,))
SMOKE = replace(
    FLOOR, known_kinds=(ZEN_5,),
    thresholds={name: replace(each, smoke=each.is_promise) for name, each in FLOOR.thresholds.items()},
)  # fmt: skip
SPOILT = Verdict(None, Code.GENERATOR, "the generator spoilt 3 of 3 trials")
LOSSY = replace(outcome_of(found(50_000, loss=0.01)), kept_conditions=False)


def compared(value: float, low: float, high: float, verdict: Verdict | None = None, metric: str = "ratio") -> Outcome:
    """What a search and a pair found together; without a verdict of the pair's own it decides by its interval."""
    base = outcome_of(found_packets(264_400))
    figures = {**base.figures, metric: Estimate(value=value, unit="ratio", low=low, high=high)}
    bound = {"ratio": 0.6, "of_build": 0.97}[metric]
    decided = verdict or by_values(METRICS[metric], (low, high), bound, "48 rounds", Code.INTERVAL)
    return replace(base, figures=figures, verdicts={metric: decided})


def sprt(kept: bool | None, reason: str, capacity: float = 50_000.0) -> Outcome:
    """What a search found, and what trials at the floor decided."""
    return replace(outcome_of(found(capacity)), verdicts={"cps": Verdict(kept, Code.SPRT, reason)})


SCATTERED = replace(found(381_000), capacities=(300_000.0, 381_000.0, 400_000.0))
#: A closed loop saw the DUT's own limit, and trials at the floor could not be made.
LOOP = replace(
    outcome_of(found(160_000)),
    figures={"saturation_cps": Estimate(value=160_000.0, unit="connections/s")},
    limited_by="floor",
    verdicts={"cps": SPOILT},
)
SLOW, HALF = compared(0.9, 0.89, 0.91), compared(0.5, 0.49, 0.51)
SERVED = replace(FLOOR, thresholds=promises(saturation_cps=">= 150k", loss_ratio="<= 0.02%"))


def served(rate: float | None, kept: bool | None = None) -> Outcome:
    """What a search found, and closed loops before it."""
    found_too = {"saturation_cps": Estimate(value=rate, unit="connections/s")} if rate else {}
    by = {} if kept is None else {"saturation_cps": Verdict(kept, Code.INTERVAL, "1 loop")}
    base = outcome_of(found(140_000))
    return replace(base, figures={**base.figures, **found_too}, verdicts=by)


def gate(runner: TrialRunner, load: float = 48_700, metric: str = "cps") -> Outcome:
    """The trials at a floor, of a DUT of which nothing is known yet."""
    return SequentialTest(runner, load, 5.0, KnownRates(), metric=METRICS[metric]).run()


def gated(capacity: float, **dut: float) -> Outcome:
    return gate(SimulatedDut(capacity, **dut))  # type: ignore[arg-type]


def broken() -> Outcome:
    restarted = (Problem("fatal", "ovs-vswitchd was restarted"),)
    return gate(runner_of(lambda load, duration: seen(restarted, load=load, duration=duration)))


def leaking(loss: float = 0.001) -> Outcome:
    return gate(runner_of(lambda load, duration: seen(load=load, duration=duration, loss=loss)))


def serving(outcome: Outcome, rate: float) -> Outcome:
    """With what a closed loop served before."""
    return replace(outcome, figures={**outcome.figures, "saturation_cps": Estimate(rate, "connections/s")})


#: A connection more than the share that may be lost of so few.
FEW = made_up_floor(">= 400", pps=None)


def losing_one_of_few() -> Outcome:
    return gate(runner_of(lambda load, duration: seen(load=load, duration=duration, loss=1 / 2_020)), 404)


def late() -> Outcome:
    limits = {"loss_ratio": 0.0002, "connect_time_p99": 0.005}
    return gate(runner_of(lambda load, duration: seen(load=load, duration=duration, p99_us=10_000, conditions=limits)))


def leaking_packets() -> Outcome:
    return gate(
        runner_of(lambda load, duration: seen_packets(load=load, duration=duration, loss=0.001)), 303_000, "pps"
    )


def nothing_offered() -> Outcome:
    result = outcome_of(found(381_000, attempted=0))
    return replace(result, trials=tuple(seen(attempted=0, loss=1.0) for _ in result.trials))


def decided(kept: bool | None) -> Outcome:
    return compared(0.61, 0.59, 0.63, Verdict(kept, Code.INTERVAL, "192 rounds"))


MET, MISSED, NOT_MEASURED = "met", "missed", "not measured"
#: What was found, its floor, the generator's ceiling; the word, the code, and the margin in percent.
CASES: dict[str, tuple[object, Floor, float | None, str, str, float | None]] = {
    # Figures.
    "a capacity above the floor": (found(381_000), FLOOR, 900_000, MET, Code.FIGURE, 690.4),
    "exactly the floor": (found(48_200), ONLY_CPS, None, MET, Code.FIGURE, 0),
    "a connection less": (found(48_199), ONLY_CPS, None, MISSED, Code.FIGURE, 0),
    "an impossible floor": (found(381_000), made_up_floor(">= 900M"), 1e9, MISSED, Code.FIGURE, -99.96),
    "packets alone": (found(50_000), made_up_floor(pps=">= 400k"), None, MISSED, Code.FIGURE, -12.5),
    "the worst margin of the rates": (
        found(96_400, loss=0.0001), made_up_floor(pps=">= 600k"), None, MET, Code.FIGURE, 12.4),
    "a set-up time over its limit": (found(381_000, p99_us=10_000), QUICK, None, MISSED, Code.FIGURE, -50),
    "a set-up time not measured": (found(381_000, p99_us=None), QUICK, None, MISSED, Code.FIGURE, 690.4),
    "nothing held": (found(0), FLOOR, 900_000, MISSED, Code.LOWEST_LOAD_LOST, -100),
    "packets above": (found_packets(412_000), PACKETS, 3e6, MET, Code.FIGURE, 37.3),
    "packets below": (found_packets(270_000), PACKETS, 3e6, MISSED, Code.FIGURE, -10),
    "a throughput below": (
        found_packets(412_000), made_up_packet_floor(bps=">= 2G"), None, MISSED, Code.FIGURE, -90.1),
    "a latency over its limit": (
        found_packets(412_000, p99_us=10_000), made_up_packet_floor(p99="<= 5ms"), None, MISSED, Code.FIGURE, -50),
    "a latency not measured": (
        found_packets(412_000, p99_us=None), made_up_packet_floor(p99="<= 5ms"), None, MISSED, Code.FIGURE, 37.3),
    "a good trial of few": (outcome_of(found(50_000, loss=0.01)), FLOOR, None, MET, Code.FIGURE, 3.46),
    "a bad trial of few": (LOSSY, FLOOR, None, MISSED, Code.FIGURE, -98),
    # The generator, the range, the testbed.
    "a ceiling below the floor": (found(44_000), FLOOR, 48_100, NOT_MEASURED, Code.NEAR_CEILING, None),
    "a gate below the ceiling": (found(44_000, "floor"), FLOOR, 60_000, MISSED, Code.FIGURE, -8.7),
    "an end well below the ceiling": (found(30_000), FLOOR, 48_100, MISSED, Code.FIGURE, -37.8),
    "near the ceiling": (found(45_000), FLOOR, 50_000, NOT_MEASURED, Code.NEAR_CEILING, None),
    "not quite near the ceiling": (found(44_900), FLOOR, 50_000, MISSED, Code.FIGURE, -6.8),
    "near the ceiling and above the floor": (found(49_000), ONLY_CPS, 50_000, MET, Code.FIGURE, 1.7),
    "the generator was the limit": (found(30_000, "generator"), FLOOR, 900_000, NOT_MEASURED, Code.GENERATOR, None),
    "the generator's limit above the floor": (found(381_000, "generator"), FLOOR, 400_000, MET, Code.FIGURE, 690.4),
    "the range's end above the floor": (found(381_000, "range"), FLOOR, 400_000, MET, Code.FIGURE, 690.4),
    "the range's end, held for 40 s": (
        found(381_000, "range", duration=40.0), FLOOR, 400_000, MET, Code.FIGURE, 690.4),
    "a fault": (found(381_000, "fault"), FLOOR, None, NOT_MEASURED, Code.FAULT, None),
    "a fault after a comparison that was lost": (
        replace(decided(False), limited_by="fault", figures={
            **decided(False).figures, "pps": Estimate(value=0.0, unit="packets/s")}),
        COMPARED, 3e6, MISSED, Code.INTERVAL, 0),
    "nothing offered": (nothing_offered(), FLOOR, None, NOT_MEASURED, Code.NOTHING, None),
    # A floor that the generator does not reach.
    "beyond the generator": (found(160_000), FAR, 1.26e6, MISSED, Code.FIGURE, -95.9),
    "beyond the generator, trials spoilt": (
        replace(outcome_of(found(160_000)), verdicts={"cps": SPOILT}), FAR, 1.26e6, MISSED, Code.SATURATED, -95.9),
    "beyond the generator, near the ceiling": (found(1.2e6), FAR, 1.26e6, NOT_MEASURED, Code.NEAR_CEILING, None),
    "beyond the generator, near and spoilt": (
        replace(outcome_of(found(1.2e6)), verdicts={"cps": SPOILT}), FAR, 1.26e6, NOT_MEASURED, Code.GENERATOR, None),
    "a closed loop below both": (LOOP, FAR, 1.26e6, MISSED, Code.SATURATED, None),
    "a closed loop near the ceiling": (LOOP, FAR, 170_000, NOT_MEASURED, Code.GENERATOR, None),
    # Trials at the floor.
    "a gate that held": (gated(60_000), FLOOR, None, MET, Code.SPRT, 1.04),
    "a gate that did not": (gated(40_000), FLOOR, None, MISSED, Code.SPRT, -99.9),
    "a gate that leaks": (leaking(), FLOOR, None, MISSED, Code.SPRT, -80),
    "a gate that is late": (late(), QUICK, None, MISSED, Code.SPRT, -50),
    "a gate that leaks packets": (leaking_packets(), PACKETS, None, MISSED, Code.SPRT, -80),
    "a gate that the generator spoilt": (
        gated(60_000, generator_limit=1_000), FLOOR, None, NOT_MEASURED, Code.INVALID, None),
    "a gate that broke": (broken(), FLOOR, None, NOT_MEASURED, Code.FAULT, None),
    "a gate near the ceiling": (gated(45_000), FLOOR, 49_000, NOT_MEASURED, Code.NEAR_CEILING, None),
    **{f"a gate of few that held, after a search that {limited_by} ended": (
        outcome_of(found(0, limited_by)).merged(losing_one_of_few()), FEW, None, MET, Code.SPRT, 1)
       for limited_by in ("dut", "generator")},
    "trials held, figure below": (sprt(True, "3 of 3 held", 47_000.0), FLOOR, None, MET, Code.SPRT, 0),
    "trials failed, figure above": (sprt(False, "3 of 3 failed"), FLOOR, None, MISSED, Code.SPRT, 0),
    "trials too close": (sprt(None, "this machine scatters"), FLOOR, None, NOT_MEASURED, Code.SPRT, None),
    # Ratios, to another topology and to another build.
    "a ratio above": (compared(0.642, 0.631, 0.65), COMPARED, 3e6, MET, Code.FIGURE, 7),
    "a ratio below": (compared(0.583, 0.57, 0.599), COMPARED, 3e6, MISSED, Code.INTERVAL, -2.8),
    "a ratio too close": (compared(0.61, 0.59, 0.63), COMPARED, 3e6, NOT_MEASURED, Code.TOO_CLOSE, None),
    "a ratio from its promise on": (compared(0.65, 0.6, 0.7), COMPARED, 3e6, MET, Code.FIGURE, 8.3),
    "a ratio up to its promise": (compared(0.55, 0.5, 0.6), COMPARED, 3e6, NOT_MEASURED, Code.TOO_CLOSE, None),
    "a ratio nearly up to it": (compared(0.5495, 0.5, 0.599), COMPARED, 3e6, MISSED, Code.INTERVAL, -8.4),
    "a ratio that pairs kept": (decided(True), COMPARED, 3e6, MET, Code.FIGURE, 1.7),
    "a ratio that pairs broke": (decided(False), COMPARED, 3e6, MISSED, Code.INTERVAL, 0),
    "a ratio that pairs left": (decided(None), COMPARED, 3e6, NOT_MEASURED, Code.INTERVAL, None),
    "a ratio outweighs a rate not decided": (
        replace(HALF, verdicts={**HALF.verdicts, "pps": SPOILT}), COMPARED, 3e6, MISSED, Code.INTERVAL, -16.7),
    "a ratio does not make up for a rate": (
        replace(SLOW, figures={**SLOW.figures, "pps": Estimate(value=90_000.0, unit="packets/s")}),
        COMPARED, 3e6, MISSED, Code.FIGURE, -10),
    "a ratio not measured": (found_packets(264_400), COMPARED, 3e6, NOT_MEASURED, Code.NOTHING, None),
    "only a ratio": (compared(0.642, 0.631, 0.65), ONLY_A_RATIO, None, MET, Code.INTERVAL, 7),
    "only a ratio, below": (compared(0.5, 0.49, 0.51), ONLY_A_RATIO, None, MISSED, Code.INTERVAL, -16.7),
    "a build as fast": (compared(1.01, 0.99, 1.02, metric="of_build"), OF_BUILD, None, MET, Code.INTERVAL, 4.1),
    "a build slower": (compared(0.95, 0.94, 0.96, metric="of_build"), OF_BUILD, None, MISSED, Code.INTERVAL, -2.1),
    # What is served: no trial at a rate says anything of it.
    "as much served": (served(160_000, True), SERVED, 900_000, MET, Code.INTERVAL, 6.7),
    "less served": (served(140_000, False), SERVED, 900_000, MISSED, Code.INTERVAL, -6.7),
    "a figure of what is served alone": (served(140_000), SERVED, 900_000, NOT_MEASURED, Code.NOTHING, None),
    "nothing told of what is served": (
        replace(served(None), verdicts={"cps": SPOILT}), SERVED, 900_000, NOT_MEASURED, Code.NOTHING, None),
    "a build too close": (
        compared(0.97, 0.96, 0.98, metric="of_build"), OF_BUILD, None, NOT_MEASURED, Code.TOO_CLOSE, None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_verdict_has_word_code_and_margin(case: tuple[Outcome, Floor, float | None, str, str, float | None]) -> None:
    result, floor, ceiling, word, code, margin = case
    verdict = judged(result, floor, ceiling)
    assert (verdict.word, verdict.code) == (word, code)
    assert verdict.margin_pct == (None if margin is None else pytest.approx(margin, abs=0.06))


#: How a machine and its kind are told.
MACHINE = MachineFacts(cpu_model="AMD EPYC")
HERE, ON_ZEN_3, ON_ZEN_5 = (MACHINE.model_copy(update={"cpu_kind": kind}) for kind in ("", ZEN_3, ZEN_5))
HALF_LOSSY = replace(
    HALF, figures={**HALF.figures, "loss_ratio": Estimate(value=0.01, unit="ratio")}, kept_conditions=False
)
SILENT = gate(runner_of(lambda load, duration: seen(load=load, duration=duration, loss=1.0)))
SLOW_CPUS = "emulated CPUs"


#: What loses at more than it serves: its losses are excused where its rate is. And a floor with a ratio besides.
OVERLOADED = serving(gated(40_000), 41_000)
WITH_A_RATIO = replace(BOUND, thresholds={**BOUND.thresholds, "ratio": COMPARED.thresholds["ratio"]})


def holding_less(outcome: Outcome, metric: str) -> Outcome:
    """With trials that were lost in turn with a base that held."""
    return replace(outcome, verdicts={**outcome.verdicts, metric: Verdict(False, Code.HOLDS_LESS, "0 of 4 held")})


def by_pairs(code: Code) -> Outcome:
    return compared(0.5, 0.49, 0.51, Verdict(False, code, "16 rounds"))


#: What was found, its floor, what is doubtful of it; the word and the code.
DOUBTS: dict[str, tuple[object, Floor, dict[str, Any], str, Code]] = {
    # A floor of another machine: a condition and a ratio are bound to none.
    "another machine's floor": (found(40_100), BOUND, {"machine": EPYC}, NOT_MEASURED, Code.ANOTHER_MACHINE),
    "trials at it": (sprt(False, "3 of 3 failed"), BOUND, {"machine": EPYC}, NOT_MEASURED, Code.ANOTHER_MACHINE),
    "losses at more than it serves": (OVERLOADED, BOUND, {"machine": EPYC}, NOT_MEASURED, Code.ANOTHER_MACHINE),
    "losses at more than it serves, and a ratio": (
        replace(
            OVERLOADED, figures={**OVERLOADED.figures, "ratio": HALF.figures["ratio"]},
            verdicts={**OVERLOADED.verdicts, **HALF.verdicts}),
        WITH_A_RATIO, {"machine": EPYC}, MISSED, Code.INTERVAL),
    "losses at more than it serves, and at what its base holds": (
        holding_less(OVERLOADED, "loss_ratio"), BOUND, {"machine": EPYC}, MISSED, Code.HOLDS_LESS),
    "losses at what it serves": (serving(leaking(), 381_000), BOUND, {"machine": EPYC}, MISSED, Code.FIGURE),
    "many losses at what it serves": (serving(leaking(0.3), 381_000), BOUND, {"machine": EPYC}, MISSED, Code.FIGURE),
    "losses where nothing tells what it serves": (gated(40_000), BOUND, {"machine": EPYC}, MISSED, Code.FIGURE),
    "of a machine that is not known": (found(40_100), BOUND, {"machine": None}, NOT_MEASURED, Code.ANOTHER_MACHINE),
    "its own machine's floor": (found(40_100), BOUND, {"machine": XEON}, MISSED, Code.FIGURE),
    "another machine's floor, above": (found(50_000), BOUND, {"machine": EPYC}, MET, Code.FIGURE),
    "a condition on another machine": (LOSSY, BOUND, {"machine": EPYC}, MISSED, Code.FIGURE),
    "a ratio on another machine": (
        HALF, replace(COMPARED, machine=BOUND.machine), {"machine": EPYC}, MISSED, Code.INTERVAL),
    # Where rates are not judged, only nothing at all is missed.
    **{f"not judged, {name}": (
        result, BOUND, {"unjudged": SLOW_CPUS, "machine": EPYC}, NOT_MEASURED, Code.RATES_NOT_JUDGED)
       for name, result in {"above": found(381_000), "below": found(40_000), "nothing held": found(0),
                            "a gate": gated(40_000), "a ratio": compared(0.3, 0.2, 0.4), "a loss": LOSSY}.items()},
    "not judged, all lost": (SILENT, FLOOR, {"unjudged": SLOW_CPUS, "machine": EPYC}, MISSED, Code.SPRT),
    "not judged, all lost elsewhere": (SILENT, BOUND, {"unjudged": SLOW_CPUS, "machine": EPYC}, MISSED, Code.SPRT),
    "not judged, a fault": (broken(), FLOOR, {"unjudged": SLOW_CPUS}, NOT_MEASURED, Code.FAULT),
    # A new kind of machine: what it keeps, and what is too close to call, waits for no second run.
    "a new kind": (HALF, TRAVELS, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.NEW_KIND),
    "a new kind, by pairs": (by_pairs(Code.INTERVAL), TRAVELS, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.NEW_KIND),
    "a new kind, kept": (compared(0.642, 0.631, 0.65), TRAVELS, {"machine": ON_ZEN_3}, MET, Code.FIGURE),
    "a new kind, too close": (
        compared(0.61, 0.59, 0.63), TRAVELS, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.TOO_CLOSE),
    "a new kind, again": (
        HALF, TRAVELS, {"machine": ON_ZEN_3, "broken_before": lambda promised: promised.metric == "ratio"}, MISSED,
        Code.INTERVAL),
    "a known kind": (HALF, TRAVELS, {"machine": ON_ZEN_5}, MISSED, Code.INTERVAL),
    # Without a list of kinds, or of a machine that does not tell its own, nothing could ever be confirmed.
    "no list of kinds": (HALF, COMPARED, {"machine": ON_ZEN_3}, MISSED, Code.INTERVAL),
    "a machine that tells no kind": (HALF, TRAVELS, {"machine": HERE}, MISSED, Code.INTERVAL),
    "no machine": (HALF, TRAVELS, {}, MISSED, Code.INTERVAL),
    # What has nothing to do with speed.
    "a new kind, stood still": (by_pairs(Code.STOOD_STILL), TRAVELS, {"machine": ON_ZEN_3}, MISSED, Code.STOOD_STILL),
    "a new kind, crashed": (by_pairs(Code.CRASHED), TRAVELS, {"machine": ON_ZEN_3}, MISSED, Code.CRASHED),
    "a new kind, lossy": (HALF_LOSSY, TRAVELS, {"machine": ON_ZEN_3}, MISSED, Code.FIGURE),
    # A candidate is compared with its base on the same machine, and a rate is bound to its own.
    "a build on a new kind": (
        compared(0.95, 0.94, 0.96, metric="of_build"), replace(OF_BUILD, known_kinds=(ZEN_5,)),
        {"machine": ON_ZEN_3}, MISSED, Code.INTERVAL),
    "a rate on a new kind": (
        found(40_000), replace(FLOOR, known_kinds=(ZEN_5,)), {"machine": ON_ZEN_3}, MISSED, Code.FIGURE),
    "a smoke test on a new kind": (found(40_000), SMOKE, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.NEW_KIND),
    "a smoke test by trials on a new kind": (
        sprt(False, "3 of 3 failed"), SMOKE, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.NEW_KIND),
    "a smoke test by losses on a new kind": (OVERLOADED, SMOKE, {"machine": ON_ZEN_3}, NOT_MEASURED, Code.NEW_KIND),
    "a smoke test that holds less than its base on a new kind": (
        holding_less(outcome_of(found(40_000)), "cps"), SMOKE, {"machine": ON_ZEN_3}, MISSED, Code.HOLDS_LESS),
    "a smoke test that loses on a new kind": (
        serving(leaking(0.3), 381_000), SMOKE, {"machine": ON_ZEN_3}, MISSED, Code.FIGURE),
    "a smoke test on a known kind": (found(40_000), SMOKE, {"machine": ON_ZEN_5}, MISSED, Code.FIGURE),
    "a smoke test on a new kind, all lost": (SILENT, SMOKE, {"machine": ON_ZEN_3}, MISSED, Code.SPRT),
    # Repetitions that do not agree.
    "apart": (SCATTERED, FLOOR, {"max_spread": 0.2}, NOT_MEASURED, Code.SCATTERED),
    "apart, and a gate above their middle": (
        outcome_of(SCATTERED).merged(gate(SimulatedDut(1e6), 390_000)), FLOOR, {"max_spread": 0.2}, NOT_MEASURED,
        Code.SCATTERED),
    "as near as may be": (SCATTERED, FLOOR, {"max_spread": 0.3}, MET, Code.FIGURE),
    "apart, as no campaign forbids": (SCATTERED, FLOOR, {}, MET, Code.FIGURE),
    "one alone": (found(381_000), FLOOR, {"max_spread": 0.01}, MET, Code.FIGURE),
    # Shared CPUs.
    **{f"oversubscribed, {name}": (result, FLOOR, {"oversubscribed": True}, NOT_MEASURED, Code.OVERSUBSCRIBED)
       for name, result in {"above": found(381_000), "nothing": found(0), "a gate": gated(100_000)}.items()},
}  # fmt: skip


def verdict_of(case: str) -> RowVerdict:
    if case not in DOUBTS:
        return judged(*CASES[case][:3])
    result, floor, doubts, *_ = DOUBTS[case]
    return judged(result, floor, **doubts)


@pytest.mark.parametrize("case", DOUBTS)
def test_what_is_doubtful_is_judged_with_care(case: str) -> None:
    verdict, (*_, word, code) = verdict_of(case), DOUBTS[case]
    assert (verdict.word, verdict.code) == (word, code)
    assert verdict.word != NOT_MEASURED or verdict.margin_pct is None


def test_a_verdict_has_every_threshold_with_what_is_doubtful_of_it() -> None:
    verdict = judged(found(381_000), FLOOR)
    assert [(one.metric, one.met) for one in verdict.thresholds] == [("cps", True), ("pps", True), ("loss_ratio", True)]
    (_, ratio, _) = judged(compared(0.642, 0.631, 0.65), COMPARED).thresholds
    assert (ratio.metric, ratio.kind, ratio.written, ratio.to) == ("ratio", "ratio", ">= 60%", FORWARDING)
    assert (ratio.measured, ratio.low, ratio.high, ratio.met) == (0.642, 0.631, 0.65, True)
    (_, ratio, _) = judged(compared(0.61, 0.59, 0.63), COMPARED).thresholds
    assert (ratio.met, ratio.undecided, ratio.new_kind) == (False, True, False)
    (_, ratio, _) = verdict_of("a new kind").thresholds
    assert (ratio.met, ratio.undecided, ratio.new_kind) == (False, True, True)
    (build,) = judged(compared(1.01, 0.99, 1.02, metric="of_build"), OF_BUILD).thresholds
    assert (build.kind, build.to) == ("of_build", "distribution")
    rate = verdict_of("another machine's floor").thresholds[0]
    assert (rate.bound_to, rate.limit, rate.undecided) == ("Xeon(R) Gold 5118, 24 CPUs", 48_200, True)
    rate = verdict_of("not judged, above").thresholds[0]
    assert (rate.measured, rate.undecided) == (381_000, True)


def test_a_pair_without_any_valid_trial_is_not_met_and_may_be_missed() -> None:
    assert ONLY_A_RATIO.main is None and ONLY_A_RATIO.load(0.01) == 0
    pair = compared(0.642, 0.631, 0.65, Verdict(True, Code.INTERVAL, "24 rounds"))
    alone = replace(pair, figures={"ratio": pair.figures["ratio"]}, trials=(), kept_conditions=False)
    verdict = judged(alone, ONLY_A_RATIO)
    assert (verdict.word, verdict.code) == (NOT_MEASURED, Code.CONDITION_UNTRIED)
    assert [(each.metric, each.undecided) for each in verdict.thresholds] == [("ratio", False), ("loss_ratio", True)]
    slower = replace(alone, verdicts={"ratio": Verdict(False, Code.INTERVAL, "24 rounds")})
    assert judged(slower, ONLY_A_RATIO).word == MISSED
    # A search that found a rate has trials, and one that told no latency kept none.
    late = replace(ONLY_A_RATIO, thresholds={**ONLY_A_RATIO.thresholds, **promises(latency_p99="<= 5ms")})
    told = {name: figure for name, figure in pair.figures.items() if name != "latency_p99"}
    assert judged(replace(pair, figures=told), late).word == MISSED


#: By case, how the sentence of its verdict begins.
SAID = {
    "a capacity above the floor": "new connections: 381.0 k/s, +690 % against the floor of 48.2 k/s",
    "the range's end above the floor": "new connections: 381.0 k/s, +690 %",  # for 10 s: longer, it may hold less
    "the range's end, held for 40 s": "new connections: at least 381.0 k/s",
    "an end well below the ceiling": "new connections: 30.0 k/s instead of at least 48.2 k/s (-37.8 %)",
    "nothing held": "not even the lowest load held, the floor is 48.2 k/s: as it was tried",
    "a fault": "the measurement broke off: as it was tried",
    "the generator was the limit": "the traffic generator was the limit below the floor of 48.2 k/s: as it was tried",
    "near the ceiling": "45.0 k/s is within 10 % of what the traffic generator can do (50.0 k/s), "
    "and below the floor of 48.2 k/s",
    "a closed loop below both": "the DUT saturates at 160.0 k/s, where the traffic generator reaches 1.26 M/s; "
    "the floor of 3.90 M/s is above both",
    "a gate that held": "the floor of 48.2 k/s was held: 4 of 4 trials at 48.7 k/s held",
    "a gate that leaks": "lost connections: 0.100 % instead of at most 0.020 % (-80.0 %); "
    "0 of 4 trials at 48.7 k/s held",
    "a gate that is late": "TCP connect time (p99): 10.0 ms instead of at most 5.0 ms (-50.0 %); "
    "0 of 4 trials at 48.7 k/s held",
    "a gate that broke": "the measurement broke off: ovs-vswitchd was restarted, in trial 1, at 48.7 k/s",
    "trials held, figure below": "new connections: 47.0 k/s, ",
    "trials failed, figure above": "new connections: 48.2 k/s not held; 3 of 3 failed",
    "trials too close": "this machine scatters",
    "as much served": "new connections served: 160.0 k/s, +6.7 % against the floor of 150.0 k/s",
    "less served": "new connections served: 140.0 k/s instead of at least 150.0 k/s (-6.7 %); 1 loop",
    "a ratio above": "packets: 264.4 k pps, +164 % against the floor of 100.0 k pps; "
    "64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised",
    "a ratio below": "packets: 58.3 % ± 1.6 % of linux-router/forward/1cpu-1rxq, at least 60 % promised (-2.8 %)",
    "a build too close": "too close to call: 48 rounds, at least 97.0 % promised",
    "a ratio not measured": "the rate relative to linux-router/forward/1cpu-1rxq could not be measured",
    "another machine's floor": "this floor (48.2 k/s) was made on Xeon(R) Gold 5118, 24 CPUs; the DUT's machine has "
    "AMD EPYC 9R14, 2 CPUs, where 40.1 k/s was measured",
    "not judged, below": "rates are not judged on this testbed: emulated CPUs",
    "a new kind": f"new kind of machine: this floor was measured on {ZEN_5}, and this is {ZEN_3}; a second run on this "
    "machine confirms or clears it (50.0 % ± 1.0 % of linux-router/forward/1cpu-1rxq, at least 60 % promised)",
    "apart": "3 searches found 300.0 k/s to 400.0 k/s, a spread of 26.2 % where the campaign allows 20.0 %",
}


@pytest.mark.parametrize("more", ["", "; it stood still"])
def test_what_a_comparison_found_is_said_once(more: str) -> None:
    relation = "90.0 % ± 1.6 % of the packaged build, at least 97 % promised"
    slower = compared(0.9, 0.884, 0.916, Verdict(False, Code.INTERVAL, relation + more), metric="of_build")
    reason = judged(slower, OF_BUILD, None).reason
    assert reason.count("%") == relation.count("%") + 1 and reason.endswith(more)


@pytest.mark.parametrize("case", SAID)
def test_a_verdict_says_why(case: str) -> None:
    assert verdict_of(case).reason.startswith(SAID[case])
