"""Starts of a candidate and its base: the rule, which calls a like build slower as seldom as it says; and the
procedure, which sets both up again until a row is decided."""

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.base.errors import Crashed
from ctbench.measure import duet, start_rule
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.starts import Starts, seconds_of_start
from ctbench.measure.start_rule import ERROR, Budget, Moderated, Scatter
from ctbench.measure.trial import Repetitions
from ctbench.results.evidence import PairRecord
from ctbench.results.statistics import student
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import PacketProfile, Profile
from tools.benchmarks import families
from tools.benchmarks import starts as simulation

from .simulated import SHORT, campaign, floor_of
from .simulated_pair import SimulatedPair
from .test_procedure import SharpDut

LOGS = st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=16)
NOTHING = Scatter()
#: Of the simulated gates.
BUDGET = Budget(simulation.ROWS, len(simulation.LOOKS))
#: Of blocks of searches in a lab.
LAB_LOOKS = start_rule.looks(16)


def scattered(degrees: int, deviation: float) -> Scatter:
    return Scatter(((degrees, deviation**2),)) if degrees else NOTHING


def keeps(middle: Moderated) -> bool | None:
    """Whether a candidate keeps 97 % of its base by this much alone."""
    return start_rule.decide([middle, middle], 0.97)


@pytest.mark.parametrize(
    ("freedom", "share", "published"), [(1, 0.995, 63.657), (4, 0.9975, 5.598), (5, 0.9995, 6.869), (10, 0.9995, 4.587)]
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, share: float, published: float) -> None:
    assert student(share, freedom) == pytest.approx(published, abs=1e-3)


@given(LOGS, st.integers(0, 40), st.floats(0.001, 0.1), st.floats(0.001, 0.2))
def test_what_is_slower_is_never_judged_better(logs: list[float], degrees: int, deviation: float, by: float) -> None:
    rank = {False: 0, None: 1, True: 2}
    before = scattered(degrees, deviation)
    as_it_is = keeps(Moderated.of(logs, before, BUDGET))
    assert rank[keeps(Moderated.of([each - by for each in logs], before, BUDGET))] <= rank[as_it_is]


@pytest.mark.parametrize("figures", [1, 2])  # of blocks of searches, and of starts
def test_the_simulated_rule_is_the_one_of_the_library(figures: int) -> None:
    dice, budget = np.random.default_rng(3), Budget(simulation.ROWS, len(simulation.LOOKS), figures)
    gates, looks = 200, simulation.LOOKS
    shifts = [dice.choice([0.0, -0.03, -0.05, -0.1], (gates, 1)) for _ in range(6)]
    rows = [simulation.assumed(dice, gates, 0.02)[:figures] + shift for shift in shifts]
    simulated = list(simulation.judge(iter(rows)))
    named = {simulation.MISSED: False, simulation.CLOSE: None, simulation.MET: True}
    assert {named[answer] for answers, _ in simulated for answer in answers} == {True, False, None}
    for gate in range(gates):
        before, left = (Scatter(), Scatter()), simulation.MORE
        for row, (answers, took) in zip(rows, simulated, strict=True):
            for until, following in zip(looks, [*looks[1:], math.inf], strict=True):
                logs = row[:, gate, :until].tolist()
                estimates = [Moderated.of(*each, budget) for each in zip(logs, before, strict=False)]
                answer = start_rule.decide(estimates, simulation.FLOOR)
                if answer is not None or (following > simulation.OWN and left < following - until):
                    break
                left -= following - until if following > simulation.OWN else 0
            assert (answer, until) == (named[answers[gate]], took[gate])
            for known, each in zip(before, logs, strict=False):
                known.add(each)


def test_a_like_build_is_red_as_seldom_as_the_run_allows_and_a_slower_one_is_found() -> None:
    dice = np.random.default_rng(7)

    def missed(slower: float) -> np.ndarray:
        rows = (simulation.assumed(dice, 2000, 0.02) + math.log(1 - slower) for _ in range(simulation.ROWS))
        return np.array([answers == simulation.MISSED for answers, _ in simulation.judge(rows)])

    assert missed(0.0).any(axis=0).mean() <= ERROR
    assert missed(0.05).any(axis=0).all()
    assert missed(0.1).mean() >= 0.99


