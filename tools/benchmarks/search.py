"""How much traffic the searches need and how wrong they are, on simulated DUTs: what docs/evidence says of them.

Run by hand: .venv/bin/python -m tools.benchmarks.search [--runs 100]
Nothing is measured, everything is seeded: the same tables come out each time."""

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctbench.measure.campaign import Bisection, Mlr, SaturationSettings, SearchSettings
from ctbench.measure.procedures.rates import BELOW_SATURATION
from ctbench.measure.search import search
from ctbench.traffic.loads import Saturation
from tools.benchmarks.machine import Machine, quiet
from tools.benchmarks.shared import SharedDut

#: What the DUTs do; from the fifth on they have a noise of 0.5 % from trial to trial, but for the last one, which runs
#: on a machine that hops between speeds and has a ring, as a shared machine does.
MODELS: dict[str, dict[str, float]] = {
    "deterministic": {},
    "noise of 0.5 %": {"noise": 0.005},
    "noise of 7 %": {"noise": 0.07},
    "noise of 10 %": {"noise": 0.1},
    "5 % of the trials disturbed": {"noise": 0.005, "disturbed": 0.05},
    "overload: 70 % of the capacity": {"noise": 0.005, "overload": 0.7},
    "collapse to a tenth under overload": {"noise": 0.005, "overload": 0.1},
    "collapse, 5 % disturbed": {"noise": 0.005, "overload": 0.1, "disturbed": 0.05},
    "slow start (20 % less, 60 s)": {"noise": 0.005, "cold": 0.2},
    "overload costs the next trial 5 %": {"noise": 0.005, "carried_over": 0.05},
    "a closed loop shows 15 % more": {"noise": 0.005, "saturation": 1.15},
    "hops between speeds, 16 384 frames": {"ring": 16_384},
}
#: As wide as the published procedure ends at its 41.6 k/s.
WIDTH = "0.93%"


@dataclass(frozen=True)
class Contestant:
    """A search, and where it begins."""

    name: str
    settings: SearchSettings
    #: Below the rate of a closed loop of so many seconds; 0: no closed loop.
    closed_loop_s: float = 0.0
    #: At a hint that is so far from the truth at most; None: no hint.
    hint: float | None = None
    #: Loss ratio of a partial drop rate that it looks for as well.
    partial_drop: float = 0.0

    def begin(self, dut: SharedDut, truth: float, dice: random.Random) -> float | None:
        """Where the search begins on one DUT."""
        if self.closed_loop_s:
            rate = dut.run_trial(None, Saturation(512), self.closed_loop_s).service_rate
            return rate if isinstance(self.settings, SaturationSettings) else rate * BELOW_SATURATION
        return self.hint and truth * dice.uniform(1 - self.hint, 1 + self.hint)


def bisection(**keys: Any) -> Bisection:
    """A bisection with these settings, as a campaign has them."""
    return Bisection.model_validate({"max_iterations": 16} | keys)


def mlr(**keys: Any) -> Mlr:
    """A search with MLRsearch with these settings, as a campaign has them."""
    return Mlr.model_validate(keys)


LONG = (
    Contestant("published: 8 x 30 s", bisection(trial_duration="30s", middle="arithmetic", max_iterations=8)),
    Contestant("bisection of 10 s", bisection(trial_duration="10s", relative_width=WIDTH)),
    Contestant("mlr 3 s to 10 s", mlr(trial_duration="3s", final_duration="10s", relative_width=WIDTH)),
    Contestant(
        "characterise: closed loop, mlr 5 s to 30 s",
        mlr(trial_duration="5s", final_duration="30s", relative_width=WIDTH),
        1.0,
    ),
)
SHORT_TRIALS = {"trial_duration": "1s", "final_duration": "2s"}
NIGHT = mlr(trial_duration="1s", final_duration="1s", duration_sum="21s", relative_width="0.5%", max_iterations=200)
SHORT = (
    Contestant("quick: closed loop, then below it", SaturationSettings.model_validate({}), 0.5),
    Contestant("quick without a closed loop: mlr, hint ± 10 %", mlr(**SHORT_TRIALS, relative_width="10%"), hint=0.1),
    Contestant("night: closed loop, NDR and PDR with trials of 1 s", NIGHT, 1.0, partial_drop=0.005),
)


def table(contestants: Sequence[Contestant], runs: int, least: float, most: float, end: float) -> None:
    """Print a row for each DUT, of a capacity between `least` and `most`, and a column for each search, in a range from
    1 k to `end`: traffic in the mean, trials, size of the error in the mean, and the worst error."""
    print(f"| DUT | {' | '.join(each.name for each in contestants)} |\n|{'---|' * (len(contestants) + 1)}")
    for model, keys in MODELS.items():
        cells = [cell(contestant, keys, runs, least, most, end) for contestant in contestants]
        print(f"| {model} | {' | '.join(cells)} |")


def cell(contestant: Contestant, keys: dict[str, float], runs: int, least: float, most: float, end: float) -> str:
    """What one search needed on one DUT, and how wrong it was."""
    duts, errors = [], []
    for seed in range(runs):
        dice = random.Random(seed)
        truth = dice.uniform(least, most)
        machine = Machine(seed=seed) if "ring" in keys else quiet()
        dut = SharedDut(truth, seed=seed, machine=machine, **keys)  # type: ignore[arg-type]
        hint, partial_drop = contestant.begin(dut, truth, dice), contestant.partial_drop
        found = search(dut, 1e3, end, contestant.settings, hint=hint, partial_drop=partial_drop)
        duts.append(dut)
        errors.append(found.capacity / truth - 1)
    traffic, trials = (
        statistics.mean(map(count, duts)) for count in (lambda dut: sum(dut.durations), lambda dut: len(dut.loads))
    )
    error, worst = statistics.mean(map(abs, errors)), max(errors, key=abs)
    return f"{traffic:.0f} s in {trials:.1f}; {error:.2%}, {worst:+.1%}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="searches for each row (default: %(default)s)")
    runs = parser.parse_args().runs
    print("\nPublished range (1 k to 100 k connections/s), capacity 30 k to 60 k:\n")
    table(LONG, runs, 30e3, 60e3, 100e3)
    print("\nShort trials: range 1 k to 1 M, capacity 150 k to 350 k:\n")
    table(SHORT, runs, 150e3, 350e3, 1e6)


if __name__ == "__main__":
    main()
