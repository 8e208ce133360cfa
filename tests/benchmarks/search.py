"""How much traffic the searches need and how wrong they are, on simulated DUTs: the tables of docs/evidence.

Run by hand: PYTHONPATH=libraries:tests .venv/bin/python tests/benchmarks/search.py [--runs 100]
Nothing is measured, everything is seeded: the same tables come out each time. How often ./run compare is wrong comes
last.
"""

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unit.simulated import SimulatedDut

from ctbench.compare.limits import LEAST_DIFFERENCE
from ctbench.measure.campaign import Bisection, Mlr
from ctbench.measure.search import search
from ctbench.results.statistics import holm, needed_samples, p_smaller

#: What the DUTs do; all but the first have a noise of 0.5 % from trial to trial.
MODELS: dict[str, dict[str, float]] = {
    "deterministic": {},
    "noise of 0.5 %": {"noise": 0.005},
    "5 % of the trials disturbed": {"noise": 0.005, "disturbed": 0.05},
    "overload: 70 % of the capacity": {"noise": 0.005, "overload": 0.7},
    "collapse to a tenth under overload": {"noise": 0.005, "overload": 0.1},
    "collapse, 5 % disturbed": {"noise": 0.005, "overload": 0.1, "disturbed": 0.05},
    "slow start (20 % less, 60 s)": {"noise": 0.005, "cold": 0.2},
    "overload costs the next trial 5 %": {"noise": 0.005, "carried_over": 0.05},
}
#: As wide as the published procedure ends at its 41.6 k/s.
WIDTH = "0.93%"


@dataclass(frozen=True)
class Contestant:
    """A search, and how far its hint is from the truth at most; None: it has none."""

    name: str
    settings: Bisection | Mlr
    hint: float | None = None


def bisection(**keys: Any) -> Bisection:
    """A bisection with these settings, as a campaign has them."""
    return Bisection.model_validate({"max_iterations": 16} | keys)


def mlr(**keys: Any) -> Mlr:
    """A search with MLRsearch with these settings, as a campaign has them."""
    return Mlr.model_validate(keys)


NARROW = {"relative_width": WIDTH, "recheck": True}
PUBLISHED = bisection(trial_duration="30s", middle="arithmetic", max_iterations=8)
LONG = (
    Contestant("published: 8 x 30 s", PUBLISHED),
    Contestant("bisection 10 s, final 30 s", bisection(trial_duration="10s", final_duration="30s", **NARROW)),
    Contestant("mlr 3 s to 10 s", mlr(trial_duration="3s", final_duration="10s", **NARROW)),
    Contestant("mlr 5 s to 30 s, hint ± 10 %", mlr(trial_duration="5s", final_duration="30s", **NARROW), 0.1),
)
QUICK = {"trial_duration": "1s", "final_duration": "2s", "relative_width": "15%"}
SHORT = (
    Contestant("bisection as in quick, hint ± 10 %", bisection(**QUICK), 0.1),
    Contestant("mlr 1 s to 2 s, hint ± 10 %", mlr(**QUICK), 0.1),
)
NARROWER = {"trial_duration": "1s", "final_duration": "2s", "relative_width": "2%", "recheck": True}
COMPARE = (
    Contestant("bisection with recheck, 2 % wide", bisection(**NARROWER)),
    Contestant("mlr as in compare, 2 % wide", mlr(**NARROWER)),
)


def table(
    contestants: Sequence[Contestant], runs: int, draw: Callable[[random.Random], float], *, floored: bool
) -> None:
    """Print a row for each DUT, a column for each search: traffic in the mean, trials, size of the error in the mean,
    and the worst error. Without a hint a search begins, where `floored`, at a floor that the truth is two to five times
    above."""
    print(f"| DUT | {' | '.join(each.name for each in contestants)} |\n|{'---|' * (len(contestants) + 1)}")
    for model, keys in MODELS.items():
        cells = [cell(contestant, keys, runs, draw, floored=floored) for contestant in contestants]
        print(f"| {model} | {' | '.join(cells)} |")


def cell(
    contestant: Contestant, keys: dict[str, float], runs: int, draw: Callable[[random.Random], float], *, floored: bool
) -> str:
    """What one search needed on one DUT, and how wrong it was."""
    duts, errors = [], []
    for seed in range(runs):
        dice = random.Random(seed)
        truth = draw(dice)
        dut = SimulatedDut(truth, seed=seed, **keys)  # type: ignore[arg-type]
        floor_load = truth / dice.uniform(2, 5) if floored else None
        near = contestant.hint and truth * dice.uniform(1 - contestant.hint, 1 + contestant.hint)
        end = 1e6 if floored else 100e3
        found = search(dut, 1e3, end, contestant.settings, hint=near or floor_load, floor_load=floor_load)
        duts.append(dut)
        errors.append(found.capacity / truth - 1)
    traffic, trials = (
        statistics.mean(map(count, duts)) for count in (lambda dut: sum(dut.durations), lambda dut: len(dut.loads))
    )
    error, worst = statistics.mean(map(abs, errors)), max(errors, key=abs)
    return f"{traffic:.0f} s in {trials:.1f}; {error:.2%}, {worst:+.1%}"


def comparison(runs: int) -> None:
    """Print how often two builds are said to differ, by the spread of their runs: one test in `tests` is slower."""
    print(
        "| runs a side | tests | run to run | the same build: false alarms | 5 % slower: found | 10 % slower: found |"
    )
    print("|---|---|---|---|---|---|")
    for samples, tests in ((5, 1), (6, 6), (8, 6), (8, 50), (10, 50)):
        for noise in (0.01, 0.03, 0.05):
            found = [judged(runs, samples, tests, noise, slower) for slower in (0.0, 0.05, 0.10)]
            rates = " | ".join(f"{each:.1%}" for each in found)
            print(f"| {samples} (least: {needed_samples(0.01 / tests)}) | {tests} | {noise:.0%} | {rates} |")


def judged(runs: int, samples: int, tests: int, noise: float, slower: float) -> float:
    """Share of comparisons that say "regressed": of any test where none is slower, else of the one that is."""
    said = 0
    dice = random.Random(f"{samples} {tests} {noise} {slower}")
    for _ in range(runs):
        base = [[dice.gauss(1, noise) for _ in range(samples)] for _ in range(tests)]
        factors = [1 - slower] + [1.0] * (tests - 1)
        other = [[factor * dice.gauss(1, noise) for _ in range(samples)] for factor in factors]
        ps = holm([p_smaller(*both) for both in zip(base, other, strict=True)])
        fell = [
            p < 0.01 and statistics.median(new) < statistics.median(old) * (1 - LEAST_DIFFERENCE)
            for p, old, new in zip(ps, base, other, strict=True)
        ]
        said += fell[0] if slower else any(fell)
    return said / runs


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="searches for each row (default: %(default)s)")
    runs = parser.parse_args().runs
    print("\nPublished range (1 k to 100 k connections/s), capacity 30 k to 60 k:\n")
    table(LONG, runs, lambda dice: dice.uniform(30e3, 60e3), floored=False)
    print("\nThe campaign quick: range 1 k to 1 M, hint from a like topology:\n")
    table(SHORT, runs, lambda dice: dice.uniform(150e3, 350e3), floored=True)
    print("\nThe campaign compare: range 1 k to 1 M, no hint, the floor is a half to a fifth of the capacity:\n")
    table(COMPARE, runs, lambda dice: dice.uniform(150e3, 350e3), floored=True)
    print("\nThe judgement of ./run compare, at p < 0.01 and a difference of more than 3 %:\n")
    comparison(4 * runs)


if __name__ == "__main__":
    main()