@pytest.mark.parametrize(("scatter", "like", "slow", "blocks"), [(0.01, 0.99, 0.99, 5), (0.02, 0.99, 0.94, 6)])
def test_a_lab_meets_like_builds_and_misses_slower_ones_as_seldom_wrong(
    scatter: float, like: float, slow: float, blocks: float
) -> None:
    """Of blocks that scatter by 2 %, a row alone met a like build in 35 of 100, and missed one 5 % slower in 14."""
    dice, gates, rows = np.random.default_rng(17), 500, simulation.LAB_ROWS

    def judged(slower: float) -> tuple[np.ndarray, np.ndarray]:
        made = (dice.normal(math.log(1 - slower), scatter, (1, gates, 16)) for _ in range(rows))
        answers, took = zip(*simulation.judge(made, rows, LAB_LOOKS), strict=True)
        return np.array(answers), np.array(took)

    answers, took = judged(0.0)
    assert (answers == simulation.MISSED).any(axis=0).mean() <= ERROR
    assert (answers == simulation.MET).mean() >= like and took.mean() <= blocks
    answers, _ = judged(0.05)
    assert (answers == simulation.MISSED).mean() >= slow and (answers == simulation.MET).mean() <= 0.001
    assert (judged(0.1)[0] == simulation.MISSED).mean() >= 0.99


def test_a_row_without_a_family_is_judged_by_itself_and_a_slow_family_blames_no_other_one() -> None:
    dice = np.random.default_rng(3)
    rows = [simulation.assumed(dice, 20, 0.015)[..., :16] + dice.normal(0, 0.01, (20, 1)) for _ in range(8)]
    answers, took = families.gate([np.array(rows)], families.ALONE)
    for row, (answer, starts_of_row) in enumerate(simulation.judge(iter(rows), 8, LAB_LOOKS, more=0)):
        assert (answers[row] == answer).all() and (took[row] == starts_of_row).all()
    rows = [simulation.assumed(dice, 100, 0.01)[..., :16] for _ in range(8)]
    slow = [np.array(rows[:4]), np.array(rows[4:]) + math.log(0.83)]
    answers, took = families.gate(slow)
    assert (answers[4:] == simulation.MISSED).all() and not (answers[:4] == simulation.MISSED).any()
    assert took.sum() < families.gate(slow, families.ALONE)[1].sum()


@pytest.mark.parametrize("scatter", [0.01, 0.02])
def test_red_means_below_the_floor_and_not_near_it(scatter: float) -> None:
    """Where the middle alone decided, a build half a percent above its floor was red in 75 and 27 % of gates."""
    dice = np.random.default_rng(13)

    def judged(ratio: float) -> np.ndarray:
        rows = (simulation.assumed(dice, 500, scatter) + math.log(ratio) for _ in range(simulation.ROWS))
        return np.array([answers for answers, _ in simulation.judge(rows)])

    assert (judged(simulation.FLOOR + 0.005) == simulation.MISSED).any(axis=0).mean() <= 0.1
    lost = judged(0.95)
    assert (lost == simulation.MISSED).any(axis=0).all() and (lost == simulation.MET).mean() <= 0.001


def test_a_middle_below_the_floor_is_not_missed_while_its_interval_is_not() -> None:
    logs = [math.log(0.968) + each for each in (0.004, -0.004, 0.003, -0.003)]
    found = Moderated.of(logs, scattered(40, 0.004), BUDGET)
    assert found.is_slower and found.log < math.log(0.97) < math.log(found.interval.high)
    assert keeps(found) is None and found.needed(0.97) > 4
    assert keeps(Moderated.of([each - 0.01 for each in logs], scattered(40, 0.004), BUDGET)) is False


