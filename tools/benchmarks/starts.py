"""Simulates the rule of starts: what docs/evidence says of starts, starts-measured.csv, starts-missed.csv,
lab-blocks.csv, gate-status.csv and rule-errors.csv.

Run by hand: .venv/bin/python -m tools.benchmarks.starts [--gates N] [--rules | --blocks | --status | --errors]
[RECORDS...]
Assumed: a gate of 21 rows; the scatter of a row's starts is that of the run times a factor of its own (log-normal,
sigma 0.3); one start of twenty scatters three times as much; the whole differs from the middle by half of a start's
scatter. Nothing is measured, everything is seeded. With folders of records, the scatter is theirs instead: each
simulated row has the deviation of a measured one, its starts are drawn from those of all rows, by which they differ
from the mean of their row in deviations of it.

`judge` is the library's rule for all gates at once; tests/unit/test_starts.py compares it with the library's."""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ctbench.measure.start_rule import ALIKE, ERROR, FURTHER, MOST_BORROWED, Budget, looks, middle_of_variances, unlike
from ctbench.results.gate import LEAST_IN_ALL, LEAST_IN_ONE, MOST_OPEN, OF_REACH
from ctbench.results.statistics import student

ROWS, LOOKS, FLOOR = 21, [*looks(16), *(each * 16 for each in FURTHER)], 0.97
#: Starts that any row may have, and those that all rows of a gate may have besides: five minutes of 5 s each (4.1 s of
#: packets, 5.7 s of connections).
OWN, MORE = 16, 60
#: Of a lab's gate; there a row has one figure.
LAB_ROWS = 24
#: About how far the starts of the rows of three like gates lay apart, without the row that was
#: loose on that machine, with it, and on one that is busier.
_QUIET = [0.009, 0.022, 0.019, 0.015, 0.02, 0.011, 0.011, 0.010, 0.008, 0.012, 0.006, 0.013, 0.013, 0.010]
LOOSE, USUAL = 4, 8
_LOOSE = [*_QUIET[:LOOSE], 0.08, *_QUIET[LOOSE + 1 :]]
MACHINES = {
    "0.6 to 2 %": _QUIET,
    "0.6 to 2 %, one row by 8 %": _LOOSE,
    "1.5 to 5 %, one row by 8 %": [min(2.5 * each, 0.08) for each in _LOOSE],
    "1 to 2 %, 3 rows": _QUIET[:3],
}
#: What `judge` answers of a row: the library's False, None and True.
MISSED, CLOSE, MET = -1, 0, 1
#: By how much the candidate is slower in all rows (a ratio), and each row differs besides, as two builds of one source
#: do (standard deviation).
SLOWER = [(0.0, 0.0), (0.0, 0.01), *((each, 0.0) for each in (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1))]

Numbers, Whole = NDArray[np.float64], NDArray[np.int64]
#: What a candidate serves of its base, in all rows, where rules are compared.
NEAR, FAR = (1.0, 0.98, 0.975, 0.97), (0.96, 0.95, 0.9)
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


def quantiles(error: float, most: int) -> Numbers:
    """Of Student's t distribution, by degrees of freedom, for rows of so many starts at most."""
    return np.array([np.inf, *(student(1 - error, freedom) for freedom in range(1, most + MOST_BORROWED))])


#: Which rows are missed, of those with this mean of their starts (a log ratio), its standard error and its degrees of
#: freedom, and with these quantiles: of the run's error for a like build, and of the bounds of the interval.
Missed = Callable[[Numbers, Numbers, Whole, Numbers, Numbers], NDArray[np.bool_]]


def by_interval(mean: Numbers, error: Numbers, freedom: Whole, slow: Numbers, sure: Numbers) -> Any:
    """The library's: slower than a like build, and the whole interval below the floor."""
    return by_middle(mean, error, freedom, slow, sure) & (mean + error * sure[freedom] < np.log(FLOOR))


def by_middle(mean: Numbers, error: Numbers, freedom: Whole, slow: Numbers, sure: Numbers) -> Any:
    """Slower than a like build, and the middle below the floor."""
    return (mean + error * slow[freedom] < np.log(1 - ALIKE)) & (mean < np.log(FLOOR))


