"""How much a pair can show, on simulated DUTs: what docs/evidence says of pairs.

Run by hand: .venv/bin/python -m tools.benchmarks.pairs [--runs 200]
Nothing is measured, everything is seeded: the same tables come out each time."""

import argparse
import math
import random
import statistics
from dataclasses import dataclass
from functools import cache

from unit.simulated import floor_of, made_up_floor

from ctbench.base.yaml_files import load
from ctbench.measure.campaign import Campaign
from ctbench.measure.duet import LOOKS, ROUND, log_ratio, rounds_of, turns
from ctbench.measure.procedure import Bench
from ctbench.measure.procedures.pair import SLICE_S, Pair
from tools.benchmarks.machine import Machine, quiet
from tools.benchmarks.shared import SharedPair

#: How much slower a build is.
SLOWER = (0.02, 0.03, 0.05, 0.1)
#: How far the true ratio is from what was promised.
APART = (-0.05, -0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.05)


@dataclass(frozen=True)
class Noise:
    """How a pair's slices scatter."""

    name: str
    #: Of a slice: its own scatter, and how often something disturbs it.
    scatter: float
    disturbed: float = 0.0125
    hopping: bool = False

    def pair(self, ratio: float, seed: object) -> SharedPair:
        """A pair with this ratio."""
        machine = Machine(seed=f"{seed}") if self.hopping else quiet()
        return SharedPair(ratio, scatter=self.scatter, disturbed=self.disturbed, machine=machine, seed=f"{seed}")


NOISES = (
    Noise("slices scatter by 1.2 %", 0.012),
    Noise("2 %", 0.02),
    Noise("3 %", 0.03),
    Noise("a machine that hops between speeds", 0.046, hopping=True),
)


def bench(pair: SharedPair, promised: float | None) -> Bench:
    """Where the pair is measured."""
    profile = made_up_floor().profile
    floor = floor_of(profile) if promised is None else floor_of(profile, ratio=promised)
    return Bench(None, None, floor, campaign(), sides=pair)  # type: ignore[arg-type]


@cache
def campaign() -> Campaign:
    """Any: pairs are the same with all."""
    return load("campaigns", "quick", Campaign)


def precision(runs: int) -> None:
    """Print how wide the interval is, and how often it is wrong."""
    after = " | ".join(f"{rounds} rounds ({rounds * ROUND * SLICE_S:.1f} s)" for rounds in LOOKS)
    print(f"| | sd of a round | {after} | wrong at any look |\n|{'---|' * (len(LOOKS) + 3)}")
    for noise in NOISES:
        made = [bench(noise.pair(1.0, seed), None) for seed in range(runs)]
        found = [Pair(looks=LOOKS).run(each).evidence.pairs[0].looks for each in made]
        halves = [
            statistics.median(max(each[at].value - each[at].low, each[at].high - each[at].value) for each in found)
            for at in range(len(LOOKS))
        ]
        wrong = sum(any(not look.low <= 1 <= look.high for look in each) for each in found) / runs
        cells = " | ".join(f"± {half:.1%}" for half in halves)
        print(f"| {noise.name} | {deviation(noise):.1%} | {cells} | {wrong:.1%} |")


def deviation(noise: Noise) -> float:
    """Standard deviation of a round's log ratio, disturbances included."""
    slices = noise.pair(1.0, "deviation").run_slices(turns(0, 4000), SLICE_S)
    return statistics.stdev(log for parts in rounds_of(slices) if (log := log_ratio(parts)) is not None)


def verdicts(runs: int) -> None:
    """Print what is said of a promise, by how far the truth is from it."""
    print(
        f"| truth against the promise | {' | '.join(noise.name for noise in NOISES)} |\n|{'---|' * (len(NOISES) + 1)}"
    )
    for apart in APART:
        print(f"| {apart:+.0%} | {' | '.join(told(noise, apart, runs) for noise in NOISES)} |")


def told(noise: Noise, apart: float, runs: int, starts: float = 0.0) -> str:
    """Met, missed and too close, percent, and the seconds of slices needed. `starts`: by how much (sd) the ratio
    differs from one start of the DUTs to the next."""
    words, seconds = [], []
    for seed in range(runs):
        start = math.exp(random.Random(f"start {seed}").gauss(0, starts))
        pair = noise.pair((1 + apart) * start, f"{noise.name} {apart} {seed}")
        words.append(Pair().run(bench(pair, 1.0)).verdicts["ratio"].kept)
        seconds.append(len(pair.order) * SLICE_S)
    shares = " / ".join(f"{words.count(word) / runs:.0%}" for word in (True, False, None))
    return f"{shares}, {statistics.mean(seconds):.0f} s"


def starts(runs: int) -> None:
    """Print what one start of both DUTs can be trusted with: the interval knows nothing of other starts."""
    columns = (0.0, 0.01, 0.02, 0.03)
    print(f"| truth against the promise | {' | '.join(f'starts differ by {sd:.0%}' for sd in columns)} |")
    print("|---|---|---|---|---|")
    for apart in (-0.05, -0.03, -0.02, 0.0, 0.02, 0.03, 0.05, 0.1):
        print(f"| {apart:+.0%} | {' | '.join(told(NOISES[1], apart, runs, sd) for sd in columns)} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="pairs for each cell (default: %(default)s)")
    runs = parser.parse_args().runs
    print("\nThe interval of a pair:\n")
    precision(2 * runs)
    print("\nA promised ratio, met / missed / too close to call, and seconds of slices:\n")
    verdicts(runs)
    print("\nThe same where the ratio differs from start to start (slices scatter by 2 %):\n")
    starts(runs)


if __name__ == "__main__":
    main()
