"""Two set-ups in turn: the statistic, whose interval errs as seldom as it says; and the procedure, which looks until
the ratio is decided."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from ctbench.base.errors import GeneratorError
from ctbench.dut.base import Problem
from ctbench.measure import duet
from ctbench.measure.procedure import Bench, Look, Outcome
from ctbench.measure.procedures.pair import SLICE_S, Pair
from ctbench.measure.procedures.rates import _of_loops
from ctbench.measure.trial import Repetitions
from ctbench.results.floor import Floor
from ctbench.results.metrics import METRICS
from ctbench.results.statistics import student
from ctbench.results.verdict import Code
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile

from .simulated import SHORT, campaign, floor_of
from .simulated_pair import SETTLING_S, SimulatedPair
from .test_procedure import SharpDut


def part(side: Side, completed: int = 1000, **more: float) -> Slice:
    return Slice(side=side, seconds=0.04, completed=completed, **more)  # type: ignore[arg-type]


def both(tested: int = 1000, other: int = 1000) -> list[Slice]:
    return [part("tested", tested), part("other", other)]


@pytest.mark.parametrize("bend", [0.0, 1e-6])
def test_a_drift_makes_an_interval_wider_and_moves_nothing(bend: float) -> None:
    """The second slice of a round is the faster one: as often that of the one side as of the other."""
    speed = [1 + 0.001 * at + bend * at * at for at in range(2 * duet.LOOKS[0])]
    slices = [part(side, round(1e6 * now)) for side, now in zip(duet.turns(0, duet.LOOKS[0]), speed, strict=True)]
    logs = [duet.log_ratio(parts) for parts in duet.rounds_of(slices)]
    found = duet.estimate([log for log in logs if log is not None])
    assert found and found.value == pytest.approx(1, abs=1e-4)
    assert found.low < 1 < found.high


@pytest.mark.parametrize(
    ("bad", "counts"),
    [
        (part("tested", 0), True),
        (part("tested", pause_ms=14.0), False),
        (part("tested", 0, pause_ms=14.0), False),
        (part("tested", pause_ms=13.0), True),
        (part("tested", 1), True),
    ],
)
def test_a_slice_in_which_the_generator_stood_still_is_left_out_and_not_the_duts(bad: Slice, counts: bool) -> None:
    assert duet.spoilt(bad) is not counts


@pytest.mark.parametrize(("share", "speed"), [(0.05, 0.2), (0.1, 0.0), (0.2, 0.05)])
def test_the_whole_has_the_stalls_that_the_middle_leaves_out(share: float, speed: float) -> None:
    chance = random.Random(f"stalls {share} {speed}")
    slow = set(chance.sample(range(192), round(192 * share)))
    slices = [
        part(side, round(1000 * chance.gauss(1, 0.03) * (speed if side == "tested" and at // 2 in slow else 1)))
        for at, side in enumerate(duet.turns(0, 192))
    ]
    lost, tested = share * (1 - speed), [each for each in slices if each.side == "tested"]
    whole, served = duet.whole(slices, 0.01), duet.serves([(each.completed, each.seconds) for each in tested], "/s")
    assert whole.value == pytest.approx(1 - lost, abs=0.02) and whole.low <= 1 - lost <= whole.high < 1
    assert served.value == pytest.approx(25_000 * whole.value, rel=0.02) and served.low < served.value < served.high
    assert duet.stalled(tested) == pytest.approx(share if speed < duet.STALL else 0, abs=0.06)
    middle = duet.estimate([log for parts in duet.rounds_of(slices) if (log := duet.log_ratio(parts)) is not None])
    assert middle and middle.value > 0.95


def test_a_rate_that_is_lost_in_scatter_is_a_number_that_a_record_holds() -> None:
    served = duet.serves([(0, 0.05), (2e6, 0.05)], "/s")
    assert served.low < served.value / 1000 and 1000 * served.value < served.high


#: Pairs of like sides, and how many of them may miss a 99 % interval: 1 %, and three standard errors of so many.
PAIRS = 2000
MISSES = PAIRS * 0.01 + 3 * (PAIRS * 0.01 * 0.99) ** 0.5
#: Of a machine by what it does, the speed of each of its slices, around which they scatter by 5 %. Slices of which a
#: quarter are slower; and a machine whose speed changes by a quarter now and then.
SPEEDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "quiet": lambda dice, shape: np.ones(shape),
    "drifting": lambda dice, shape: np.broadcast_to(np.linspace(0.9, 1.1, shape[1]), shape),
    "bimodal": lambda dice, shape: np.where(dice.random(shape) < 0.25, 0.75, 1),
    "disturbed": lambda dice, shape: np.where(dice.random(shape) < 0.1, 0.5, 1),
    "hopping": lambda dice, shape: np.where(np.cumsum(dice.random(shape) < 1 / 8, axis=1) % 2, 0.75, 1),
}


def served_at(kind: str, slices: int) -> tuple[np.ndarray, np.ndarray]:
    """What comes through in the slices of `PAIRS` such machines, and what would in the mean of machines like it."""
    dice = np.random.default_rng(1)
    speeds = SPEEDS[kind](dice, (PAIRS, slices))
    scattered = np.round(100_000 * speeds * np.exp(dice.normal(-(0.05**2) / 2, 0.05, speeds.shape)))
    return scattered, 100_000 * speeds.mean(axis=0)


def intervals_of_sums(counts: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of `duet._of_sums`, as logarithms, of many pairs at once: (pairs, rounds, 4)."""
    batches = min(duet.BATCHES, counts.shape[1])
    begins = [part[0] for part in np.array_split(np.arange(counts.shape[1]), batches)]
    parts = np.add.reduceat(counts, begins, axis=1)
    total = parts.sum(axis=1, keepdims=True)
    value = duet._log_ratio(total)
    return intervals(batches * value - (batches - 1) * duet._log_ratio(total - parts), value[:, 0], error / 2)


