"""The floors of ratios that hold on any machine: what the next kind of machine measures with a probability of 99 %.

docs/evidence/floors.csv has what is known of each ratio. This compares its table and
variables/sla/local.yaml with the floors that follow, and with the kinds of CPU that they were measured on; with
`--write` it writes them, after figures of a machine were added from its runs (`--machine B --from FOLDER...`). They are
never written by hand. With `--left-out` it counts how often a floor that follows from the other machines is above what
a machine measured.
"""

import argparse
import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, variance

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.paths import ROOT, VARIABLES
from ctbench.results.record import Record
from ctbench.results.statistics import student
from ctbench.results.store import read_stored
from tools import ending

EVIDENCE, STOCK = ROOT / "docs" / "evidence" / "floors.csv", VARIABLES / "sla" / "local.yaml"
#: Columns of the table: what each machine measured, the least and the most; then what follows, and of smoke tests that.
#: A machine's head has its kind of CPU, where records said it: `machine B: AuthenticAMD family 26 model 2`.
_MACHINES, _FLOOR, _CATCHES, _KIND = slice(3, 6), 7, 8, 9


def prediction_bounds(known: Sequence[Sequence[float]], confidence: float = 0.99) -> list[float]:
    """Below which the next value of each row is with a probability of 1 - `confidence`. Each row has two values (> 0)
    or more, one of each machine.

    The logarithms are taken to be normal, with a scatter between machines that all rows have in common: of two or three
    values alone, no bound could be told. mean - t s sqrt(1 + 1/n), with the t of all degrees of freedom (Hahn and
    Meeker, Statistical Intervals, 1991, chapter 4).
    """
    logs = [[math.log(value) for value in row] for row in known]
    freedom = sum(len(row) - 1 for row in logs)
    scatter = math.sqrt(sum(variance(row) * (len(row) - 1) for row in logs) / freedom)
    t = student(confidence, freedom)
    return [math.exp(mean(row) - t * scatter * math.sqrt(1 + 1 / len(row))) for row in logs]


def _known(row: Sequence[str], guesses: bool = False) -> list[list[int]]:
    """What each machine has measured, in percent; of a guess nothing is known, so it counts with `guesses` alone."""
    found = (re.findall(r"([0-9]+)(?: %| to)", cell) for cell in row[_MACHINES] if guesses or "guess" not in cell)
    return [[int(percent) for percent in each] for each in found if each]


def with_runs(evidence: str, machine: str, records: Sequence[Record]) -> str:
    """The table with what these records of a machine say: its ranges grow where a ratio is outside of them.
    `ConfigError` for records of another kind of CPU than the machine has."""
    head, *table = csv.reader(io.StringIO(evidence))
    column = next(place for place, name in enumerate(head) if _machine(name)[0] == f"machine {machine}")
    kinds = {_machine(head[column])[1], *(record.environment.dut_machine.cpu_kind for record in records)} - {""}
    if len(kinds) > 1:
        raise ConfigError(
            f"--machine {machine}: these runs, or the table, are of several kinds of CPU: {', '.join(sorted(kinds))}.\n"
            "  Expected runs of one kind, and a column of the table for each."
        )
    head[column] = ": ".join((f"machine {machine}", *kinds))
    rows = {(row[0], row[1], row[2]): row for row in table}
    for record in records:
        profiles = {record.floor.profile, getattr(record.profile, "derived_from", None)}
        for pair in record.evidence.pairs:
            for profile in profiles:
                row = rows.get((pair.tested.key, profile or "", pair.other.key))
                if row and pair.result:
                    cell = row[column]
                    known = [int(each) for each in re.findall("[0-9]+", cell)] if "guess" not in cell else []
                    known.append(math.floor(100 * pair.result.value))
                    least, most = min(known), max(known)
                    row[column] = f"{least} %" if least == most else f"{least} to {most} %"
    return _written([head, *table])


def _machine(head: str) -> tuple[str, str]:
    """A machine's name, and its kind of CPU, empty where no record said it."""
    name, _, kind = head.partition(": ")
    return name, kind


