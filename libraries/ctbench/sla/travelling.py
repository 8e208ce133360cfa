"""The floors of ratios that hold on any machine: what the next kind of machine measures with a probability of 99 %.

docs/evidence/floors.md has what is known of each ratio. `PYTHONPATH=libraries python -m ctbench.sla.travelling` writes
the floors that follow, into its table and into variables/sla/local.yaml: after a figure was added, and never by hand.
"""

import math
import re
from collections.abc import Sequence

from ctbench.base.paths import ROOT, VARIABLES
from ctbench.results.statistics import prediction_bounds

EVIDENCE, STOCK = ROOT / "docs" / "evidence" / "floors.md", VARIABLES / "sla" / "local.yaml"
#: Columns of the table: what each machine measured, the least and the most; then what follows, and of smoke tests that.
_MACHINES, _FLOOR, _CATCHES, _KIND = slice(3, 6), 7, 8, 9


def _known(row: Sequence[str]) -> list[list[int]]:
    """What each machine has measured, in percent; of a guess nothing is known."""
    found = (re.findall(r"([0-9]+)(?: %| to)", cell) for cell in row[_MACHINES] if "guess" not in cell)
    return [[int(percent) for percent in each] for each in found if each]


def _floors(table: Sequence[Sequence[str]]) -> list[int | None]:
    """The floor of each row in whole percent, below all that was measured; None where fewer than two machines measured
    it. Those of smoke tests stay: their ratios do not travel, so they do not scatter as the others do."""
    kept = [int(row[_FLOOR].strip(">= %")) if row[_KIND] else None for row in table]
    judged = [place for place, row in enumerate(table) if len(_known(row)) > 1 and not row[_KIND]]
    # Of each machine the least: what is promised has to hold in every run of the next one.
    leasts = [[min(found) for found in _known(table[place])] for place in judged]
    for place, least, bound in zip(judged, leasts, prediction_bounds(leasts), strict=True):
        kept[place] = min(math.floor(bound), min(least) - 1)
    return kept


def rewritten(evidence: str, stock: str) -> tuple[str, str]:
    """Both texts with the floors that follow from the figures of the first."""
    ratios = evidence.partition("## Ratios")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| [a-z-]+/.*$", ratios, re.MULTILINE)
    table, floors = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines], {}
    for line, row, floor in zip(lines, table, _floors(table), strict=True):
        row[_FLOOR] = "no floor yet" if floor is None else f">= {floor}%"
        row[_CATCHES] = "" if floor is None else f"{(1 - floor / max(map(max, _known(row)))) * 100:.0f} %"
        evidence = evidence.replace(line, f"| {' | '.join(row)} |")
        floors[row[0], row[1]] = floor
    made, key, profile = stock.splitlines(), "", ""
    for number, line in enumerate(made):
        if line.startswith("    ratio: "):
            floor = floors[key, profile]
            without = re.sub(', rate: "[^"]*"', "", line)
            made[number] = without if floor is None else f'{without[:-1]}, rate: ">= {floor}%"}}'
        elif named := re.match(r"(  )?([^\s#]+):", line):
            key, profile = (key, named[2]) if named[1] else (named[2], "")
    return evidence, "\n".join(made) + "\n"


if __name__ == "__main__":
    texts = rewritten(EVIDENCE.read_text(encoding="utf-8"), STOCK.read_text(encoding="utf-8"))
    for path, text in zip((EVIDENCE, STOCK), texts, strict=True):
        path.write_text(text, encoding="utf-8")
