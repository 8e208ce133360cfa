"""A candidate and its base under the same open load: the rule, which blames a like build as seldom as it says; and the
procedures, which blame a candidate only for what its base holds."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache

import numpy as np
import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.measure.campaign import SaturationSettings
from ctbench.measure.loads_in_turn import BLOCKS, MOST_LASTING, blocks
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.procedures.same_load import LOADS, SameLoad
from ctbench.results.evidence import Evidence, PairRecord, SideRecord
from ctbench.results.floor import Accepted, Floor
from ctbench.results.metrics import METRICS
from ctbench.results.verdict import Code, by_turns
from ctbench.traffic.generator import Side, Trial
from ctbench.traffic.loads import Load, Rate, Saturation

from .simulated import LIMITS, SimulatedDut, campaign, courses, floor_of, made_up_trial, saying
from .simulated_pair import SimulatedPair

HOW = SaturationSettings.model_validate({"first": "65%"})
SERVES = 100_000.0
#: What a candidate has to serve of it, of which it is offered a share.
PROMISED = 0.97 * SERVES

# The rule.


@cache
def ends(lost: float, base_lost: float, most: int = BLOCKS) -> Mapping[Code, float]:
    """How likely each end at one load is, where each trial of the two is lost by such a chance."""
    of_two = [[(1 - p) ** 2, 2 * p * (1 - p), p**2] for p in (lost, base_lost)]
    ways = {(mine, theirs): of_two[0][mine] * of_two[1][theirs] for mine in range(3) for theirs in range(3)}
    found, left = courses(lambda mine, theirs, blocks: by_turns(mine, theirs, 2 * blocks, most), ways, most)
    assert left == 0 and sum(found.values()) == pytest.approx(1)
    return found


CHANCES = [float(p) for p in np.linspace(0, 1, 21)]


def ends_of_row(lost: Sequence[float], base_lost: Sequence[float], most: int = BLOCKS) -> Mapping[Code, float]:
    """The same of a row, which goes on to the next load while one decides nothing: by load, the highest first."""
    found = dict.fromkeys(Code, 0.0)
    fine, doubtful = 1.0, 0.0  # whether the candidate lost more than the base at a load before
    for mine, theirs in zip(lost, base_lost, strict=True):
        at = ends(mine, theirs, most)
        found[Code.HOLDS_LESS] += (fine + doubtful) * at[Code.HOLDS_LESS]
        found[Code.HOLDS_AS_BASE] += fine * at[Code.HOLDS_AS_BASE]
        found[Code.LOST_AT_TIMES] += doubtful * at[Code.HOLDS_AS_BASE]
        doubtful = doubtful * (at[Code.BASE_TOO] + at[Code.LOST_AT_TIMES]) + fine * at[Code.LOST_AT_TIMES]
        fine *= at[Code.BASE_TOO]
    return found | {Code.BASE_TOO: fine, Code.LOST_AT_TIMES: found[Code.LOST_AT_TIMES] + doubtful}


@pytest.mark.parametrize("rows", [1, 9, 10, 24, 143, 153, 154])
def test_a_like_build_is_missed_in_less_than_one_of_two_hundred_runs_whatever_the_machine_spoils(rows: int) -> None:
    # Next to two rows of rates that last, each of which misses it in one of 1024 (tests/unit/test_sustained.py).
    of_lasting = 2 / 4**MOST_LASTING
    of_loads = itertools.product(CHANCES, repeat=LOADS)
    worst = max(ends_of_row(each, each, blocks(rows))[Code.HOLDS_LESS] for each in of_loads)
    assert 1 - (1 - worst) ** rows <= 0.005 - of_lasting


@pytest.mark.parametrize(
    ("rows", "base_lost", "missed"),
    [
        (6, 0.0, 0.99),
        (6, 0.02, 0.99),
        (6, 0.05, 0.98),
        (6, 0.1, 0.89),
        (23, 0.02, 0.99),
        (23, 0.05, 0.96),
        (23, 0.1, 0.81),
    ],
)
def test_a_candidate_that_loses_each_time_never_ends_as_kept_and_mostly_as_missed(
    rows: int, base_lost: float, missed: float
) -> None:
    found = ends_of_row([1.0] * LOADS, [base_lost] * LOADS, blocks(rows))
    assert found[Code.HOLDS_AS_BASE] == 0.0 and found[Code.HOLDS_LESS] >= missed


def test_a_candidate_that_loses_at_the_highest_load_alone_is_not_kept_by_holding_less() -> None:
    found = ends_of_row([1.0, 0.0, 0.0], [0.02, 0.0, 0.0])
    assert found[Code.HOLDS_LESS] > 0.88 and found[Code.HOLDS_AS_BASE] < 0.001


@pytest.mark.parametrize("lost", [0.02, 0.1, 0.3, 0.5])
def test_of_two_alike_hardly_any_is_left_open_however_many_trials_the_machine_spoils(lost: float) -> None:
    assert ends_of_row([lost] * LOADS, [lost] * LOADS)[Code.HOLDS_AS_BASE] > 0.96


def test_one_that_loses_more_is_never_judged_better() -> None:
    rank = {Code.HOLDS_AS_BASE: 2, None: 1, Code.LOST_AT_TIMES: 1, Code.BASE_TOO: 1, Code.HOLDS_LESS: 0}
    for made in range(2, 2 * BLOCKS + 1, 2):
        for base_lost in range(made + 1):
            ranks = [rank[by_turns(lost, base_lost, made, BLOCKS)] for lost in range(made + 1)]
            assert ranks == sorted(ranks, reverse=True)


# The procedure.


@dataclass
class LossyDut(SimulatedDut):
    """One that loses one connection in so many at loads above a share of what it serves."""

    one_in: int = 0
    above: float = 0.0
    #: By how much of a load its backlog grows there, per second.
    behind: float = 0.0
    #: In these of its trials, numbered from 1 on.
    in_trials: range = range(1, 100)
    #: Whether its loss ends a trial early.
    ends: bool = False

    def serve(self, capacity: float, load: Load, duration_s: float) -> Trial:
        if isinstance(load, Saturation):
            limited = "it was too slow" if capacity > self.generator_limit else ""
            made = made_up_trial(min(capacity, self.generator_limit), duration_s, generator_limited=limited)
            return made.model_copy(update={"under_way": load.under_way})
        assert isinstance(load, Rate)
        lossy = self.one_in and load.per_s > self.above * capacity and len(self.loads) in self.in_trials
        made = self.made_up(load.per_s, duration_s, 1 / self.one_in if lossy else 0.0)
        growing = [self.behind * load.per_s * second for second in range(10)] if lossy else []
        ended = duration_s / 10 if lossy and self.ends else None
        return made.model_copy(update={"timeline_step_s": 1.0, "timeline_active": growing, "ended_after_s": ended})


@dataclass
class Builds:
    """Candidate and base, after their starts."""

    duts: Mapping[Side, LossyDut]
    serves: Mapping[Side, float] = field(default_factory=lambda: {"tested": SERVES, "other": SERVES})
    served: str = "in a closed loop"
    set_up: list[int] = field(default_factory=list)
    breaks: Exception | None = None

    def set_up_again(self, number: int) -> SimulatedPair:
        self.set_up.append(number)
        if self.breaks:
            raise self.breaks
        return SimulatedPair(duts=self.duts)

    def run(self, how: SaturationSettings = HOW, floor: Floor | None = None) -> Outcome:
        sides = {side: SideRecord(key="it", rate=rate) for side, rate in self.serves.items()}
        pair = self.serves and PairRecord(**sides, how="side by side", served=self.served, ratios=[1.0], looks=[])  # type: ignore[arg-type]
        starts = Outcome(
            METRICS["of_build"], {}, "dut", "", True, evidence=Evidence(trials=[], pairs=[pair] if pair else [])
        )
        bench = Bench(
            self.duts["tested"], self.duts["tested"], floor or floor_of(of_build=0.97, **LIMITS), campaign(),
            sides=SimulatedPair(duts=self.duts), set_up_again=self.set_up_again,
            earlier=starts if self.serves else None,
        )  # type: ignore[arg-type]  # fmt: skip
        return SameLoad(how).run(bench)


def builds(tested: LossyDut | None = None, other: LossyDut | None = None, **more: object) -> Builds:
    return Builds({"tested": tested or LossyDut(SERVES), "other": other or LossyDut(SERVES)}, **more)  # type: ignore[arg-type]


def lossy(above: float = 0.6, one_in: int = 500, in_trials: range = range(1, 100), behind: float = 0.0) -> LossyDut:
    return LossyDut(SERVES, one_in=one_in, above=above, in_trials=in_trials, behind=behind)


@pytest.mark.parametrize(
    ("made", "kept", "code", "loads"),
    [
        # Alike, and one block is enough.
        (builds, True, Code.HOLDS_AS_BASE, [0.65] * 2),
        # It serves the same, and loses one in 500 at 65 % of that.
        (lambda: builds(lossy()), False, Code.HOLDS_LESS, [0.65] * 6),
        (lambda: builds(lossy(), lossy(in_trials=range(6, 7))), None, Code.LOST_AT_TIMES, [0.65] * 6 + [0.4225] * 2),
        # That base loses is not the candidate's loss, and what holds less is not asked of it.
        (lambda: builds(None, lossy()), True, Code.HOLDS_AS_BASE, [0.65] * 2),
        (lambda: builds(lossy(0.5), lossy(0.5)), True, Code.HOLDS_AS_BASE, [0.65] * 2 + [0.4225] * 2),
        (lambda: builds(lossy(0.3), lossy(0.5)), False, Code.HOLDS_LESS, [0.65] * 2 + [0.4225] * 6),
        (lambda: builds(lossy(0.0), lossy(0.0)), None, Code.BASE_TOO, [0.65] * 2 + [0.4225] * 2 + [0.1785] * 2),
        # Both lose some, near the edge of either.
        (
            lambda: builds(lossy(in_trials=range(1, 5)), lossy(in_trials=range(3, 5))),
            True,
            Code.HOLDS_AS_BASE,
            [0.65] * 6 + [0.4225] * 2,
        ),
        # One that is held of six, or lost of four, may be chance.
        (lambda: builds(lossy(in_trials=range(2, 7))), None, Code.LOST_AT_TIMES, [0.65] * 6 + [0.4225] * 2),
        (lambda: builds(lossy(in_trials=range(2, 3))), True, Code.HOLDS_AS_BASE, [0.65] * 4),
    ],
)
def test_a_candidate_has_to_hold_what_its_base_holds(
    made: Callable[[], Builds], kept: bool | None, code: Code, loads: list[float]
) -> None:
    pair = made()
    found = pair.run()
    verdict = found.verdicts["loss_ratio"]
    assert (verdict.kept, verdict.code) == (kept, code), verdict.reason
    assert [load / PROMISED for load in pair.duts["tested"].loads] == pytest.approx(loads, abs=1e-4)
    assert pair.duts["other"].loads == pair.duts["tested"].loads
    assert [seen.phase for seen in found.trials] == ["in turn"] * len(loads)
    assert [each.phase for each in found.evidence.base_trials] == ["base"] * len(loads)
    assert ("cps" in found.figures, found.kept_conditions) == (kept is True, kept is True)
    assert found.figures["loss_ratio"].value == pytest.approx(0.0 if kept else 0.002, rel=0.02)
    # A miss stands on three starts: both are set up again for each block but the first.
    assert len(pair.set_up) == sum(len([*same]) // 2 - 1 for _, same in itertools.groupby(loads))


def test_what_it_holds_is_said_with_the_seconds_of_a_trial_that_was_not_ended() -> None:
    found = builds(replace(lossy(in_trials=range(1, 2)), ends=True)).run()
    assert [seen.good for seen in found.trials] == [False, True, True, True]
    assert "held for 1.0 s" in found.verdicts["loss_ratio"].reason


@pytest.mark.parametrize(
    ("tested", "missed"),
    [
        (lossy(), {"loss_ratio"}),
        (lossy(one_in=10**9, behind=0.02), {"loss_ratio", "connect_time_p99"}),
    ],
)
def test_of_several_conditions_those_are_missed_that_its_trials_broke_or_all_where_it_fell_behind(
    tested: LossyDut, missed: set[str]
) -> None:
    found = builds(tested).run(floor=floor_of(of_build=0.97, connect_time_p99=0.005, **LIMITS))
    decided = {name: each.code for name, each in found.verdicts.items() if each.kept is False}
    assert decided == dict.fromkeys(missed, Code.HOLDS_LESS)


ACCEPTED = Accepted(
    because="slower locks", by="R. Manager", until=date(2125, 12, 31), ticket="OVS-1", metrics=["of_build"]
)


@pytest.mark.parametrize(
    ("promised", "accepted", "load"),
    [(0.97, None, 0.97), (0.8, None, 0.8), (1.1, None, 1.0), (0.97, ACCEPTED, 0.7), (0.5, ACCEPTED, 0.5)],
)
def test_what_is_offered_is_a_share_of_what_the_candidate_has_to_serve_of_its_base(
    promised: float, accepted: Accepted | None, load: float
) -> None:
    floor = replace(floor_of(of_build=promised, **LIMITS), accepted=accepted)
    pair = builds(serves={"tested": 0.7 * SERVES, "other": SERVES})
    assert pair.run(floor=floor).kept_conditions
    assert pair.duts["tested"].loads == pair.duts["other"].loads == pytest.approx([0.65 * load * SERVES] * 2)


@pytest.mark.parametrize(
    ("promised", "kept", "code", "load"),
    [
        (48_200.0, True, Code.HOLDS_AS_BASE, 0.65),
        (70_000.0, True, Code.HOLDS_AS_BASE, 0.7),
        (90_000.0, None, Code.BASE_TOO, 0.585),  # 90 % and more are lost by either
    ],
)
def test_a_smoke_floor_is_tried_by_the_same_trials(promised: float, kept: bool | None, code: Code, load: float) -> None:
    floor = saying(floor_of(cps=promised, **LIMITS), "cps", smoke=True)
    pair = builds(lossy(0.75), lossy(0.75))
    found = pair.run(floor=floor)
    assert (found.verdicts["cps"].kept, found.verdicts["cps"].code) == (kept, code)
    assert found.verdicts["loss_ratio"].kept and found.figures["cps"].value == pytest.approx(load * SERVES)


def test_from_backlogs_the_generator_bounds_the_load_and_where_it_is_the_limit_less_is_offered() -> None:
    both = (LossyDut(SERVES, generator_limit=0.5 * SERVES) for _ in range(2))
    pair = builds(*both, served="from backlogs")
    assert pair.run().kept_conditions and pair.duts["tested"].loads == pytest.approx([0.325 * SERVES] * 2)
    both = (LossyDut(SERVES, generator_limit=0.5 * SERVES) for _ in range(2))
    found = builds(*both).run()
    assert found.kept_conditions and found.result and found.result.value == pytest.approx(0.4225 * PROMISED)
    both = (LossyDut(SERVES, generator_limit=0.0) for _ in range(2))
    assert builds(*both).run().verdicts["loss_ratio"].code is Code.INVALID


def test_nothing_is_decided_where_it_is_not_known_what_is_served_or_where_something_breaks() -> None:
    assert builds(serves={}).run().verdicts["loss_ratio"].code is Code.NOTHING
    for error in (TestbedError("it does not come up"), MissingResource("it lacks a CPU")):  # which it had before
        found = builds(lossy(), breaks=error).run()
        assert (found.limited_by, found.reason, len(found.trials)) == ("fault", str(error), 2)

    def dies(_number: int) -> None:
        raise TestbedError("it died")

    found = builds(None, LossyDut(SERVES, before=dies)).run()
    assert found.limited_by == "fault" and "of the base" in found.reason
