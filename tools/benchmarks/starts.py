"""Simulates the rule of starts: what docs/evidence says of starts, and starts-measured.csv.

Run by hand: .venv/bin/python -m tools.benchmarks.starts [--gates N] [RECORDS...]
Assumed: a gate of 21 rows; the scatter of a row's starts is that of the run times a factor of its own (log-normal,
sigma 0.3); one start of twenty scatters three times as much; the whole differs from the middle by half of a start's
scatter. Nothing is measured, everything is seeded. With folders of records, the scatter is theirs instead: each
simulated row has the deviation of a measured one, its starts are drawn from those of all rows, by which they differ
from the mean of their row in deviations of it.

`judge` is the library's rule for all gates at once; tests/unit/test_starts.py compares it with the library's."""

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ctbench.measure.starts import ALIKE, MOST_BORROWED, Budget, looks, scatters_more
from ctbench.results.statistics import student

ROWS, LOOKS, FLOOR = 21, looks(16), 0.97
#: What `judge` answers of a row: the library's False, None and True.
MISSED, CLOSE, MET = -1, 0, 1
#: By how much the candidate is slower in all rows (a ratio), and each row differs besides, as two builds of one source
#: do (standard deviation).
SLOWER = [(0.0, 0.0), (0.0, 0.01), *((each, 0.0) for each in (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1))]

Numbers = NDArray[np.float64]
#: The starts of one row in so many gates around its shift: log ratios of middle and whole, (2, gates, starts).
Draw = Callable[[np.random.Generator, int], Numbers]


def assumed(dice: np.random.Generator, gates: int, scatter: float) -> Numbers:
    """Starts of a row as they are assumed to lie around its shift."""
    deviation = scatter * np.exp(dice.normal(0, 0.3, (gates, 1)))
    shape = gates, LOOKS[-1]
    middle = deviation * np.where(dice.random(shape) < 0.05, 3, 1) * dice.normal(size=shape)
    return np.stack([middle, middle + dice.normal(size=shape) * deviation / 2])


def measured(dice: np.random.Generator, gates: int, rows: list[Numbers]) -> Numbers:
    """Starts of a row as those of `rows` lie, each (2, starts) of log ratios."""
    apart = [each - each.mean(axis=1, keepdims=True) for each in rows]
    deviations = np.array([each[0].std(ddof=1) for each in apart])
    # Residuals of few starts are too small, for their mean is their own.
    each = [found / found[0].std(ddof=0) for found in apart]
    pooled = np.concatenate(each, axis=1)
    drawn = pooled[:, dice.integers(pooled.shape[1], size=(gates, LOOKS[-1]))]
    return drawn * dice.choice(deviations, (gates, 1))


def judge(logs: Iterator[Numbers], rows: int = ROWS) -> Iterator[tuple[NDArray[np.int8], NDArray[np.int64]]]:
    """The answers of all gates, row by row, with the starts that each took. `logs`: of each of the `rows` (2, gates,
    starts)."""
    budget = Budget(rows, len(LOOKS))
    freedoms = range(1, LOOKS[-1] + MOST_BORROWED)
    sure, unlikely = (
        np.array([np.inf, *(student(1 - error, freedom) for freedom in freedoms)])
        for error in (budget.of_bound, budget.of_slower)
    )
    degrees, squares = 0, 0.0
    for row in logs:
        gates = row.shape[1]
        borrowed = np.minimum(MOST_BORROWED, degrees)
        lent = borrowed * squares / np.maximum(degrees, 1)
        answer, starts, own_squares = np.zeros(gates, np.int8), np.zeros(gates, np.int64), np.zeros((2, gates))
        for until in LOOKS:
            made = row[:, :, :until]
            middle = made.mean(axis=2)
            own = ((made - middle[:, :, None]) ** 2).sum(axis=2)
            given = ~np.vectorize(scatters_more, otypes=[bool])(own, until - 1, lent, borrowed) & (borrowed > 0)
            freedom = until - 1 + np.where(given, borrowed, 0)
            error = np.sqrt((own + np.where(given, lent, 0)) / freedom / until)
            keeps = middle - error * sure[freedom] >= np.log(FLOOR)
            breaks = (middle + error * unlikely[freedom] < np.log(1 - ALIKE)) & (middle < np.log(FLOOR)) & ~keeps
            goes_on = answer == CLOSE
            starts, own_squares = np.where(goes_on, until, starts), np.where(goes_on, own, own_squares)
            found = np.where(breaks.any(axis=0), MISSED, np.where(keeps.all(axis=0), MET, CLOSE))
            answer = np.where(goes_on, found, answer).astype(np.int8)
        degrees, squares = degrees + starts - 1, squares + own_squares
        yield answer, starts


def cell(dice: np.random.Generator, draw: Draw, gates: int, slower: float, apart: float) -> str:
    """One line of the table, without its first column."""
    rows = (draw(dice, gates) + np.log(1 - slower) + dice.normal(0, apart, (gates, 1)) for _ in range(ROWS))
    red, took, found = np.zeros(gates, bool), 0, dict.fromkeys((MET, MISSED, CLOSE), 0)
    for answer, starts in judge(rows):
        red |= answer == MISSED
        took += int(starts.sum())
        found = {each: count + int((answer == each).sum()) for each, count in found.items()}
    shares = " | ".join(f"{100 * count / (gates * ROWS):.2f} %" for count in found.values())
    named = f"{100 * slower:g} %" + (f", rows ± {100 * apart:g} %" if apart else "")
    return f"{named} | {100 * red.mean():.2f} % | {shares} | {took / (gates * ROWS):.1f} |"


def read(folders: list[Path]) -> list[Numbers]:
    """The starts of all records of candidates below these folders."""
    found = []
    for path in sorted(file for folder in folders for file in folder.rglob("*.json")):
        pairs = json.loads(path.read_text()).get("evidence", {}).get("pairs", []) if "records" in path.parts else []
        for pair in pairs:
            made = [start["found"] for start in pair.get("starts") or [] if start["found"]]
            if len(made) > 1:
                found.append(np.log([[start["value"] for start in made], [start["whole"]["value"] for start in made]]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("records", type=Path, nargs="*")
    options = parser.parse_args()
    draws: dict[str, Draw] = {f"{100 * each:g} %": partial(assumed, scatter=each) for each in (0.01, 0.02, 0.03)}
    if options.records:
        rows = read(options.records)
        draws = {f"as in {len(rows)} rows": partial(measured, rows=rows)}
    print("| scatter of starts | slower by | gates with a red row | rows met | missed | too close | starts a row |")
    print("|---|---|---|---|---|---|---|")
    for name, draw in draws.items():
        dice = np.random.default_rng(1)
        for slower, apart in SLOWER:
            print(f"| {name} | {cell(dice, draw, options.gates, slower, apart)}", flush=True)


if __name__ == "__main__":
    main()
