"""The decision at a floor: evidence counts the same in both directions, and its errors are as small as stated."""

from typing import Any

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Problem
from ctbench.measure import sequential
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.rates import known_rates
from ctbench.measure.trial import Trials
from ctbench.results import verdict
from ctbench.results.evidence import Evidence
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code

from .simulated import LIMITS, SHORT, courses, made_up_trial, runner_of, seen

LOAD = 10_000.0


def chances(good: float) -> dict[bool | None, float]:
    """How probable each decision is, where a trial is good with this chance."""
    ways = {(1, 0): good, (0, 1): 1 - good}
    found, undecided = courses(lambda held, lost, _: verdict.by_trials(held, lost), ways, sequential.MOST_TRIALS)
    return found | {None: undecided}


def test_the_chance_of_a_wrong_decision_is_as_stated_and_what_is_plain_is_decided() -> None:
    assert chances(verdict.GOOD_IF_NOT)[True] <= verdict.ERROR
    assert chances(verdict.GOOD_IF_KEPT)[False] <= verdict.ERROR
    assert sum(chances(0.5).values()) == pytest.approx(1)
    assert chances(0.95)[True] > 0.99
    assert chances(0.05)[False] > 0.99
    assert chances(verdict.GOOD_IF_KEPT)[True] > 0.75
    assert chances(verdict.GOOD_IF_NOT)[False] > 0.75


def play(
    outcomes: str,
    known: sequential.KnownRates | None = None,
    ceiling: float | None = None,
) -> Outcome:
    """Run the test over a script: g(ood), b(ad), i(nvalid), f(atal), e(rror). All of it has to be used."""
    script = iter(outcomes)

    def trial(load: float, duration: float) -> Observation:
        outcome = next(script)
        if outcome == "e":
            raise TestbedError("the table stays full")
        problems = (Problem("fatal", "restarted"),) if outcome == "f" else ()
        limited = "late" if outcome == "i" else ""
        return seen(problems, load=load, duration=duration, loss=0.05 * (outcome == "b"), generator_limited=limited)

    runner, known = runner_of(trial), known or sequential.KnownRates()
    result = sequential.SequentialTest(runner, LOAD, 5.0, known, Trials()).run(ceiling)
    assert next(script, None) is None, "the test stopped too early"
    return result


@pytest.mark.parametrize(
    ("outcomes", "kept", "limited_by", "code", "said"),
    [
        *((each, True, "floor", Code.SPRT, "") for each in ("gggg", "gbggggg", "bgggggg", "ggbggbggg")),
        *((each, True, "floor", Code.SPRT, "") for each in ("igigigig", "iiggiigg")),
        *((each, False, "floor", Code.SPRT, "5.00 % of the connections were lost") for each in ("bbbb", "gbbbb")),
        ("ibibibib", False, "floor", Code.SPRT, "5.00 % of the connections were lost"),
        *((each, None, "generator", Code.INVALID, ": late") for each in ("iii", "giii", "gibiii")),
        ("gf", None, "fault", Code.FAULT, "restarted, in trial 2"),
        ("ge", None, "fault", Code.FAULT, "the table stays full, in trial 2"),
    ],
)
def test_what_outweighs_the_other_decides_and_what_ends_it_has_its_cause(
    outcomes: str, kept: bool | None, limited_by: str, code: Code, said: str
) -> None:
    result = play(outcomes)
    decided = result.verdicts["cps"]
    assert (decided.kept, result.limited_by, decided.code) == (kept, limited_by, code)
    assert said in decided.whole
    if kept is not None:
        assert result.result is not None and result.result.value == pytest.approx(LOAD if kept else 9_500)


def test_what_nine_trials_do_not_decide_is_too_close_to_call() -> None:
    near = sequential.KnownRates(rates=(LOAD * 1.02,), scatter=0.07)
    result = play("gbggbbggb", known=near)
    assert (result.verdicts["cps"].kept, result.limited_by) == (None, "floor")
    assert result.verdicts["cps"].reason == (
        "too close to call: within 2.00 % of the floor, this machine scatters by 7.00 % "
        "(5 of 9 trials at 10.0 k/s held)"
    )


