"""How a floor is decided on a machine that scatters, on simulated DUTs: what docs/evidence says of floors.

Run by hand: .venv/bin/python -m tools.benchmarks.floor [--runs 400]
Nothing is measured, everything is seeded: the same tables come out each time."""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import log
from statistics import NormalDist

from unit.simulated import HealthyDut, made_up_floor

from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.promises import PROMISES
from ctbench.measure.sequential import MOST_TRIALS, KnownRates, SequentialTest
from ctbench.measure.trial import MOST_INVALID
from ctbench.results.verdict import ERROR, GOOD_IF_KEPT, GOOD_IF_NOT
from ctbench.run.measurement import plan
from ctbench.sla.verdict import judge
from ctbench.traffic.loads import Rate, Saturation
from tools.benchmarks.machine import Machine
from tools.benchmarks.shared import SharedDut

#: Connections per second, and the length of a trial of the sequential test alone.
FLOOR, TRIAL_S = 100e3, 1.0
#: More than any load.
CEILING = 1e6
#: How far the capacity is from the floor.
APART = (-0.10, -0.05, -0.02, 0.0, 0.02, 0.05, 0.10, 0.30)


@dataclass(frozen=True)
class Setting:
    """A machine, and what its DUT does in a closed loop."""

    name: str
    #: Standard deviation of the capacity from trial to trial.
    noise: float = 0.07
    #: What a closed loop shows, relative to the capacity.
    saturation: float = 1.0
    hopping: bool = False

    def dut(self, capacity: float, seed: int) -> SharedDut:
        """A DUT of which half of the trials hold `capacity`."""
        if not self.hopping:
            return SharedDut(capacity, noise=self.noise, saturation=self.saturation, seed=seed)
        return SharedDut(capacity / held_by_half(), ring=16_384, machine=Machine(seed=seed), seed=seed)


SEVEN = Setting("7 %")
SCATTERS = (Setting("5 %", 0.05), SEVEN, Setting("10 %", 0.10))
WHOLE = (
    SEVEN,
    Setting("7 %, a closed loop shows 15 % more", saturation=1.15),
    Setting("it hops between speeds", hopping=True),
)


@cache
def held_by_half() -> float:
    """The load, relative to the mean capacity, that half of the trials hold on a machine that hops."""
    low, high = 0.5, 1.2
    while high - low > 0.002:
        middle = (low + high) / 2
        duts = [SharedDut(FLOOR, ring=16_384, machine=Machine(seed=f"half {seed}"), seed=seed) for seed in range(300)]
        held = sum(dut.offer(Rate(FLOOR * middle), TRIAL_S).good for dut in duts)
        low, high = (middle, high) if held >= len(duts) / 2 else (low, middle)
    return low


@dataclass(frozen=True)
class Told:
    """What was said of one floor, and what it took."""

    word: str
    trials: int
    seconds: float

    @classmethod
    def of(cls, kept: bool | None, dut: SharedDut) -> "Told":
        """After all trials."""
        word = {True: "met", False: "missed", None: "not measured"}[kept]
        return cls(word, len(dut.loads), sum(dut.durations))


Decide = Callable[[Setting, float, int], Told]


def sequential(setting: Setting, apart: float, seed: int, headroom: float = 0.0) -> Told:
    """The sequential test alone: nothing is known before."""
    dut = setting.dut(FLOOR * (1 + apart), seed)
    return Told.of(SequentialTest(dut, FLOOR * (1 + headroom), TRIAL_S, KnownRates()).run().verdicts["cps"].kept, dut)


def whole(campaign: Campaign, setting: Setting, apart: float, seed: int) -> Told:
    """All that an acceptance run does for one floor: closed loop, search, trials at the floor."""
    dut, floor = setting.dut(FLOOR * (1 + apart), seed), made_up_floor(f">= {FLOOR:.0f}", pps=None)
    outcome: Outcome | None = None
    for procedure in plan(PROMISES["connection rate"], campaign, Topology(), floor.profile).alone(
        floor, {Rate, Saturation}
    ):
        bench = Bench(
            HealthyDut(), dut, floor, campaign, ceiling=CEILING, earlier=outcome,
        )  # fmt: skip
        found = procedure.run(bench)
        outcome = outcome.merged(found) if outcome else found
    assert outcome is not None
    return Told(judge(outcome, floor, CEILING).word, len(dut.loads), sum(dut.durations))


def two_of_three(setting: Setting, apart: float, seed: int) -> Told:
    """Decide as the gate did before: two of three trials of 5 s, 1 % above the floor."""
    dut = setting.dut(FLOOR * (1 + apart), seed)
    held: list[bool] = []
    while max(held.count(True), held.count(False)) < 2:
        held.append(dut.offer(Rate(FLOOR * 1.01), 5.0).good)
    return Told.of(held.count(True) == 2, dut)


def cell(decide: Decide, setting: Setting, apart: float, runs: int) -> str:
    """Met, missed and not measured, and what it took."""
    told = [decide(setting, apart, seed) for seed in range(runs)]
    words = [each.word for each in told]
    shares = " / ".join(f"{words.count(word) / runs:.0%}" for word in ("met", "missed", "not measured"))
    trials = statistics.mean(each.trials for each in told)
    return f"{shares}; {trials:.1f}, {statistics.mean(each.seconds for each in told):.0f} s"