def test_the_rows_before_tell_a_row_of_few_starts_how_far_apart_these_lie() -> None:
    apart = (0.016, -0.012, 0.004, -0.008)
    logs = [math.log(0.93) + each for each in apart]
    assert keeps(Moderated.of(logs, NOTHING, BUDGET)) is None
    assert keeps(Moderated.of(logs, scattered(12, 0.008), BUDGET)) is False
    assert keeps(Moderated.of(logs, scattered(12, 0.1), BUDGET)) is None
    known = Scatter()
    known.add(logs)
    assert known.rows == ((3, pytest.approx(sum(each**2 for each in apart) / 3)),)


def test_a_quiet_row_behind_one_that_stalls_does_not_borrow_how_far_apart_its_starts_lay() -> None:
    """As a gate of a build that loses connections did: its closed loop stood still, and the next row stayed open."""
    logs = [math.log(0.99) + each for each in (0.004, -0.004, 0.003, -0.003)]
    found = Moderated.of(logs, scattered(7, 2.0), BUDGET)
    assert found.degrees == 3 and found.interval.low > 0.97
    assert Moderated.of(logs, scattered(7, 0.012), BUDGET).degrees == 10  # which may be chance


def test_a_loose_row_does_not_borrow_how_near_the_starts_of_quiet_ones_lie() -> None:
    """Else a build of the same source was missed in 2 to 3 of 100 such rows, which is more than a whole run may err."""
    dice, gates = np.random.default_rng(5), 1000

    def missed(slower: float) -> float:
        rows = [simulation.assumed(dice, gates, 0.003) for _ in range(12)]
        rows.append(simulation.assumed(dice, gates, 0.06) + math.log(1 - slower))
        return float((list(simulation.judge(iter(rows)))[-1][0] == simulation.MISSED).mean())

    assert missed(0.0) <= 0.005 and missed(0.1) >= 0.4
    before = scattered(12, 0.003)
    assert Moderated.of([0.1, -0.1, 0.08, -0.12], before, BUDGET).degrees == 3
    assert Moderated.of([0.003, -0.004, 0.002, 0.0], before, BUDGET).degrees == 3 + start_rule.MOST_BORROWED


def test_a_difference_that_two_builds_of_one_source_have_is_no_evidence() -> None:
    logs = [-0.009, -0.0091, -0.0089, -0.009]
    assert not Moderated.of(logs, scattered(40, 1e-4), BUDGET).is_slower
    assert Moderated.of([each - 0.002 for each in logs], scattered(40, 1e-4), BUDGET).is_slower


# The procedure.


@dataclass
class Builds:
    """Two made-up builds that are set up again and again: `found` are the ratios of the starts, over and over."""

    found: Sequence[float]
    set_up: list[Side] = field(default_factory=list)
    scatter: tuple[Scatter, Scatter] = field(default_factory=lambda: (Scatter(), Scatter()))
    slow: Callable[[SimulatedPair], None] = lambda pair: None
    crashes: list[str] = field(default_factory=list)
    gated_rows: int = 24
    programs: Mapping[Side, str] = field(default_factory=lambda: {"tested": "candidate", "other": "base"})
    #: Seconds that the run has for starts beyond those of any row.
    more_s: float = 0.0

    def pair(self, number: int) -> SimulatedPair:
        first: Side = "tested" if number % 2 else "other"
        self.set_up.append(first)
        made = SimulatedPair(self.found[number % len(self.found)], scatter=0.01, seed=number)
        made.first, made.programs = first, self.programs
        self.slow(made)
        return made

    def run(
        self, most: int = 16, floor: float = 0.97, profile: Profile = SHORT, before: PairRecord | None = None
    ) -> tuple[Outcome, PairRecord]:
        bench = Bench(
            SharpDut(1e5), SharpDut(1e5), floor_of(profile, of_build=floor), campaign(starts=most),
            sides=self.pair(0), set_up_again=self.pair, scatter=self.scatter, crashes=self.crashes,
            gated_rows=self.gated_rows, before=before, more_starts=Repetitions(self.more_s),
        )  # fmt: skip
        found = Starts().run(bench)
        return found, found.evidence.pairs[0]


def odd(change: Callable[[Slice], Mapping[str, float]]) -> Callable[[SimulatedPair], None]:
    """Changes each slice of a pair."""

    def alter(pair: SimulatedPair) -> None:
        def altered(side: Side, slice_s: float, serve: Any = pair._slice) -> Slice:
            made: Slice = serve(side, slice_s)
            return made.model_copy(update=change(made))

        pair._slice = altered  # type: ignore[method-assign]

    return alter


