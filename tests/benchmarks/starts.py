"""Simulates the rule of starts: the table of docs/evidence/candidates.md.

Run by hand: PYTHONPATH=libraries .venv/bin/python tests/benchmarks/starts.py [GATES]
Assumed: a gate of 21 rows; the scatter of a row's starts is that of the run times a factor of its own (log-normal,
sigma 0.3); one start of twenty scatters three times as much; the whole differs from the middle by half of a start's
scatter. Nothing is measured, everything is seeded.
"""

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator

from ctbench.measure.starts import Estimate, Scatter, decide, looks

ROWS, LOOKS, FLOOR = 21, looks(16), 0.97


def gate(dice: random.Random, scatter: float, slower: float, apart: float = 0.0) -> Iterator[tuple[bool | None, int]]:
    """The answers of a gate's rows, with the starts that each took. `slower`: by how much the candidate is, in all rows
    (a ratio); `apart`: by how much each row differs besides, as two builds of one source do (standard deviation)."""
    before = Scatter(), Scatter()
    for _ in range(ROWS):
        deviation = scatter * math.exp(dice.gauss(0, 0.3))
        shift = math.log(1 - slower) + dice.gauss(0, apart)
        logs: tuple[list[float], list[float]] = [], []
        answer = None
        for until in LOOKS:
            while len(logs[0]) < until:
                middle = dice.gauss(shift, deviation * (3 if dice.random() < 0.05 else 1))
                logs[0].append(middle)
                logs[1].append(middle + dice.gauss(0, deviation / 2))
            answer = decide(*(Estimate.of(*each, len(LOOKS)) for each in zip(logs, before, strict=True)), FLOOR)
            if answer is not None:
                break
        for each, known in zip(logs, before, strict=True):
            known.add(each)
        yield answer, len(logs[0])


def main(gates: int) -> None:
    """Print the table: of a like build by so many gates, of others by a tenth of them."""
    print("| scatter of starts | slower by | gates with a red row | rows met | missed | too close | starts a row |")
    print("|---|---|---|---|---|---|---|")
    for scatter in (0.01, 0.02, 0.03):
        for slower, apart in ((0.0, 0.0), (0.0, 0.01), (0.02, 0.0), (0.05, 0.0), (0.1, 0.0)):
            dice, found, red, starts = random.Random(1), Counter[bool | None](), 0, 0
            made = gates if slower == apart == 0 else gates // 10
            for _ in range(made):
                answers = list(gate(dice, scatter, slower, apart))
                found.update(answer for answer, _ in answers)
                starts += sum(count for _, count in answers)
                red += any(answer is False for answer, _ in answers)
            rows = made * ROWS
            shares = " | ".join(f"{100 * found[answer] / rows:.3g} %" for answer in (True, False, None))
            named = f"{100 * slower:g} %" + (f", rows ± {100 * apart:g} %" if apart else "")
            print(
                f"| {100 * scatter:g} % | {named} | {100 * red / made:.3g} % | {shares} | {starts / rows:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
