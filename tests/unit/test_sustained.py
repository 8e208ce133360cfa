"""The rate that lasts: a table that is filled first, a trial over two sweeps, and a search where there is time."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableTrials
from ctbench.measure.loads_in_turn import MOST_LASTING
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.sustained import SUSTAINED_IN_TURN, SUSTAINED_RATE
from ctbench.results.verdict import Code, by_long_turns
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import Profile

from .simulated import LIMITS, courses, floor_of, made_up_trial
from .simulated_pair import SimulatedPair
from .table_double import TableDouble, table_bench

SPOILT = [Problem("invalid", "the machine slept")]
BUSY = [Problem("disturbed", "Other processes took 2.0 % of a PMD CPU.", cpu_taken=0.02)]


@dataclass
class Lasting(TableDouble):
    """A DUT that holds a rate and no more for long, and sweeps its table each 20 s."""

    limit: int = 5_000_000
    holds: float = 50_000.0
    forgets: bool = True
    #: What it serves in a closed loop; and the trials for long that it loses, numbered from 1 on, whatever they offer.
    serves: float = 200_000.0
    loses: tuple[int, ...] = ()
    offers: frozenset[type[Load]] = frozenset((Rate, Saturation))
    offered: list[tuple[float, float]] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        if isinstance(load, Saturation):
            return made_up_trial(self.serves, duration_s).model_copy(update={"under_way": load.under_way})
        self.offered.append((load.per_s, duration_s))
        self.entries += int(load.per_s * duration_s)
        self.entries = min(self.entries, int(load.per_s * (1 + self.sweep_s)))
        if not self.forgets:
            self.entries = 786_061  # as seen of 3.5.0, whose entries stay for 45 s
            time.sleep(0.1)
        lost = load.per_s > self.holds or len(self.rates) in self.loses
        return made_up_trial(load.per_s, duration_s, loss=0.3 if lost else 0.0)

    @property
    def rates(self) -> list[float]:
        """What it was offered for long."""
        return [rate for rate, seconds in self.offered if seconds >= 40]


def sustained(dut: Lasting, trials: int = 0, **more: Any) -> Outcome:
    bench = table_bench(dut, how=TableTrials(sustained=trials), limits={"sustained_cps": 20_000.0})
    return SUSTAINED_RATE.run(replace(bench, **more))


def test_the_table_is_filled_to_what_the_rate_leaves_before_two_sweeps_count() -> None:
    found = sustained(dut := Lasting())
    assert dut.offered == [(40_000.0, 10.5), (20_000.0, 40.0)]  # 1 s and a sweep of 20 s, at twice the rate
    assert [(each.expected, each.found) for each in found.evidence.table] == [(420_000, 420_000)]
    assert (found.verdicts["sustained_cps"].kept, found.limited_by) == (True, "floor")
    for trials in (0, 2):
        bench = table_bench(Lasting(), how=TableTrials(sustained=trials))
        assert SUSTAINED_RATE.expected_at(bench) == max(1, trials) * 50.5


@pytest.mark.parametrize(
    ("dut", "trials", "made", "kept", "limited_by", "least", "most"),
    [
        (Lasting(holds=19_000), 0, 1, False, "dut", 10_000, 19_000),
        (Lasting(problems=[[], SPOILT, [], []]), 0, 2, True, "floor", 20_000, 20_000),
        (Lasting(problems=[[], BUSY, [], []]), 0, 1, True, "floor", 20_000, 20_000),  # it held all the same
        (Lasting(holds=19_000, problems=[[], BUSY, [], []]), 0, 2, False, "dut", 10_000, 19_000),  # tried again
        (Lasting(problems=[SPOILT, []]), 0, 1, True, "floor", 20_000, 20_000),  # only while the table was filled
        # A search halves what is between loads that held and did not, from the promise on, which a higher one proves.
        (Lasting(), 4, 4, True, "dut", 45_000, 50_000),
        (Lasting(limit=1_550_000, holds=1e6), 9, 5, True, "range", 47_000, 50_000),  # entries for 50 k/s
        # Where none holds, the promise is tried itself.
        (Lasting(holds=21_000), 2, 3, True, "dut", 20_000, 20_000),
        (Lasting(holds=9000), 2, 3, False, "dut", 10_000, 19_000),
        (Lasting(problems=[SPOILT] * 4), 2, 3, True, "generator", 20_000, 20_000),
    ],
)
def test_a_rate_lasts_or_not(
    dut: Lasting, trials: int, made: int, kept: bool, limited_by: str, least: float, most: float
) -> None:
    found = sustained(dut, trials)
    assert (len(found.trials), found.verdicts["sustained_cps"].kept) == (made, kept)
    assert found.limited_by == limited_by and found.result is not None and least <= found.result.value <= most
    assert ("the table is the limit" in found.reason) is (limited_by == "range")
    # It lies between what held and the lowest load that did not.
    bad = [each.load for each in found.trials if each.state == "bad" and each.load > found.result.value]
    ends = (found.result.value, min(bad, default=None)) if kept else (None, None)
    assert (found.result.low, found.result.high) == ends


def test_a_rate_is_not_sustained_by_a_table_whose_entries_outlive_their_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ctbench.measure.procedures.sustained._EVERY_S", 0.005)
    found = sustained(Lasting(forgets=False))
    assert found.verdicts["sustained_cps"].kept is False
    assert "entries outlive their timeout" in found.reason


def test_what_says_nothing_or_has_no_room_decides_nothing() -> None:
    found = sustained(Lasting(problems=[SPOILT] * 9), trials=4)
    assert len(found.trials) == 4 and not found.figures and found.verdicts["sustained_cps"].code is Code.INVALID
    for small in ({"dut": Lasting(limit=600_000)}, {"dut": Lasting(), "most_held": 600_000.0}):
        with pytest.raises(MissingResource, match="the table is the limit"):
            sustained(**small)
    with pytest.raises(ConfigError, match="sustained_cps"):
        sustained(Lasting(), floor=floor_of())


# A candidate, in turn with its base.


@pytest.mark.parametrize("lost", [0.0, 0.02, 0.1, 0.5, 1.0])
def test_a_like_build_is_missed_in_less_than_one_of_a_thousand_gates(lost: float) -> None:
    ways = {(0, 0): 1 - lost, (1, 0): lost * (1 - lost), (1, 1): lost * lost}
    found, left = courses(lambda *seen: by_long_turns(*seen, MOST_LASTING), ways, MOST_LASTING)
    assert left == 0 and found[Code.HOLDS_LESS] <= 1 / 1000


@pytest.mark.parametrize(
    ("tested", "other", "kept", "code", "offered", "asked"),
    [
        # Alike: the base is asked nothing but what it serves.
        (Lasting(), Lasting(), True, Code.HOLDS_AS_BASE, [40_000], 0),
        # Of a third of what the base sustains, and more than is promised.
        (Lasting(holds=22_000), Lasting(holds=66_000), False, Code.HOLDS_LESS, [40_000] * 5, 5),
        (Lasting(loses=(1,)), Lasting(), True, Code.HOLDS_AS_BASE, [40_000] * 3, 1),
        (Lasting(loses=(1, 3)), Lasting(), None, Code.LOST_AT_TIMES, [40_000] * 3, 2),
        # What the base does not sustain is not asked of a candidate; what is promised is.
        (Lasting(holds=30_000), Lasting(holds=30_000), True, Code.FIGURE, [40_000, 20_000], 1),
        (Lasting(holds=19_000), Lasting(holds=30_000), False, Code.FIGURE, [40_000, 20_000], 1),
        (Lasting(), Lasting(serves=90_000), True, Code.FIGURE, [20_000], 0),
        (Lasting(offers=frozenset((Rate,))), Lasting(), True, Code.FIGURE, [20_000], 0),
        (Lasting(problems=[[], SPOILT, [], SPOILT]), Lasting(), True, Code.FIGURE, [40_000, 40_000, 20_000], 0),
    ],
)
def test_a_candidate_has_to_sustain_what_its_base_sustains(
    tested: Lasting, other: Lasting, kept: bool | None, code: Code, offered: list[float], asked: int
) -> None:
    duts, set_up = {"tested": tested, "other": other}, list[int]()

    def set_up_again(number: int) -> SimulatedPair:
        set_up.append(number)
        return SimulatedPair(duts=duts)  # type: ignore[arg-type]  # they are sides

    # A campaign whose search is shorter than this comparison makes none of a candidate.
    bench = table_bench(tested, how=TableTrials(sustained=2), limits={"sustained_cps": 20_000.0, **LIMITS})
    found = SUSTAINED_IN_TURN.run(replace(bench, sides=SimulatedPair(duts=duts), set_up_again=set_up_again))  # type: ignore[arg-type]
    decided = found.verdicts.get("loss_ratio" if code is Code.HOLDS_LESS else "sustained_cps")
    assert decided and (decided.kept, decided.code) == (kept, code), found.reason
    assert tested.rates == offered and other.rates == [40_000] * asked
    # A miss stands on five starts, and a trial that says nothing on none of its own.
    assert len(set_up) == (0 if code is Code.FIGURE else offered.count(40_000) - 1)
    in_turn = [each.phase for each in found.evidence.base_trials]
    assert in_turn.count("base") == len(in_turn) == asked + (Saturation in tested.offers)
    if kept:
        assert found.result and found.result.value == offered[-1]


def test_a_campaign_that_looks_for_the_highest_rate_looks_for_that_of_the_candidate() -> None:
    duts = {"tested": (tested := Lasting()), "other": Lasting()}
    bench = table_bench(tested, how=TableTrials(sustained=4), limits={"sustained_cps": 20_000.0, **LIMITS})
    found = SUSTAINED_IN_TURN.run(replace(bench, sides=SimulatedPair(duts=duts)))  # type: ignore[arg-type]
    assert found.result and found.result.value > 45_000 and tested.rates[0] == 40_000 < tested.rates[1]