def by_error_of_run(mean: Numbers, error: Numbers, freedom: Whole, slow: Numbers, sure: Numbers) -> Any:
    """Below the floor, with the error that a run has for a like build."""
    return mean + error * slow[freedom] < np.log(FLOOR)


def by_bound(share: float) -> Missed:
    """As by the middle, and one bound that errs as rarely as `1 - share` is below the floor, at any look."""
    own = quantiles(1 - share, LOOKS[-1])

    def missed(mean: Numbers, error: Numbers, freedom: Whole, slow: Numbers, sure: Numbers) -> Any:
        return by_middle(mean, error, freedom, slow, sure) & (mean + error * own[freedom] < np.log(FLOOR))

    return missed


def judge(
    logs: Iterator[Numbers],
    rows: int = ROWS,
    at: Sequence[int] = LOOKS,
    missed: Missed = by_interval,
    *,
    interval: float = 0.0,
    most_lent: int = MOST_BORROWED,
    more: int = MORE,
    shown: list[Numbers] | None = None,
) -> Iterator[tuple[NDArray[np.int8], Whole]]:
    """The answers of all gates, row by row, with the starts that each took. `logs`: of each of the `rows` (figures,
    gates, starts), looked `at` after so many. `interval`: one that errs so rarely decides by itself, looks together, in
    the place of the library's rule; `most_lent`: degrees of freedom of the rows before; `more`: starts beyond `OWN`
    that all rows of a gate have; `shown`: gets the middle, the lower and the upper bound (log ratios) of each row, of
    the figure that is worse."""
    most, floor = at[-1], np.log(FLOOR)
    degrees, variances, left = 0, [], None
    for row in logs:
        figures, gates = row.shape[:2]
        budget = Budget(rows, len(at), figures)
        sure, slow = quantiles(budget.of_bound, most), quantiles(budget.of_slower, most)
        if interval:
            sure = slow = quantiles(interval / 2 / len(at), most)
        borrowed = np.minimum(most_lent, degrees)
        lent = borrowed * np.median(variances, axis=0) if variances else np.zeros((figures, gates))
        left = np.full(gates, more) if left is None else left
        answer, starts, own_squares = np.zeros(gates, np.int8), np.zeros(gates, np.int64), np.zeros((figures, gates))
        goes_on, last = np.ones(gates, bool), np.zeros((3, gates))
        for until, following in zip(at, [*at[1:], 0], strict=True):
            made = row[:, :, :until]
            middle = made.mean(axis=2)
            own = ((made - middle[:, :, None]) ** 2).sum(axis=2)
            given = ~np.vectorize(unlike, otypes=[bool])(own, until - 1, lent, borrowed) & (borrowed > 0)
            freedom = until - 1 + np.where(given, borrowed, 0)
            deviation = np.sqrt((own + np.where(given, lent, 0)) / freedom)
            error = deviation / np.sqrt(until)
            keeps = middle - error * sure[freedom] >= floor
            breaks = missed(middle, error, freedom, slow, sure) & ~keeps
            reach = error * sure[freedom]
            worse = np.stack([middle, middle - reach, middle + reach])
            worse = np.take_along_axis(worse, (middle - reach).argmin(axis=0)[None, None], axis=1)[:, 0]
            last = np.where(goes_on, worse, last)
            starts, own_squares = np.where(goes_on, until, starts), np.where(goes_on, own, own_squares)
            found = np.where(breaks.any(axis=0), MISSED, np.where(keeps.all(axis=0), MET, CLOSE))
            answer = np.where(goes_on, found, answer).astype(np.int8)
            goes_on &= answer == CLOSE
            if following > OWN:
                goes_on &= left >= following - until
                left = left - np.where(goes_on, following - until, 0)
        degrees = degrees + starts - 1
        variances.append(own_squares / (starts - 1) / middle_of_variances(starts - 1))
        if shown is not None:
            shown.append(last)
        yield answer, starts


#: Of its runs, the share in which that of before calls a like build slower at most.
_ERROR_BEFORE = 0.01