def table(columns: Sequence[tuple[str, Decide, Setting]], runs: int) -> None:
    """Print a row for each distance of the capacity from the floor."""
    print(f"| capacity | {' | '.join(name for name, _, _ in columns)} |\n|{'---|' * (len(columns) + 1)}")
    for apart in APART:
        print(f"| {apart:+.0%} | {' | '.join(cell(decide, each, apart, runs) for _, decide, each in columns)} |")


def chance_good(apart: float, noise: float) -> float:
    """How often a trial at the floor is good."""
    return NormalDist().cdf(apart / noise)


def valid(good: float, void: float, *, bad_only: bool) -> tuple[float, float]:
    """The chances that a trial is made that counts, and is good or bad, where a share `void` of all trials (or of the
    bad ones only, as it was before) says nothing and is made again, until three in a row did not."""
    kept, failed = good * (1.0 if bad_only else 1 - void), (1 - good) * (1 - void)
    again = sum((1 - kept - failed) ** number for number in range(MOST_INVALID))
    return kept * again, failed * again


def exactly(
    kept: float, not_kept: float, error: float, most: int, good: float, bad: float | None = None
) -> tuple[float, float, float, float]:
    """What Wald's test of two chances of a good trial says where the chances are `good` and `bad` (the rest ends it):
    met, missed, not measured, and the trials it takes in the mean."""
    up, down, bound = log(kept / not_kept), log((1 - kept) / (1 - not_kept)), log((1 - error) / error)
    bad = 1 - good if bad is None else bad
    undecided = {(0, 0): 1.0}
    met = missed = trials = 0.0
    for _ in range(most):
        trials += sum(undecided.values())
        going = undecided
        undecided = defaultdict(float)
        for (held, failed), weight in going.items():
            for step, part in (((1, 0), good), ((0, 1), bad)):
                counts = held + step[0], failed + step[1]
                evidence = counts[0] * up + counts[1] * down
                if evidence >= bound:
                    met += weight * part
                elif evidence <= -bound:
                    missed += weight * part
                else:
                    undecided[counts] += weight * part
    return met, missed, 1 - met - missed, trials


def voided() -> None:
    """Print what a machine does that voids trials, at 7 % noise and 1 % more offered: counted as well."""
    columns = [(share, only) for share in (0.0, 1 / 3, 2 / 3) for only in (True, False)][1:]
    heads = [f"{share:.0%} of {'the bad ones' if only else 'all'}" for share, only in columns]
    print(f"| capacity | {' | '.join(heads)} |\n|{'---|' * (len(columns) + 1)}")
    for apart in APART[:-1]:
        cells = []
        for share, only in columns:
            chances = valid(chance_good(apart - 0.01, 0.07), share, bad_only=only)
            *shares, _ = exactly(GOOD_IF_KEPT, GOOD_IF_NOT, ERROR, MOST_TRIALS, *chances)
            cells.append(" / ".join(f"{each:.0%}" for each in shares))
        print(f"| {apart:+.0%} | {' | '.join(cells)} |")


def rules() -> None:
    """Print what other chances would give, at 7 % noise: not simulated, but counted."""
    print(
        f"| chances of a good trial | {' | '.join(f'{apart:+.0%}' for apart in APART[:-1])} |\n|{'---|' * len(APART)}"
    )
    for kept, not_kept in (
        (GOOD_IF_KEPT, GOOD_IF_NOT),
        (0.8, 0.2),
        (0.7, 0.3),
        (0.8, 0.4),
        (0.85, 0.4),
        (0.9, 0.3),
        (0.9, 0.5),
    ):
        cells = []
        for apart in APART[:-1]:
            *shares, trials = exactly(kept, not_kept, ERROR, MOST_TRIALS, chance_good(apart, 0.07))
            cells.append(f"{' / '.join(f'{each:.0%}' for each in shares)}; {trials:.1f}")
        print(f"| {kept:g} against {not_kept:g} | {' | '.join(cells)} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="floors for each cell (default: %(default)s)")
    runs = parser.parse_args().runs
    quick, gate = (load("campaigns", name, Campaign) for name in ("quick", "gate"))
    print("\nThe sequential test alone: met / missed / not measured; trials, traffic:\n")
    alone: list[tuple[str, Decide, Setting]] = [("two of three, as before, 7 %", two_of_three, SEVEN)]
    alone += [(each.name, sequential, each) for each in SCATTERS]
    table([*alone, ("7 %, 1 % more offered", partial(sequential, headroom=0.01), SEVEN)], runs)
    print("\nAll that an acceptance run does for a floor:\n")
    columns: list[tuple[str, Decide, Setting]] = [("gate, 7 %", partial(whole, gate), SEVEN)]
    table([*columns, *((f"quick, {each.name}", partial(whole, quick), each) for each in WHOLE)], runs)
    print("\nOther chances, counted exactly, 7 % noise: met / missed / not measured; trials:\n")
    rules()
    print("\nTrials that are voided, counted exactly: met / missed / not measured:\n")
    voided()
    print(f"\nOn the machine that hops half of the trials hold {held_by_half():.2f} of the mean capacity.")


if __name__ == "__main__":
    main()
