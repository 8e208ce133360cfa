"""The verdict of a floor that was made on another machine, or that the generator does not reach."""

from dataclasses import replace

from ctbench.measure.procedure import Decision
from ctbench.results.environment import MachineFacts
from ctbench.results.figure import Figure
from ctbench.sla.machine import BoundMachine

from .judging import COMPARED, FLOOR, compared, message, sprt
from .simulated import (
    found,
    judged,
    made_up_floor,
    outcome_of,
)

BOUND = replace(FLOOR, machine=BoundMachine(cpu_model="Xeon(R) Gold 5118", cpus=24))
XEON = MachineFacts(cpu_model="Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", usable_cpus=list(range(24)))
EPYC = MachineFacts(cpu_model="AMD EPYC 9R14", usable_cpus=[0, 1])


def test_a_floor_of_another_machine_is_shown_and_a_miss_of_it_is_not_measured() -> None:
    verdict = judged(found(40_100), BOUND, machine=EPYC)
    assert message(verdict).startswith(
        "Not measured: this floor (48.2 k/s) was made on Xeon(R) Gold 5118, 24 CPUs; the DUT's machine has AMD EPYC "
        "9R14, 2 CPUs, and reaches 40.1 k/s"
    )
    assert verdict.margin_pct is None
    assert verdict.thresholds[0].bound_to == "Xeon(R) Gold 5118, 24 CPUs"
    assert (verdict.thresholds[0].limit, verdict.thresholds[0].undecided) == (48_200, True)
    # That trials at the floor decided it changes nothing; where nobody knows the machine, it is not this one.
    assert judged(sprt(False, "3 of 3 failed"), BOUND, machine=EPYC).word == "not measured"
    assert judged(found(40_100), BOUND, machine=None).word == "not measured"


def test_a_floor_of_this_machine_is_missed_here_and_one_of_another_that_is_held_is_met() -> None:
    assert judged(found(40_100), BOUND, machine=XEON).word == "missed"
    assert judged(found(50_000), BOUND, machine=EPYC).word == "met"


def test_a_condition_and_a_ratio_are_bound_to_no_machine() -> None:
    lossy = replace(outcome_of(found(50_000, loss=0.01)), held=False)
    assert judged(lossy, BOUND, machine=EPYC).word == "missed"
    bound = replace(COMPARED, machine=BOUND.machine)
    assert judged(compared(0.5, 0.49, 0.51), bound, machine=EPYC).word == "missed"


def test_a_floor_beyond_the_generator_is_missed_where_the_duts_own_limit_was_seen_below_both() -> None:
    far = made_up_floor(">= 3.9M", pps=None)
    verdict = judged(found(160_000), far, ceiling=1_260_000)
    assert message(verdict) == "Missed: new connections: 160.0 k/s instead of at least 3.90 M/s (-95.9 %)"
    # Trials at the floor could not be made; the closed loop saw the DUT's limit, or the search did.
    spoilt = Decision(None, "the generator spoilt 3 of 3 trials")
    tried = replace(outcome_of(found(160_000)), decisions={"cps": spoilt})
    assert message(judged(tried, far, ceiling=1_260_000)) == (
        "Missed: new connections: 160.0 k/s instead of at least 3.90 M/s (-95.9 %): the DUT itself ends at 160.0 k/s, "
        "where the traffic generator reaches 1.26 M/s: the floor of 3.90 M/s is beyond both"
    )
    # Near the ceiling nobody knows which of them ended.
    assert judged(found(1_200_000), far, ceiling=1_260_000).word == "not measured"
    near = replace(outcome_of(found(1_200_000)), decisions={"cps": spoilt})
    assert judged(near, far, ceiling=1_260_000).reason == "the generator spoilt 3 of 3 trials"
    assert judged(found(160_000, "range"), far, ceiling=1_260_000).word == "not measured"


def test_a_closed_loop_shows_the_duts_own_limit_where_nothing_was_searched() -> None:
    far = made_up_floor(">= 3.9M", pps=None)
    loop = replace(
        outcome_of(found(160_000)),
        figures={"saturation_cps": Figure(value=160_000.0, unit="connections/s")},
        limited_by="floor",
        decisions={"cps": Decision(None, "the generator spoilt 3 of 3 trials")},
    )
    assert judged(loop, far, ceiling=1_260_000).word == "missed"
    assert judged(loop, far, ceiling=170_000).word == "not measured"