def judge_before(logs: Iterator[Numbers]) -> Iterator[tuple[NDArray[np.int8], Whole]]:
    """The same by the rule of commit f1e9045e: 24 rows share the errors of a run, the scatter of the rows before is
    their mean and is always lent, a row is missed by its middle, and one that 64 starts would not decide given up."""
    most, floor, like = OWN, np.log(FLOOR), np.log(1 - ALIKE)
    budget = Budget(24, len(looks(most)))
    sure, slow = quantiles(budget.of_bound, most), quantiles(budget.of_slower * _ERROR_BEFORE / ERROR, most)
    degrees, squares = 0, 0.0
    for row in logs:
        shape = row.shape[:2]
        borrowed = np.minimum(MOST_BORROWED, degrees)
        lent = borrowed * squares / np.maximum(degrees, 1)
        answer, starts, own_squares = np.zeros(shape[1], np.int8), np.zeros(shape[1], np.int64), np.zeros(shape)
        goes_on = np.ones(shape[1], bool)
        for until in looks(most):
            middle = row[:, :, :until].mean(axis=2)
            own = row[:, :, :until].var(axis=2) * until
            freedom = until - 1 + borrowed
            deviation = np.sqrt((own + lent) / freedom)
            keeps = middle - deviation / np.sqrt(until) * sure[freedom] >= floor
            breaks = by_middle(middle, deviation / np.sqrt(until), freedom, slow, sure) & ~keeps
            starts, own_squares = np.where(goes_on, until, starts), np.where(goes_on, own, own_squares)
            found = np.where(breaks.any(axis=0), MISSED, np.where(keeps.all(axis=0), MET, CLOSE))
            answer = np.where(goes_on, found, answer).astype(np.int8)
            reach = deviation * np.where(middle < floor, slow[freedom], sure[freedom])
            needed = (reach / np.maximum(np.where(middle < floor, like - middle, middle - floor), 1e-3)) ** 2
            goes_on &= (answer == CLOSE) & ((until == LOOKS[0]) | (needed.max(axis=0) <= 4 * most))
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


def of_rules(gates: int) -> Iterator[list[str]]:
    """The lines of starts-missed.csv: what was tried of the rule when a row is missed."""
    rules = {
        "the middle": by_middle,
        "upper bound, error of the run": by_error_of_run,
        "upper bound of 80 % each look": by_bound(0.8),
        "upper bound of 99 % each look": by_bound(0.99),
        "the interval (95 %, all looks)": by_interval,
    }
    red = [f"gates with a red row at {100 * ratio:g} %" for ratio in NEAR]
    lost = [f"rows missed at {100 * ratio:g} %" for ratio in FAR]
    yield ["missed by", "starts at most", "scatter of starts", *red, *lost, "rows met at 95 %"]
    for most, scatter, (name, rule) in product((4, 8, 16, 64), (0.01, 0.02), rules.items()):
        found = {ratio: _answers(gates, scatter, ratio, most, rule) for ratio in (*NEAR, *FAR)}
        shares = [(found[ratio] == MISSED).any(axis=0).mean() for ratio in NEAR]
        shares += [(found[ratio] == MISSED).mean() for ratio in FAR]
        shares.append((found[0.95] == MET).mean())
        yield [name, f"{most}", f"{100 * scatter:g} %", *(f"{100 * share:.1f} %" for share in shares)]


def _answers(gates: int, scatter: float, ratio: float, most: int, rule: Missed) -> NDArray[np.int8]:
    """Of all rows, whose candidate serves this share of its base."""
    dice = np.random.default_rng(1)
    rows = (assumed(dice, gates, scatter)[:, :, :most] + np.log(ratio) for _ in range(ROWS))
    return np.array([found for found, _ in judge(rows, ROWS, looks(most), rule)])


