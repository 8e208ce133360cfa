"""How much of what quick says that a DUT holds lasts: docs/evidence/lasting.csv, to which it appends.

Run by hand on a quiet machine: .venv/bin/python -m tools.benchmarks.lasting [--seconds 120]
In each of three rounds, and with each of three DUTs, quick's closed loop and search say what the DUT holds; then shares
of that are offered in an open loop, in an order of their own. A row is written as its trial ends, and one that is there
is not made again, so that it can be stopped and continued."""

import argparse
import csv
import random
import tempfile
from dataclasses import replace
from pathlib import Path

from unit.simulated import floor_of

from ctbench.base.units import format_count, format_duration, format_rate, format_ratio
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Observation
from ctbench.measure.probe import TableEntries
from ctbench.measure.procedure import Bench
from ctbench.measure.procedures.rates import ClosedLoop, HighestRate
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import load_profile

SHARES, ROUNDS, PROFILE = (0.5, 0.7, 0.85), 3, load_profile("short-lived")
DUTS = (
    Topology(ruleset="conntrack"),
    Topology(ruleset="nat"),
    Topology(datapath="linux-router", ruleset="iptables-stateful"),
)
#: Conditions as in the stock SLA; seconds between two looks at the table.
CONDITIONS, EVERY_S = {"loss_ratio": 0.0002}, 2.0
TABLE = Path(__file__).parents[2] / "docs" / "evidence" / "lasting.csv"
HEAD = [
    "DUT", "round", "quick: holds", "share", "offered", "for", "verdict", "lost", "generator late", "entries at most",
    "why",
]  # fmt: skip


def main() -> None:
    """Make the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--most", type=int, default=ROUNDS * len(DUTS) * len(SHARES), help="rows at most")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args()
    campaign, left = load("campaigns", "quick", Campaign), options.most
    with tempfile.TemporaryDirectory() as folder:
        testbed = Testbed(load("testbeds", "local", TestbedConfig), Path(folder))
        try:
            for number in range(1, ROUNDS + 1):
                for topology in DUTS:
                    known = rows_of(options.table, topology, number, options.seconds)
                    order = random.Random(f"{topology.key}{number}").sample(SHARES, len(SHARES))
                    missing = [share for share in order if f"{share:.0%}" not in known][:left]
                    if not missing:
                        continue
                    testbed.apply(topology, PROFILE)
                    held = float(next(iter(known.values()), 0.0)) or holds(testbed, campaign)
                    for share in missing if held else ():
                        seen = offer(testbed, held * share, options.seconds)
                        append(options.table, row(topology, number, held, share, seen, options.seconds))
                        left -= 1
        finally:
            testbed.close()


def rows_of(table: Path, topology: Topology, number: int, seconds: float) -> dict[str, float]:
    """What quick said, per second, by the shares of it that were offered for so long in a round."""
    cells = list(csv.reader(table.read_text(encoding="utf-8").splitlines())) if table.exists() else []
    return {
        each[3]: float(each[2].replace(" k/s", "e3"))
        for each in cells
        if each[:2] == [topology.key, str(number)] and each[5] == format_duration(seconds)
    }


def holds(testbed: Testbed, campaign: Campaign) -> float:
    """What quick finds, per second; 0 where no valid trial held."""
    bench = Bench(testbed.dut, testbed.generator, floor_of(PROFILE), campaign)
    served = ClosedLoop(campaign.saturation_for(PROFILE)).run(bench)
    found = HighestRate(campaign.search_for(PROFILE)).run(replace(bench, earlier=served))
    if not found.result or not found.result.value:
        print(f"quick finds nothing that holds: {served.reason}; {found.reason}", flush=True)
    return found.result.value if found.result else 0.0


def offer(testbed: Testbed, per_s: float, seconds: float) -> Observation:
    """One open loop, with looks at the table."""
    assert testbed.dut, "it was set up"
    bench = Bench(testbed.dut, testbed.generator, floor_of(PROFILE), load("campaigns", "quick", Campaign))
    probe = TableEntries(testbed.dut.connections, every_s=EVERY_S)
    return replace(bench.runner_for(CONDITIONS, probe).offer(Rate(per_s), seconds), strict=True)


def row(topology: Topology, number: int, held: float, share: float, seen: Observation, seconds: float) -> list[str]:
    """A row of the table."""
    entries = [value for series in seen.samples for value in series.values if value is not None]
    cells = (
        topology.key, number, f"{held / 1e3:.1f} k/s", f"{share:.0%}", format_rate(seen.load), format_duration(seconds),
        seen.state, format_ratio(seen.values["loss_ratio"]), f"{seen.trial.late_max_ms:.1f} ms",
        format_count(max(entries, default=0)), seen.reason,
    )  # fmt: skip
    return [str(cell) for cell in cells]


def append(table: Path, cells: list[str]) -> None:
    """Add a row, below the head where there is none yet."""
    head = [] if table.exists() else [HEAD]
    with table.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*head, cells])
    print(*cells, sep=", ", flush=True)


if __name__ == "__main__":
    main()
