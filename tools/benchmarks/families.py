"""What would change if rows of like code and traffic were decided together: what docs/evidence says in
starts-families.csv.

Run by hand: .venv/bin/python -m tools.benchmarks.families [--gates N] [RECORDS...]
A family has a start of each of its rows, then is looked at, from two starts on. Its rows share their scatter where
Bartlett's test allows, and each leans on the mean of the others, from which rows of a family are assumed to lie 0.7 %
apart; one that lies farther away than 2.5 deviations is judged by itself. Simulated as in `starts`, with 23 rows, of
which four, four and eight are families; everything is seeded. With folders of records, the same is decided of gates
that were made, whose families are rows of one ruleset, kind of port and kind of traffic."""

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from ctbench.measure.start_rule import ALIKE, MOST_BORROWED, Budget, middle_of_variances, unlike
from ctbench.results.store import read_stored
from tools.benchmarks.starts import CLOSE, FLOOR, MET, MISSED, Numbers, Whole, assumed, quantiles

#: Rows of a simulated gate, and of its families: conntrack with short and long connections, bridges, all others.
ROWS, FAMILIES = 23, (4, 4, 8, *[1] * 7)
#: Starts at which a family is looked at; a row by itself from the second on.
LOOKS = (2, 4, 8, 16)
#: How rows are decided.
RULES = ALONE, TOGETHER, SCATTER = "each by itself", "together, by scatter and mean", "together, by scatter alone"
#: Standard deviation of the rows of a family, as log ratios, and how far one may lie from the others.
APART, FAR = 0.007, 2.5
#: Rows of a gate that says something of families.
LEAST = 8
#: The 80 % quantiles of chi-squared, by degrees of freedom.
UNLIKE = {1: 1.642, 2: 3.219, 3: 4.642, 4: 5.989, 5: 7.289, 6: 8.558, 7: 9.803}


def together(
    rows: Numbers, lent: Numbers, borrowed: Whole, of: int, at: Sequence[int], *, by_mean: bool
) -> tuple[Any, Any, Numbers]:
    """Answers and starts of the rows of a family (rows, figures, gates, starts), and sums of their squares. `lent` and
    `borrowed`: what the rows before are worth; `of`: rows of the gate; `by_mean`: whether they lean on each other's."""
    members, figures, gates, _ = rows.shape
    budget, floor = Budget(of, len(at), figures), np.log(FLOOR)
    sure, slow = (quantiles(error, members * at[-1]) for error in (budget.of_bound, budget.of_slower))
    answer, took = np.zeros((members, gates), np.int8), np.zeros((members, gates), np.int64)
    middle, squares, error2 = (np.zeros((members, figures, gates)) for _ in range(3))
    for until in at:
        goes_on = (answer == CLOSE) & ~np.isnan(rows[..., until - 1]).any(axis=1)
        took = np.where(goes_on, until, took)
        made = rows[..., :until]
        middle = np.where(goes_on[:, None], made.mean(axis=3), middle)
        squares = np.where(goes_on[:, None], made.var(axis=3) * until, squares)
        pooled, freedom = shared(squares, took[:, None] - 1, lent, borrowed)
        error2 = np.where(goes_on[:, None], pooled / took[:, None], error2)
        weights = 1 / (APART**2 + error2)
        others = np.maximum(weights.sum(axis=0) - weights, 1e-9)
        mean = ((weights * middle).sum(axis=0) - weights * middle) / others
        prior = APART**2 + 1 / others
        leans = by_mean & (np.abs(middle - mean) <= FAR * np.sqrt(prior + error2))
        value = np.where(leans, (middle / error2 + mean / prior) / (1 / error2 + 1 / prior), middle)
        error = np.sqrt(np.where(leans, 1 / (1 / error2 + 1 / prior), error2))
        keeps = value - error * sure[freedom] >= floor
        breaks = (value + error * sure[freedom] < floor) & (value + error * slow[freedom] < np.log(1 - ALIKE))
        found = np.where(breaks.any(axis=1), MISSED, np.where(keeps.all(axis=1), MET, CLOSE))
        answer = np.where(goes_on, found, answer).astype(np.int8)
    return answer, took, squares


def shared(squares: Numbers, own: Whole, lent: Numbers, borrowed: Whole) -> tuple[Numbers, Whole]:
    """The variance of the starts of each row, and its degrees of freedom: that of the family, unless Bartlett's test
    objects; then each row has its own. Either with what the rows before lend, where the library takes it."""
    own, members = np.broadcast_to(own, squares.shape), len(squares)
    if members > 1:
        all_squares, all_own = squares.sum(axis=0), own.sum(axis=0)
        found = all_own * np.log(all_squares / all_own) - (own * np.log(squares / own)).sum(axis=0)
        found /= 1 + ((1 / own).sum(axis=0) - 1 / all_own) / (3 * (members - 1))
        alike = found <= UNLIKE[members - 1]
        squares, own = np.where(alike, all_squares, squares), np.where(alike, all_own, own)
    given = ~np.vectorize(unlike, otypes=[bool])(squares, own, lent, borrowed) & (borrowed > 0)
    freedom = own + np.where(given, borrowed, 0)
    return (squares + np.where(given, lent, 0)) / freedom, freedom