def of_blocks(gates: int) -> Iterator[list[str]]:
    """The lines of lab-blocks.csv: what a lab's gate of blocks of searches says of like and slower builds."""
    rules: dict[str, Callable[[Iterator[Numbers]], Iterator[tuple[NDArray[np.int8], Whole]]]] = {
        "99 % interval, each row alone": partial(
            judge, at=(3, 6), missed=by_error_of_run, interval=0.01, most_lent=0, rows=LAB_ROWS
        ),
        "99 % interval, scatter of the rows before": partial(
            judge, at=(3, 6, 16), missed=by_error_of_run, interval=0.01, rows=LAB_ROWS
        ),
        "as starts": partial(judge, rows=LAB_ROWS, at=looks(16)),
        "as starts, first look at 2": partial(judge, rows=LAB_ROWS, at=(2, 4, 8, 16)),
    }
    draws = {"normally": _normal, "as starts": _as_starts}
    yield ["rule", "blocks lie", "blocks scatter by", "all rows slower by", "rows met", "missed", "open",
           "blocks a row", "gates with a red row"]  # fmt: skip
    for (name, rule), (lie, draw), scatter in product(rules.items(), draws.items(), (0.01, 0.02, 0.04)):
        for slower in (0.0, 0.01, 0.02, 0.03, 0.05, 0.1):
            dice = np.random.default_rng(1)
            found = list(rule(draw(dice, gates, scatter) + np.log(1 - slower) for _ in range(LAB_ROWS)))
            answers, took = (np.array(each) for each in zip(*found, strict=True))
            shares = [(answers == each).mean() for each in (MET, MISSED, CLOSE)]
            red = (answers == MISSED).any(axis=0).mean()
            cells = [f"{100 * share:.1f} %" for share in shares]
            yield [name, lie, f"{100 * scatter:g} %", f"{100 * slower:g} %", *cells, f"{took.mean():.1f}",
                   f"{100 * red:.1f} %"]  # fmt: skip
    for name, rule in rules.items():
        dice = np.random.default_rng(5)
        rows = [*(_as_starts(dice, gates, 0.003) for _ in range(LAB_ROWS // 2)), _as_starts(dice, gates, 0.06)]
        *_, (answers, _took) = rule(iter(rows))
        cells = [f"{100 * (answers == each).mean():.1f} %" for each in (MET, MISSED, CLOSE)]
        yield [name, "as starts", "0.3 %, and 6 % in the row that is shown", "0 %", *cells, "", ""]


def of_status(gates: int) -> Iterator[list[str]]:
    """The lines of gate-status.csv: how gates of 14 rows, and of three, end, with at most 16 starts a row, and with 64
    while there is time."""
    candidates: dict[str, tuple[Sequence[int], float]] = {
        "a like build": ([], 0.0), "1.5 % slower in each row": (range(ROWS), 0.015),
        "5 % slower in a usual row": ([USUAL], 0.05), "in the loose one": ([LOOSE], 0.05),
    }  # fmt: skip
    yield ["starts scatter by", "candidate", "starts a row at most", "status 0", "status 1", "status 3",
           "starts a gate", "in one gate of 20"]  # fmt: skip
    for machine, (candidate, (which, by)), (most, more) in product(MACHINES, candidates.items(), ((16, 0), (64, MORE))):
        scatters = MACHINES[machine]
        if min(which, default=0) >= len(scatters):
            continue
        dice, shown = np.random.default_rng(11), list[Numbers]()
        rows = (assumed(dice, gates, each) + np.log(1 - by * (at in which)) for at, each in enumerate(scatters))
        found = list(judge(rows, len(scatters), looks(most), more=more, shown=shown))
        answers, took = (np.array(each) for each in zip(*found, strict=True))
        red, green = (answers == MISSED).any(axis=0), _is_green(answers, np.array(shown))
        shares = [f"{100 * each.mean():.1f} %" for each in (green, red, ~green & ~red)]
        starts = took.sum(axis=0)
        yield [machine, candidate, f"{most}", *shares, f"{starts.mean():.0f}", f"{np.quantile(starts, 0.95):.0f}"]


def of_errors(gates: int) -> Iterator[list[str]]:
    """The lines of rule-errors.csv: how often today's rule and the one before are right, by what the machine does."""
    rules = {"before": judge_before, "today": judge}
    yield ["machine", "all rows slower by", "rule", "gates with a red row", "rows met", "missed", "open",
           "starts a row"]  # fmt: skip
    slowed = 0.0, 0.01, 0.02, 0.03, 0.05, 0.1
    for (machine, draw), slower, (name, rule) in product(NOISES.items(), slowed, rules.items()):
        dice = np.random.default_rng(1)
        found = list(rule(draw(dice, gates) + np.log(1 - slower) for _ in range(ROWS)))
        answers, took = (np.array(each) for each in zip(*found, strict=True))
        shares = [(answers == MISSED).any(axis=0), *(answers == each for each in (MET, MISSED, CLOSE))]
        cells = [f"{100 * share.mean():.1f} %" for share in shares]
        yield [machine, f"{100 * slower:g} %", name, *cells, f"{took.mean():.1f}"]


def _drifting(dice: np.random.Generator, gates: int) -> Numbers:
    """Each start is half as far from the mean as the one before it was, besides its own scatter."""
    made = assumed(dice, gates, 0.01)
    for at in range(1, made.shape[2]):
        made[:, :, at] = 0.5 * made[:, :, at - 1] + 0.75**0.5 * made[:, :, at]
    return made


def _bimodal(dice: np.random.Generator, gates: int) -> Numbers:
    """In a quarter of its starts either side is 5 % slower."""
    made = assumed(dice, gates, 0.005)
    candidate, base = (np.log(0.95) * (dice.random(made.shape[1:]) < 0.25) for _ in range(2))
    return made + candidate - base


def _in_bursts(dice: np.random.Generator, gates: int) -> Numbers:
    """In a tenth of the starts something takes a share of the time of either side, up to a tenth, and a third of that
    from the middle of its slices."""
    made = assumed(dice, gates, 0.005)
    lost = dice.uniform(-0.1, 0.1, made.shape[1:]) * (dice.random(made.shape[1:]) < 0.1)
    return made + np.stack([lost / 3, lost])


#: What a machine does to starts.
NOISES: dict[str, Draw] = {
    "quiet (starts scatter by 1 %)": partial(assumed, scatter=0.01),
    "drifting (a start resembles the one before it)": _drifting,
    "bimodal (a quarter of starts 5 % slower)": _bimodal,
    "bursts (a tenth of starts loses up to 10 %)": _in_bursts,
}


def _is_green(answers: NDArray[np.int8], shown: Numbers) -> NDArray[np.bool_]:
    """Which gates end with status 0, as `ctbench.results.gate` has it."""
    middle, low, high = np.exp(shown).transpose(1, 0, 2)
    reach = OF_REACH * np.sqrt((((high - low) / 2) ** 2).sum(axis=0)) / len(answers)
    least = np.exp(np.log(middle).mean(axis=0)) - reach
    is_open = answers == CLOSE
    may_be = (is_open.sum(axis=0) <= MOST_OPEN) & (~is_open | (low >= LEAST_IN_ONE)).all(axis=0)
    found: NDArray[np.bool_] = ~(answers == MISSED).any(axis=0) & may_be & (least >= LEAST_IN_ALL)
    return found


def _normal(dice: np.random.Generator, gates: int, scatter: float) -> Numbers:
    return dice.normal(0, scatter, (1, gates, LOOKS[-1]))


def _as_starts(dice: np.random.Generator, gates: int, scatter: float) -> Numbers:
    return assumed(dice, gates, scatter)[:1]


def read(folders: list[Path]) -> list[Numbers]:
    """The starts of all records of candidates below these folders."""
    found = []
    for path in sorted(file for folder in folders for file in folder.rglob("*.json")):
        pairs = json.loads(path.read_text()).get("evidence", {}).get("pairs", []) if "records" in path.parts else []
        for pair in pairs:
            made = [start["found"] for start in pair.get("starts") or [] if start["found"] and start["found"]["whole"]]
            if len(made) > 1:
                found.append(np.log([[start["value"] for start in made], [start["whole"]["value"] for start in made]]))
    return found


#: By option.
TABLES = {"rules": of_rules, "blocks": of_blocks, "status": of_status, "errors": of_errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("records", type=Path, nargs="*")
    parser.add_argument("--rules", action="store_true", help="print starts-missed.csv instead")
    parser.add_argument("--blocks", action="store_true", help="print lab-blocks.csv instead")
    parser.add_argument("--status", action="store_true", help="print gate-status.csv instead")
    parser.add_argument("--errors", action="store_true", help="print rule-errors.csv instead")
    options = parser.parse_args()
    if tables := [table for table in TABLES if getattr(options, table)]:
        lines = TABLES[tables[0]](options.gates)
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
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