def _written(rows: Iterable[Sequence[str]]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(rows)
    return made.getvalue()


def floors_of(table: Sequence[Sequence[str]]) -> list[int | None]:
    """The floor of each row in whole percent, below all that was measured; None where fewer than two machines measured
    it. Those of smoke tests stay: their ratios do not travel, so they do not scatter as the others do."""
    kept = [int(row[_FLOOR].strip(">= %")) if row[_KIND] else None for row in table]
    judged = [place for place, row in enumerate(table) if len(_known(row)) > 1 and not row[_KIND]]
    # Of each machine the least: what is promised has to hold in every run of the next one.
    leasts = [[min(found) for found in _known(table[place])] for place in judged]
    for place, least, bound in zip(judged, leasts, prediction_bounds(leasts), strict=True):
        kept[place] = min(math.floor(bound), min(least) - 1)
    return kept


def left_out(table: Sequence[Sequence[str]], column: int) -> list[tuple[int, int]]:
    """Of each ratio that is not smoke, in percent: the least that one machine measured, and the floor that follows
    from the other machines alone."""
    others = floors_of([[*row[:column], "", *row[column + 1 :]] for row in table])
    own = [_known([*row[: _MACHINES.start], row[column]]) for row in table]
    return [
        (min(found[0]), floor)
        for row, found, floor in zip(table, own, others, strict=True)
        if found and floor is not None and not row[_KIND]
    ]


def rewritten(evidence: str, stock: str) -> tuple[str, str]:
    """Both texts with the floors that follow from the figures of the first, and the second with the kinds of CPU that
    the first names. A ratio of which it has none has no floor: `ConfigError` for one that has."""
    head, *table = csv.reader(io.StringIO(evidence))
    floors = {}
    for row, floor in zip(table, floors_of(table), strict=True):
        row[_FLOOR] = "no floor yet" if floor is None else f">= {floor}%"
        figures = _known(row) or _known(row, guesses=True)
        row[_CATCHES] = "" if floor is None else f"{(1 - floor / max(map(max, figures))) * 100:.0f} %"
        floors[row[0], row[1]] = floor
    made, key, profile = stock.splitlines(), "", ""
    kinds = dict.fromkeys(kind for _, kind in map(_machine, head[_MACHINES]) if kind)
    for number, line in enumerate(made):
        if line.startswith("known_kinds: "):
            made[number] = f"known_kinds: [{', '.join(kinds)}]"
        if line.startswith("    ratio: "):
            if (key, profile) not in floors and "rate:" in line:
                raise ConfigError(
                    f"variables/sla/local.yaml: {key}.{profile}.ratio.rate: docs/evidence/floors.csv has no figures of"
                    " it.\n  Expected a row of its table, or no rate: then there is no floor yet. What one machine"
                    " promises belongs into an SLA file of its own."
                )
            floor = floors.get((key, profile))
            without = re.sub(', rate: "[^"]*"', "", line)
            made[number] = without if floor is None else f'{without[:-1]}, rate: ">= {floor}%"}}'
        elif named := re.match(r"(  )?([^\s#]+):", line):
            key, profile = (key, named[2]) if named[1] else (named[2], "")
    return _written([head, *table]), "\n".join(made) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the floors, or write them."""
    parser = argparse.ArgumentParser(prog="python -m tools.floors", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the floors that follow")
    parser.add_argument("--machine", choices=[*"ABC"], help="whose runs --from names; docs/evidence/README.md has them")
    parser.add_argument("--from", nargs="+", type=Path, default=[], dest="runs", help="output folders of its runs")
    parser.add_argument("--left-out", action="store_true", help="leave out each machine in turn")
    given = parser.parse_args(arguments)
    if given.left_out:
        head, *table = csv.reader(EVIDENCE.read_text(encoding="utf-8").splitlines())
        for column in range(_MACHINES.start, _MACHINES.stop):
            found = left_out(table, column)
            above = sum(least < floor for least, floor in found)
            print(f"{_machine(head[column])[0]}: {above} of {len(found)} floors of the others are above its figures")
        return ExitStatus.MET
    if bool(given.machine) != bool(given.runs):
        parser.error("--machine and --from: expected both or neither.")
    write = given.write
    files = (EVIDENCE, STOCK)
    before = (EVIDENCE.read_text(encoding="utf-8"), STOCK.read_text(encoding="utf-8"))
    records = [each.record for each in read_stored(*given.runs)[0]]
    after = rewritten(with_runs(before[0], given.machine, records) if records else before[0], before[1])
    changed = [file for file, old, new in zip(files, before, after, strict=True) if old != new]
    for file, text in zip(files, after, strict=True):
        if write and file in changed:
            file.write_text(text, encoding="utf-8")
    named = " and ".join(str(file.relative_to(ROOT)) for file in changed)
    if not named:
        print("All floors are what follows from the figures.")
    elif write:
        print(f"{named}: written.")
    else:
        print(f"{named}: not what follows from the figures: python -m tools.floors --write.")
    return ExitStatus.MISSED if changed and not write else ExitStatus.MET


if __name__ == "__main__":
    ending.run(main)
