"""The procedure of a pair: looks until a ratio is decided, what it tells, and what it does where something breaks."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from ctbench.base.errors import ConfigError, GeneratorError, MissingResource, TestbedError
from ctbench.dut.base import Problem
from ctbench.measure import pairs
from ctbench.measure.procedure import Bench, Code, Look, Outcome
from ctbench.measure.procedures.pair import Pair
from ctbench.report import console
from ctbench.results.evidence import SideRecord
from ctbench.testbed.pair import InTurn, SideBySide
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.profiles import PacketProfile, Profile

from .simulated import LIMITS, SHORT, campaign
from .test_procedure import SharpDut

pytestmark = pytest.mark.unit

SIDES: Mapping[Side, SideRecord] = {
    "tested": SideRecord(key="linux-router/iptables-stateful/1cpu-1rxq"),
    "other": SideRecord(key="linux-router/forward/1cpu-1rxq"),
}


@dataclass
class SimulatedPair(SideBySide):
    """Two DUTs side by side. The machine's speed changes every 40 slices, for both alike."""

    ratio: float
    noise: float = 0.02
    #: Which slices are spoilt, by their number.
    spoilt: Callable[[int], bool] = lambda _: False
    lost: int = 0
    problems: list[Problem] = field(default_factory=list)
    #: Raised in the slice of this number.
    breaks_at: int | None = None
    #: Share of each side's time in which it waited for the generator.
    waited: Mapping[Side, float] = field(default_factory=dict)
    served: list[Side] = field(default_factory=list)
    flushed: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(3)

    def sides(self) -> Mapping[Side, SideRecord]:
        return SIDES

    def flush(self) -> None:
        self.flushed += 1

    def health(self) -> list[Problem]:
        return self.problems

    def run_slices(self, order: Sequence[Side], slice_s: float) -> list[Slice]:
        made = []
        for side in order:
            if self.breaks_at == len(self.served):
                raise GeneratorError("ovs-vswitchd (process 16) was killed by SIGKILL.")
            state = 0.6 if len(self.served) // 40 % 3 == 1 else 1.0
            rate = 200_000 * state * (self.ratio if side == "tested" else 1) * self.random.gauss(1, self.noise)
            pause = 1000 * slice_s if self.spoilt(len(self.served)) else 0.0
            completed = round(rate * slice_s)
            lost = self.lost if side == "tested" else 0
            made.append(
                Slice(
                    side=side, seconds=slice_s, completed=completed, lost=lost, pause_ms=pause,
                    waited=self.waited.get(side, 0.0),
                )
            )  # fmt: skip
            self.served.append(side)
        return made


def measure(
    pair: SimulatedPair, promised: float | None = None, looks: list[Look] | None = None, **how: object
) -> Outcome:
    tell = looks.append if looks is not None else lambda _look: None
    nothing = SharpDut(1.0)
    bench = Bench(
        nothing, nothing, SHORT, LIMITS, campaign(), sides=pair, promised_ratio=promised, on_look=tell  # type: ignore[arg-type]
    )  # fmt: skip
    return Pair(**how).run(bench)  # type: ignore[arg-type]


def test_what_is_far_from_the_promise_is_decided_at_the_first_look() -> None:
    looks: list[Look] = []
    kept, missed = measure(SimulatedPair(0.8), 0.6, looks), measure(SimulatedPair(0.8), 0.9, looks)
    assert (kept.decisions["ratio"].kept, missed.decisions["ratio"].kept) == (True, False)
    assert [look.number for look in looks] == [1, 1]
    assert kept.kept_conditions and not missed.kept_conditions
    result = kept.result
    assert result and result.low and result.high
    assert result.low <= 0.8 <= result.high and result.unit == "ratio"
    assert "of linux-router/forward/1cpu-1rxq, at least 60 % promised" in kept.decisions["ratio"].reason
    assert kept.figures["saturation_cps"].value == pytest.approx(160_000, rel=0.1)


def test_what_is_near_is_looked_at_again_and_at_the_limit_too_close_to_call() -> None:
    looks: list[Look] = []
    pair = SimulatedPair(1.0)
    found = measure(pair, 1.0, looks)
    assert (found.decisions["ratio"].kept, found.decisions["ratio"].code) == (None, Code.TOO_CLOSE)
    assert [look.found and look.found.rounds for look in looks] == list(pairs.LOOKS)
    assert [look.left_s for look in looks] == sorted([look.left_s for look in looks], reverse=True)
    assert looks[-1].left_s == 0 and not any(look.decided for look in looks)
    assert pair.flushed == len(looks)
    widths = [look.found.high - look.found.low for look in looks if look.found]
    assert widths[-1] < 0.6 * widths[0]


