"""A lab, where a candidate and its base cannot stand side by side: each is set up in its turn, which is a search. Four
searches are a block, which is a sample as a start is elsewhere; what both hold is compared in turn as well."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ctbench.base.errors import GeneratorError, MissingResource, TestbedError
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench, Look, Outcome
from ctbench.measure.procedures.pair import NEAR, Pair, search_of_turns
from ctbench.measure.procedures.rates import search_s
from ctbench.measure.procedures.starts import Starts
from ctbench.measure.start_rule import Scatter
from ctbench.report import candidate, figures
from ctbench.report.charts.lines import pair_charts
from ctbench.results.evidence import PairRecord
from ctbench.results.verdict import Code
from ctbench.run.measurement import TestName
from ctbench.testbed.two_sides import InTurn, Setup
from ctbench.traffic.generator import Side
from ctbench.traffic.loads import Rate

from .simulated import SHORT, SimulatedDut, campaign, floor_of
from .simulated_run import (
    BASE,
    CANDIDATE,
    GATING,
    OVS,
    SimulatedTestbed,
    Started,
    compared,
    leave_undecided,
    rate_of,
)

WHY = "The links end at network cards."
SERVES = 200_000.0
#: A search that hardly rounds.
EXACT = {"trial_duration": "500ms", "max_iterations": 20, "relative_width": "0.1%"}
LIKE, SLOW = [1.0, 1.01, 0.99, 1.0], [0.92, 0.94, 0.9, 0.92]
SETUPS: dict[Side, Setup] = {"tested": Setup(OVS, CANDIDATE), "other": Setup(OVS, BASE)}


@dataclass
class LabDut(SimulatedDut):
    """One that can die of its own."""

    program: str = ""
    died: bool = False

    def snapshot(self) -> dict[str, Any]:
        return {"program": self.program}

    def crashed(self) -> bool:
        return self.died

    def dies(self, _number: int) -> None:
        self.died = True
        raise GeneratorError("ovs-vswitchd was killed by SIGSEGV.")


@dataclass
class Lab:
    """Two made-up builds, one of which stands; `found` are the ratios of the blocks, over and over."""

    found: Sequence[float]
    scatter: tuple[Scatter, Scatter] = field(default_factory=lambda: (Scatter(), Scatter()))
    gated_rows: int = 24
    #: What the base holds, per second.
    serves: float = SERVES
    crashes: list[str] = field(default_factory=list)
    #: What differs of a DUT that has been set up: its side, and how many have been.
    change: Callable[[LabDut, Side, int], None] = lambda _dut, _side, _number: None
    programs: dict[Side, str] = field(default_factory=lambda: {"tested": "candidate", "other": "base"})
    set_up: list[Side] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    #: Trials of either, as they were told.
    told: list[str] = field(default_factory=list)

    def become(self, setup: Setup) -> tuple[LabDut, LabDut]:
        side: Side = "tested" if setup.build == SETUPS["tested"].build else "other"
        block = max(0, len(self.set_up) - 1) // 3  # each sets up one side twice
        ratio = self.found[block % len(self.found)]
        dut = LabDut(self.serves * (ratio if side == "tested" else 1), program=self.programs[side])
        self.change(dut, side, len(self.set_up))
        self.set_up.append(side)
        return dut, dut

    def turns(self, _number: int = 0) -> InTurn:
        turns = InTurn(SETUPS, WHY, self.become)
        turns.turn("tested")
        return turns

    def bench(self, most: int = 16, how: Campaign | None = None, **more: Any) -> Bench:
        nothing = LabDut(1.0)
        return Bench(
            nothing, nothing, floor_of(of_build=0.97), how or campaign(starts=most, bisection=EXACT),
            sides=self.turns(), set_up_again=self.turns, scatter=self.scatter, crashes=self.crashes,
            gated_rows=self.gated_rows,
            on_look=self.looks.append, on_trial=lambda seen: self.told.append(seen.phase), **more,
        )  # fmt: skip

    def run(self, most: int = 16, before: PairRecord | None = None) -> tuple[Outcome, PairRecord]:
        found = Starts().run(self.bench(most, before=before))
        return found, found.evidence.pairs[0]


@pytest.mark.parametrize(
    ("ratios", "kept", "code", "after"),
    [
        (LIKE, True, Code.INTERVAL, 4),
        (SLOW, False, Code.INTERVAL, 8),
        ([0.98, 0.995, 0.96, 0.97], None, Code.TOO_CLOSE, 16),
        ([1.1, 0.9, 1.2, 0.8], None, Code.TOO_CLOSE, 16),
    ],
)
def test_blocks_are_made_until_they_decide_as_starts_are(
    ratios: Sequence[float], kept: bool | None, code: Code, after: int
) -> None:
    lab = Lab(ratios)
    found, pair = lab.run()
    decision = found.verdicts["of_build"]
    assert (decision.kept, decision.code, len(pair.starts)) == (kept, code, after), decision.reason
    assert [look.found and look.found.rounds for look in lab.looks] == [4, 8, 16][: len(lab.looks)]
    assert {look.of for look in lab.looks} == {"blocks"} and f"by {after} blocks of searches" in decision.reason
    assert pair.how == "reconfigured" and pair.notes == [WHY] and pair.sees and pair.gated_rows == 24
    assert pair.ratios == pytest.approx([*ratios] * (after // 4), abs=0.002)
    assert [each.found.value for each in pair.starts if each.found] == pytest.approx(pair.ratios)
    assert pair.result and pair.result.whole is None, "of a search there is one figure"
    assert lab.scatter[0].degrees == after - 1 and lab.scatter[1].degrees == 0
    assert pair.tested.rate and pair.other.rate == pytest.approx(SERVES, rel=NEAR)


def test_each_block_has_both_set_up_again_and_each_of_them_first_as_often() -> None:
    lab = Lab(LIKE)
    found, pair = lab.run()
    assert lab.set_up == ["tested", *["other", "tested", "other", "tested", "other", "tested"] * 2]
    assert [each.first for each in pair.starts] == ["other", "tested"] * 2
    assert [each.number for each in found.trials] == list(range(1, len(found.trials) + 1))
    assert lab.told.count("base") == pytest.approx(len(found.trials), abs=8), "they are not the candidate's"


def test_blocks_that_scatter_as_those_of_the_rows_before_decide_sooner() -> None:
    quiet = Scatter(((40, 0.0001),))
    alone, helped = (Lab(SLOW, (known, Scatter())).run()[1] for known in (Scatter(), quiet))
    assert len(helped.starts) == 4 < len(alone.starts)


def test_blocks_of_another_base_and_starts_side_by_side_do_not_count() -> None:
    _, first = Lab([0.98, 0.995, 0.96, 0.97]).run()
    rebuilt = Lab(LIKE, programs={"tested": "candidate", "other": "rebuilt"})
    _, second = rebuilt.run(before=first)
    assert (second.before, second.shared_looks, len(second.starts)) == (0, 3, 4)
    side_by_side = first.model_copy(update={"how": "side by side"})
    assert Lab(LIKE).run(before=side_by_side)[1].before == 0


def test_a_block_in_which_something_else_was_the_limit_does_not_count_and_many_end_the_row() -> None:
    def limit(until: int) -> Callable[[LabDut, Side, int], None]:
        def change(dut: LabDut, _side: Side, number: int) -> None:
            dut.generator_limit = 0.9 * SERVES if number < until else math.inf

        return change

    found, pair = Lab([1.0], change=limit(2)).run()
    assert found.verdicts["of_build"].kept is True
    assert (len(pair.starts), len(pair.ratios), pair.dropped, len(pair.notes)) == (5, 4, 1, 2)
    assert pair.starts[0].found is None
    found, pair = Lab([1.0], change=limit(1000)).run()
    assert (found.verdicts["of_build"].kept, found.verdicts["of_build"].code) == (None, Code.NOTHING)
    assert (len(pair.starts), pair.ratios, pair.looks) == (6, [], []) and "of 6 blocks, 6" in found.reason


def test_a_candidate_that_holds_nothing_is_missed_by_its_first_block_and_of_such_a_base_nothing_is_said() -> None:
    found, pair = Lab([0.0]).run()
    assert found.verdicts["of_build"].kept is False and len(pair.starts) == 1

    def kill(dut: LabDut, side: Side, _number: int) -> None:
        dut.capacity *= side == "tested"

    found, _ = Lab([1.0], change=kill).run()
    assert (found.limited_by, found.verdicts["of_build"].code) == ("fault", Code.FAULT)


def test_a_block_whose_side_holds_something_once_and_nothing_the_other_time_does_not_count() -> None:
    def fail(dut: LabDut, _side: Side, number: int) -> None:
        dut.capacity *= number != 3

    found, pair = Lab([1.0], change=fail).run()
    assert (found.verdicts["of_build"].kept, pair.dropped, len(pair.ratios)) == (True, 1, 4)


@pytest.mark.parametrize(("at", "kept", "code"), [({4}, True, Code.INTERVAL), ({2, 3}, False, Code.CRASHED)])
def test_a_candidate_that_crashes_twice_is_missed_and_once_is_an_accident(at: set[int], kept: bool, code: Code) -> None:
    def crash(dut: LabDut, side: Side, number: int) -> None:
        if number in at:
            assert side == "tested"
            dut.before = dut.dies

    found, pair = Lab([1.0], change=crash).run()
    assert (found.verdicts["of_build"].kept, found.verdicts["of_build"].code) == (kept, code)
    assert len([note for note in pair.notes if "does not count" in note]) == 1


def test_a_turn_is_searched_finer_than_builds_are_judged_and_says_how_long_that_takes() -> None:
    """By the 10 % of campaigns, the last one of these would be missed: the two end at neighbouring loads in each
    block."""
    how = campaign(search="gate", bisection=None, gate={"trial_duration": "5s"})
    bench = Lab([1.0]).bench(how=how)
    search = search_of_turns(bench)
    assert (search.relative_width, search.max_iterations) == (NEAR, 24)  # type: ignore[union-attr]
    exact = campaign(bisection=EXACT)
    assert search_of_turns(Lab([1.0]).bench(how=exact)) == exact.bisection
    expected = Starts().expected_at(bench)
    assert expected > 4 * 4 * search_s(search, how.load_range(SHORT)) > Starts().expected_s(SHORT, how)
    for serves in (200_000, 207_539, 215_361):
        found = Starts().run(Lab([0.996], serves=serves).bench(how=how))
        assert found.verdicts["of_build"].kept is True and found.result
        assert found.result.value == pytest.approx(0.996, abs=0.008)


def test_a_ratio_of_two_topologies_has_the_same_blocks_and_its_own_interval() -> None:
    lab = Lab(LIKE)
    bench = lab.bench()
    found = Pair().run(bench.__class__(**{**vars(bench), "floor": floor_of(ratio=0.9)}))
    assert found.verdicts["ratio"].kept is True and found.evidence.pairs[0].starts == []
    pair = found.evidence.pairs[0]
    assert (pair.how, len(pair.ratios), pair.slice_s) == ("reconfigured", 4, 0.0) and pair.notes == [WHY]
    assert pair.result and pair.result.low < pair.result.value < pair.result.high
    missed = Pair().run(bench.__class__(**{**vars(bench), "floor": floor_of(ratio=1.2)}))
    assert missed.verdicts["ratio"].kept is False and "saturation_cps" not in missed.figures


# The whole of a test, on a simulated testbed.


@pytest.fixture
def lab(simulated: SimulatedTestbed, installed: None) -> SimulatedTestbed:
    """A lab with TRex, which has no closed loop."""
    simulated.lab, simulated.offers = True, frozenset((Rate,))
    simulated.programs = {"tested": "candidate", "other": "base"}
    return simulated


def begin(lab: SimulatedTestbed) -> Started:
    promised = compared({"cps": ">= 10k", "smoke": True}, loss_ratio="<= 0.02%")
    return lab.gate(floors=promised, campaign=GATING)


def test_a_like_build_is_met_in_a_lab_and_the_scatter_of_blocks_is_that_of_blocks(lab: SimulatedTestbed) -> None:
    started = begin(lab)
    started.run.share_error(3)
    record = started.measure(OVS, "short-lived")
    assert record.verdict == "met", record.verdict_reason
    (pair,) = record.evidence.pairs
    assert (pair.how, len(pair.starts), pair.gated_rows, pair.tested.program) == ("reconfigured", 4, 3, "candidate")
    assert [line for line in started.said if "4 blocks" in line and "decided" in line]
    assert [line for line in started.said if line.startswith("   base")]
    left = [int(said[1]) for line in started.said if (said := re.search(r"~(\d+) s", line))]
    assert left[0] > 150, "it takes four blocks of searches at least"
    (strip,) = pair_charts(record)
    assert strip.title.endswith("each block") and "95 %" in strip.legend[1].text
    assert "1 of 100 such runs (3 rows)" in candidate.could_see([record]) and candidate.sentence([record])
    both = figures.against_base(record)
    assert both and both[:2] == pytest.approx((250_000, 250_000), rel=NEAR)
    (of_lab,) = started.run._scatter.values()
    assert of_lab[0].degrees == 3 and of_lab[1].degrees == 0
    lab.lab, lab.offers = False, SimulatedTestbed({}).offers
    started.run.measure(TestName("Suite", "Side By Side"), OVS, "short-lived", rate_of("short-lived"))
    assert len(started.run._scatter) == 2 and of_lab[0].degrees == 3


def test_a_row_that_is_gated_again_in_a_lab_adds_its_blocks(lab: SimulatedTestbed) -> None:
    begin(lab).measure(OVS, "short-lived")
    first, set_up_again = leave_undecided(lab.output), begin(lab)
    set_up_again.goes_on(first.run_id)
    (pair,) = set_up_again.measure(OVS, "short-lived").evidence.pairs
    assert (pair.before, len(pair.starts)) == (4, 8)


def decided(started: Started) -> bool:
    """Whether the blocks have decided, so that both are offered the same load."""
    return any("4 blocks" in line for line in started.said)


@pytest.mark.parametrize(
    ("leaks", "verdict", "code", "blocks"),
    [
        ((), "met", Code.HOLDS_AS_BASE, 1),
        (("other",), "met", Code.HOLDS_AS_BASE, 1),
        (("tested",), "missed", Code.HOLDS_LESS, 3),
        (("tested", "other"), "not measured", Code.BASE_TOO, 3),
    ],
)
def test_what_a_candidate_loses_in_a_lab_counts_where_its_base_holds_the_load(
    lab: SimulatedTestbed,
    monkeypatch: pytest.MonkeyPatch,
    leaks: tuple[Side, ...],
    verdict: str,
    code: Code,
    blocks: int,
) -> None:
    """It loses what the searches did not see."""
    started, trial = begin(lab), lab.run_trial

    def leaky(*asked: Any) -> Any:
        lab.leak = 0.002 if decided(started) else 0.0
        return trial(*asked)

    lab.leaks = leaks
    monkeypatch.setattr(lab, "run_trial", leaky)
    record = started.measure(OVS, "short-lived")
    assert (record.verdict, record.verdict_code) == (verdict, code), record.verdict_reason
    in_turn = [made.trial.load for made in record.evidence.trials if made.phase == "in turn"]
    assert len(in_turn) == len(record.evidence.base_trials) == 2 * blocks
    loads = [0.92, 0.92**2, 0.92**4] if code is Code.BASE_TOO else [0.92] * blocks
    assert in_turn == pytest.approx([share * 0.97 * 250_000 for share in loads for _ in range(2)], rel=2 * NEAR)
    held = record.threshold("of_build")
    assert held and held.met
    # A miss stands on three blocks, and both are set up again for each.
    of_blocks = [name.rpartition(" ")[2] for name in lab.applied if " as " in name][13:]
    set_up_again = ["tested"] if code is Code.HOLDS_LESS else []
    assert of_blocks == ["other", "tested", *[*set_up_again, "other", "tested"] * (blocks - 1)]


@pytest.mark.parametrize("side", ["tested", "other"])
@pytest.mark.parametrize(
    "error",
    [
        TestbedError("It does not come up."),
        MissingResource("No hugepages are left."),
        GeneratorError("The link broke."),
    ],
)
def test_a_side_that_breaks_off_in_its_turn_leaves_what_was_compared_before(
    lab: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch, side: Side, error: Exception
) -> None:
    """At its second turn under the same load, or in its trial."""
    started, become, trial = begin(lab), lab._become, lab.run_trial
    in_trial = isinstance(error, GeneratorError)

    def becomes(setup: Setup) -> Any:
        found = become(setup)
        if decided(started) and lab.having == side and not in_trial:
            raise error
        return found

    def breaks(*asked: Any) -> Any:
        if decided(started) and lab.having == side and in_trial:
            raise error
        return trial(*asked)

    monkeypatch.setattr(lab, "_become", becomes)
    monkeypatch.setattr(lab, "run_trial", breaks)
    record = started.measure(OVS, "short-lived")
    assert (record.verdict, record.verdict_code, record.limited_by) == ("not measured", Code.FAULT, "fault")
    assert str(error).rstrip(".") in record.verdict_reason and len(record.evidence.pairs[0].starts) == 4
    assert ("of the base" in record.verdict_reason) is (side == "other")
    share = record.threshold("of_build")
    assert share and share.measured == pytest.approx(1.0, abs=NEAR), "it was compared before"


@pytest.mark.parametrize(
    ("error", "code"), [(MissingResource("It lacks a driver."), Code.NOTHING), (TestbedError("No."), Code.FAULT)]
)
def test_a_base_that_cannot_be_set_up_leaves_the_test_undecided(
    lab: SimulatedTestbed, error: Exception, code: Code
) -> None:
    lab.errors[f"{OVS.key} as other"] = error
    record = begin(lab).measure(OVS, "short-lived")
    assert (record.verdict, record.verdict_code) == ("not measured", code), record.verdict_reason
    assert str(error).rstrip(".") in record.verdict_reason
    assert not record.evidence.base_trials and record.evidence.pairs[0].ratios == []
