"""How many entries the tables of a pair have, whose sides run half of the time each: the table of
docs/evidence/table-pair.csv.

Run by hand on a quiet machine: .venv/bin/python -m tools.benchmarks.pair_tables
Closed loops in turns of 50 ms go on for far longer than any pair does, first in turn, then to one side alone."""

import argparse
import tempfile
from pathlib import Path

from ctbench.base.units import format_count, format_rate
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.measure.duet import turns
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.testbed.two_sides import Setup
from ctbench.traffic.profiles import load_profile

PROFILE, SLICE_S, LOOK_S, LOOKS = load_profile("short-lived"), 0.05, 5.0, 18
KERNEL = "linux-router"
PAIRS = (
    (Topology(ruleset="conntrack"), Topology(ruleset="nat")),
    (Topology(datapath=KERNEL, ruleset="iptables-stateful"), Topology(datapath=KERNEL, ruleset="nftables-stateful")),
)


def main() -> None:
    """Print a row for each DUT and way to serve it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| DUT | served | rate while it runs | entries after each 5 s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        testbed = Testbed(load("testbeds", "local", TestbedConfig), Path(folder))
        try:
            for tested, other in PAIRS:
                testbed.apply_pair(Setup(tested), Setup(other), PROFILE)
                for way in ("in turn with the other", "alone"):
                    print(row(testbed, tested, way), flush=True)
        finally:
            testbed.close()


def row(testbed: Testbed, tested: Topology, way: str) -> str:
    """Serve it for the looks, and count its entries after each."""
    pair, number = testbed.side_by_side, round(LOOK_S / SLICE_S)
    assert pair, "it stands next to another one"
    pair.flush()
    entries, made = [], []
    for look in range(LOOKS):
        order = turns(look * number // 2, number // 2) if way != "alone" else ["tested"] * number
        made += [part for part in pair.run_slices(order, SLICE_S) if part.side == "tested"]
        entries.append(pair.tested.connections())
    rate = sum(part.completed for part in made) / sum(part.seconds for part in made)
    return f"| {tested.key} | {way} | {format_rate(rate)} | {', '.join(map(format_count, entries))} |"


if __name__ == "__main__":
    main()