def test_trials_of_the_search_do_not_count_near_the_floor() -> None:
    near = sequential.KnownRates(rates=(LOAD * 1.02,), trials=(held(LOAD * 1.02, 5),))
    result = play("bbbb", known=near)
    assert result.verdicts["cps"].kept is False
    assert "0 of 4 trials at 10.0 k/s held, although a trial at 10.2 k/s had held" in result.verdicts["cps"].reason


def held(load: float, duration: float, loss: float = 0.0) -> Observation:
    return seen(load=load, duration=duration, loss=loss)


@pytest.mark.parametrize(
    ("rate", "made", "outcomes", "kept"),
    [
        (LOAD * 1.15, (), "gggg", True),  # near: one is not enough
        (2 * LOAD, (), "g", True),
        (LOAD / 2, (), "b", False),
        (2 * LOAD, (), "bbbb", False),
        (LOAD / 2, (), "gggg", True),  # what contradicts is only the first of several
        (2 * LOAD, (held(1.9 * LOAD, 5),), "", True),  # made already: as long and harder
        (2 * LOAD, (held(1.9 * LOAD, 2),), "g", True),  # too short
        (LOAD / 2, (held(LOAD * 0.6, 2, loss=0.1),), "", False),  # easier, and lost
        (LOAD / 2, (held(LOAD * 0.4, 5),), "b", False),  # an easy one that held says nothing
    ],
)
def test_far_from_the_floor_one_trial_that_confirms_it_is_enough(
    rate: float, made: tuple[Observation, ...], outcomes: str, kept: bool
) -> None:
    result = play(outcomes, known=sequential.KnownRates(rates=(rate,), trials=made))
    assert (result.verdicts["cps"].kept, len(result.trials)) == (kept, len(outcomes))
    assert result.verdicts["cps"].code is (Code.FAR if len(outcomes) <= 1 else Code.SPRT)


SLOW = sequential.KnownRates(rates=(1_600.0,))


@pytest.mark.parametrize(
    ("known", "outcomes", "kept", "code"),
    [
        (SLOW, "b", False, Code.FAR),
        (SLOW, "gggg", None, Code.GENERATOR),
        (sequential.KnownRates(), "", None, Code.GENERATOR),
        (sequential.KnownRates(rates=(5_800.0,)), "", None, Code.GENERATOR),
    ],
)
def test_a_floor_beyond_the_generator_is_missed_where_the_dut_ends_far_below_either_and_never_met(
    known: sequential.KnownRates, outcomes: str, kept: bool | None, code: Code
) -> None:
    result = play(outcomes, known=known, ceiling=6_000.0)
    assert (result.verdicts["cps"].kept, result.limited_by) == (kept, "floor" if outcomes == "b" else "generator")
    assert {each.load for each in result.trials} <= {5_400.0}
    assert result.verdicts["cps"].code is code


@pytest.mark.parametrize(
    ("parts", "under_way", "found"),
    [
        ([100, 110, 90], 512, 0.1),
        ([100, 130, 70], 512, 0.2),  # not all of it is the machine's
        ([100, 100], 512, 0.05),
        ([100, 110, 90], 0, 0.05),  # in an open loop the load decides
    ],
)
def test_the_scatter_of_a_machine_is_that_within_its_closed_loops(
    parts: list[int], under_way: int, found: float
) -> None:
    trial = made_up_trial().model_copy(update={"under_way": under_way, "timeline_completed": parts})
    assert sequential.scatter([Observation(trial, LIMITS)]) == pytest.approx(found)


@pytest.mark.parametrize(
    ("limited_by", "rate", "rates", "at_least"),
    [
        ("dut", 4_000.0, (4_000.0,), ()),
        ("generator", 4_000.0, (), (4_000.0,)),
        ("dut", None, (5_000.0,), ()),  # nothing held: the lowest load that was lost
        ("generator", None, (), ()),
    ],
)
def test_what_failed_is_nothing_that_a_dut_does_at_least(
    limited_by: Any, rate: float | None, rates: tuple[float, ...], at_least: tuple[float, ...]
) -> None:
    figures = {"cps": Estimate(rate, "connections/s")} if rate else {}
    evidence = Evidence(trials=[], upper_bound=5_000.0)
    known = known_rates(Outcome(METRICS["cps"], figures, limited_by, "", bool(rate), evidence=evidence), SHORT)
    assert (known.rates, known.at_least) == (rates, at_least)