@pytest.mark.parametrize(
    ("ratios", "kept", "code", "after"),
    [
        ([1.0, 1.01, 0.99, 1.0], True, Code.INTERVAL, 4),
        ([0.9, 0.91, 0.89, 0.9], False, Code.INTERVAL, 8),
        ([0.98, 0.995, 0.96, 0.97], None, Code.TOO_CLOSE, 16),
        ([1.1, 0.9, 1.2, 0.8], None, Code.TOO_CLOSE, 16),
    ],
)
def test_starts_are_made_until_they_decide(ratios: Sequence[float], kept: bool | None, code: Code, after: int) -> None:
    builds = Builds(ratios)
    found, pair = builds.run()
    verdict = found.verdicts["of_build"]
    assert (verdict.kept, verdict.code, len(pair.starts)) == (kept, code, after)
    assert builds.set_up == ["other", "tested"] * (after // 2) == [each.first for each in pair.starts]
    assert pair.result and pair.result.rounds == after and builds.scatter[0].degrees == after - 1
    assert [each.found.value for each in pair.starts if each.found] == pytest.approx(pair.ratios)
    assert found.figures["of_build"].value == pytest.approx(math.prod(ratios) ** 0.25, rel=0.01)
    assert pair.tested.serves and pair.other.serves and pair.sees


@pytest.mark.parametrize(
    ("ratios", "spent", "kept", "after"),
    [
        ([0.98, 0.995, 0.96, 0.97], 1, True, 32),
        ([0.98, 0.995, 0.96, 0.97], 0.99, None, 16),
        ([1.1, 0.9, 1.2, 0.8], 3, None, 64),
        ([1.1, 0.9, 1.2, 0.8], 2.99, None, 32),
    ],
)
def test_a_row_is_started_further_while_the_run_has_time(
    ratios: Sequence[float], spent: float, kept: bool | None, after: int
) -> None:
    """`spent`: of the time that 16 starts take."""
    builds = Builds(ratios, more_s=spent * 16 * seconds_of_start(SHORT) + 1e-6)
    found, pair = builds.run()
    verdict = found.verdicts["of_build"]
    assert (verdict.kept, len(pair.starts), pair.shared_looks) == (kept, after, 5 if spent >= 1 else 3)
    assert ("(more_starts, in its campaign)" in verdict.reason) == (kept is None and 1 < spent < 3)
    sees = Builds(ratios).run()[1].sees
    assert pair.sees and sees and (pair.sees < sees) == (after > 16)


@pytest.mark.parametrize(("most", "looks"), [(4, [4, 8, 16]), (6, [4, 6, 12, 24]), (12, [4, 8, 12, 24, 48])])
def test_a_row_has_all_the_starts_that_its_campaign_names(most: int, looks: list[int]) -> None:
    """Also where they are no power of two."""
    builds = Builds([1.1, 0.9, 1.2, 0.8], more_s=1000.0)
    assert [each.rounds for each in builds.run(most=most)[1].looks] == looks
    assert [each.rounds for each in Builds([1.1, 0.9]).run(most=most)[1].looks][-1] == most


@pytest.mark.parametrize(("rows", "after"), [(1, 4), (24, 8), (102, 8)])
def test_a_row_of_a_run_with_fewer_of_them_is_missed_by_fewer_starts(rows: int, after: int) -> None:
    found, pair = Builds([0.9, 0.91, 0.89, 0.9], gated_rows=rows).run()
    assert found.verdicts["of_build"].kept is False
    assert (len(pair.starts), pair.gated_rows) == (after, rows)


@pytest.mark.parametrize("rows", [1, 24, 102])
def test_a_run_calls_a_like_build_slower_as_seldom_whatever_the_number_of_its_rows(rows: int) -> None:
    dice = np.random.default_rng(11)
    found = simulation.judge((simulation.assumed(dice, 1000, 0.01) + math.log(0.99) for _ in range(rows)), rows)
    red = np.any([answers == simulation.MISSED for answers, _ in found], axis=0)
    assert red.mean() <= 0.02  # of as much as two builds of one source differ, which is where it errs most


def test_a_second_gate_of_a_row_adds_its_starts_to_those_of_the_first() -> None:
    """Else a slow build would be green by chance after enough gates."""
    near = [0.98, 0.995, 0.96, 0.97]
    _, first = Builds(near).run(most=8)
    assert (first.before, first.shared_looks, len(first.starts)) == (0, 2, 8)
    set_up_again = Builds([0.97, 0.99, 0.965, 0.98])
    found, second = set_up_again.run(most=8, before=first)
    assert [each.rounds for each in second.looks] == [12, 16] and found.verdicts["of_build"].kept is None
    assert (second.before, second.shared_looks, len(second.starts)) == (8, 4, 16)
    assert [each.first for each in second.starts] == set_up_again.set_up * 2 == ["other", "tested"] * 8
    assert second.starts[:8] == first.starts and second.ratios[:8] == pytest.approx(first.ratios)
    assert second.result and second.result.value == pytest.approx(math.prod(second.ratios) ** (1 / 16))
    _, third = Builds([1.01]).run(most=4, before=second)
    assert (third.before, third.shared_looks, len(third.starts)) == (16, 5, 20)


@pytest.mark.parametrize(("spoilt", "before"), [((2,), 8), (range(8), 0)])
def test_starts_that_did_not_count_do_not_make_a_second_gate_begin_afresh(spoilt: Collection[int], before: int) -> None:
    """But where none counted, there is nothing to go on from. `spoilt`: by the generator, each from 0 on."""
    near, pause = [0.98, 0.995, 0.96, 0.97], odd(lambda part: {"pause_ms": 1000 * part.seconds})
    builds = Builds(near, slow=lambda pair: pause(pair) if len(builds.set_up) - 1 in spoilt else None)
    _, first = builds.run(most=8)
    _, second = Builds(near).run(most=8, before=first)
    assert (second.before, second.shared_looks) == (before, 4 if before else 2)
    assert len(second.starts) == before + 8  # those that did not count take no tries away


@pytest.mark.parametrize("programs", [{"tested": "rebuilt", "other": "base"}, {"tested": "candidate", "other": ""}, {}])
def test_starts_of_other_builds_and_of_those_that_are_not_known_do_not_count(programs: Mapping[Side, str]) -> None:
    _, first = Builds([0.98, 0.995, 0.96, 0.97], programs=programs).run()
    _, second = Builds([1.0, 1.01, 0.99, 1.0]).run(before=first)
    assert (second.before, second.shared_looks, len(second.starts)) == (0, 3, 4)


def test_a_gate_after_one_in_which_nothing_came_through_begins_afresh() -> None:
    _, first = Builds([0.0]).run()
    found, second = Builds([1.0, 1.01, 0.99, 1.0]).run(before=first)
    assert second.before == 0 and found.verdicts["of_build"].kept is True


@pytest.mark.parametrize(
    ("ratios", "waited", "code"),
    [
        ([1.0, 1.01, 0.99, 1.0], ("tested", "other"), Code.NO_SLOWER_SEEN),
        ([1.0, 1.01, 0.99, 1.0], ("tested",), Code.INTERVAL),  # and may be faster still
        ([1.0, 1.01, 0.99, 1.0], ("other",), Code.GENERATOR),
        ([0.9, 0.91, 0.89, 0.9], ("tested", "other"), Code.GENERATOR),
        ([0.9, 0.91, 0.89, 0.9], ("other",), Code.INTERVAL),  # and may be slower still
    ],
)
def test_where_both_wait_for_the_generator_alike_the_row_says_what_that_could_see(
    ratios: Sequence[float], waited: Collection[Side], code: Code
) -> None:
    wait = odd(lambda part: {"waited": 0.9 if part.side in waited else 0.0})
    verdict = Builds(ratios, slow=wait).run()[0].verdicts["of_build"]
    assert verdict.code is code and (verdict.kept is None) == (code is not Code.INTERVAL)


def test_packets_of_which_the_generator_is_the_limit_come_from_backlogs_from_the_first_start_on() -> None:
    made: list[SimulatedPair] = []

    def limit(pair: SimulatedPair) -> None:
        pair.generator = 100_000
        made.append(pair)

    packets = PacketProfile(name="packets", kind="packets")
    found, pair = Builds([0.8, 0.81, 0.79, 0.8], slow=limit).run(profile=packets)
    assert (found.verdicts["of_build"].kept, found.verdicts["of_build"].code) == (False, Code.INTERVAL)
    assert pair.served == "from backlogs" and pair.ratios == pytest.approx([0.8, 0.81, 0.79, 0.8], rel=0.02)
    closed_loops = [len(each.order) - each.of_backlogs for each in made]
    assert closed_loops[0] > duet.ROUND * start_rule.ROUNDS["packets"] > closed_loops[1] == closed_loops[-1]


def test_what_would_decide_a_close_row_is_said() -> None:
    found, _ = Builds([0.985, 1.0, 0.96, 0.98]).run(most=4)
    assert "starts would decide it" in found.verdicts["of_build"].reason


def test_a_candidate_through_which_nothing_comes_is_missed_by_its_first_start() -> None:
    found, pair = Builds([0.0]).run()
    assert found.verdicts["of_build"].kept is False and len(pair.starts) == 1


@pytest.mark.parametrize(("at", "kept", "after"), [({0, 3}, False, 2), ({1}, True, 4)])
def test_a_candidate_that_crashes_twice_is_missed_and_once_is_an_accident(
    at: Collection[int], kept: bool, after: int
) -> None:
    def crash(pair: SimulatedPair) -> None:
        if len(builds.set_up) - 1 in at:
            pair._slice = Mock(side_effect=Crashed("ovs-vswitchd was killed by SIGSEGV."))  # type: ignore[method-assign]

    builds = Builds([1.0, 1.01, 0.99, 1.0], slow=crash)
    found, pair = builds.run()
    code = Code.INTERVAL if kept else Code.CRASHED
    assert (found.verdicts["of_build"].kept, found.verdicts["of_build"].code) == (kept, code)
    assert len(pair.starts) == after == len(builds.set_up) - len(at) and len(pair.notes) == 1


def test_crashes_in_two_rows_of_a_run_are_no_accident_either() -> None:
    def crash(pair: SimulatedPair) -> None:
        if len(builds.set_up) == 2:
            pair._slice = Mock(side_effect=Crashed("ovs-vswitchd was killed by SIGSEGV."))  # type: ignore[method-assign]

    run: list[str] = []
    for code in (Code.INTERVAL, Code.CRASHED):
        builds = Builds([1.0, 1.01, 0.99, 1.0], slow=crash, crashes=run)
        assert builds.run()[0].verdicts["of_build"].code == code
    untouched = Builds([1.0, 1.01, 0.99, 1.0], crashes=run)
    assert untouched.run()[0].verdicts["of_build"].kept is True


def test_a_row_none_of_whose_first_starts_counts_makes_no_more_of_them() -> None:
    spoil = odd(lambda part: {"pause_ms": 1000 * part.seconds})
    found, pair = Builds([1.0], slow=spoil).run()
    assert found.verdicts["of_build"].code is Code.NOTHING and (len(pair.starts), pair.dropped) == (6, 6)


def test_a_base_through_which_nothing_comes_is_a_fault() -> None:
    def kill(pair: SimulatedPair) -> None:
        pair.ratio, pair.rate = 1e9, 0.0001

    found, _ = Builds([1.0], slow=kill).run()
    assert found.limited_by == "fault" and found.verdicts["of_build"].code == Code.FAULT


def test_stalls_of_the_candidate_break_the_promise_though_its_middle_is_as_fast() -> None:
    dice = random.Random(1)
    stall = odd(lambda part: {"completed": 0} if part.side == "tested" and dice.random() < 0.15 else {})
    found, pair = Builds([1.0, 1.01, 0.99, 1.0], slow=stall).run()
    assert found.verdicts["of_build"].kept is False and pair.result and pair.result.value > 0.97
    assert pair.tested.stalled > 0.1 > pair.other.stalled
