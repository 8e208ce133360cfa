"""Gates of builds, one after the other: docs/evidence/gates.csv, to which it appends.

Run by hand on a quiet machine:
.venv/bin/python -m tools.benchmarks.gates --base PREFIX NAME=PREFIX...
Each build is gated in its turn, until each was so many times (those in the table count). A row is written as a gate
ends, so that it can be stopped and continued; the records of each stay in a folder of results/."""

import argparse
import csv
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.paths import ROOT, results_root
from ctbench.report.candidate import sentence
from ctbench.results.record import Record
from ctbench.results.store import read_stored

TABLE = ROOT / "docs" / "evidence" / "gates.csv"
#: A row of each kind: conntrack, NAT, and what has no conntrack.
THREE = (
    "1 CPU, 1 Queue, Short-Lived Connections",
    "SNAT, 1 CPU, 1 Queue, Short-Lived",
    "OVS Bridge, 64 Bytes, 10k Flows",
)


def gate(name: str, base: str, candidate: str, tests: tuple[str, ...]) -> list[str]:
    """Run one, and return its row of the table."""
    folder = results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-gate"
    command = ["./run", "sla", "--candidate", candidate, "--base", base, "--argumentfile", "test_lists/gate.args"]
    command += ["--outputdir", str(folder), *(part for test in tests for part in ("--test", test))]
    begun = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL).returncode
    took, records = time.monotonic() - begun, [each.record for each in read_stored(folder)[0]]
    said = "; ".join(map(row, records)) if tests else sentence(records)
    words = [sum(each.verdict == word for each in records) for word in ("met", "missed", "not measured")]
    return [str(cell) for cell in (name, len(records), *words, status, f"{took:.0f} s", said)]


def row(record: Record) -> str:
    """What one test says of a candidate."""
    pair = next((pair for pair in record.evidence.pairs if pair.starts), None)
    if pair is None or pair.result is None:
        return f"{record.topology.key}: {record.verdict}"
    middle, *whole = (each.as_share(tenths=True) for each in pair.result.both)
    return f"{record.topology.key}: {record.verdict}, {middle} (whole {''.join(whole)}), {len(pair.starts)} starts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True)
    parser.add_argument("--gates", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="all rows of the gate, not three")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("candidates", nargs="+", metavar="NAME=PREFIX")
    options = parser.parse_args()
    for number in range(1, options.gates + 1):
        for name, _, prefix in (each.partition("=") for each in options.candidates):
            named = f"{name}, full" if options.full else name
            if _made(options.table).count(named) < number:
                cells = gate(named, options.base, prefix, () if options.full else THREE)
                with options.table.open("a", encoding="utf-8", newline="") as file:
                    for each in (file, sys.stdout):
                        csv.writer(each, lineterminator="\n").writerow(cells)
                sys.stdout.flush()


def _made(table: Path) -> list[str]:
    """The names of the gates that the table has."""
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    return [cells[0] for cells in csv.reader(lines)]


if __name__ == "__main__":
    main()