def intervals(logs: np.ndarray, value: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of `starts.around`, as logarithms, of many at once."""
    count = logs.shape[1]
    reach = student(1 - error, count - 1) * logs.std(axis=1, ddof=1) / math.sqrt(count)
    middle = logs.mean(axis=1)
    return np.minimum(middle - reach, value), np.maximum(middle + reach, value)


@pytest.mark.parametrize("kind", SPEEDS)
def test_the_interval_of_the_whole_errs_as_seldom_as_it_says(kind: str) -> None:
    """Of pairs that are looked at four times."""
    served, _ = served_at(kind, 2 * duet.LOOKS[-1])
    order = duet.turns(0, duet.LOOKS[-1])
    tested_first = np.array([side == "tested" for side in order[::2]])
    first, second = served[:, ::2], served[:, 1::2]
    tested, other = np.where(tested_first, first, second), np.where(tested_first, second, first)
    counts = np.stack([tested, np.full_like(tested, 0.04), other, np.full_like(other, 0.04)], axis=2)
    missed = np.zeros(PAIRS, bool)
    for look in duet.LOOKS:
        low, high = intervals_of_sums(counts[:, :look], duet.ERROR / len(duet.LOOKS))
        missed |= (low > 0) | (high < 0)
    assert missed.sum() <= MISSES
    found = duet.whole([part(*each) for each in zip(order, served[0], strict=True)], duet.ERROR / len(duet.LOOKS))
    assert found.ends == pytest.approx((math.exp(low[0]), math.exp(high[0])))


@pytest.mark.parametrize(
    ("kind", "count"), [*product(("quiet", "drifting"), duet.LOOKS), *product(("bimodal",), duet.LOOKS[2:])]
)
def test_the_interval_of_what_a_side_serves_errs_as_seldom_as_it_says(kind: str, count: int) -> None:
    served, expected = served_at(kind, count)
    seconds, one = np.full_like(served, 0.05), np.ones_like(served)
    low, high = intervals_of_sums(np.stack([served, seconds, one, one], axis=2), duet.ERROR)
    truth = math.log(expected.mean() / 0.05)
    assert ((low > truth) | (high < truth)).sum() <= MISSES
    found = duet.serves([(completed, 0.05) for completed in served[0]], "/s")
    assert found.ends == pytest.approx((math.exp(low[0]), math.exp(high[0])))


@pytest.mark.parametrize("kind", ["quiet", "drifting", "bimodal"])
def test_the_interval_of_closed_loops_errs_as_seldom_as_it_says(kind: str) -> None:
    """Of five loops of half a second, looked at after three, four and five."""
    served, expected = (each.reshape(*each.shape[:-1], 5, 10).mean(axis=-1) for each in served_at(kind, 50))
    missed = np.zeros(PAIRS, bool)
    for count in (3, 4, 5):
        rates, truth = served[:, :count], math.log(expected[:count].mean())
        low, high = intervals(np.log(rates), np.log(rates.mean(axis=1)), duet.ERROR / 2 / 3)
        missed |= (low > truth) | (high < truth)
    assert missed.sum() <= MISSES
    found = _of_loops([float(rate) for rate in served[0]], METRICS["saturation_pps"])
    assert found.ends == pytest.approx((math.exp(low[0]), math.exp(high[0])))


@pytest.mark.parametrize(
    ("count", "error", "critical"),
    [
        # Published, two-sided.
        (25, 0.05, 89), (25, 0.01, 68), (50, 0.05, 434), (50, 0.01, 373), (100, 0.05, 1955), (100, 0.01, 1779),
        # Of the looks, counted once with integers of any length, in which nothing is rounded.
        *((count, duet.ERROR / 4, critical) for count, critical in ((24, 47), (48, 298), (96, 1508), (192, 6943))),
    ],
)  # fmt: skip
def test_the_interval_is_that_of_the_tables_of_the_signed_rank_test(count: int, error: float, critical: int) -> None:
    assert duet._outside(count, error) == critical


def test_too_few_rounds_have_no_interval() -> None:
    assert duet.estimate([0.0] * 9) is None
    assert duet.estimate([0.0] * 10) is not None


#: In the place of one DUT, where there are two.
NOTHING = SharpDut(1.0)
KEYS: Mapping[Side, str] = {
    "tested": "linux-router/iptables-stateful/1cpu-1rxq",
    "other": "linux-router/forward/1cpu-1rxq",
}


@dataclass
class OddPair(SimulatedPair):
    """A pair whose machine's speed changes every 40 slices, for both alike, and what else may be odd."""

    rate: float = 200_000.0
    scatter: float = 0.02
    keys: Mapping[Side, str] = field(default_factory=lambda: KEYS)
    #: Which slices are spoilt, by their number.
    spoilt: Callable[[int], bool] = lambda _: False
    #: In which slices the tested side stands still, by their number.
    stalls: Callable[[int], bool] = lambda _: False
    problems: list[Problem] = field(default_factory=list)
    #: Raised in the slice of this number.
    breaks_at: int | None = None
    #: Share of each side's time in which it waited for the generator.
    waited: Mapping[Side, float] = field(default_factory=dict)
    #: Of the next slice.
    number: int = 0

    def health(self) -> list[Problem]:
        return self.problems

    def _slice(self, side: Side, slice_s: float) -> Slice:
        number, self.number = self.number, self.number + 1
        if self.breaks_at == number:
            raise GeneratorError("ovs-vswitchd (process 16) was killed by SIGKILL.")
        made = super()._slice(side, slice_s)
        odd = {
            "completed": 0 if side == "tested" and self.stalls(number) else round(made.completed * slow(number)),
            "pause_ms": 1000 * slice_s if self.spoilt(number) else 0.0,
            "waited": self.waited.get(side, 0.0),
        }
        return made.model_copy(update=odd)


def slow(number: int) -> float:
    return 0.6 if number // 40 % 3 == 1 else 1.0


def of(promised: float | None, profile: Profile = SHORT) -> Floor:
    return floor_of(profile) if promised is None else floor_of(profile, ratio=promised)


def measure(pair: OddPair, promised: float | None = None, looks: list[Look] | None = None, **how: object) -> Outcome:
    tell = looks.append if looks is not None else lambda _look: None
    bench = Bench(NOTHING, NOTHING, of(promised), campaign(), sides=pair, on_look=tell)
    return Pair(**how).run(bench)  # type: ignore[arg-type]


def test_what_is_far_from_the_promise_is_decided_at_the_first_look() -> None:
    looks: list[Look] = []
    kept, missed = measure(OddPair(0.8), 0.6, looks), measure(OddPair(0.8), 0.9, looks)
    assert (kept.verdicts["ratio"].kept, missed.verdicts["ratio"].kept) == (True, False)
    assert [look.number for look in looks] == [1, 1]
    assert kept.kept_conditions and not missed.kept_conditions
    result = kept.result
    assert result and result.low and result.high
    assert result.low <= 0.8 <= result.high and result.unit == "ratio"
    assert kept.verdicts["ratio"].code is missed.verdicts["ratio"].code is Code.INTERVAL
    assert kept.figures["saturation_cps"].value == pytest.approx(160_000, rel=0.1)


def test_what_is_near_is_looked_at_again_and_at_the_limit_too_close_to_call() -> None:
    looks: list[Look] = []
    pair = OddPair(1.0)
    found = measure(pair, 1.0, looks)
    assert (found.verdicts["ratio"].kept, found.verdicts["ratio"].code) == (None, Code.TOO_CLOSE)
    assert [look.found and look.found.rounds for look in looks] == list(duet.LOOKS)
    assert [look.goes_on for look in looks] == [True, True, True, False]
    assert not any(look.decided for look in looks)
    assert pair.flushes == len(looks)
    widths = [look.found.high - look.found.low for look in looks if look.found]
    assert widths[-1] < 0.6 * widths[0]


def test_a_pair_goes_on_beyond_its_second_look_while_the_run_has_time_for_that() -> None:
    looks: list[Look] = []
    budget = Repetitions(left_s=(80 - 32) * 2 * 0.05 + 1.0)  # for the third look, and not for the fourth
    bench = Bench(NOTHING, NOTHING, of(1.0), campaign(), sides=OddPair(1.0))
    found = Pair().run(replace(bench, on_look=looks.append, repetitions=budget))
    assert [look.number for look in looks] == [1, 2, 3] and budget.left_s == pytest.approx(1.0)
    assert (found.verdicts["ratio"].kept, found.verdicts["ratio"].code) == (None, Code.TOO_CLOSE)


@pytest.mark.parametrize(("directions", "packets"), [("one", 100_000), ("both", 200_000)])
def test_nothing_counts_before_each_side_has_seen_every_flow_each_way(directions: str, packets: int) -> None:
    flows = PacketProfile.model_validate(
        {"name": "flows", "kind": "packets", "flows": 100_000, "client_ips": 10, "directions": directions}
    )
    pair = OddPair(ratio=1.0, scatter=0.0, flows=dict.fromkeys(KEYS, flows.flows * flows.ways))
    bench = Bench(SharpDut(0), SharpDut(0), of(0.9, flows), campaign(), sides=pair)
    Pair().run(bench)
    slices = [200_000 * (SLICE_S - SETTLING_S) * slow(number) for number in range(pair.number)]
    warm_up = slices[: -2 * duet.LOOKS[0]]
    assert sum(warm_up) / 2 >= packets > sum(warm_up[:-2]) / 2
    Pair(looks=(16, 32)).run(replace(bench, floor=of(None, flows)))
    assert pair.flushes == 2, "the second look goes on with what is known"


def of_scale(*, alone: bool, rounds: int) -> OddPair:
    """A pair of which the tested side knows 100 000 flows, and the other one 5000."""
    pair = OddPair(ratio=1.0, scatter=0.0, flows={"tested": 200_000, "other": 10_000}, alone=alone)
    bench = Bench(SharpDut(0), SharpDut(0), floor_of(ConnectionProfile(name="new")), campaign(), sides=pair)
    Pair(looks=(rounds,)).run(bench)
    return pair


def test_tables_of_two_sizes_are_filled_again_before_new_connections_are_as_many() -> None:
    pair = of_scale(alone=False, rounds=40)
    assert pair.flushes == 3 and pair.order.count("tested") > 2 * pair.order.count("other")
    assert pair.order.count("other") <= 40 + 3 * 4, "a slice of 37.5 ms has 7500 packets at most, of 10 000"


def test_where_both_are_in_one_hash_table_each_turn_begins_with_the_entries_of_one_side_alone() -> None:
    pair = of_scale(alone=True, rounds=16)
    assert pair.flushes == 2 * 16
    turns = [side for at, side in enumerate(pair.order) if not at or pair.order[at - 1] != side]
    assert turns[:4] == ["tested", "other", "tested", "other"]


def test_where_the_generator_or_every_round_is_spoilt_nothing_is_decided() -> None:
    found = measure(OddPair(0.5, spoilt=lambda _: True), 0.9)
    assert (found.verdicts["ratio"].kept, found.verdicts["ratio"].code) == (None, Code.NOTHING)
    assert found.figures == {}
    assert found.evidence.pairs[0].looks == []
    found = measure(OddPair(1.0, waited={"other": 0.9}))
    assert (found.limited_by, found.figures) == ("generator", {})


def test_a_tested_side_through_which_nothing_comes_is_missed_and_a_dead_reference_is_a_fault() -> None:
    pair = OddPair(0.0)
    found = measure(pair, 0.6)
    assert found.verdicts["ratio"].kept is False and found.result and found.result.value < 0.01
    assert found.verdicts["ratio"].code is Code.STOOD_STILL
    assert found.evidence.pairs[0].tested.stalled == 1 and "stood still for 100.0 %" in found.reason
    assert pair.number < 200  # flows that never come are not waited for

    dead = measure(OddPair(1.0, rate=0.0), 0.6)
    assert (dead.limited_by, dead.verdicts["ratio"].code, dead.figures) == ("fault", Code.FAULT, {})


def test_stalls_break_a_promise_that_the_middle_keeps() -> None:
    found = measure(OddPair(1.0, stalls=lambda number: number % 9 in (0, 1)), 0.95)
    verdict, record = found.verdicts["ratio"], found.evidence.pairs[0]
    assert verdict.kept is False and verdict.code is Code.STOOD_STILL
    assert found.result and found.result.value < 0.9
    assert record.result and record.result.high > 0.95 and 0.1 < record.tested.stalled < 0.4
    assert record.other.stalled == 0 and "over all of the time" in verdict.reason


@pytest.mark.parametrize(
    ("waited", "promised", "kept"),
    [
        ({}, 0.6, True), ({}, 0.9, False),
        ({"tested": 0.9}, 0.6, True), ({"tested": 0.9}, 0.9, None),  # the tested one may be faster
        ({"other": 0.9}, 0.6, None), ({"other": 0.9}, 0.9, False),  # the other one may be
        ({"tested": 0.9, "other": 0.9}, 0.6, None), ({"tested": 0.9, "other": 0.9}, 0.9, None),
        ({"tested": 0.4, "other": 0.4}, 0.9, False),
    ],
)  # fmt: skip
def test_a_side_that_waited_may_be_faster_still(waited: dict[Side, float], promised: float, kept: bool | None) -> None:
    looks: list[Look] = []
    found = measure(OddPair(0.8, waited=waited), promised, looks)
    assert found.verdicts["ratio"].kept is kept
    assert found.verdicts["ratio"].code is (Code.GENERATOR if kept is None else Code.INTERVAL)
    assert [look.decided for look in looks] == [True]  # more rounds would tell no more
    record = found.evidence.pairs[0]
    assert (record.tested.held, record.other.held) == pytest.approx((waited.get("tested", 0), waited.get("other", 0)))
    assert ("saturation_cps" in found.figures) == (waited.get("tested", 0) < 0.5)


PACKETS = PacketProfile(name="packets", kind="packets")


def limited(
    generator: float, profile: Profile = PACKETS, promised: float | None = 0.9, *, like: bool = True
) -> tuple[SimulatedPair, Outcome]:
    """Of sides that serve 160 k/s and 200 k/s, with a generator that serves so many per second in a closed loop."""
    pair = SimulatedPair(ratio=0.8, rate=200_000, scatter=0.01, generator=generator, like=like)
    bench = Bench(NOTHING, NOTHING, of(promised, profile), campaign(), sides=pair)
    return pair, Pair().run(bench)


@pytest.mark.parametrize("generator", [100_000, 180_000])  # the limit of both, and of the other one
@pytest.mark.parametrize("promised", [0.9, None])
def test_packets_of_which_the_generator_is_the_limit_come_from_backlogs(
    generator: float, promised: float | None
) -> None:
    pair, found = limited(generator, promised=promised)
    record = found.evidence.pairs[0]
    assert found.result and found.result.value == pytest.approx(0.8, rel=0.02)
    assert record.served == "from backlogs" and record.tested.held == record.other.held == 0
    assert pair.of_backlogs == duet.ROUND * len(record.ratios) and found.limited_by == "dut"
    assert "from backlogs, as the traffic generator was the limit of a closed loop" in found.reason
    assert "saturation_pps" not in found.figures, "which is what is served in a closed loop"
    if promised:
        assert found.verdicts["ratio"].kept is False and found.verdicts["ratio"].code is Code.INTERVAL


def test_backlogs_are_for_packets_through_like_code_and_only_where_a_closed_loop_says_nothing() -> None:
    pair, found = limited(300_000)
    assert pair.of_backlogs == 0 and found.evidence.pairs[0].served == "in a closed loop"
    for pair, found in (limited(100_000, SHORT), limited(100_000, like=False)):
        assert pair.of_backlogs == 0 and found.verdicts["ratio"].code is Code.GENERATOR


@pytest.mark.parametrize("promised", [0.6, None])
def test_a_dut_that_dies_ends_it_with_what_was_measured_until_then(promised: float | None) -> None:
    killed = measure(OddPair(0.8, breaks_at=30), promised)
    assert (killed.limited_by, killed.kept_conditions, killed.figures) == ("fault", False, {})
    assert killed.reason == "ovs-vswitchd (process 16) was killed by SIGKILL."
    assert all(verdict.kept is None for verdict in killed.verdicts.values())
    gone = measure(OddPair(0.8, problems=[Problem("fatal", "It restarted.")]), promised)
    assert (gone.limited_by, gone.reason, len(gone.evidence.pairs[0].ratios) >= 16) == ("fault", "It restarted.", True)
