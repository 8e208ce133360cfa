"""Which trials are called good although the DUT fell behind, on simulated DUTs: tables of docs/evidence/verdicts.md.

Run by hand: PYTHONPATH=libraries:tests .venv/bin/python tests/benchmarks/backlog.py [--runs 200]
Nothing is measured, everything is seeded: the same tables come out each time.
"""

import argparse
from collections.abc import Iterable

from unit.simulated import LIMITS, SimulatedDut
from unit.simulated_machine import HOPPING, Machine

#: Packets per second, seconds of a trial, frames of a ring (the memif of OVS, the interfaces of Linux).
LOAD, DURATIONS_S, RINGS = 100e3, (0.5, 1.0, 2.0, 5.0), {"16384": 16_384, "4096": 4_096}
SLOWER = (0.005, 0.01, 0.02, 0.04, 0.07)
USED = (0.80, 0.90, 0.95, 0.99)
#: Machines: at rest; with a scatter from trial to trial; and two that hop between speeds, one a third as far.
MACHINES = {
    "at rest": (0.0, None),
    "2 % from trial to trial": (0.02, None),
    "hops by ± 5 %": (0.0, tuple(1 + (speed - 1) / 3 for speed in HOPPING)),
    "hops by ± 16 %": (0.0, HOPPING),
}


def good(duts: Iterable[SimulatedDut], load: float, duration_s: float) -> str:
    """Share of trials called good: by loss alone, as before, and by what is called good now."""
    seen = [dut(load, duration_s) for dut in duts]
    by_loss = sum(each.trial.loss_ratio <= LIMITS["loss_ratio"] for each in seen) / len(seen)
    return f"{by_loss:.0%}, {sum(each.good for each in seen) / len(seen):.0%}"


def too_slow(runs: int) -> None:
    """Print how often a DUT that is slower than the load is called good."""
    heads = [f"{name} frames, {duration_s:g} s" for name in RINGS for duration_s in DURATIONS_S]
    for load in (LOAD, 4 * LOAD):
        print(f"\n| {load / 1e3:.0f} k/s, slower by | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
        for slower in SLOWER:
            cells = [
                good((_dut(load * (1 - slower), ring, seed) for seed in range(runs)), load, duration_s)
                for ring in RINGS.values()
                for duration_s in DURATIONS_S
            ]
            print(f"| {slower:.1%} | {' | '.join(cells)} |")


def fast_enough(runs: int) -> None:
    """Print how often a DUT that is fast enough is called good."""
    heads = [f"{name}, {duration_s:g} s" for name in MACHINES for duration_s in (0.5, 2.0)]
    print(f"| load | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    for used in USED:
        cells = [
            good((_dut(4 * LOAD / used, 16_384, seed, name) for seed in range(runs)), 4 * LOAD, duration_s)
            for name in MACHINES
            for duration_s in (0.5, 2.0)
        ]
        print(f"| {used:.0%} | {' | '.join(cells)} |")


def _dut(capacity: float, ring: int, seed: int, machine: str = "at rest") -> SimulatedDut:
    noise, speeds = MACHINES[machine]
    runs_on = Machine(speeds, seed=seed) if speeds else None
    return SimulatedDut(capacity, noise=noise, ring=ring, machine=runs_on, seed=seed, packets=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="trials for each cell (default: %(default)s)")
    runs = parser.parse_args().runs
    print("\nA DUT slower than the load: trials called good, by loss alone and now:\n")
    too_slow(runs // 4)
    print("\nA DUT that is fast enough (400 k/s, ring of 16 384 frames): trials called good, by loss alone and now:\n")
    fast_enough(runs)


if __name__ == "__main__":
    main()
