"""NDR and PDR by the campaign `night` next to what `characterise` finds: docs/evidence/night.csv, to which it appends.

Run by hand on a quiet machine: .venv/bin/python -m tools.benchmarks.night [--most 10] [--searches 1]
Each of ten rows is measured by both campaigns, one after the other: some 2 minutes by `night`, and 4 to 14 minutes for
each of the searches of `characterise`, of which it makes five. A line is written when both have ended, and one that is
there is not made again, so that it can be stopped and continued."""

import argparse
import csv
import math
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ctbench.base.paths import ROOT
from ctbench.results.metrics import PDR_OF
from ctbench.results.record import Record
from ctbench.results.store import read_stored

TABLE = ROOT / "docs" / "evidence" / "night.csv"
CAMPAIGNS = ROOT / "variables" / "campaigns"
ROWS = (
    "OVS Bridge, VLAN, 64 Bytes, 10k Flows", "Stateful iptables, 10k Flows", "OVS Bridge, 64 Bytes, 10k Flows",
    "SNAT With nftables, 10k Flows", "1 CPU, 1 Queue, Short-Lived Connections", "SNAT, 1 CPU, 1 Queue, Short-Lived",
    "Stateful iptables, Short-Lived Connections", "Stateful iptables, TCP Without Data",
    "Stateful iptables, UDP, 800 Bytes", "No Conntrack, 1 CPU, 1 Queue, Short-Lived",
)  # fmt: skip
HEAD = [
    "test", "NDR", "NDR not held", "PDR", "PDR not held", "night: trials", "night: traffic", "characterise", "least",
    "most", "searches", "characterise: trials", "characterise: traffic", "agree", "date",
]  # fmt: skip


def main() -> None:
    """Make the lines that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=len(ROWS), help="lines at most (default: %(default)s)")
    parser.add_argument("--searches", type=int, help="of characterise (default: as many as it makes)")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    table: Path = options.table
    known = table.read_text(encoding="utf-8").splitlines()[1:] if table.exists() else []
    missing = [row for row in ROWS if row not in {cells[0] for cells in csv.reader(known)}]
    for row in missing[: options.most]:
        night, characterise = (measure(row, each, options.searches) for each in ("night", "characterise"))
        append(table, line(night, characterise) if night and characterise else [row, *[""] * (len(HEAD) - 2), today()])


def measure(row: str, campaign: str, searches: int | None) -> tuple[Record, int] | None:
    """The record of a row, and how many trials it had; None where it has no figure."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{campaign}.yaml")
        file.write_text(yaml.safe_dump(searching(campaign, searches)), encoding="utf-8")
        command = ["./run", "sla", "--outputdir", f"{folder}/run", "-v", f"CAMPAIGN:{file}", "--test", row]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        found = [each for each in read_stored(Path(folder, "run"))[0] if each.record.result]
    if not found:
        print(f"{row}, {campaign}: nothing was measured\n{done.stdout[-1000:]}", flush=True)
    return (found[-1].record, found[-1].trials) if found else None


def searching(campaign: str, searches: int | None) -> dict[str, Any]:
    """A campaign that makes at most so many searches of each test."""
    found: dict[str, Any] = yaml.safe_load((CAMPAIGNS / f"{campaign}.yaml").read_text(encoding="utf-8"))
    found["repetitions"] = min(searches or math.inf, found.get("repetitions", 1))
    if found["repetitions"] == 1:  # nothing to spread
        found.pop("max_spread", None)
    return found


def line(night: tuple[Record, int], characterise: tuple[Record, int]) -> list[str]:
    """What both found. They agree where the range of what `characterise` found reaches what lies between the NDR and
    the lowest load that the PDR does not hold: its limit on losses lies between theirs."""
    (ours, trials), (theirs, other_trials) = night, characterise
    ndr, other, pdr = ours.result, theirs.result, ours.figures.get(PDR_OF[ours.metric].name)
    assert ndr and other, "both have a figure"
    least, most = other.low or other.value, other.high or other.value
    top = (pdr and pdr.high) or ndr.high or ndr.value
    rates = (ndr.value, ndr.high, pdr and pdr.value, pdr and pdr.high)
    cells = (
        ours.test, *map(in_kilo, rates), trials, seconds(ours), *map(in_kilo, (other.value, least, most)),
        max(1, len(other.samples)), other_trials, seconds(theirs),
        "yes" if least <= top and most >= ndr.value else "no", today(),
    )  # fmt: skip
    return [str(cell) for cell in cells]


def in_kilo(per_s: float | None) -> str:
    """Thousands per second; empty where it is not known."""
    return "" if per_s is None else f"{per_s / 1000:.1f} k"


def seconds(record: Record) -> str:
    """How long traffic was offered."""
    return f"{record.traffic_s:.0f} s"


def today() -> str:
    """The date of a line."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def append(table: Path, cells: list[str]) -> None:
    """Add a line, below the head where there is none yet."""
    head = [] if table.exists() else [HEAD]
    with table.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*head, cells])
    print(*cells, sep="; ", flush=True)


if __name__ == "__main__":
    main()