def test_without_a_promise_only_the_ratio_is_wanted() -> None:
    found = measure(SimulatedPair(1.05))
    assert found.decisions == {} and found.evidence.pairs[0].looks[-1].rounds == 48
    assert len(measure(SimulatedPair(1.05), looks=None, **{"slice_s": 0.02}).evidence.pairs[0].ratios) == 48
    assert found.result and found.result.value == pytest.approx(1.05, rel=0.02)


@pytest.mark.parametrize(("directions", "packets"), [("one", 100_000), ("both", 200_000)])
def test_nothing_counts_before_each_side_has_seen_every_flow_each_way(directions: str, packets: int) -> None:
    pair = SimulatedPair(ratio=1.0, noise=0.0)
    flows = PacketProfile.model_validate(
        {"name": "flows", "kind": "packets", "flows": 100_000, "client_ips": 10, "directions": directions}
    )
    bench = Bench(SharpDut(0), SharpDut(0), flows, LIMITS, campaign(), sides=pair, promised_ratio=0.9)
    Pair(slice_s=0.1).run(bench)
    slices = [200_000 * 0.1 * (0.6 if number // 40 % 3 == 1 else 1.0) for number in range(len(pair.served))]
    warm_up = slices[: -2 * pairs.LOOKS[0]]
    assert sum(warm_up) / 2 >= packets > sum(warm_up[:-2]) / 2


def test_the_record_has_what_the_ratio_stands_on() -> None:
    record = measure(SimulatedPair(0.8, spoilt=lambda number: number in (11, 20, 21, 30)), 0.6).evidence.pairs[0]
    assert (record.how, record.slice_s, record.dropped, len(record.ratios)) == ("side by side", 0.05, 3, 16)
    assert record.tested.key == SIDES["tested"].key and record.other.rate == pytest.approx(200_000, rel=0.5)
    assert record.result is not None and record.result.rounds == 16


def test_where_every_round_is_spoilt_nothing_is_decided_and_it_ends() -> None:
    found = measure(SimulatedPair(0.5, spoilt=lambda _: True), 0.9)
    assert found.decisions["ratio"].kept is None and found.figures == {}
    assert "had to be dropped: the traffic generator stood still" in found.reason
    assert found.evidence.pairs[0].looks == []


def test_losses_above_the_limit_are_told() -> None:
    told = measure(SimulatedPair(0.8, lost=100), 0.6)
    assert "% of the connections of linux-router/iptables-stateful/1cpu-1rxq were lost in its turns" in told.reason
    assert told.evidence.pairs[0].tested.lost > 0 and told.evidence.pairs[0].other.lost == 0
    assert "lost" not in measure(SimulatedPair(0.8), 0.6).reason


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
def test_a_side_that_waited_for_the_generator_may_be_faster_than_was_seen(
    waited: dict[Side, float], promised: float, kept: bool | None
) -> None:
    looks: list[Look] = []
    found = measure(SimulatedPair(0.8, waited=waited), promised, looks)
    assert found.decisions["ratio"].kept is kept
    assert found.decisions["ratio"].code is (Code.GENERATOR if kept is None else Code.INTERVAL)
    assert [look.decided for look in looks] == [True]  # more rounds would tell no more
    record = found.evidence.pairs[0]
    assert (record.tested.held, record.other.held) == pytest.approx((waited.get("tested", 0), waited.get("other", 0)))
    assert ("saturation_cps" in found.figures) == (waited.get("tested", 0) < 0.5)


def test_where_only_the_ratio_is_wanted_there_is_none_of_the_generator_to_itself() -> None:
    found = measure(SimulatedPair(1.0, waited={"other": 0.9}))
    assert (found.limited_by, found.figures) == ("generator", {})
    assert found.reason.startswith("the traffic generator was the limit of linux-router/")


@pytest.mark.parametrize("promised", [0.6, None])
def test_a_dut_that_dies_ends_it_with_what_was_measured_until_then(promised: float | None) -> None:
    killed = measure(SimulatedPair(0.8, breaks_at=30), promised)
    assert (killed.limited_by, killed.kept_conditions, killed.figures) == ("fault", False, {})
    assert killed.reason == "ovs-vswitchd (process 16) was killed by SIGKILL."
    assert all(decision.kept is None for decision in killed.decisions.values())
    fatal = measure(SimulatedPair(0.8, problems=[Problem("fatal", "It restarted.")]), promised)
    assert (fatal.limited_by, fatal.reason, len(fatal.evidence.pairs[0].ratios) >= 16) == (
        "fault",
        "It restarted.",
        True,
    )


def test_what_is_no_fault_is_noted() -> None:
    found = measure(SimulatedPair(0.8, problems=[Problem("warning", "It lost 3 packets.")]), 0.6)
    assert found.evidence.pairs[0].notes == ["It lost 3 packets."] and found.limited_by == "dut"


def test_nothing_to_compare_with_is_a_mistake() -> None:
    nothing = SharpDut(1.0)
    with pytest.raises(ConfigError, match=r"Expected two set-ups\."):
        Pair().run(Bench(nothing, nothing, SHORT, LIMITS, campaign()))


@pytest.mark.parametrize("ratio", [0.8, 1.0])
def test_a_look_is_a_line_of_the_console(ratio: float) -> None:
    looks: list[Look] = []
    measure(SimulatedPair(ratio), 1.0, looks)
    lines = [console.look_line(look) for look in looks]
    assert lines[0].startswith("  look 1") and "16 rounds" in lines[0] and "at least 100 %" in lines[0]
    assert "±" in lines[0] and max(map(len, lines)) <= 100
    assert ("decided" in lines[0]) is (ratio == 0.8)
    assert ("at most ~" in lines[0]) is (ratio == 1.0)
    assert console.look_line(Look(1, None, None, False, 0.0)) == "  look 1               ratio too few that count"


class SimulatedLab(InTurn):
    """One DUT that is set up again for each turn."""

    why = "The links end at network cards."

    def __init__(self, ratio: float, *, noise: float = 0.0, error: Exception | None = None) -> None:
        self.random, self.ratio, self.noise, self.error = random.Random(5), ratio, noise, error
        self.turned: list[Side] = []

    def sides(self) -> Mapping[Side, SideRecord]:
        return SIDES

    def turn(self, side: Side) -> tuple[SharpDut, SharpDut]:
        self.turned.append(side)
        if self.error and side == "other":
            raise self.error
        capacity = 200_000 * (self.ratio if side == "tested" else 1) * self.random.gauss(1, self.noise)
        dut = SharpDut(capacity)
        return dut, dut


def in_turn(lab: SimulatedLab, promised: float | None = None, looks: list[Look] | None = None) -> Outcome:
    tell = looks.append if looks is not None else lambda _look: None
    nothing, how = SharpDut(1.0), campaign(bisection={"trial_duration": "500ms", "max_iterations": 12,
                                                      "relative_width": "1%"})  # fmt: skip
    bench = Bench(nothing, nothing, SHORT, LIMITS, how, sides=lab, promised_ratio=promised, on_look=tell)
    return Pair().run(bench)


def test_a_lab_sets_its_dut_up_in_turn_and_three_blocks_decide_what_is_clear() -> None:
    lab, looks = SimulatedLab(0.7), list[Look]()
    found = in_turn(lab, 0.5, looks)
    assert lab.turned == ["tested", "other", "other", "tested"] * 3
    assert found.decisions["ratio"].kept is True and [look.number for look in looks] == [1]
    record = found.evidence.pairs[0]
    assert (record.how, record.slice_s, len(record.ratios)) == ("reconfigured", 0.0, 3)
    assert record.notes == [lab.why] and record.other.rate == pytest.approx(200_000, rel=0.05)
    assert found.result and found.result.value == pytest.approx(0.7, rel=0.02)
    assert "saturation_cps" not in found.figures
    assert [step.number for step in found.steps] == sorted(step.number for step in found.steps)


def test_six_blocks_are_the_limit_and_the_interval_says_what_the_scatter_costs() -> None:
    lab = SimulatedLab(1.0, noise=0.05)
    found = in_turn(lab, 1.0)
    assert len(lab.turned) == 24 and found.decisions["ratio"].code is Code.TOO_CLOSE
    assert found.result and found.result.low and found.result.high
    assert found.result.high - found.result.low > 0.05


def test_a_set_up_that_fails_is_a_fault_and_one_that_is_missing_is_not() -> None:
    failed = in_turn(SimulatedLab(1.0, error=TestbedError("It is not set up.")), 0.5)
    assert (failed.limited_by, failed.reason) == ("fault", "It is not set up.")
    missing = in_turn(SimulatedLab(1.0, error=MissingResource("No such module.")), 0.5)
    assert (missing.limited_by, missing.reason, missing.figures) == ("dut", "No such module.", {})
    assert missing.decisions["ratio"].kept is None


def test_a_profile_is_known_by_its_kind() -> None:
    profile: Profile = SHORT
    assert Pair().metric(profile).name == "ratio" and Pair().expected(profile, campaign()).trials == 0