def gate(families: Sequence[Numbers], rule: str = TOGETHER) -> tuple[Any, Any]:
    """Answers and starts of all rows of gates, a family (rows, figures, gates, starts) after the other."""
    if rule == ALONE:
        families = [row[None] for rows in families for row in rows]
    variances: list[Numbers] = []
    degrees, answers, starts = np.zeros(1, np.int64), [], []
    for rows in families:
        borrowed = np.minimum(MOST_BORROWED, degrees)
        lent = borrowed * np.median(variances, axis=0) if variances else np.zeros(rows.shape[1:3])
        at, of = LOOKS if len(rows) > 1 else LOOKS[1:], sum(map(len, families))
        answer, took, squares = together(rows, lent, borrowed, of, at, by_mean=rule == TOGETHER)
        answers.append(answer)
        starts.append(took)
        for each, made in zip(squares, took, strict=True):
            variances.append(each / (made - 1) / middle_of_variances(made - 1))
            degrees = degrees + made - 1
    return np.concatenate(answers), np.concatenate(starts)


#: Of simulated gates: which rows are slower, and by how much (a ratio).
CANDIDATES: dict[str, tuple[Sequence[int], float]] = {
    "a like build": ((), 0.0),
    "5 % slower in one row of four": ((3,), 0.05),
    "4 % slower in one row of four": ((3,), 0.04),
    "5 % slower in one row of eight": ((8,), 0.05),
    "17 % slower in a family of four": (range(4, 8), 0.17),
    "4 % slower in all rows": (range(ROWS), 0.04),
}


def simulated(gates: int) -> Iterator[list[str]]:
    """Lines of the table."""
    for (candidate, (slower, lost)), scatter in product(CANDIDATES.items(), (0.01, 0.02)):
        dice = np.random.default_rng(1)
        rows = [assumed(dice, gates, scatter) + dice.normal(0, APART, (gates, 1)) for _ in range(ROWS)]
        rows = [row[..., :16] + (np.log(1 - lost) if at in slower else 0) for at, row in enumerate(rows)]
        ends = np.cumsum((0, *FAMILIES))
        families = [np.array(rows[begin:end]) for begin, end in pairwise(ends)]
        for rule in RULES:
            answers, starts = gate(families, rule)
            those = np.isin(np.arange(ROWS), slower)
            shares = [(answers[those] == each).mean(axis=0) for each in (MISSED, MET)] if lost else []
            cells = [f"{100 * share.mean():.1f} %" for share in shares] or ["", ""]
            others = (answers[~those] == MISSED).any(axis=0), answers[~those] == MET
            cells += ["", ""] if those.all() else [f"{100 * share.mean():.1f} %" for share in others]
            yield [candidate, f"{100 * scatter:g} %", rule, f"{starts.sum(axis=0).mean():.0f}", *cells]


def of_records(folders: Sequence[Path]) -> Iterator[list[str]]:
    """Lines of what was found in gates of `LEAST` rows or more. A row that would need more starts than it had stays
    undecided."""
    gates: dict[str, dict[str, list[Numbers]]] = defaultdict(lambda: defaultdict(list))
    for stored in read_stored(*folders)[0]:
        record = stored.record
        made = [each.found for pair in record.evidence.pairs for each in pair.starts if each.found and each.found.whole]
        if len(made) >= LOOKS[1]:
            _, ruleset, _, *others = record.floor.key.split("/")
            offered = record.profile.name if record.profile.kind == "connections" else "packets"
            logs = np.full((2, 1, LOOKS[-1]), np.nan)
            for at, each in enumerate(made[: LOOKS[-1]]):
                logs[:, 0, at] = np.log([each.value, each.whole.value])
            gates[record.run_id]["/".join((ruleset, *others, offered))].append(logs)
    several = [found for found in gates.values() if sum(map(len, found.values())) >= LEAST]
    for rule in RULES:
        counted, took = Counter[int](), 0
        for found in several:
            families = [np.array(rows) for rows in sorted(found.values(), key=len, reverse=True)]
            answers, starts = gate(families, rule)
            counted.update(answers.ravel().tolist())
            took += starts.sum()
        shares = [f"{counted[each]} of {counted.total()}" for each in (MISSED, MET)]
        yield [f"{len(several)} gates that were made", "as it was", rule, f"{took / len(several):.0f}", "", "", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=1000)
    parser.add_argument("records", type=Path, nargs="*")
    options = parser.parse_args()
    head = ["candidate", "starts scatter by", "rows decided", "starts a gate", "slower rows missed", "met",
            "gates with another row missed", "other rows met"]  # fmt: skip
    lines = of_records(options.records) if options.records else simulated(options.gates)
    csv.writer(sys.stdout, lineterminator="\n").writerows([head, *lines])


if __name__ == "__main__":
    main()
